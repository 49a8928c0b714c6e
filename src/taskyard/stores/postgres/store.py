"""The PostgreSQL store: one project in a database. This module only puts the parts together.

`add` takes in, `claims` hands out, `shifts` moves, `read` and `log` read, `upkeep` does the janitor's side, `listener` wakes waiters.
"""

from __future__ import annotations

from taskyard.core.store_records import Counts
from taskyard.stores.postgres.add import Adder
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.batching import BATCH
from taskyard.stores.postgres.claims import Claims
from taskyard.stores.postgres.context import Context
from taskyard.stores.postgres.listener import Listener
from taskyard.stores.postgres.log import LogReader
from taskyard.stores.postgres.read import Reader
from taskyard.stores.postgres.shifts import Shifts
from taskyard.stores.postgres.upkeep import Upkeep
from taskyard.stores.wakeup import Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Query, Report, Trail, Want
    from taskyard.core.task import Handle, Standing, Task


class PostgresStore:
    """One project in one database, shared by any number of processes on any number of machines."""

    batch = BATCH
    one_process = False
    dropbox = None
    files = None
    liveness = None  # a connection may end while its worker lives, and behind a pooler it is no worker's

    def __init__(self, url: str, durability: str | None = None) -> None:
        self._put_together(Context(Address(url), durability))
        self._listener = Listener(self._context)
        self.wakeup = Wakeup(self._listener)
        self.upkeep.before_turn = self._rest

    def _put_together(self, context: Context) -> None:
        self._context = context
        self.url = context.address.url
        self.label = context.address.label
        self.policy = context.policy
        self.checks = context.checks
        self._reader = Reader(context)
        self._claims = Claims(context, self._reader)
        self._shifts = Shifts(context, self._reader)
        self._adder = Adder(context, self._reader)
        self._log_reader = LogReader(context)
        self.upkeep = Upkeep(context)

    @property
    def transactions(self) -> Self:
        """It knows its users' connections."""
        return self

    def within(self, connection: Any) -> Self:
        """The same project, on a connection of the caller's own: all of it happens when that commits, or none of it."""
        bound = type(self).__new__(type(self))
        bound._put_together(self._context.within(connection))
        return bound

    def _rest(self) -> None:
        """Let go of the connection that waits, if no thread has waited for a while."""
        if self._listener.is_idle():
            self.wakeup.rest()

    # Putting work in, and handing it out

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""
        return self._adder.add(drafts, by)

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out the most urgent, oldest tasks that serve, or the one that is named, or held and taken over."""
        return self._claims.claim(want, nonces)

    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and return its end, or None if the claim is over."""
        return self._claims.renew(standing, progress, note)

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks; one statement."""
        return self._claims.holding(handles)

    def pause(self, kind: str | None, on: bool) -> None:
        """Hand out no more tasks of this kind, or of any; or do so again."""
        if kind is None:
            self._context.run("upkeep", "pause_all", {"on": on})
        else:
            self._context.run("upkeep", "pause_kind", {"on": on, "kind": kind})

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole yard is paused, and which kinds are."""
        [(everything, kinds)] = self._context.run("upkeep", "paused")
        return everything, frozenset(kinds)

    # Moving it

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Which of these moves were made: many dones are one statement."""
        return self._shifts.shift(shifts, by)

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output, if any, for a person to read."""
        self._shifts.refuse(handle, verb, move, by)

    # Reading it

    def stand(self, id: str) -> Standing:
        """Where the one task that fits this pattern stands now."""
        return self._reader.stand(id)

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds, oldest task first."""
        return self._reader.held(worker)

    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern."""
        return self._reader.get(id)

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks, oldest first, and the cursor of the next."""
        return self._reader.find(query)

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id its short name."""
        return self._reader.shorten(ids)

    def counts(self) -> Counts:
        """Tasks by kind and state, and the races for a task that this store has lost."""
        return Counts(self._reader.counts(), self._claims.lost_races)

    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""
        return ([], self._log_reader.latest()) if trail.at_end else self._log_reader.events(trail)

    def close(self) -> None:
        """Let go of all connections."""
        self.wakeup.close()
        self._context.pool.close()
