"""The directory store: tasks as files, states as folders, one rename for each move. PROTOCOL.md has it to the byte.

This module only connects the parts. A claim loads no part that it does not need.
"""

from __future__ import annotations

import functools

from taskyard.core.errors import Unavailable
from taskyard.core.settings import refuse_unfinished
from taskyard.core.store_records import Counts, holds
from taskyard.core.task import State
from taskyard.stores.directory.context import Context
from taskyard.stores.directory.filesystem.errors import explains_errors, unavailable
from taskyard.stores.directory.tasks.asked import Asked
from taskyard.stores.directory.tasks.claims import Claims
from taskyard.stores.directory.tasks.shifts import Shifts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Query, Report, Want
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.stores.directory.dropbox.box import DirectoryDropBox
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.leadership import DirectoryLeadership
    from taskyard.stores.directory.log.log import DirectoryLog
    from taskyard.stores.directory.recovery.liveness import Liveness
    from taskyard.stores.directory.recovery.upkeep import DirectoryUpkeep
    from taskyard.stores.directory.settings import DirectorySettings
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.files import DirectoryFiles
    from taskyard.stores.directory.tasks.listing import Listing
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.missions import DirectoryMissions
    from taskyard.stores.directory.tasks.new_task import New
    from taskyard.stores.directory.tasks.reasons import DirectoryReasons
    from taskyard.stores.directory.tasks.schedules import DirectorySchedules
    from taskyard.stores.directory.tasks.show import Reader
    from taskyard.stores.wakeup import Wakeup


class DirectoryStore:
    """One yard in one directory, shared by any number of processes."""

    batch = 1
    one_process = False
    resends = None
    transactions = None
    hints = None
    teams = None  # no other yard is in the same place

    def __init__(
        self, root: str, durability: str | None = None, disk: Disk | None = None, *, links: bool = False
    ) -> None:
        self._context = context = Context(root, durability, disk, links)
        refuse_unfinished(context.copy_of, root)
        self.url = self.label = root
        self.policy = context.policy
        self.durability = context.durability
        self._shifts = Shifts(context)
        self._claims = Claims(context, self._shifts)
        self._asked = Asked(context)

    # A claim does not need these parts. Each is imported at its first use.

    @property
    def liveness(self) -> Liveness:
        """The part that knows which workers are dead."""
        return self._context.liveness

    @functools.cached_property
    def upkeep(self) -> DirectoryUpkeep:
        """The part that sweeps use: overdue tasks, crash recovery, prune and fsck."""
        from taskyard.stores.directory.recovery.upkeep import DirectoryUpkeep

        return DirectoryUpkeep(self._context, self)

    @functools.cached_property
    def dropbox(self) -> DirectoryDropBox:
        """The part for files that people and other programs put into todo/, and for refused ones."""
        from taskyard.stores.directory.dropbox.box import DirectoryDropBox

        return DirectoryDropBox(self._context, self)

    @functools.cached_property
    def files(self) -> DirectoryFiles:
        """The part for the folders of attempts, and for syncs."""
        from taskyard.stores.directory.tasks.files import DirectoryFiles

        return DirectoryFiles(self._context)

    @functools.cached_property
    def wakeup(self) -> Wakeup:
        """Waits for changes: where the kernel can watch the log, it wakes the waiter."""
        from taskyard.stores.directory.log.watch import Watch
        from taskyard.stores.wakeup import Wakeup

        # Two threads may get here at once, and must share one instance.
        wakeup: Wakeup = self.__dict__.setdefault(
            "wakeup", Wakeup(Watch(self._context.disk, self.url, self._context.local))
        )
        return wakeup

    @functools.cached_property
    def reasons(self) -> DirectoryReasons:
        """What explains why nothing is ready."""
        from taskyard.stores.directory.tasks.reasons import DirectoryReasons

        return DirectoryReasons(self._context, self._asked, self._claims)

    @functools.cached_property
    def log(self) -> DirectoryLog:
        """The part for what happened."""
        from taskyard.stores.directory.log.log import DirectoryLog

        return DirectoryLog(self._context)

    @functools.cached_property
    def settings(self) -> DirectorySettings:
        """The part for settings and pauses."""
        from taskyard.stores.directory.settings import DirectorySettings

        return DirectorySettings(self._context, self._claims)

    @functools.cached_property
    def missions(self) -> DirectoryMissions:
        """The part for what was said about missions, and their tasks in numbers."""
        from taskyard.stores.directory.tasks.missions import DirectoryMissions

        return DirectoryMissions(self._context, self.listing)

    @functools.cached_property
    def leadership(self) -> DirectoryLeadership:
        """The part that says which orchestrator leads."""
        from taskyard.stores.directory.leadership import DirectoryLeadership

        return DirectoryLeadership(self._context)

    @functools.cached_property
    def schedules(self) -> DirectorySchedules:
        """The part for tasks that are added again and again."""
        from taskyard.stores.directory.tasks.schedules import DirectorySchedules

        return DirectorySchedules(self._context, self)

    @functools.cached_property
    def adder(self) -> Adder:
        """Adds tasks."""
        from taskyard.stores.directory.tasks.add import Adder

        return Adder(self._context, self._shifts)

    @functools.cached_property
    def listing(self) -> Listing:
        """Lists and counts tasks."""
        from taskyard.stores.directory.tasks.listing import Listing

        return Listing(self._context)

    @functools.cached_property
    def reader(self) -> Reader:
        """Reads tasks."""
        from taskyard.stores.directory.tasks.show import Reader

        return Reader(self._context, lambda: self.listing, self._shifts)

    @property
    def claims(self) -> Claims:
        """Claims tasks."""
        return self._claims

    @property
    def shifts(self) -> Shifts:
        """Moves tasks between states."""
        return self._shifts

    # The methods of the seam. `add`, `claim` and `shift` are the hot path: they convert errors without `explains_errors`.

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Add tasks in this order; return when all of them exist."""
        try:
            with self._context.adding:
                added = self.adder.add(drafts, by)
            return [self._added(new) for new in added]
        except OSError as error:
            raise unavailable(error, self.url) from error

    def _added(self, new: New | str) -> Task:
        if isinstance(new, str):
            return self.reader.known(new)
        return self.reader.report(new.id).task if new.moved is State.CANCELLED else new.task(self.policy)

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the oldest of the most urgent tasks that match; or the named task; or take over a held one."""
        grants: list[Grant] = []
        if want.id is None and want.over is None:
            self._asked.note(want.kinds)
        try:
            for nonce in nonces:
                if want.id is None and want.over is None:
                    grant = self._claims.next(want, nonce)
                    if grant is None and want.mission is not None:
                        grant = self._claim_from_before(want, nonce)
                else:
                    grant = self._claims.particular(want, nonce)
                if grant is None:
                    break
                grants.append(grant)
        except (OSError, Unavailable) as error:
            # Claims that were won must reach their worker; the next call raises the error, if it lasts.
            if not grants:
                raise (unavailable(error, self.url) if isinstance(error, OSError) else error) from error
        return grants

    def _claim_from_before(self, want: Want, nonce: str) -> Grant | None:
        """Claim a task of the mission that was added before missions had lanes: only its file knows what it is a part of."""
        if not self._context.has_tasks_before_missions():
            return None
        from taskyard.core.errors import Conflict, NotFound
        from taskyard.core.store_records import Query, Want

        self._context.know_missions()
        _, lease, usual, vouched = want.terms
        cursor = None
        while True:
            page, cursor = self.find(
                Query(frozenset((State.TODO,)), want.kinds, want.mission, taker=want.worker, limit=16, cursor=cursor)
            )
            for task in page:
                try:
                    grant = self._claims.particular(
                        Want(want.worker, None, lease, task.id, usual, vouched, by=want.by), nonce
                    )
                except (Conflict, NotFound):
                    continue  # another worker was first
                if grant is not None:
                    return grant
            if cursor is None:
                return None

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Make each move if its task still has exactly this standing; return which were made."""
        try:
            if len(shifts) == 1:
                standing, move = shifts[0]
                return [self._shifts.shift(standing, move, by)]
            return self._shifts.several(shifts, by)
        except OSError as error:
            raise unavailable(error, self.url) from error

    @explains_errors
    def renew(
        self, standing: Standing, progress: float | None = None, note: str | None = None, by: str | None = None
    ) -> int | None:
        """Renew the lease and return its new end; None if the claim is over."""
        return self._claims.renew(standing, progress, note, by)

    @explains_errors
    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Return which of these claims still hold their tasks."""
        return [holds(self.stand, handle) for handle in handles]

    @explains_errors
    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output for a person to read."""
        self._shifts.refuse(handle, verb, move, by)

    @explains_errors
    def stand(self, name: str | Handle) -> Standing:
        """Return the current standing of the one task that matches this pattern, or of the task of this claim."""
        locator = self._context.locator
        if isinstance(name, str):
            return self._standing(locator.find(name))
        return self._standing(locator.held(name) or locator.find(name.id))

    @explains_errors
    def stand_all(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Return the current standings of those of these whole ids that are tasks."""
        return {id: self._standing(found) for id, found in self._context.locator.several(ids).items()}

    def _standing(self, found: Found) -> Standing:
        standing = found.token.standing(found.state, found.place, self.policy)
        if found.state in (State.BLOCKED, State.CANCELLED, State.FAILED):
            standing.unmet = tuple(self._shifts.edges.needs(standing.id))
        if found.token.deadline:
            standing.expires = self._shifts.deadlines.of(found)
        return standing

    @explains_errors
    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds."""
        return self._claims.held(worker)

    @explains_errors
    def get(self, id: str) -> Report:
        """Return the full report of the one task that matches this pattern."""
        return self.reader.report(id)

    @explains_errors
    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks and the cursor of the next; with `query.taker`, in the order of claims."""
        if query.dropped_as is not None:
            return self.reader.dropped_as(query.dropped_as), None
        if query.ids is not None or query.keys is not None:
            keyed = (id for key in query.keys or () if (id := self.adder.keys.find(key)) is not None)
            return self.reader.named({*(query.ids or ()), *keyed}, query), None
        if query.taker is None:
            return self.reader.page(query)
        everything, some = self._claims.paused()
        return ([], None) if everything else self.reader.ready(query, some | self._claims.closed(), self._claims.uses)

    @explains_errors
    def shorten(self, ids: Sequence[str]) -> list[str]:
        """Return the short name of each id."""
        if len(ids) == 1:
            return [self._context.locator.shorten(ids[0])]  # as for the answer to a claim, which needs no lists
        return self.listing.shorten(ids)

    @explains_errors
    def counts(self, *, exact: bool = True) -> Counts:  # noqa: ARG002  the seam's words
        """Return the number of tasks by kind and state, the oldest of some, and the number of lost races."""
        from taskyard.stores.directory.tasks.counting import count

        kinds, oldest = count(self._context)
        return Counts(kinds, self._claims.lost_races(), oldest)

    def close(self) -> None:
        """Close the log, release the locks, and remove this process's intent file."""
        wakeup: Wakeup | None = self.__dict__.get("wakeup")
        if wakeup is not None:
            wakeup.close()
        context = self._context
        for let_go in (self._claims.flush, context.release, context.log.close, context.writer.close):
            try:
                let_go()
            except OSError:
                # A restarted file server has lost our locks (EIO), or another process removed our file as a dead one's (ESTALE).
                # All that was acknowledged is on the disk already, so no error is raised.
                continue
