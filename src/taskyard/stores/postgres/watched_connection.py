"""A connection that does not wait for ever: if the server is silent, a second connection checks on it.

A statement may take long because it does much or waits for a lock; then its server process is visible to others. A
server that is frozen, or behind a cut network, is just silent: neither the socket nor a server-side time limit reports
it. One thread watches all waiting connections of this process, and runs only while there are any. To check between the
driver's own steps would triple the cost of each statement. Imported together with the driver, and not before.
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

SILENCE = 5.0  # seconds without an answer, after which a second connection checks on the server
# The same behind a pooler that accepts connections: for a while it may have no free connection to the server.
QUEUE = 30.0
_LONGEST_PAUSE = 60.0  # seconds between two checks, at the most, while the server works
_CHECK_TIMEOUT = 4.0  # seconds that a check may take
_ROUNDS = 5  # rounds of the watching thread in `SILENCE` seconds
_IDLE_ROUNDS = 10  # rounds without a waiting connection, after which the thread ends


class WatchedConnection(psycopg.Connection[Any]):
    """A connection to PostgreSQL whose waits end when the server is gone."""

    reconnect: tuple[str, dict[str, Any]] | None = None
    """How a second connection is opened to check on this one; None while this one is being opened."""
    pooled = False
    """Whether the next transaction may run on another server connection, which has other settings."""
    pid: int | None = None
    """The server process of this connection; None behind a pooler, where it is not known."""
    given_up: float | None = None
    """The seconds of silence after which this connection was given up."""

    def wait(self, *given: Any, **named: Any) -> Any:
        """Wait as the driver does; raise `OperationalError` once the connection was given up."""
        if self.reconnect is None:
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
        """End the wait of another thread on this connection, by shutting its socket down."""
        self.given_up = waited
        try:
            with socket.socket(fileno=os.dup(self.pgconn.socket)) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return  # it has just been closed

    def is_served(self, waited: float) -> bool | None:
        """Whether the server still has a process for this connection; None if the server does not answer."""
        assert self.reconnect is not None
        target, options = self.reconnect
        try:
            with psycopg.connect(target, autocommit=True, **options) as other:
                if self.pid is None:
                    return waited < QUEUE or bool(driver.exchange(other, "SELECT 1", _CHECK_TIMEOUT))
                if (other.info.host, other.info.port) != (self.info.host, self.info.port):
                    return False  # another server has taken over
                return bool(
                    driver.exchange(other, queries.load("outages")["served"].format(pid=self.pid), _CHECK_TIMEOUT)
                )
        except psycopg.OperationalError as error:
            # A refusal, such as too many connections: the server is there, and may be at work.
            return True if "FATAL:" in str(error) else None


class Watch:
    """Watches all connections of this process on which a thread waits."""

    def __init__(self) -> None:
        self.renew()
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Forget all connections: a forked child has none of its parent's threads."""
        self._waiting: dict[WatchedConnection, float] = {}
        self._next_checks: dict[WatchedConnection, tuple[float, float]] = {}
        """For each slow connection: when to check again, and the pause before that check."""
        self._lock = threading.Lock()
        self._is_running = False

    def begin(self, connection: WatchedConnection) -> None:
        """Watch this connection from now on."""
        self._waiting[connection] = time.monotonic()
        if not self._is_running:
            with self._lock:
                if not self._is_running:
                    self._is_running = True
                    threading.Thread(target=self._run, name="taskyard-watch", daemon=True).start()

    def end(self, connection: WatchedConnection) -> None:
        """Stop watching this connection."""
        self._waiting.pop(connection, None)
        if self._next_checks:
            self._next_checks.pop(connection, None)

    def _run(self) -> None:
        idle = 0
        while True:
            time.sleep(SILENCE / _ROUNDS)
            self._look()
            idle = 0 if self._waiting else idle + 1
            if idle < _IDLE_ROUNDS:
                continue
            with self._lock:
                self._is_running = False  # before the last look: a wait that begins after it starts another thread
                if not self._waiting:
                    return
                self._is_running = True

    def _look(self) -> None:
        gone = set()
        for connection, since in list(self._waiting.items()):
            due, pause = self._next_checks.get(connection, (since + SILENCE, SILENCE))
            if time.monotonic() < due:
                continue
            assert connection.reconnect is not None
            target = connection.reconnect[0]
            served = None if target in gone else connection.is_served(time.monotonic() - since)
            if served is None:
                gone.add(target)  # for all its connections: each further check would take as long
            if self._waiting.get(connection) != since:
                continue  # it was answered meanwhile
            if served:
                self._next_checks[connection] = (time.monotonic() + 2 * pause, min(2 * pause, _LONGEST_PAUSE))
            else:
                connection.give_up(time.monotonic() - since)


_watch = Watch()
