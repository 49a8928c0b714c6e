"""Who has which connection of one store: a limit of them, and a limit of the time that a thread waits for one.

A thread never takes a second one while it has one: with as many threads as connections, each would wait for another.
"""

from __future__ import annotations

import threading
import time

from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.postgres.watched_connection import WatchedConnection

MOST = 16  # connections of one store
SPARE = 1  # and as many more for heartbeats alone: they must not queue behind statements that wait for a lock
PATIENCE = 20.0  # seconds that a thread waits while others have all of them; a third of a worker's lease
_SHUT = 1.0  # seconds in which no further one is tried, after one was refused to a store that has some
_IDLE = 0  # libpq's word for a connection that is in no transaction


class Busy(Unavailable):
    """All connections are in use, and have been for a while."""


class Checkout:
    """The connections of one store."""

    def __init__(self, connect: Callable[[], WatchedConnection]) -> None:
        self._connect = connect
        self._closed = False
        self.idle: list[WatchedConnection] = []
        self._change = threading.Condition()
        self._open = 0
        """Connections that there are, idle or not, and those that are being made."""
        self._shut_until = float("-inf")
        self._mine = threading.local()

    @property
    def is_full(self) -> bool:
        """Whether a thread that wants a connection has to wait for another to give one back."""
        return not self.idle and not self._may_open(MOST)

    def take(self, *, urgent: bool) -> WatchedConnection:
        """A connection for this thread alone; `Busy` if there is none in time."""
        assert not getattr(self._mine, "has_one", False), "a thread takes one connection at a time"
        end = time.monotonic() + PATIENCE
        most = MOST + SPARE if urgent else MOST
        while True:
            taken = self._idle_one(most, end) or self._new_one()
            if taken is not None:
                self._mine.has_one = True
                return taken

    def _idle_one(self, most: int, end: float) -> WatchedConnection | None:
        """One that is idle; None where another may be opened, which is counted as open then."""
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

    def _new_one(self) -> WatchedConnection | None:
        """A new one; None where it is refused and others are there, which are worth waiting for."""
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

    def back(self, connection: WatchedConnection) -> None:
        """Give a connection back; one that is no use any more is closed."""
        self._mine.has_one = False
        with self._change:
            if connection.pgconn.transaction_status == _IDLE and not self._closed:
                self.idle.append(connection)
                self._change.notify()
                return
        if connection.closed or connection.broken:
            self.drain()  # the others are as dead as this one, most likely
        self._close([connection])  # also one that somebody had who was interrupted in mid-statement

    def drain(self) -> None:
        """Let go of what is idle: new connections are told what these were not."""
        with self._change:
            idle, self.idle = self.idle, []
        self._close(idle)

    def _close(self, connections: list[WatchedConnection]) -> None:
        for connection in connections:
            connection.close()
        with self._change:
            self._open -= len(connections)
            self._change.notify_all()

    def close(self) -> None:
        """Let go of all connections; what is in the middle of a verb is let go of at its end."""
        self._closed = True
        self.drain()
