"""Runs statements on the connections of one store, one for each thread that is in the middle of a verb.

A connection that breaks is replaced, with growing pauses, for a short while; then the caller gets an error. A statement
whose answer was lost is cancelled first, because the server may be about to execute it. Then `recover` looks whether it
was executed; only if it was not, it is sent again.
"""

from __future__ import annotations

import threading
import time

from taskyard.core import abandonment, forks, ids
from taskyard.core.abandonment import Abandoned
from taskyard.core.errors import Away, Invalid, Unavailable
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.checkout import Busy, Checkout
from taskyard.stores.postgres.driver import Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.connection import Connection

    Rows = list[tuple[Any, ...]]

PATIENCE = 5.0  # seconds in which a connection that broke is replaced silently
OUTAGE = 0.5  # seconds without an answer, after which other processes may have lost time too
_REPORT_EVERY = 1.0  # seconds between two reports of an outage, at the least
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_TRIES = 10  # times that a statement is retried after deadlocks
_inherited: list[Any] = []  # connections of a parent process: they must not be closed here, nor garbage-collected


class Pool:
    """The connections of one store."""

    def __init__(self, address: Address, durability: str | None, *, brief: bool = False) -> None:
        self.address = address
        self._durability = durability
        self._brief = brief
        self.isolation = "read committed"
        """The server's default; if it is not read committed, every connection is set to that."""
        self.on_return: Callable[[Connection, float], object] | None = None
        """Called with a working connection and the seconds for which none worked."""
        self._was_connected = False
        self._closed = False
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self.checkout = Checkout(self.open_connection)
        self._lock = threading.Lock()
        self._outage_since: float | None = None
        self._waiting_since: dict[Attempts, float] = {}
        """For each request that waits for an answer: since when."""
        self._reported_at = float("-inf")

    def renew(self) -> None:
        """Forget the parent's connections in a forked child: to close them here would end the parent's sessions."""
        _inherited.extend(self.checkout.idle)
        self._begin()

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection], Rows | None] | None = None,
        prepare: bool | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """Run a statement and return its rows; retry after a deadlock or a broken connection."""

        def once(connection: Connection) -> Rows:
            if connection.pooled and self.isolation != "read committed":
                with connection.transaction():
                    return connection.rows(statement, values, prepare)
            return connection.rows(statement, values, prepare)

        rows: Rows = self.attempt(once, recover, urgent=urgent)
        return rows

    def attempt(
        self,
        once: Callable[[Connection], Any],
        recover: Callable[[Connection], Any] | None = None,
        *,
        urgent: bool = False,
    ) -> Any:
        """Call `once` with a connection, as often as needed; `recover` returns what a lost attempt has done, or None."""
        attempts = Attempts()
        while True:
            abandonment.check()
            try:
                with _Lent(self, urgent) as connection:
                    self._report_outage(connection)
                    self._waiting_since[attempts] = time.monotonic()
                    if attempts.is_lost and recover is not None:
                        self._end_lost(connection, attempts.pids)
                        found = recover(connection)
                        if found is not None:
                            return found
                    return once(connection)
            except Lost as error:
                self._note_outage(attempts.began)
                attempts.pause(self.address, error)
            except _Again as error:
                attempts.count(error)
            except Busy:
                raise  # the database is there
            except Unavailable:
                self._note_outage(attempts.began)
                if not self._was_connected or attempts.end is None:
                    raise
                attempts.pause(self.address, None)
            finally:
                began = self._waiting_since.pop(attempts, None)
                if began is not None and time.monotonic() - began >= OUTAGE:
                    self._note_outage(began)

    def _note_outage(self, since: float) -> None:
        with self._lock:
            self._outage_since = since if self._outage_since is None else min(since, self._outage_since)

    def _report_outage(self, connection: Connection) -> None:
        """Report for how long requests had no answer, before a sweep could take the silence for dead workers."""
        if self._outage_since is None and not self._waiting_since:
            return
        now = time.monotonic()
        since = min(list(self._waiting_since.values()), default=now)
        if self._outage_since is not None:
            since = min(since, self._outage_since)
        if self.on_return is None or now - since < OUTAGE or now - self._reported_at < _REPORT_EVERY:
            return
        self.on_return(connection, now - since)
        with self._lock:
            self._reported_at, self._outage_since = now, None

    def _end_lost(self, connection: Connection, pids: list[int]) -> None:
        """Cancel lost statements, so that none is executed later; behind a pooler their processes are not known."""
        if not pids:
            return
        connection.rows(queries.load("outages")["end_lost"], {"pids": pids})
        end = time.monotonic() + PATIENCE
        while connection.rows(queries.load("outages")["half_committed"], {"pids": pids}):
            if time.monotonic() > end:
                raise Busy(
                    f"PostgreSQL at {self.address.where} waits for its synchronous standby",
                    hint="what was said is committed as soon as the standby has it: look whether it is there before you say it again",
                )
            time.sleep(_FIRST_PAUSE)

    def open_connection(self) -> Connection:
        """Open a connection with this store's settings."""
        connection = driver.opener(brief=self._brief)(self.address, again=self._was_connected)
        settings = []
        if connection.pooled:
            if self._durability == "strict":
                connection.close()
                raise Invalid(
                    f"a pooler in front of {self.address.where} takes no settings, so durability strict cannot be had there",
                    hint="set it for the role: ALTER ROLE ... SET synchronous_commit = on; or say pooler=session if the pooler is one of sessions",
                )
        else:
            if self.isolation != "read committed":
                settings.append("SET default_transaction_isolation = 'read committed'")
            if self._durability in ("fast", "strict"):
                settings.append(f"SET synchronous_commit = {'off' if self._durability == 'fast' else 'on'}")
        if settings:
            try:
                connection.exchange("; ".join(settings), driver.FIRST_TIMEOUT)
            except driver.errors() as error:
                connection.close()
                raise driver.unreachable(self.address, error) from None
        self._was_connected = True
        return connection

    @property
    def is_full(self) -> bool:
        """Whether all connections are in use."""
        return self.checkout.is_full

    def drain(self) -> None:
        """Close the idle connections: new ones get the settings that these lack."""
        self.checkout.drain()

    def close(self) -> None:
        """Close all connections; one that is in use is closed when its thread returns it."""
        self._closed = True
        self.checkout.close()

    def __del__(self) -> None:
        if not self._closed:
            self.close()


class _Lent:
    """A connection lent to one thread; errors of the driver are translated on exit."""

    __slots__ = ("_connection", "_pool", "_urgent", "_work")

    def __init__(self, pool: Pool, urgent: bool) -> None:
        self._pool = pool
        self._urgent = urgent
        self._work = abandonment.reading()

    def __enter__(self) -> Connection:
        self._connection = self._pool.checkout.take(urgent=self._urgent)
        if self._work is not None:
            try:
                self._work.begin(self._connection.cancel)
            except Abandoned:
                self._pool.checkout.back(self._connection)
                raise
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool = self._pool
        if self._work is not None and self._work.end():
            pool.checkout.discard(self._connection)  # the cancel may still be on its way to it
            raise Abandoned from None
        try:
            if isinstance(error, driver.errors()):
                meant = driver.meaning(error, self._connection, pool.address)
                raise (meant if meant is not None else _Again(str(error))) from None
        finally:
            pool.checkout.back(self._connection)


class _Again(Exception):
    """Nothing was done, and it may be retried at once."""


class Attempts:
    """How long and how often one request has been tried."""

    __slots__ = ("_pause", "_tries", "began", "end", "is_lost", "pids")

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.is_lost = False
        self.pids: list[int] = []
        """The server's processes that may still execute a statement of a broken connection."""
        self.end: float | None = None
        self._pause = _FIRST_PAUSE
        self._tries = 0

    def pause(self, address: Address, error: Lost | None) -> None:
        """Sleep before the next attempt, or raise `Unavailable` after `PATIENCE` seconds."""
        now = time.monotonic()
        if error is not None:
            self.is_lost = True
            if error.pid is not None:
                self.pids.append(error.pid)
        if self.end is None:
            self.end = now + PATIENCE
        if now + self._pause > self.end:
            raise Away(
                f"PostgreSQL at {address.where} went away{'' if error is None else f': {error}'}",
                hint="it is tried again with the next command; nothing that was acknowledged is lost",
                sent={"pids": self.pids} if self.is_lost else None,
            )
        # At random: all clients lost the server at the same moment, and must not return at the same one.
        time.sleep(self._pause * (0.5 + ids.chance(8) / 256))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def count(self, error: _Again) -> None:
        """Count a retry; raise `Unavailable` after `_TRIES` of them."""
        self._tries += 1
        if self._tries >= _TRIES:
            raise Unavailable(f"too much happens at once: {error}", hint="try again")


class Bound:
    """The caller's own connection: nothing is retried on it, because only the caller can restart its transaction."""

    is_full = False

    def __init__(self, address: Address, connection: Any, project: int) -> None:
        if not isinstance(connection, driver.module().Connection):
            raise Invalid(
                f"conn= must be a psycopg connection, not {type(connection).__name__}",
                hint="make one with psycopg.connect",
            )
        if connection.pgconn.pipeline_status:  # a pipeline returns answers later, and cannot COPY
            raise Invalid("conn= is in a pipeline", hint="say it before or after 'with conn.pipeline()'")
        self.address = address
        self.connection = driver.callers(connection)
        self._channel = f"taskyard_{project}"

    def run(
        self,
        statement: str,
        values: dict[str, Any],
        recover: Callable[[Connection], Rows | None] | None = None,
        prepare: bool | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """Run a statement and return its rows."""
        rows: Rows = self.attempt(
            lambda connection: connection.rows(statement, values, prepare), recover, urgent=urgent
        )
        return rows

    def attempt(
        self,
        once: Callable[[Any], Any],
        recover: Callable[[Any], Any] | None = None,  # noqa: ARG002  nothing is retried
        *,
        urgent: bool = False,  # noqa: ARG002  there is no queue
    ) -> Any:
        """Call `once` with the connection; the commit notifies the sleepers, however late it comes."""
        done = once(self.connection)
        self.connection.rows("SELECT pg_notify(%(channel)s, '')", {"channel": self._channel})
        return done

    def drain(self) -> None:
        """Do nothing: no connection here is idle."""

    def close(self) -> None:
        """Do nothing: the connection is the caller's."""
