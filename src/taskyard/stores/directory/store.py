"""The directory store: tasks as files, states as folders, one rename for each move. PROTOCOL.md has it to the byte.

This module only connects the parts. A claim loads no part that it does not need.
"""

from __future__ import annotations

import functools

from taskyard.core.errors import Unavailable
from taskyard.core.settings import refuse_unfinished
from taskyard.core.store_records import holds
from taskyard.core.task import State
from taskyard.stores.directory.context import Context
from taskyard.stores.directory.filesystem.errors import explains_errors, unavailable
from taskyard.stores.directory.tasks.claims import Claims
from taskyard.stores.directory.tasks.shifts import Shifts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.store_records import Counts, Grant, Query, Report, Trail, Want
    from taskyard.core.task import Handle, Standing, Task
    from taskyard.stores.directory.dropbox.box import DirectoryDropBox
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.recovery.upkeep import DirectoryUpkeep
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.files import DirectoryFiles
    from taskyard.stores.directory.tasks.listing import Listing
    from taskyard.stores.directory.tasks.show import Reader
    from taskyard.stores.wakeup import Wakeup


class DirectoryStore:
    """One yard in one directory, shared by any number of processes."""

    batch = 1
    one_process = False
    transactions = None

    def __init__(
        self, root: str, durability: str | None = None, disk: Disk | None = None, *, links: bool = False
    ) -> None:
        self._context = context = Context(root, durability, disk, links)
        refuse_unfinished(context.copy_of, root)
        self.url = self.label = root
        self.policy = context.policy
        self.durability = context.durability
        self.checks = context.checks
        self.liveness = context.liveness
        self._shifts = Shifts(context)
        self._claims = Claims(context, self._shifts)

    # A claim does not need these parts. Each is imported at its first use.

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

        return Reader(self._context, self.listing, self._shifts)

    @property
    def shifts(self) -> Shifts:
        """Moves tasks between states."""
        return self._shifts

    # The methods of the seam. `claim` and `shift` are the hot path: they convert errors without `explains_errors`.

    @explains_errors
    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Add tasks in this order; return when all of them exist."""
        with self._context.adding:
            added = self.adder.add(drafts, by)
        return [self.reader.known(new) if isinstance(new, str) else new.task(self.policy) for new in added]

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the oldest of the most urgent tasks that match; or the named task; or take over a held one."""
        grants: list[Grant] = []
        try:
            for nonce in nonces:
                if want.id is None and want.over is None:
                    grant = self._claims.next(want, nonce)
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

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Make each move if its task still has exactly this standing; return which were made."""
        try:
            return [self._shifts.shift(standing, move, by) for standing, move in shifts]
        except OSError as error:
            raise unavailable(error, self.url) from error

    @explains_errors
    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Renew the lease and return its new end; None if the claim is over."""
        return self._claims.renew(standing, progress, note)

    @explains_errors
    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Return which of these claims still hold their tasks."""
        return [holds(self.stand, handle) for handle in handles]

    @explains_errors
    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output for a person to read."""
        self._shifts.refuse(handle, verb, move, by)

    @explains_errors
    def stand(self, id: str) -> Standing:
        """Return the current standing of the one task that matches this pattern."""
        found = self._context.locator.find(id)
        standing = found.token.standing(found.state, found.place, self.policy)
        if found.state in (State.BLOCKED, State.CANCELLED, State.FAILED):
            standing.unmet = tuple(self._shifts.edges.needs(standing.id))
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
        """Return one page of tasks and the cursor of the next; with `query.taker`, without paused tasks."""
        if query.dropped_as is not None:
            return self.reader.dropped_as(query.dropped_as), None
        everything, some = self.paused() if query.taker is not None else (False, frozenset())
        if everything:
            return [], None
        return self.reader.page(query, some, self._claims.in_use if query.taker is not None else None)

    @explains_errors
    def shorten(self, ids: Sequence[str]) -> list[str]:
        """Return the short name of each id."""
        return self.listing.shorten(ids)

    @explains_errors
    def counts(self) -> Counts:
        """Return the number of tasks by kind and state, and of lost races."""
        from taskyard.core.store_records import Counts

        return Counts(self.listing.counts(), self._claims.lost_races())

    @explains_errors
    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """Return events, merged from all files of the log, and the cursor to go on from."""
        from taskyard.stores.directory.log.reader import LogReader

        reader = LogReader(self._context.disk, f"{self.url}/events")
        return ([], reader.latest()) if trail.at_end else reader.read(trail)

    @explains_errors
    def pause(self, kind: str | None, on: bool) -> None:
        """Stop claims of this kind, or of all tasks if `kind` is None; with `on=False`, allow them again."""
        self._claims.pause(kind, on)

    @explains_errors
    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        return self._claims.paused()

    def close(self) -> None:
        """Close the log, release the locks, and remove this process's intent file."""
        wakeup: Wakeup | None = self.__dict__.get("wakeup")
        if wakeup is not None:
            wakeup.close()
        context = self._context
        for let_go in (self._claims.flush, context.liveness.close, context.log.close, context.writer.close):
            try:
                let_go()
            except OSError:
                # A restarted file server has lost our locks (EIO), or another process removed our file as a dead one's (ESTALE).
                # All that was acknowledged is on the disk already, so no error is raised.
                continue
