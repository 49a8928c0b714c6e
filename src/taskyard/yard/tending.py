"""Keeping a yard going: what verbs, workers and the janitor do between the moves that a caller asks for."""

from __future__ import annotations

import time

from taskyard.core.abandonment import Shielded
from taskyard.core.errors import Unavailable
from taskyard.yard import janitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeGuard

    from taskyard.store import Store
    from taskyard.yard.janitor import Swept
    from taskyard.yard.ticks import Ticks

_LOOK_EVERY = 1.0  # seconds between two checks whether a sweep is due: cheaper than the check itself
_SWEEP_ALL = 1_000_000


class Tending:
    """The verbs of a yard that sweep, and check that all is well."""

    tends = True
    """Whether verbs also do a share of the janitor's work."""
    _store: Store
    _ticks: Ticks
    _look_at: float
    _speaker: Tending | None
    worker: str
    by: str

    def tend(self) -> None:
        """Do a share of the janitor's work, if it is due."""
        if not self.tends:
            return
        if self._speaker is not None:
            self._speaker.tend()  # which knows when it last did: this yard is used for one request
            return
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY
        try:
            if self._store.upkeep.turn(self._store.policy.sweep_every):
                self._sweep(mend=True, intake=janitor.INTAKE)
        except Unavailable:
            pass  # the caller did not ask for this share; the verb that it did ask for raises by itself

    def sweep(self, limit: int = _SWEEP_ALL) -> Swept:
        """Take in dropped files, reap and wake overdue tasks, and repair what dead processes left, now."""
        return self._sweep(limit, mend=True, asked=True)

    def _sweep(
        self, limit: int = janitor.SHARE, *, mend: bool = False, intake: int | None = None, asked: bool = False
    ) -> Swept:
        """Add what schedules ask for, then do the janitor's work."""
        with Shielded():
            ticked = self._ticks.add_due(self._store, asked=asked)
            swept = janitor.sweep(self._store, self.by, limit, mend=mend, intake=intake)
        swept.ticked, swept.ticks_left = ticked, self._ticks.left
        return swept

    def _look(self) -> None:
        """Take in recently dropped files before the whole yard is read, if that is possible."""
        try:
            if self._store.dropbox is not None:
                with Shielded():
                    self._store.dropbox.intake(self.by, janitor.INTAKE)
        except Unavailable:
            pass  # a yard that cannot be written can still be read
        self.tend()

    def alarm(self) -> float | None:
        """Return seconds until a lease ends, or a task or a tick is due, as the last sweep saw; None if there is none."""
        return min(filter(_is_known, (self._store.upkeep.alarm(), self._ticks.alarm())), default=None)

    def audit(self, repair: bool = False, progress: Callable[[str], object] | None = None) -> dict[str, Any]:
        """Check that every task is in one legal state; return the `verdict`, what was `checked`, and the `findings`.

        With `repair`, heal what can be healed, by safe moves that remove nothing. `progress` is called with the current step.
        """
        return self._store.upkeep.audit(self.by, self._tidied if repair else None, progress)

    def _tidied(self) -> None:
        """Sweep as a part of a repair; the next audit finds what the sweep could not do."""
        try:
            self.sweep()
        except Unavailable:
            pass

    fsck = audit
    janitor = sweep


def _is_known(seconds: float | None) -> TypeGuard[float]:
    return seconds is not None
