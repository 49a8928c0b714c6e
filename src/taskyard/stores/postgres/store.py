"""The PostgreSQL store: one project in a database. This module only puts the parts together.

`adding` takes in, `claims` hands out, `shifts` moves, `looking` and `trails` read, `tending` keeps it going, `bell` waits.
"""

from __future__ import annotations

from taskyard.core.errors import NotFound
from taskyard.store import Outside
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
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.store import Grant, Heard, Query, Report, Trail, Want


class PostgresStore:
    """One project in one database, shared by any number of processes on any number of machines."""

    batch = BATCH

    def __init__(self, url: str, durability: str | None = None) -> None:
        self._put_together(Context(Address(url), durability))
        self._line = Listener(self._context)
        self._wakeup = Wakeup(self._line)

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
        self._upkeep = Upkeep(context)

    def within(self, connection: Any) -> PostgresStore:
        """The same project, on a connection of the caller's own: all of it happens when that commits, or none of it."""
        bound = PostgresStore.__new__(PostgresStore)
        bound._put_together(self._context.within(connection))
        return bound

    # Putting work in

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""
        return self._adder.add(drafts, by)

    def intake(self, by: str, limit: int | None = None) -> int:  # noqa: ARG002  there is no door but `add`
        """Nothing is ever left at the door."""
        return 0

    def set_aside(self) -> list[dict[str, str | None]]:
        """Nothing ever is."""
        return []

    def give_back(self, name: str) -> None:
        """Nothing is set aside."""
        raise NotFound(f"no task has the id {name!a}")

    def outside(self) -> Outside:
        """There are no folders here."""
        return Outside()

    def dropped_under(self, name: str) -> list[str]:
        """The ids of the tasks that were dropped under this name, in a directory that was copied here."""
        return self._reader.dropped_under(name)

    # Handing it out

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or the one that is named."""
        return self._claims.claim(want, nonce)

    def claim_many(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out as many of the most urgent, oldest tasks that serve as there are nonces, or tasks."""
        return self._claims.claim_many(want, nonces)

    def take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> Grant | None:
        """The same claim under the move's fence and a new nonce, or None if it is over."""
        return self._claims.take_over(standing, move, nonce, by)

    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""
        return self._claims.renew(standing, progress, note)

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks; one statement."""
        return self._claims.holding(handles)

    def vouch(self, worker: str, incarnation: str) -> int | None:
        """Leases alone tell: a connection may end while its worker lives, and behind a pooler it is nobody's."""

    def workdir(self, handle: Handle) -> None:
        """Nothing here is a file."""

    def tidy(self, handle: Handle) -> None:
        """Nothing here needs it."""

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

    def stand(self, id: str) -> Standing:
        """Where the one task that fits this pattern stands now."""
        return self._reader.stand(id)

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:
        """Make the move if the task still stands exactly there."""
        return self._shifts.shift(standing, move, by, lapsed=lapsed)

    def shift_many(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Which of these moves were made: many dones are one statement."""
        return self._shifts.shift_many(shifts, by)

    def confirm(self, standing: Standing) -> None:
        """What can be seen was committed."""

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Write down that a verb came too late, and put its output, if any, aside."""
        self._shifts.refuse(handle, verb, move, by)

    def drafted(self, standing: Standing) -> Draft | None:
        """What was asked for when the task was added or last edited; None if it has moved on."""
        return self._shifts.drafted(standing)

    def rewrite(self, standing: Standing, draft: Draft, move: Move, by: str, *, due_anew: bool) -> bool:
        """Make the task what the draft says, if it still stands exactly there."""
        return self._shifts.rewrite(standing, draft, move, by, due_anew=due_anew)

    # Reader

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
        """For each id the shortest beginning that names no other task."""
        return self._reader.shorten(ids)

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        return self._reader.counts()

    def tallies(self) -> dict[str, int]:
        """Races for a task that this store has lost; a database has no drop box."""
        return {"lost_races": self._claims.lost_races, "dropped": 0}

    def unusable(self) -> list[str]:
        """Nothing that a claim would have to pass over."""
        return []

    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""
        return self._log_reader.events(trail)

    def latest(self) -> str:
        """The cursor of the log's end."""
        return self._log_reader.latest()

    # Keeping it going

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        return self._upkeep.overdue(limit)

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as the last `overdue` saw."""
        return self._upkeep.alarm()

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep."""
        if self._line.is_idle():
            self._wakeup.rest()  # nobody has waited for a while
        return self._upkeep.turn(every)

    def mend(self, by: str) -> int:  # noqa: ARG002  a transaction leaves nothing half done; there are only partitions
        """Let go what the settings say is kept no longer; make partitions ahead, and drop those that are empty."""
        return self._upkeep.mend()

    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:  # noqa: ARG002
        """Let ended tasks go that are too old or too many, or tell how many that would be."""
        return self._upkeep.prune(age, count, apply=apply)

    def audit(
        self,
        by: str,  # noqa: ARG002  the seam's words
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,  # noqa: ARG002  one statement knows of none
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state; a sweep is all that could heal anything."""
        from taskyard.stores.postgres import fsck

        if sweep is not None:
            sweep()
        return fsck.audit(self._context)

    # Waiting

    def listen(self) -> Heard:
        """What has been heard so far."""
        return self._wakeup.listen()

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Return when something may have changed since `heard`, or after so many seconds."""
        return self._wakeup.wait(seconds, heard)

    def wake(self) -> None:
        """End every wait of this process on this store."""
        self._wakeup.wake()

    def close(self) -> None:
        """Let go of all connections."""
        self._wakeup.close()
        self._context.pool.close()
