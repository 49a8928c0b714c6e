"""An audit told as a verdict; with repair, as often as it takes until another audit finds no more to heal."""

from __future__ import annotations

import time

from taskyard.stores.directory.fsck.audit import Audit
from taskyard.stores.directory.fsck.codes import DAMAGE
from taskyard.stores.directory.fsck.repair import Healing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.fsck.findings import Suspect
    from taskyard.stores.directory.recovery.segments import SegmentRecovery
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.shifts import Shifts

_ROUNDS = 4  # of healing: what is put right may uncover something else, but not for ever
_TOLD = 10_000  # findings that are told one by one; all are counted


class Proof:
    """Proves one yard."""

    def __init__(
        self, context: Context, shifts: Shifts, adder: Adder, aside: Rejected, patrol: SegmentRecovery, by: str
    ) -> None:
        self._context = context
        self._shifts = shifts
        self._adder = adder
        self._healing = Healing(context, shifts, adder, aside, patrol, by)
        self._audit: Audit | None = None

    def prove(
        self, sweep: Callable[[], object] | None = None, progress: Callable[[str], object] | None = None
    ) -> dict[str, Any]:
        """The verdict; with a sweep, after everything was healed that safely can be."""
        began = time.monotonic()
        last = self._look(progress)
        every = {suspect.spot: suspect for suspect in last}
        if sweep is not None and self._context.settings_error is not None:
            _leave(last)
        elif sweep is not None and last:
            last = self._heal(every, last, sweep, progress)
        left = {suspect.key for suspect in last}
        for suspect in every.values():
            # Only another audit says what is healed: what it does not find any more, whoever put it right.
            suspect.repaired = sweep is not None and suspect.key not in left
        healed = any(suspect.repaired for suspect in every.values())
        damaged = any(suspect.severity == DAMAGE for suspect in last)
        verdict = "damaged" if damaged else "repaired" if healed else "clean"
        return self._told(verdict, list(every.values()), time.monotonic() - began)

    def _look(self, progress: Callable[[str], object] | None) -> list[Suspect]:
        self._audit = Audit(self._context, self._adder.keys, self._shifts.edges, progress)
        return self._audit.run()

    def _heal(
        self,
        every: dict[tuple[str, str, str | None], Suspect],
        last: list[Suspect],
        sweep: Callable[[], object],
        progress: Callable[[str], object] | None,
    ) -> list[Suspect]:
        """Heal, sweep and look again, until nothing more is healed or comes to light."""
        for _ in range(_ROUNDS):
            for suspect in last:
                self._healing.heal(suspect)
                known = every.setdefault(suspect.spot, suspect)
                known.did, known.left = suspect.did or known.did, suspect.left
            healed = any(suspect.repaired for suspect in last)
            sweep()
            last = self._look(progress)
            uncovered = any(suspect.spot not in every for suspect in last)
            for suspect in last:
                every.setdefault(suspect.spot, suspect)
            if not last or not (healed or uncovered):
                break
        return last

    def _told(self, verdict: str, findings: list[Suspect], seconds: float) -> dict[str, Any]:
        assert self._audit is not None  # there was at least one
        counts: dict[str, int] = {}
        for suspect in findings:
            counts[suspect.code] = counts.get(suspect.code, 0) + 1
        checked = {"tasks": self._audit.tasks, **self._audit.scene.counts, "seconds": round(seconds, 3)}
        return {
            "verdict": verdict,
            "checked": checked,
            "counts": counts,
            "findings": [suspect.as_dict(self._context.root) for suspect in findings[:_TOLD]],
        }


def _leave(suspects: list[Suspect]) -> None:
    """Leave all to a person: by which rules a yard is kept is not known without its settings."""
    for suspect in suspects:
        if suspect.severity == DAMAGE and suspect.code != "settings_broken":
            suspect.left = "put yard.json right first, then run 'taskyard fsck --repair' again"
