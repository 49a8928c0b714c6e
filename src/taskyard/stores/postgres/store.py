"""The PostgreSQL store: one project in a database. This module only puts the parts together.

`adding` takes in, `claims` hands out, `shifts` moves, `looking` and `trails` read, `tending` keeps it going, `bell` waits.
"""

from __future__ import annotations

from taskyard.errors import NotFound
from taskyard.store import Outside
from taskyard.stores.bell import Bell
from taskyard.stores.postgres.adding import Adder
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.claims import Claims
from taskyard.stores.postgres.combining import BATCH
from taskyard.stores.postgres.ground import Ground
from taskyard.stores.postgres.line import Line
from taskyard.stores.postgres.looking import Looking
from taskyard.stores.postgres.shifts import Shifts
from taskyard.stores.postgres.tending import Tending
from taskyard.stores.postgres.trails import Trails

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.draft import Draft
    from taskyard.moves import Move
    from taskyard.store import Grant, Heard, Query, Report, Trail, Want
    from taskyard.task import Handle, Standing, Task


class PostgresStore:
    """One project in one database, shared by any number of processes on any number of machines."""

    batch = BATCH

    def __init__(self, url: str, durability: str | None = None) -> None:
        self._put_together(Ground(Address(url), durability))
        self._line = Line(self._ground)
        self._bell = Bell(self._line)

    def _put_together(self, ground: Ground) -> None:
        self._ground = ground
        self.url = ground.address.url
        self.label = ground.address.label
        self.policy = ground.policy
        self.checks = ground.checks
        self._looking = Looking(ground)
        self._claims = Claims(ground, self._looking)
        self._shifts = Shifts(ground, self._looking)
        self._adder = Adder(ground, self._looking)
        self._trails = Trails(ground)
        self._tending = Tending(ground)

    def within(self, connection: Any) -> PostgresStore:
        """The same project, on a connection of the caller's own: all of it happens when that commits, or none of it."""
        bound = PostgresStore.__new__(PostgresStore)
        bound._put_together(self._ground.within(connection))
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
        return self._looking.dropped_under(name)

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
            self._ground.run("tending", "pause_all", {"on": on})
        else:
            self._ground.run("tending", "pause_kind", {"on": on, "kind": kind})

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole yard is paused, and which kinds are."""
        [(everything, kinds)] = self._ground.run("tending", "paused")
        return everything, frozenset(kinds)

    # Moving it

    def stand(self, id: str) -> Standing:
        """Where the one task that fits this pattern stands now."""
        return self._looking.stand(id)

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

    # Looking

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds, oldest task first."""
        return self._looking.held(worker)

    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern."""
        return self._looking.get(id)

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks, oldest first, and the cursor of the next."""
        return self._looking.find(query)

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""
        return self._looking.shorten(ids)

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        return self._looking.counts()

    def tallies(self) -> dict[str, int]:
        """Races for a task that this store has lost; a database has no drop box."""
        return {"lost_races": self._claims.lost_races, "dropped": 0}

    def unusable(self) -> list[str]:
        """Nothing that a claim would have to pass over."""
        return []

    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""
        return self._trails.events(trail)

    def latest(self) -> str:
        """The cursor of the log's end."""
        return self._trails.latest()

    # Keeping it going

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        return self._tending.overdue(limit)

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as the last `overdue` saw."""
        return self._tending.alarm()

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep."""
        if self._line.is_idle():
            self._bell.rest()  # nobody has waited for a while
        return self._tending.turn(every)

    def mend(self, by: str) -> int:  # noqa: ARG002  a transaction leaves nothing half done; there are only partitions
        """Let go what the settings say is kept no longer; make partitions ahead, and drop those that are empty."""
        return self._tending.mend()

    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:  # noqa: ARG002
        """Let ended tasks go that are too old or too many, or tell how many that would be."""
        return self._tending.prune(age, count, apply=apply)

    def audit(
        self,
        by: str,  # noqa: ARG002  the seam's words
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,  # noqa: ARG002  one statement knows of none
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state; a sweep is all that could heal anything."""
        from taskyard.stores.postgres import auditing

        if sweep is not None:
            sweep()
        return auditing.audit(self._ground)

    # Waiting

    def listen(self) -> Heard:
        """What has been heard so far."""
        return self._bell.listen()

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Return when something may have changed since `heard`, or after so many seconds."""
        return self._bell.wait(seconds, heard)

    def wake(self) -> None:
        """End every wait of this process on this store."""
        self._bell.wake()

    def close(self) -> None:
        """Let go of all connections."""
        self._bell.close()
        self._ground.pool.close()
