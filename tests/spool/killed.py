"""`python -m tests.spool.killed URL VERB FIRST LAST`: do this again and again, and be killed before the n-th call of each time.

A call is one to the filesystem within the spool, or one statement to the database. It prints one line for each time: what
was acknowledged, or nothing. A time that comes to its end prints `whole` at last.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import taskyard
from taskyard import opening
from taskyard.stores.postgres.libpq.connection import LibpqConnection
from taskyard.stores.postgres.watched_connection import WatchedConnection

FILES = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.listdir"}


class Killer:
    """Kills this process before its n-th call."""

    def __init__(self, number: int, folder: str) -> None:
        self._left = number
        self._folder = folder
        sys.addaudithook(self._hear)
        for name in ("write", "fsync"):
            setattr(os, name, self._counted(getattr(os, name)))
        for connection in (WatchedConnection, LibpqConnection):
            connection.rows = self._counted(connection.rows)  # type: ignore[method-assign]

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if event in FILES and str(given[0]).startswith(self._folder):
            self.count()

    def _counted(self, call: Any) -> Any:
        def counted(*given: Any, **options: Any) -> Any:
            self.count()
            return call(*given, **options)

        return counted

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def add(url: str, number: int) -> str:
    with taskyard.open(url, worker="producer") as yard:
        return yard.add("build", {"n": number}).id


def replay(url: str, _: int) -> str:
    with opening.open_spool(url, worker="replayer") as yard:
        yard.replay_spool()
    return "replayed"


def main(url: str, verb: str, first: int, last: int) -> None:
    """One child for each number, so that the program is loaded once."""
    import psycopg  # noqa: F401  the children's share of the program: it takes longer than all else that one does

    for number in range(first, last + 1):
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            Killer(number, os.environ["TASKYARD_SPOOL"])
            told = {"add": add, "replay": replay}[verb](url, number)
            os.writev(writes, [told.encode()])
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as answer:
            print(answer.read() or "-", flush=True)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            print("whole" if status == 0 else f"it ended with {status}", flush=True)
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
