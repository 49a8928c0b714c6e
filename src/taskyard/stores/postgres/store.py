"""The PostgreSQL store: one project in a database. This module only puts the parts together.

`add` adds tasks, `claims` claims, `shifts` makes all other moves, `read` reads. `upkeep` is the janitor's part;
`listener` wakes waiting threads.
"""

from __future__ import annotations

from copy import copy

from taskyard.core.errors import TaskyardError
from taskyard.core.store_records import Counts
from taskyard.core.task import State
from taskyard.stores.postgres.add import Adder
from taskyard.stores.postgres.address import Address
from taskyard.stores.postgres.batching import BATCH
from taskyard.stores.postgres.claims import Claims
from taskyard.stores.postgres.context import Context
from taskyard.stores.postgres.leadership import PostgresLeadership
from taskyard.stores.postgres.listener import Listener
from taskyard.stores.postgres.log import PostgresLog
from taskyard.stores.postgres.missions import PostgresMissions
from taskyard.stores.postgres.read import Reader
from taskyard.stores.postgres.reasons import PostgresReasons
from taskyard.stores.postgres.resend import Resender
from taskyard.stores.postgres.schedules import PostgresSchedules
from taskyard.stores.postgres.settings import PostgresSettings
from taskyard.stores.postgres.shifts import Shifts
from taskyard.stores.postgres.teams import PostgresTeams
from taskyard.stores.postgres.upkeep import Upkeep
from taskyard.stores.wakeup import Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Query, Report, Want
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.stores.postgres.valkey.hints import Hints


class PostgresStore:
    """One project in one database, shared by any number of processes on any number of machines."""

    batch = BATCH
    one_process = False
    dropbox = None
    files = None
    hints: Hints | None = None
    """Hints to others in Valkey; None without it, and in a caller's transaction, which may be rolled back."""
    liveness = None  # a connection may end while its worker lives, and behind a pooler it is no worker's

    def __init__(self, url: str, durability: str | None = None, *, brief: bool = False) -> None:
        self._assemble(Context(Address(url), durability, brief=brief))
        self._listener = Listener(self._context)
        self._is_idle = self._listener.is_idle
        self.wakeup = Wakeup(self._listener)
        if self._context.address.valkey is not None:
            self._use_hints()
        self.upkeep.before_turn = self._stop_idle_listener

    def _use_hints(self) -> None:
        """Use the Valkey server that the URL names, for what it is worth."""
        from taskyard.stores.postgres.valkey.hints import Hints
        from taskyard.stores.postgres.valkey.source import HintSource
        from taskyard.stores.postgres.valkey.wakeup import HintedWakeup

        hints = Hints(self._context, self._reader, self.log, self.upkeep)
        source = HintSource(hints, self._listener)
        self._context.on_unsent = hints.catch_up
        self.settings.on_change = hints.look
        self.hints = hints
        self._is_idle = source.is_idle
        self.wakeup = HintedWakeup(source)

    def _assemble(self, context: Context) -> None:
        self._context = context
        self.hints = None
        self.url = context.address.url
        self.label = context.address.label
        self.policy = context.policy
        self.missions = PostgresMissions(context)
        self._reader = Reader(context, self.missions)
        self._claims = Claims(context, self._reader, self.missions)
        self._shifts = Shifts(context, self._reader)
        self._adder = Adder(context, self._reader)
        self.schedules = PostgresSchedules(context, self._adder)
        self.leadership = PostgresLeadership(context)
        self.teams = PostgresTeams(context)
        self.log = PostgresLog(context)
        self.settings = PostgresSettings(context)
        self.upkeep = Upkeep(context)
        self.reasons = PostgresReasons(context)

    @property
    def transactions(self) -> Self:
        """Return this store: it can use a caller's connection."""
        return self

    def within(self, connection: Any) -> Self:
        """Return the same project on the caller's connection: its changes commit or roll back with the caller's."""
        bound = type(self).__new__(type(self))
        bound._assemble(self._context.within(connection))
        return bound

    @property
    def resends(self) -> Self:
        """Return this store: it adds what comes out of a spool once only."""
        return self

    def under(self, token: str, sent: dict[str, Any] | None) -> Self:
        """Return the same project, whose next add happens once only for this token."""
        bound = copy(self)
        bound._adder = Resender(self._context, self._reader, token, sent)
        return bound

    def _stop_idle_listener(self) -> None:
        """Close the listening connection, if no thread has waited for a while."""
        if self._is_idle():
            self.wakeup.stop_listening()

    # Adding and claiming

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Store new tasks, in this order; all of them exist at the return."""
        tasks = self._adder.add(drafts, by)
        if self.hints is not None:
            self.hints.added(tasks, by)
        return tasks

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the most urgent, oldest tasks that `want` allows, or the one that it names or takes over."""
        grants = self._claims.claim(want, nonces)
        if self.hints is not None:
            self.hints.claimed(want, grants)
        if want.id is None and want.over is None:
            self.reasons.note(want.kinds)
        return grants

    def renew(
        self, standing: Standing, progress: float | None = None, note: str | None = None, by: str | None = None
    ) -> int | None:
        """Restart the lease and return its end, or None if the claim is over."""
        until = self._claims.renew(standing, progress, note, by)
        if self.hints is not None and until is not None:
            self.hints.renewed(standing, until, note is not None)
        return until

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Return which of these claims still hold their tasks; one statement."""
        return self._claims.holding(handles)

    # Moving

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Return which of these moves were made: many dones are one statement."""
        made = self._shifts.shift(shifts, by)
        if self.hints is not None:
            self.hints.shifted(shifts, made, by)
        if self._context.shares_running:
            self._wake_team(shifts, made)
        return made

    def _wake_team(self, shifts: Sequence[tuple[Standing, Move]], made: Sequence[bool]) -> None:
        """After a claim has ended, wake the waiting workers of the team's other projects; without that they look in seconds."""
        if any(one and before.state is State.PROCESSING for (before, _), one in zip(shifts, made, strict=True)):
            try:
                self._context.run("teams", "ring")
            except TaskyardError:
                pass  # the move is made

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output, if any, for a person to read."""
        self._shifts.refuse(handle, verb, move, by)
        if self.hints is not None:
            self.hints.catch_up()

    # Reading

    def stand(self, name: str | Handle) -> Standing:
        """Return where the one task that matches this pattern stands now, or the task of this claim."""
        return self._reader.stand(name if isinstance(name, str) else name.id)

    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds, oldest task first."""
        return self._reader.held(worker)

    def get(self, id: str) -> Report:
        """Return everything about the one task that matches this pattern."""
        return self._reader.get(id)

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks, oldest first, and the cursor of the next page."""
        return self._reader.find(query)

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """Return each id's short name."""
        return self._reader.shorten(ids)

    def counts(self, *, exact: bool = True) -> Counts:
        """Return the number of tasks by kind and state, the oldest of some, and the races that this store has lost."""
        kinds, estimated = self._reader.counts(exact=exact)
        return Counts(kinds, self._claims.lost_races, self._reader.oldest(), estimated)

    def close(self) -> None:
        """Close all connections."""
        self.wakeup.close()
        if self.hints is not None:
            self.hints.close()
        self._context.pool.close()
