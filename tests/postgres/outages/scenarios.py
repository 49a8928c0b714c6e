"""What is done to a server, or to its workers, while they work: each scenario a function of the number of tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from tests.postgres.outages.crew import LEASE, Run
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT, LONG = LEASE / 2, 2 * LEASE  # seconds of an outage
FROZEN = 10.5  # more than anybody waits for an answer
MANY = 1000  # tasks, from which on it may take its time
# What was answered must outlive the server; fsync would only matter to the machine.
SETTINGS: dict[str, Any] = {"synchronous_commit": "on"}
AT = (0.2, 0.5, 1.0)  # when something happens: shares of the tasks that have ended; at last everybody waits for more


def killed_workers(tasks: int) -> dict[str, Any]:
    """SIGKILL to workers, again and again."""
    with Server(**SETTINGS) as server, Run(server.url(), tasks) as run:
        kills = 50 if tasks >= MANY else 10
        for number in range(kills):
            run.until(0.05 + 0.8 * number / kills)
            run.kill()
        return run.judge()


def _restarted(how: signal.Signals, tasks: int) -> dict[str, Any]:
    with Server(**SETTINGS) as server, Run(server.url(), tasks) as run:
        for share, seconds in zip(AT, (SHORT, LONG, SHORT), strict=True):
            run.until(share)
            with _outage(run):
                server.stop(how)
                time.sleep(seconds)
                server.start()
        run.add_more()
        return run.judge()


def restarted_fast(tasks: int) -> dict[str, Any]:
    """Restarts in the way of a service manager: connections are ended, and the server says so."""
    return _restarted(signal.SIGINT, tasks)


def restarted_immediately(tasks: int) -> dict[str, Any]:
    """Restarts without a goodbye, with recovery from the log."""
    return _restarted(signal.SIGQUIT, tasks)


def killed_server(tasks: int) -> dict[str, Any]:
    """SIGKILL to the server's first process."""
    return _restarted(signal.SIGKILL, tasks)


def frozen_server(tasks: int) -> dict[str, Any]:
    """SIGSTOP to all processes of the server: connections stay, new ones are taken by the kernel, and nobody answers."""
    with Server(**SETTINGS) as server, Run(server.url(), tasks) as run:
        for share, seconds in zip(AT, (LONG, FROZEN if tasks >= MANY else SHORT, SHORT), strict=True):
            run.until(share)
            with _outage(run):
                server.freeze()
                time.sleep(seconds)
                server.thaw()
        run.add_more()
        return run.judge()


def failed_over(tasks: int) -> dict[str, Any]:
    """The server dies, and its synchronous standby, which runs since long, takes over at another address."""
    with Server(**SETTINGS) as primary:
        standby = Server(copy_of=primary, **SETTINGS)
        with standby:
            with psycopg.connect(primary.url().partition("&project")[0], autocommit=True) as sql:
                sql.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                sql.execute("SELECT pg_reload_conf()")
            both = primary.url(host=f"{primary.folder},{standby.folder}", target_session_attrs="read-write")
            with Run(both, tasks) as run:
                run.until(AT[1])
                with _outage(run):
                    primary.stop(signal.SIGQUIT)
                    time.sleep(LONG)
                    with psycopg.connect(standby.url().partition("&project")[0], autocommit=True) as sql:
                        sql.execute("ALTER SYSTEM RESET synchronous_standby_names")
                        sql.execute("SELECT pg_promote(), pg_reload_conf()")
                return run.judge()


def cut_network(tasks: int) -> dict[str, Any]:
    """Packets vanish between workers and server, for less than a lease and for much more; nobody is told."""
    with _wire() as (inside, wire):
        settings = {**SETTINGS, "listen_addresses": "10.77.0.2"}
        server = Server(prefix=inside, **settings)
        with open(f"{server.folder}/data/pg_hba.conf", "a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        with server, Run(server.url(host="10.77.0.2"), tasks) as run:
            for share, seconds in zip(AT, (SHORT / 2, FROZEN, LONG if tasks >= MANY else SHORT), strict=True):
                run.until(share)
                with _outage(run):
                    wire("down")
                    time.sleep(seconds)
                    wire("up")
            run.add_more()
            return run.judge()


@contextmanager
def _outage(run: Run) -> Iterator[None]:
    steps = run.outage()
    next(steps)
    yield
    next(steps, None)


@contextmanager
def _wire() -> Iterator[tuple[list[str], Callable[[str], None]]]:
    """Another network with one wire to this one: how to start something there, and how to cut the wire at its end."""
    far = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        here = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{far.pid}/ns/net") == here:
            time.sleep(0.005)
        inside = ["nsenter", f"--net=/proc/{far.pid}/ns/net"]
        for words in (
            ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(far.pid)],
            ["ip", "address", "add", "10.77.0.1/24", "dev", "near"],
            ["ip", "link", "set", "near", "up"],
            [*inside, "ip", "address", "add", "10.77.0.2/24", "dev", "far"],
            [*inside, "ip", "link", "set", "far", "up"],
            [*inside, "ip", "link", "set", "lo", "up"],
        ):
            subprocess.run(words, check=True)
        # Known for good: a neighbour that does not answer would be told to whoever sends.
        known = ["ip", "neigh", "replace", "10.77.0.2", "lladdr", _hardware(inside), "dev", "near", "nud", "permanent"]
        subprocess.run(known, check=True)

        def wire(way: str) -> None:
            subprocess.run([*inside, "ip", "link", "set", "far", way], check=True)

        yield inside, wire
    finally:
        far.kill()
        far.wait()


def _hardware(inside: list[str]) -> str:
    """The far end's own address; /sys would show that of another network."""
    told = subprocess.run([*inside, "ip", "-o", "link", "show", "far"], check=True, capture_output=True, text=True)
    return told.stdout.partition("link/ether ")[2].split()[0]


SCENARIOS: dict[str, Callable[[int], dict[str, Any]]] = {
    each.__name__: each
    for each in (
        killed_workers,
        restarted_fast,
        restarted_immediately,
        killed_server,
        frozen_server,
        cut_network,
        failed_over,
    )
}
APART = (cut_network.__name__,)
"""Those that need a network of their own, and so a process of their own."""


def apart(*words: str) -> list[str]:
    """The command in a network of its own, in which it may do as it likes."""
    return ["unshare", "--user", "--map-root-user", "--net", *words]


def possible() -> bool:
    """Whether this machine lets its users have networks."""
    tools = all(
        any(Path(folder, name).exists() for folder in ("/bin", "/sbin", "/usr/bin", "/usr/sbin"))
        for name in ("ip", "nsenter")
    )
    return tools and subprocess.run(apart("true"), capture_output=True, check=False).returncode == 0
