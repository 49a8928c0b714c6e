"""A connection that nobody waits on for ever: a server that says nothing for a while is asked after on another one.

A statement may take long, because it does much or waits for a lock, and then its server says so. A server that is frozen, or
behind a network that was cut, says nothing at all: neither a broken socket nor a time limit of its own would ever tell. One
thread looks after all that is waited for, and is there only while something is: to look between the driver's own steps would
cost each statement three times what it takes. Imported with the driver, and not before.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any

import psycopg

from taskyard.core import forks
from taskyard.stores.postgres import driver, queries

SILENCE = 5.0  # seconds without an answer, after which it is asked whether the server is at work on what was said
QUEUE = (
    30.0  # the same behind a pooler that takes connections: it may have none to the server that is free, for a while
)
_RARELY = 60.0  # seconds between two such questions, at the most, while it is
_PATIENCE = 4.0  # seconds that the answer to that question may take
_LOOKS = 5  # in that time of silence
_IDLE = 10  # looks in vain, after which nobody looks any more


class WatchedConnection(psycopg.Connection[Any]):
    """A connection to PostgreSQL."""

    again: tuple[str, dict[str, Any]] | None = None
    """How to connect once more to ask after this one; None while it is made."""
    pooled = False
    """Whether the next transaction may run on another connection of the server, which knows nothing of this one's settings."""
    pid: int | None = None
    """The server's process that serves this connection; None behind a pooler, where nobody can tell."""
    given_up: float | None = None
    """After how many seconds of silence nobody waits on it any more."""

    def wait(self, *given: Any, **named: Any) -> Any:
        """What the driver's own gives; `OperationalError` where nobody is there any more to give it."""
        if self.again is None:
            return super().wait(*given, **named)
        _watch.begin(self)
        try:
            return super().wait(*given, **named)
        except psycopg.OperationalError:
            if self.given_up is None:
                raise
            behind = ", or a pooler there has no connection free" if self.pid is None else ""
            raise psycopg.OperationalError(f"the server has said nothing for {self.given_up:.0f} s{behind}") from None
        finally:
            _watch.end(self)

    def give_up(self, waited: float) -> None:
        """Have whoever waits on it wait no more; another thread may say so."""
        self.given_up = waited
        try:
            with socket.socket(fileno=os.dup(self.pgconn.socket)) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # it has ended in this moment

    def is_served(self, waited: float) -> bool | None:
        """Whether the server has a process for this connection; None if it answers nobody."""
        assert self.again is not None
        target, options = self.again
        try:
            with psycopg.connect(target, autocommit=True, **options) as other:
                if self.pid is None:
                    return waited < QUEUE or bool(driver.asked(other, "SELECT 1", _PATIENCE))
                if (other.info.host, other.info.port) != (self.info.host, self.info.port):
                    return False  # another server has taken over
                return bool(driver.asked(other, queries.load("outages")["served"].format(pid=self.pid), _PATIENCE))
        except psycopg.OperationalError as error:
            return (
                True if "FATAL:" in str(error) else None
            )  # too many connections, say: it is there, and may be at work


class Watch:
    """Looks after all lines of this process that somebody waits on."""

    def __init__(self) -> None:
        self.renew()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """A forked child waits on none of its parent's lines, and has none of its threads."""
        self._waiting: dict[WatchedConnection, float] = {}
        self._asked: dict[WatchedConnection, tuple[float, float]] = {}
        """When to ask again after a line that takes long, and how long after the time before that is."""
        self._lock = threading.Lock()
        self._looks = False

    def begin(self, line: WatchedConnection) -> None:
        """Somebody waits on this line from now on."""
        self._waiting[line] = time.monotonic()
        if not self._looks:
            with self._lock:
                if not self._looks:
                    self._looks = True
                    threading.Thread(target=self._run, name="silence", daemon=True).start()

    def end(self, line: WatchedConnection) -> None:
        """And no more."""
        self._waiting.pop(line, None)
        if self._asked:
            self._asked.pop(line, None)

    def _run(self) -> None:
        idle = 0
        while True:
            time.sleep(SILENCE / _LOOKS)
            self._look()
            idle = 0 if self._waiting else idle + 1
            if idle < _IDLE:
                continue
            with self._lock:
                self._looks = False  # before the last look: whoever begins after it finds nobody, and starts another
                if not self._waiting:
                    return
                self._looks = True

    def _look(self) -> None:
        gone = set()
        for line, since in list(self._waiting.items()):
            due, pause = self._asked.get(line, (since + SILENCE, SILENCE))
            if time.monotonic() < due:
                continue
            assert line.again is not None
            target = line.again[0]
            served = None if target in gone else line.is_served(time.monotonic() - since)
            if served is None:
                gone.add(target)  # for all that wait for it: to ask once more for each would take as long each time
            if self._waiting.get(line) != since:
                continue  # it was answered meanwhile
            if served:
                self._asked[line] = (time.monotonic() + 2 * pause, min(2 * pause, _RARELY))
            else:
                line.give_up(time.monotonic() - since)


_watch = Watch()
