"""A whole torture: processes at work, faults as planned, an end in order, a drain, and the verdict."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

from taskyard import opening
from taskyard.proof.checker import check
from taskyard.proof.final_state import FinalState
from taskyard.proof.history import History
from taskyard.proof.recorded_yard import RecordedYard
from taskyard.proof.recorder import HistoryWriter
from taskyard.proof.torture import process
from taskyard.proof.torture.plan import SETTINGS, Plan
from taskyard.proof.torture.process import Tally, TortureProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.proof.torture.plan import Fault
    from taskyard.proof.verdict import Verdict

_TICK = 0.02
_PATIENCE = 30.0  # seconds without progress after which a drain is given up
_OPEN = ("todo", "waiting", "processing")


class TortureRun:
    """One run, in a scratch yard that it makes, and removes if all was well."""

    def __init__(self, url: str | None, workers: int, tasks: int | None, seconds: float, seed: int) -> None:
        self.plan = Plan(seed, workers)
        self.tasks = tasks
        self.seconds = seconds
        self.tally = Tally()
        self.kills = self.stops = self.skews = 0
        self.ended_by = ""
        self.troubles: list[str] = []
        self.library = process.faketime()
        self.scratch = opening.scratch(url, SETTINGS)
        self.history = os.path.join(self.scratch.folder, "history")
        os.mkdir(self.history)
        self._hands = [TortureProcess(slot, self.tally) for slot in range(workers)]
        self.interrupted = False
        """Set from outside, to come to an end now; what was done until then is judged."""
        self.began = time.monotonic()
        self.phase = "at work"

    def run(self, progress: Callable[[], object]) -> dict[str, Any]:
        """All of it; no process is left when this returns or raises, and what was not removed is kept."""

        def tick() -> None:
            self.scratch.hold()
            progress()

        heard, line = lifeline = os.pipe()
        self._errors = os.open(os.path.join(self.scratch.folder, "errors.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            self._torment(lifeline, tick)
            self._end_hands()
            self.phase = "draining"
            drained = self._drain(tick)
            self.phase = "checking"
            return self._judged(drained, tick)
        finally:
            for each in self._hands:
                each.send(signal.SIGKILL)
                each.ended(process.LAST_RESORT)
            if os.path.exists(self.scratch.folder):
                self.scratch.keep()
            for descriptor in (heard, line, self._errors):
                os.close(descriptor)

    # At work

    def _torment(self, lifeline: tuple[int, int], progress: Callable[[], object]) -> None:
        end = self.began + self.seconds
        faults = self.plan.faults()
        fault = next(faults)
        due = time.monotonic() + fault.pause
        while not self._is_over(end):
            now = time.monotonic()
            for each in self._hands:
                self._look_after(each, lifeline, now)
            while now >= due and self._strike(fault, now):
                fault = next(faults)
                due += fault.pause
            progress()
            time.sleep(_TICK)

    def _is_over(self, end: float) -> bool:
        if self.interrupted:
            self.ended_by = "interrupted"
        elif self.troubles:
            self.ended_by = "trouble"
        elif time.monotonic() >= end:
            self.ended_by = "seconds"
        elif self.tasks is not None and sum(each.added for each in self._hands) >= self.tasks:
            self.ended_by = "tasks"
        return bool(self.ended_by)

    def _look_after(self, each: TortureProcess, lifeline: tuple[int, int], now: float) -> None:
        each.find(self.history)
        each.read()
        if each.stopped_until is not None and now >= each.stopped_until:
            each.stopped_until = None
            each.send(signal.SIGCONT)
        code = each.ended()
        if code is not None:
            self._note_end(each, code)
        if not each.pid:
            skew = self.plan.skew(each.slot, each.life + 1) if self.library else None
            self.skews += skew is not None
            each.start(
                self._given(each),
                self._errors,
                lifeline,
                process.skewed(self.library, skew) if self.library and skew else {},
            )

    def _given(self, each: TortureProcess) -> dict[str, Any]:
        share = None
        if self.tasks is not None:
            workers = self.plan.workers
            share = self.tasks // workers + (each.slot < self.tasks % workers) - each.added
        return {
            "url": self.scratch.url,
            "history": self.history,
            "dropbox": self.scratch.dropbox,
            "seed": self.plan.seed,
            "workers": self.plan.workers,
            "quota": share,
        }

    def _note_end(self, each: TortureProcess, code: int) -> None:
        # One that had hardly begun when it was told to end dies of SIGTERM as anybody would.
        if code not in (0, -signal.SIGTERM) and not each.killed:
            self.troubles.append(f"process {each.life} of slot {each.slot} ended with {code} by itself: see errors.txt")

    def _strike(self, fault: Fault, now: float) -> bool:
        """Whether it could be done: to the first from this slot on that is at work."""
        for turn in range(len(self._hands)):
            each = self._hands[(fault.slot + turn) % len(self._hands)]
            if each.at_work:
                break
        else:
            return False
        if fault.kills:
            each.killed = True
            self.kills += 1
            each.send(signal.SIGKILL)
        else:
            self.stops += 1
            each.stopped_until = now + fault.stop
            each.send(signal.SIGSTOP)
        return True

    def _end_hands(self) -> None:
        for each in self._hands:
            each.send(signal.SIGTERM)
            each.send(signal.SIGCONT)
        end = time.monotonic() + process.LAST_RESORT
        for each in self._hands:
            each.find(self.history)
            code = each.ended(max(0.0, end - time.monotonic()))
            if code is None and each.pid:
                each.killed = True
                each.send(signal.SIGKILL)
                code = each.ended(process.LAST_RESORT)
            if code is not None:
                self._note_end(each, code)

    # Afterwards

    def _drain(self, progress: Callable[[], object]) -> bool:
        """Whether everything that could be ended has been, by one more worker whom nobody disturbs."""
        with RecordedYard(opening.open(self.scratch.url, "drain"), HistoryWriter(self.history, "drain")) as yard:
            if self.ended_by == "tasks":
                missing = (self.tasks or 0) - sum(yard.counts().values())
                if missing > 0:  # those that were killed on their way in
                    yard.add_many([{"kind": "build", "data": {"by": "drain", "n": n}} for n in range(missing)])
            for _ in self._rounds(yard):
                progress()
                if self.interrupted:
                    self.ended_by = "interrupted"
                    return False
            yard.sweep()
        return True

    def _rounds(self, yard: RecordedYard) -> Iterator[None]:
        """Claim and end until nothing is open, or nothing moves any more."""
        given_up = time.monotonic() + _PATIENCE
        before: dict[str, int] = {}
        while True:
            yard.sweep()
            for _ in range(200):
                claim = yard.claim()
                if claim is None:
                    break
                claim.done({"by": claim.handle})
            counts = yard.counts()
            if counts != before:
                before, given_up = counts, time.monotonic() + _PATIENCE
            if not any(counts[state] for state in _OPEN) or time.monotonic() > given_up:
                return
            yield
            time.sleep(_TICK)

    def _judged(self, drained: bool, progress: Callable[[], object]) -> dict[str, Any]:
        with opening.open(self.scratch.url, "judge") as yard:
            picture = FinalState.of(yard, log=self.scratch.prompt_log, drained=drained, tick=progress)
        verdict = check(History.load(self.history), picture)
        self.troubles += [] if self.tally.operations else ["nothing was done at all"]
        legal = verdict.legal and not self.troubles
        if legal:
            self.scratch.remove()
            shutil.rmtree(self.scratch.folder, ignore_errors=True)
        return self._told(verdict, legal)

    def _told(self, verdict: Verdict, legal: bool) -> dict[str, Any]:
        codes = verdict.codes
        return {
            "legal": legal,
            "ended_by": self.ended_by,
            "seed": self.plan.seed,
            "workers": self.plan.workers,
            "seconds": round(time.monotonic() - self.began, 1),
            **verdict.figures,
            "kills": self.kills,
            "stops": self.stops,
            "skewed_clocks": self.skews if self.library else None,
            "unavailable": self.tally.unavailable,
            "published_twice": codes["published_twice"],
            "lost": codes["lost"] + codes["ending_lost"] + codes["left_open"],
            "violations": [violation.as_dict() for violation in verdict.violations],
            "troubles": self.troubles,
            "cleared": self.scratch.cleared,
            "left": self.scratch.left,
            "kept": None if legal else self.scratch.folder,
            "kept_yard": None if legal else self.scratch.label or os.path.join(self.scratch.folder, "yard"),
        }
