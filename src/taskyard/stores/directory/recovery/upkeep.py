"""The `Upkeep` part of the directory store: what it does for a sweep, a prune and an audit."""

from __future__ import annotations

import functools

from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import is_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.store_records import Query
    from taskyard.core.task import Standing
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.recovery.crashes import CrashRecovery
    from taskyard.stores.directory.recovery.overdue import Overdue
    from taskyard.stores.directory.retention.prune import Pruner
    from taskyard.stores.directory.store import DirectoryStore


class DirectoryUpkeep:
    """Connects the parts of upkeep; each is imported at its first use."""

    def __init__(self, context: Context, store: DirectoryStore) -> None:
        self._context = context
        self._store = store
        self.url = context.root

    @functools.cached_property
    def _overdue(self) -> Overdue:
        from taskyard.stores.directory.recovery.overdue import Overdue

        return Overdue(self._context)

    @functools.cached_property
    def _pruner(self) -> Pruner:
        from taskyard.stores.directory.retention.needed import Needed
        from taskyard.stores.directory.retention.prune import Pruner

        needed = Needed(self._context, self._store.shifts.edges)
        return Pruner(self._context, self._store.reader, self._store.adder, needed)

    @functools.cached_property
    def _crashes(self) -> CrashRecovery:
        from taskyard.stores.directory.recovery.crashes import CrashRecovery

        store, box = self._store, self._store.dropbox
        return CrashRecovery(self._context, store.adder, box.files, box.rejected, self._pruner, store.shifts.edges)

    @explains_errors
    def overdue(self, limit: int) -> list[Standing]:
        """Return up to `limit` claims whose lease has expired, and waiting tasks that are due."""
        return self._overdue.overdue(limit)

    @explains_errors
    def expire(self, by: str, limit: int) -> int:
        """Cancel up to `limit` tasks that no worker has started by their deadline; return how many."""
        return self._overdue.expire(self._store.shifts, by, limit)

    def stand_all(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Return the current standings of those of these whole ids that are tasks."""
        return self._store.stand_all(ids)

    def alarm(self) -> float | None:
        """Return the seconds until the next lease ends or the next task is due, by the last call of `overdue`."""
        known = [at for at in (self._overdue.alarm(), self._store.claims.next_slot()) if at is not None]
        return min(known, default=None)

    @explains_errors
    def turn(self, every: float) -> bool:
        """Return whether it is the caller's turn to sweep, one in `every` seconds: taken by a rename, so only one gets it."""
        self._store.claims.heed_settings()
        context, folder = self._context, f"{self._context.root}/turns"
        last = max(map(int, filter(is_turn, context.locator.names(folder))), default=None)
        if last is None:
            context.disk.append(f"{folder}/0", b"")  # the file was deleted: make the first one again
            return False
        try:
            # A turn that was taken in the future, by a clock that was set right since, must not keep sweeps away until then.
            if abs(context.clock.exact() - context.disk.stamp(f"{folder}/{last}")) < every * 1000:
                return False
        except FileNotFoundError:
            return False
        return context.mover.move(f"{folder}/{last}", folder, str(last + 1))

    @explains_errors
    def mend(self, by: str) -> int:
        """Repair what processes that died in mid-move have left; return the number of repairs."""
        with self._context.adding:
            # First put back tasks that other programs have moved: until then, a missing task proves nothing.
            self._context.mark_lanes()
            guests = self._store.dropbox.guests.tidy(self._context.clock.exact(), by, deep=True)
            return guests + self._crashes.mend(by)

    @explains_errors
    def prune(
        self, age: float | None, count: int | None, by: str, *, apply: bool, only: Query | None = None
    ) -> dict[str, Any]:
        """Move ended tasks older than `age`, or beyond the newest `count`, to the archive; without `apply`, only count them."""
        return self._pruner.plan(age, count, apply, by, only)

    @explains_errors
    def audit(
        self,
        by: str,
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,
    ) -> dict[str, Any]:
        """Check that every task is in one legal state; with `sweep`, first repair what can be repaired without loss."""
        from taskyard.stores.directory.fsck.verdict import Fsck
        from taskyard.stores.directory.recovery.missing import Missing
        from taskyard.stores.directory.recovery.segments import SegmentRecovery

        store = self._store
        segments = SegmentRecovery(self._context, Missing(self._context))
        fsck = Fsck(self._context, store.shifts, store.adder, store.dropbox.rejected, segments, by)
        return fsck.run(sweep, progress)
