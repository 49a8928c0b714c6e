"""Run audits and repairs until another audit finds nothing more to repair, and return the verdict."""

from __future__ import annotations

import time

from taskyard.stores.directory.fsck.audit import Audit
from taskyard.stores.directory.fsck.codes import DAMAGE
from taskyard.stores.directory.fsck.repair import Repair

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

_ROUNDS = 4  # of repairs: a repair may uncover other damage
_LISTED = 10_000  # findings that are listed; all are counted


class Fsck:
    """Checks and repairs one yard."""

    def __init__(
        self,
        context: Context,
        shifts: Shifts,
        adder: Adder,
        rejected: Rejected,
        segment_recovery: SegmentRecovery,
        by: str,
    ) -> None:
        self._context = context
        self._shifts = shifts
        self._adder = adder
        self._repair = Repair(context, shifts, adder, rejected, segment_recovery, by)
        self._last_audit: Audit | None = None

    def run(
        self, sweep: Callable[[], object] | None = None, progress: Callable[[str], object] | None = None
    ) -> dict[str, Any]:
        """Return the verdict; with `sweep`, after everything was repaired that safely can be."""
        began = time.monotonic()
        last = self._run_audit(progress)
        every = {suspect.identity: suspect for suspect in last}
        if sweep is not None and self._context.settings_error is not None:
            _leave(last)
        elif sweep is not None and last:
            last = self._repair_and_audit(every, last, sweep, progress)
        left = {suspect.key for suspect in last}
        for suspect in every.values():
            # What another audit does not find any more is repaired, by whichever process.
            suspect.repaired = sweep is not None and suspect.key not in left
        repaired = any(suspect.repaired for suspect in every.values())
        damaged = any(suspect.severity == DAMAGE for suspect in last)
        verdict = "damaged" if damaged else "repaired" if repaired else "clean"
        return self._summary(verdict, list(every.values()), time.monotonic() - began)

    def _run_audit(self, progress: Callable[[str], object] | None) -> list[Suspect]:
        self._last_audit = Audit(self._context, self._adder.keys, self._shifts.edges, progress)
        return self._last_audit.run()

    def _repair_and_audit(
        self,
        every: dict[tuple[str, str, str | None], Suspect],
        last: list[Suspect],
        sweep: Callable[[], object],
        progress: Callable[[str], object] | None,
    ) -> list[Suspect]:
        """Repair, sweep and audit again, until an audit shows no repair and no new finding."""
        for _ in range(_ROUNDS):
            for suspect in last:
                self._repair.run(suspect)
                known = every.setdefault(suspect.identity, suspect)
                known.did, known.left_because = suspect.did or known.did, suspect.left_because
            repaired = any(suspect.repaired for suspect in last)
            sweep()
            last = self._run_audit(progress)
            uncovered = any(suspect.identity not in every for suspect in last)
            for suspect in last:
                every.setdefault(suspect.identity, suspect)
            if not last or not (repaired or uncovered):
                break
        return last

    def _summary(self, verdict: str, findings: list[Suspect], seconds: float) -> dict[str, Any]:
        assert self._last_audit is not None  # there was at least one
        counts: dict[str, int] = {}
        for suspect in findings:
            counts[suspect.code] = counts.get(suspect.code, 0) + 1
        checked = {"tasks": self._last_audit.tasks, **self._last_audit.context.counts, "seconds": round(seconds, 3)}
        return {
            "verdict": verdict,
            "checked": checked,
            "counts": counts,
            "findings": [suspect.as_dict(self._context.root) for suspect in findings[:_LISTED]],
        }


def _leave(suspects: list[Suspect]) -> None:
    """Leave all damage to a person: without the settings the rules of the yard are unknown."""
    for suspect in suspects:
        if suspect.severity == DAMAGE and suspect.code != "settings_broken":
            suspect.left_because = "put yard.json right first, then run 'taskyard fsck --repair' again"
