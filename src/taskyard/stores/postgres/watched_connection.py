"""A connection on psycopg that does not wait for ever: if the server is silent, a second connection checks on it.

One thread watches all waiting connections of this process, and runs only while there are any. To check between the
driver's own steps would triple the cost of each statement. Imported together with psycopg, and not before.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any

import psycopg
from psycopg import pq

from taskyard.core import forks
from taskyard.stores.postgres import driver, silence
from taskyard.stores.postgres.psycopg_statements import Statements

_ROUNDS = 5  # rounds of the watching thread in `SILENCE` seconds
_IDLE_ROUNDS = 10  # rounds without a waiting connection, after which the thread ends


class WatchedConnection(Statements, psycopg.Connection[Any]):
    """A connection to PostgreSQL whose waits end when the server is gone (`connection.Connection`)."""

    reconnect: tuple[str, dict[str, Any]] | None = None
    pooled = False
    pid: int | None = None
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
            raise psycopg.OperationalError(silence.message(self, self.given_up)) from None
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

    @property
    def is_idle(self) -> bool:
        """Whether no statement and no transaction is under way."""
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    @property
    def is_traceable(self) -> bool:
        """Whether the server's process is known, so that a lost statement can be cancelled."""
        return self.pid is not None

    @property
    def server(self) -> tuple[str, int]:
        """The host and the port of the server that answers."""
        return self.info.host, self.info.port

    @property
    def server_version(self) -> int:
        """The release of the server."""
        return self.info.server_version

    @property
    def reported_pid(self) -> int:
        """The number that the server, or a pooler, gives for its process."""
        return self.info.backend_pid

    def parameter(self, name: str) -> str | None:
        """Return a setting that the server reports by itself; None if it does not."""
        return self.info.parameter_status(name)

    def exchange(self, message: str, patience: float) -> list[list[str | None]]:
        """Send a message of several statements and return the last row of each, as text."""
        wire, end = self.pgconn, time.monotonic() + patience
        wire.send_query(message.encode())
        found: list[list[str | None]] = []
        while True:
            unsent = wire.flush()
            if not unsent and not wire.is_busy():
                result = wire.get_result()
                if result is None:
                    return found
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
                if result.ntuples:
                    texts = [result.get_value(result.ntuples - 1, column) for column in range(result.nfields)]
                    found.append([None if text is None else text.decode() for text in texts])
                continue
            if not driver.is_ready(wire.socket, end - time.monotonic(), writes=bool(unsent)):
                raise psycopg.OperationalError(f"no answer in {patience:g} s")
            wire.consume_input()

    def notified(self) -> list[str]:
        """Return the channels of the notifications that have arrived."""
        self.pgconn.consume_input()
        found = []
        while (notice := self.pgconn.notifies()) is not None:
            found.append(notice.relname.decode())
        return found

    def another(self) -> WatchedConnection:
        """Open a second connection in the same way, to check on this one."""
        assert self.reconnect is not None
        target, options = self.reconnect
        return WatchedConnection.connect(target, autocommit=True, **options)

    def never_prepare(self) -> None:
        """Prepare no statement from now on."""
        self.prepare_threshold = None


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
            time.sleep(silence.SILENCE / _ROUNDS)
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
            due, pause = self._next_checks.get(connection, (since + silence.SILENCE, silence.SILENCE))
            if time.monotonic() < due:
                continue
            assert connection.reconnect is not None
            target = connection.reconnect[0]
            served = None if target in gone else silence.is_served(connection, time.monotonic() - since)
            if served is None:
                gone.add(target)  # for all its connections: each further check would take as long
            if self._waiting.get(connection) != since:
                continue  # it was answered meanwhile
            if served:
                self._next_checks[connection] = (time.monotonic() + 2 * pause, min(2 * pause, silence.LONGEST_PAUSE))
            else:
                connection.give_up(time.monotonic() - since)


_watch = Watch()
