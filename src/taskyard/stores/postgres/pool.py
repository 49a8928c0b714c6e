"""Statements on a few connections of one store: one for each thread that is in the middle of a verb, kept for the next.

A connection that breaks is replaced, with growing pauses, for a short while; then it is the caller's turn to wait. What
was in the air then is looked up before it is said again (`recover`), because its answer may be all that was lost; and it is
ended first, because the server may be about to do it only now.
"""

from __future__ import annotations

import threading
import time

from taskyard.core import forks, ids
from taskyard.core.errors import Invalid, Unavailable
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.checkout import Busy, Checkout
from taskyard.stores.postgres.driver import Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.watched_connection import WatchedConnection

    Rows = list[tuple[Any, ...]]

PATIENCE = 5.0  # seconds in which a connection that broke is replaced without a word
AWAY = 0.5  # seconds without an answer after which others may have lost time too
_TOLD_EVERY = 1.0  # seconds, at the least
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_TRIES = 10  # times that a statement which met a deadlock is said again
_buried: list[Any] = []  # connections of a parent process: they must not be closed here, nor collected


class Pool:
    """The connections of one store."""

    def __init__(self, address: Address, durability: str | None) -> None:
        self.address = address
        self._durability = durability
        self.isolation = "read committed"
        """The server's default; where it is another, every connection is told otherwise."""
        self.returned: Callable[[Connection[Any], float], object] | None = None
        """Told, with a connection that works, for how long none did."""
        self._met = False
        self._closed = False
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self.room = Checkout(self.connected)
        self._lock = threading.Lock()
        self._away_since: float | None = None
        self._asked: dict[Trouble, float] = {}
        """Since when each of those waits for an answer who do."""
        self._told_at = float("-inf")

    def renew(self) -> None:
        """A forked child leaves its parent's connections alone: a goodbye from here would end them for the parent."""
        _buried.extend(self.room.idle)
        self._begin()

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection[Any]], Rows | None] | None = None,
        prepare: bool | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """The statement's rows; it is said once more where it met a deadlock, or a connection that broke."""

        def once(connection: WatchedConnection) -> Rows:
            if connection.pooled and self.isolation != "read committed":
                with connection.transaction():
                    return _rows(connection, statement, values, prepare)
            return _rows(connection, statement, values, prepare)

        rows: Rows = self.attempt(once, recover, urgent=urgent)
        return rows

    def attempt(
        self,
        once: Callable[[WatchedConnection], Any],
        recover: Callable[[WatchedConnection], Any] | None = None,
        *,
        urgent: bool = False,
    ) -> Any:
        """What `once` gives on a connection, after as many tries as it takes; `recover` tells what a lost try has done."""
        trouble = Trouble()
        while True:
            try:
                with _Held(self, urgent) as connection:
                    self._come_back(connection)
                    self._asked[trouble] = time.monotonic()
                    if trouble.is_lost and recover is not None:
                        self._end_lost(connection, trouble.pids)
                        found = recover(connection)
                        if found is not None:
                            return found
                    return once(connection)
            except Lost as error:
                self._go_away(trouble.began)
                trouble.met(self.address, error)
            except _Again as error:
                trouble.again(error)
            except Busy:
                raise  # the database is there
            except Unavailable:
                self._go_away(trouble.began)
                if not self._met or trouble.end is None:
                    raise
                trouble.met(self.address, None)
            finally:
                began = self._asked.pop(trouble, None)
                if began is not None and time.monotonic() - began >= AWAY:
                    self._go_away(began)

    def _go_away(self, since: float) -> None:
        with self._lock:
            self._away_since = since if self._away_since is None else min(since, self._away_since)

    def _come_back(self, connection: Connection[Any]) -> None:
        """Tell for how long somebody here had no answer, before anything else is said: a sweep would take it for silence."""
        if self._away_since is None and not self._asked:
            return
        now = time.monotonic()
        since = min(list(self._asked.values()), default=now)
        if self._away_since is not None:
            since = min(since, self._away_since)
        if self.returned is None or now - since < AWAY or now - self._told_at < _TOLD_EVERY:
            return
        self.returned(connection, now - since)
        with self._lock:
            self._told_at, self._away_since = now, None

    def _end_lost(self, connection: WatchedConnection, pids: list[int]) -> None:
        """See to it that what was lost is not done later; behind a pooler nobody can tell who would do it."""
        if not pids:
            return
        driver.rows(connection, queries.load("outages")["end_lost"], {"pids": pids})
        end = time.monotonic() + PATIENCE
        while driver.rows(connection, queries.load("outages")["half_committed"], {"pids": pids}):
            if time.monotonic() > end:
                raise Busy(
                    f"PostgreSQL at {self.address.where} waits for its synchronous standby",
                    hint="what was said is committed as soon as the standby has it: look whether it is there before you say it again",
                )
            time.sleep(_FIRST_PAUSE)

    def connected(self) -> WatchedConnection:
        """A new connection, told what this store wants of it."""
        connection = driver.connect(self.address, again=self._met)
        words = []
        if connection.pooled:
            if self._durability == "strict":
                connection.close()
                raise Invalid(
                    f"a pooler in front of {self.address.where} takes no settings, so durability strict cannot be had there",
                    hint="set it for the role: ALTER ROLE ... SET synchronous_commit = on; or say pooler=session if the pooler is one of sessions",
                )
        else:
            if self.isolation != "read committed":
                words.append("SET default_transaction_isolation = 'read committed'")
            if self._durability in ("fast", "strict"):
                words.append(f"SET synchronous_commit = {'off' if self._durability == 'fast' else 'on'}")
        if words:
            try:
                connection.execute("; ".join(words).encode())
            except driver.module().Error as error:
                connection.close()
                raise driver.unreachable(self.address, error) from None
        self._met = True
        return connection

    @property
    def is_full(self) -> bool:
        """Whether all connections are in use."""
        return self.room.is_full

    def drain(self) -> None:
        """Let go of what is idle: new connections are told what these were not."""
        self.room.drain()

    def close(self) -> None:
        """Let go of all connections; what is in the middle of a verb is let go of at its end."""
        self._closed = True
        self.room.close()

    def __del__(self) -> None:
        if not self._closed:
            self.close()


class _Held:
    """A connection for one thread; errors of the driver come out as what they mean."""

    __slots__ = ("_connection", "_pool", "_urgent")

    def __init__(self, pool: Pool, urgent: bool) -> None:
        self._pool = pool
        self._urgent = urgent

    def __enter__(self) -> WatchedConnection:
        self._connection = self._pool.room.take(urgent=self._urgent)
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool = self._pool
        try:
            if isinstance(error, driver.module().Error):
                told = driver.meaning(error, self._connection, pool.address)
                raise (told if told is not None else _Again(str(error))) from None
        finally:
            pool.room.back(self._connection)


class _Again(Exception):
    """Nothing was done, and it may be tried again at once."""


class Trouble:
    """How long a verb has been trying."""

    __slots__ = ("_pause", "_tries", "began", "end", "is_lost", "pids")

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.is_lost = False
        self.pids: list[int] = []
        """The processes of the server that may still do what was said on connections that broke."""
        self.end: float | None = None
        self._pause = _FIRST_PAUSE
        self._tries = 0

    def met(self, address: Address, error: Lost | None) -> None:
        """Wait a little, or give up."""
        now = time.monotonic()
        if error is not None:
            self.is_lost = True
            if error.pid is not None:
                self.pids.append(error.pid)
        if self.end is None:
            self.end = now + PATIENCE
        if now + self._pause > self.end:
            raise Unavailable(
                f"PostgreSQL at {address.where} went away{'' if error is None else f': {error}'}",
                hint="it is tried again with the next command; nothing that was acknowledged is lost",
            )
        # At random: all who were connected have lost it in the same moment, and must not come back in the same one.
        time.sleep(self._pause * (0.5 + ids.chance(8) / 256))
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

    is_full = False

    def __init__(self, address: Address, connection: Any, project: int) -> None:
        if not isinstance(connection, driver.module().Connection):
            raise Invalid(
                f"conn= must be a psycopg connection, not {type(connection).__name__}",
                hint="make one with psycopg.connect",
            )
        if connection.pgconn.pipeline_status:  # which gives answers later, and cannot COPY
            raise Invalid("conn= is in a pipeline", hint="say it before or after 'with conn.pipeline()'")
        self.address = address
        self._connection = connection
        self._channel = f"taskyard_{project}"

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection[Any]], Rows | None] | None = None,
        prepare: bool | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """The statement's rows."""
        rows: Rows = self.attempt(
            lambda connection: _rows(connection, statement, values, prepare), recover, urgent=urgent
        )
        return rows

    def attempt(
        self,
        once: Callable[[Any], Any],
        recover: Callable[[Any], Any] | None = None,  # noqa: ARG002  nothing is tried again
        *,
        urgent: bool = False,  # noqa: ARG002  nobody else wants it
    ) -> Any:
        """What `once` gives; others hear of it when the transaction commits, however long that takes."""
        done = once(self._connection)
        self._connection.execute("SELECT pg_notify(%s, '')", (self._channel,))
        return done

    def drain(self) -> None:
        """Nothing here is idle."""

    def close(self) -> None:
        """The connection is the caller's."""
