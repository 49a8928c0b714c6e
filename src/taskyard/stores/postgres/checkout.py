"""Lends the connections of one store to threads: bounds how many there are and how long a thread waits for one.

A thread never takes a second connection: with as many threads as connections, each would wait for another.
"""

from __future__ import annotations

import threading
import time

from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.postgres.connection import Connection

MOST = 16  # connections of one store
SPARE = 1  # extra connections for heartbeats alone: they must not queue behind statements that wait for a lock
PATIENCE = 20.0  # seconds that a thread waits while all connections are in use; a third of a worker's lease
_SHUT = 1.0  # seconds without a new attempt, after the server refused a further connection to a store that has some


class Busy(Unavailable):
    """All connections have been in use for `PATIENCE` seconds."""


class Checkout:
    """The connections of one store."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._closed = False
        self.idle: list[Connection] = []
        self._change = threading.Condition()
        self._open = 0
        """Connections that exist, idle or in use, and those that are being opened."""
        self._shut_until = float("-inf")
        self._mine = threading.local()

    @property
    def is_full(self) -> bool:
        """Whether a thread that wants a connection has to wait for another thread to return one."""
        return not self.idle and not self._may_open(MOST)

    def take(self, *, urgent: bool) -> Connection:
        """Return a connection for this thread alone; raise `Busy` after `PATIENCE` seconds."""
        assert not getattr(self._mine, "has_one", False), "a thread takes one connection at a time"
        end = time.monotonic() + PATIENCE
        most = MOST + SPARE if urgent else MOST
        while True:
            taken = self._idle_one(most, end) or self._new_one()
            if taken is not None:
                self._mine.has_one = True
                return taken

    def _idle_one(self, most: int, end: float) -> Connection | None:
        """Return an idle connection; None if another may be opened, which is counted as open from here on."""
        with self._change:
            while not self.idle:
                if self._may_open(most):
                    self._open += 1
                    return None
                left = end - time.monotonic()
                if left <= 0:
                    raise Busy(
                        f"all {self._open} connections of this process to the database were in use for {PATIENCE:g} s",
                        hint="look in pg_stat_activity for what they wait for, or for a transaction that was left open; then try again",
                    )
                self._change.wait(min(left, _SHUT))
            return self.idle.pop()

    def _may_open(self, most: int) -> bool:
        return self._open == 0 or (self._open < most and time.monotonic() >= self._shut_until)

    def _new_one(self) -> Connection | None:
        """Open a connection; None if the server refuses and this store has others to wait for."""
        try:
            return self._connect()
        except BaseException as error:
            with self._change:
                self._open -= 1
                self._change.notify_all()
                if isinstance(error, Unavailable) and self._open:
                    self._shut_until = time.monotonic() + _SHUT
                    return None
            raise

    def back(self, connection: Connection) -> None:
        """Take a connection back; close it if it is unusable."""
        self._mine.has_one = False
        with self._change:
            if connection.is_idle and not self._closed:
                self.idle.append(connection)
                self._change.notify()
                return
        if connection.closed or connection.broken:
            self.drain()  # the others have most likely broken too
        self._close([connection])  # also one whose thread was interrupted in mid-statement

    def discard(self, connection: Connection) -> None:
        """Close a connection that is in use, in place of taking it back."""
        self._mine.has_one = False
        self._close([connection])

    def drain(self) -> None:
        """Close the idle connections: new ones get the settings that these lack."""
        with self._change:
            idle, self.idle = self.idle, []
        self._close(idle)

    def _close(self, connections: list[Connection]) -> None:
        for connection in connections:
            connection.close()
        with self._change:
            self._open -= len(connections)
            self._change.notify_all()

    def close(self) -> None:
        """Close all connections; one that is in use is closed when its thread returns it."""
        self._closed = True
        self.drain()
