"""A process that keeps one PostgreSQL server, and one Valkey server, for as long as somebody is connected to its own socket.

    python keeper.py FOLDER BINARIES VALKEY

Every test process holds one connection. The kernel closes it when the process ends, however that ends; when the last is
gone, the servers are stopped and their folder removed. Nothing but the standard library: it outlives the tests by a moment.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    "timezone": "UTC",
}
_PDEATHSIG = 1
VALKEY = "valkey.sock"
NEW = "new"  # a cluster that no server has used: to copy it takes a quarter of making one
GRACE = 20.0  # seconds until the first user has to be there


def as_somebody(words: list[str]) -> list[str]:
    """The command as a user that PostgreSQL accepts: it refuses to run as root, also as a container's."""
    return words if os.geteuid() else ["unshare", "--user", "--map-user=1000", "--map-group=1000", *words]


def initialise(folder: str, binaries: str) -> None:
    """A new cluster in this folder, with a superuser of one name wherever it runs."""
    subprocess.run(
        as_somebody(
            [
                f"{binaries}/initdb",
                "-N",
                "-A",
                "trust",
                "-U",
                "taskyard",
                "-E",
                "UTF8",
                "--locale=C",
                "-D",
                f"{folder}/data",
            ]
        ),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def start(
    folder: str, binaries: str, settings: dict[str, str], prefix: list[str] | None = None
) -> subprocess.Popen[bytes]:
    """A server on the folder's unix socket, that goes with this process; `prefix` puts it into another namespace."""
    words = [f"{binaries}/postgres", "-D", f"{folder}/data", "-k", folder]
    for name, value in settings.items():
        words += ["-c", f"{name}={value}"]
    # The signal of a parent's death is set after the user has changed: the kernel forgets it then.
    program = f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PDEATHSIG}, {int(signal.SIGINT)}); os.execv(sys.argv[1], sys.argv[1:])"
    with open(f"{folder}/log", "ab") as output:
        return subprocess.Popen(
            (prefix or []) + as_somebody([sys.executable, "-S", "-c", program, *words]),
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )


def start_valkey(folder: str, program: str, *more: str) -> subprocess.Popen[bytes]:
    """A Valkey server on the folder's unix socket, that goes with this process."""
    words = [program, "--port", "0", "--unixsocket", f"{folder}/{VALKEY}", "--save", "", "--dir", folder, *more]
    setup = f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PDEATHSIG}, {int(signal.SIGKILL)}); os.execv(sys.argv[1], sys.argv[1:])"
    with open(f"{folder}/valkey.log", "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-S", "-c", setup, *words], stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )


def is_ready(folder: str, server: int) -> bool:
    """Whether this server takes connections: the last line of its pid file says so, and the first that it is its own."""
    try:
        with open(f"{folder}/data/postmaster.pid", encoding="utf-8") as file:
            lines = file.read().splitlines()
            return lines[0] == str(server) and lines[-1].strip() == "ready"
    except (OSError, IndexError):
        return False


def stop(server: subprocess.Popen[bytes], how: signal.Signals = signal.SIGINT) -> None:
    """End the server: fast by default, immediately with SIGQUIT."""
    if server.poll() is None:
        server.send_signal(how)
    server.wait()


def keep(folder: str, binaries: str, valkey: str) -> None:
    """Serve until the last user is gone."""
    initialise(folder, binaries)
    shutil.copytree(f"{folder}/data", f"{folder}/{NEW}/data")  # for servers of a test's own
    server, hints = start(folder, binaries, SETTINGS), start_valkey(folder, valkey)
    try:
        while not is_ready(folder, server.pid) or not os.path.exists(f"{folder}/{VALKEY}"):
            assert hints.poll() is None, "Valkey ended at once; valkey.log tells why"
            assert server.poll() is None, "the server ended at once; its log tells why"
            time.sleep(0.005)
        door = socket.socket(socket.AF_UNIX)
        door.bind(f"{folder}/door")
        door.listen(64)
        users: list[socket.socket] = []
        end = time.monotonic() + GRACE
        while users or time.monotonic() < end:
            for ready in select.select([door, *users], [], [], 1.0)[0]:
                if ready is door:
                    users.append(door.accept()[0])
                    end = 0.0
                elif not ready.recv(16):
                    users.remove(ready)
                    ready.close()
            if server.poll() is not None:
                return
        os.unlink(f"{folder}/door")  # nobody new from here on
    finally:
        stop(server, signal.SIGQUIT)
        stop(hints, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        os.unlink(f"{folder}.lock")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; this goes when they do
    keep(*sys.argv[1:])
