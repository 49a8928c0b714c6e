"""The `Upkeep` part of the directory store: what it does for a sweep, a prune and an audit."""

from __future__ import annotations

import functools

from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.recovery.overdue import Overdue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.task import Standing
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.recovery.crashes import CrashRecovery
    from taskyard.stores.directory.retention.prune import Pruner
    from taskyard.stores.directory.store import DirectoryStore


class DirectoryUpkeep:
    """Connects the parts of upkeep; each is imported at its first use."""

    def __init__(self, context: Context, store: DirectoryStore) -> None:
        self._context = context
        self._store = store
        self._overdue = Overdue(context)
        self.url = context.root

    @functools.cached_property
    def _pruner(self) -> Pruner:
        from taskyard.stores.directory.retention.prune import Pruner

        return Pruner(self._context, self._store.reader, self._store.adder, self._store.shifts.edges)

    @functools.cached_property
    def _crashes(self) -> CrashRecovery:
        from taskyard.stores.directory.recovery.crashes import CrashRecovery

        store, box = self._store, self._store.dropbox
        return CrashRecovery(self._context, store.adder, box.files, box.rejected, self._pruner, store.shifts.edges)

    @explains_errors
    def overdue(self, limit: int) -> list[Standing]:
        """Return up to `limit` claims whose lease has expired, and waiting tasks that are due."""
        return self._overdue.overdue(limit)

    def alarm(self) -> float | None:
        """Return the seconds until the next lease ends or the next task is due, by the last call of `overdue`."""
        return self._overdue.alarm()

    @explains_errors
    def turn(self, every: float) -> bool:
        """Return whether it is the caller's turn to sweep: one caller in `every` seconds."""
        return self._overdue.turn(every)

    @explains_errors
    def mend(self, by: str) -> int:
        """Repair what processes that died in mid-move have left; return the number of repairs."""
        with self._context.adding:
            # First put back tasks that other programs have moved: until then, a missing task proves nothing.
            guests = self._store.dropbox.guests.tidy(self._context.clock.exact(), by, deep=True)
            return guests + self._crashes.mend(by)

    @explains_errors
    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:
        """Move ended tasks older than `age`, or beyond the newest `count`, to the archive; without `apply`, only count them."""
        return self._pruner.plan(age, count, apply, by)

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
