"""A few connections for one store: one for each thread that is in the middle of a verb, kept for the next.

A connection that breaks is replaced, with growing pauses, for a short while; then it is the caller's turn to wait. What
was in the air then is looked up before it is said again (`recover`), because its answer may be all that was lost.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

from taskyard import forks
from taskyard.errors import Invalid, Unavailable
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.driver import Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address

    Rows = list[tuple[Any, ...]]

MOST = 16  # connections of one store
PATIENCE = 5.0  # seconds in which a connection that broke is replaced without a word
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_IDLE = 0  # libpq's word for a connection that is in no transaction
_TRIES = 10  # times that a statement which met a deadlock is said again
_buried: list[Any] = []  # connections of a parent process: they must not be closed here, nor collected


class Pool:
    """The connections of one store."""

    def __init__(self, address: Address, durability: str | None) -> None:
        self.address = address
        self._durability = durability
        self.isolation = "read committed"
        """The server's default; where it is another, every connection is told otherwise."""
        self._met = False
        self._closed = False
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._idle: list[Connection[Any]] = []
        self._room = threading.BoundedSemaphore(MOST)
        self._lock = threading.Lock()

    def renew(self) -> None:
        """A forked child leaves its parent's connections alone: a goodbye from here would end them for the parent."""
        _buried.extend(self._idle)
        self._begin()

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection[Any]], Rows | None] | None = None,
        prepare: bool | None = None,
    ) -> Rows:
        """The statement's rows; it is said once more where it met a deadlock, or a connection that broke."""

        def once(connection: Connection[Any]) -> Rows:
            if self.address.pooled and self.isolation != "read committed":
                with connection.transaction():
                    return _rows(connection, statement, values, prepare)
            return _rows(connection, statement, values, prepare)

        rows: Rows = self.attempt(once, recover)
        return rows

    def attempt(
        self, once: Callable[[Connection[Any]], Any], recover: Callable[[Connection[Any]], Any] | None = None
    ) -> Any:
        """What `once` gives on a connection, after as many tries as it takes; `recover` tells what a lost try has done."""
        trouble = Trouble()
        while True:
            try:
                with self._held() as connection:
                    if trouble.lost and recover is not None:
                        found = recover(connection)
                        if found is not None:
                            return found
                    return once(connection)
            except Lost as error:
                trouble.met(self.address, error)
            except _Again as error:
                trouble.again(error)
            except Unavailable:
                if not self._met or trouble.end is None:
                    raise
                trouble.met(self.address, None)

    @contextmanager
    def _held(self) -> Iterator[Connection[Any]]:
        """A connection for one thread; errors of the driver come out as what they mean."""
        with self._room:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            connection = connection or self.connected()
            errors = driver.module().Error
            try:
                yield connection
            except errors as error:
                told = driver.meaning(error, connection, self.address)
                raise (told if told is not None else _Again(str(error))) from None
            finally:
                self._back(connection)

    def _back(self, connection: Connection[Any]) -> None:
        if connection.closed or connection.broken:
            connection.close()
            self.drain()  # the others are as dead as this one, most likely
            return
        if connection.info.transaction_status != _IDLE:
            connection.close()  # whoever had it was interrupted in mid-statement
            return
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def connected(self) -> Connection[Any]:
        """A new connection, told what this store wants of it."""
        connection = driver.connect(self.address)
        words = []
        if not self.address.pooled:
            if self.isolation != "read committed":
                words.append("SET default_transaction_isolation = 'read committed'")
            if self._durability in ("fast", "strict"):
                words.append(f"SET synchronous_commit = {'off' if self._durability == 'fast' else 'on'}")
        if words:
            connection.execute("; ".join(words).encode())
        self._met = True
        return connection

    def drain(self) -> None:
        """Let go of what is idle: new connections are told what these were not."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Let go of all connections; what is in the middle of a verb is let go of at its end."""
        self._closed = True
        self.drain()

    def __del__(self) -> None:
        if not self._closed:
            self.close()


class _Again(Exception):
    """Nothing was done, and it may be tried again at once."""


class Trouble:
    """How long a verb has been trying."""

    __slots__ = ("_pause", "_tries", "end", "lost")

    def __init__(self) -> None:
        self.lost = False
        self.end: float | None = None
        self._pause = _FIRST_PAUSE
        self._tries = 0

    def met(self, address: Address, error: Lost | None) -> None:
        """Wait a little, or give up."""
        now = time.monotonic()
        if error is not None:
            self.lost = True
        if self.end is None:
            self.end = now + PATIENCE
        if now + self._pause > self.end:
            raise Unavailable(
                f"PostgreSQL at {address.where} went away{'' if error is None else f': {error}'}",
                hint="it is tried again with the next command; nothing that was acknowledged is lost",
            )
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def again(self, error: _Again) -> None:
        """Once more, unless that was often enough."""
        self._tries += 1
        if self._tries >= _TRIES:
            raise Unavailable(f"too much happens at once: {error}", hint="try again")


def _rows(connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool | None) -> Rows:
    found: Rows = driver.rows(connection, statement, values, prepare)
    return found


class Bound:
    """One connection of the caller's own: nothing is tried again on it, because only the caller can begin anew."""

    def __init__(self, address: Address, connection: Any, project: int) -> None:
        if not isinstance(connection, driver.module().Connection):
            raise Invalid(
                f"conn= must be a psycopg connection, not {type(connection).__name__}",
                hint="make one with psycopg.connect",
            )
        self.address = address
        self._connection = connection
        self._channel = f"taskyard_{project}"

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection[Any]], Rows | None] | None = None,
        prepare: bool | None = None,
    ) -> Rows:
        """The statement's rows."""
        rows: Rows = self.attempt(lambda connection: _rows(connection, statement, values, prepare), recover)
        return rows

    def attempt(
        self,
        once: Callable[[Connection[Any]], Any],
        recover: Callable[[Connection[Any]], Any] | None = None,  # noqa: ARG002  nothing is tried again
    ) -> Any:
        """What `once` gives; others hear of it when the transaction commits, however long that takes."""
        done = once(self._connection)
        self._connection.execute("SELECT pg_notify(%s, '')", (self._channel,))
        return done

    def drain(self) -> None:
        """Nothing here is idle."""

    def close(self) -> None:
        """The connection is the caller's."""
