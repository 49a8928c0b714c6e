"""Lets threads wait with hints: their source knows what each of them waits for."""

from __future__ import annotations

from taskyard.stores.wakeup import FLOOR, Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.store_records import Heard, Want
    from taskyard.stores.postgres.valkey.source import HintSource


class HintedWakeup(Wakeup):
    """Lets all threads of a store with Valkey sleep."""

    def __init__(self, source: HintSource) -> None:
        self._hinted = source
        super().__init__(source)

    def floor(self) -> float:
        """Return the seconds until a look without a wakeup: while Valkey serves, one process looks for all."""
        return 10 * FLOOR if self._hinted.is_live else FLOOR

    def is_hinted(self) -> bool:
        """Whether a hint was popped that no claim has used yet."""
        return self._hinted.has_hint()

    def listen(self, want: Want | None = None) -> Heard:
        """Return the number of changes so far; every later change ends a `wait` that is given it."""
        want = _listed(want)
        with self._condition:
            super().listen(want)
            if want is None and self._hinted.hear_all():
                self._changes += 1
            return self._count(want), 0

    def wait(self, seconds: float, heard: Heard, want: Want | None = None) -> Heard:
        """Sleep until something changed since `heard`, or for `seconds`."""
        want = _listed(want)
        with self._condition:
            if self._hinted.enter(want):
                self._changes += 1
        try:
            return super().wait(seconds, heard, want)
        finally:
            with self._condition:
                self._hinted.leave(want)


def _listed(want: Want | None) -> Want | None:
    """Return the want if there are lists for it; a mission has none, so that a claim of its tasks waits for any change."""
    return None if want is None or want.mission is not None else want
