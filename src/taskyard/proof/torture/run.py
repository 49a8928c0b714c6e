"""A whole torture: run processes with faults, stop them, drain the yard, and check the history."""

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
from taskyard.proof.torture.plan import SETTINGS, Plan
from taskyard.proof.torture.process import LAST_RESORT, Counts, TortureProcess, faketime, skewed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.proof.torture.plan import Fault
    from taskyard.proof.verdict import Verdict

_TICK = 0.02
_STUCK_AFTER = 30.0  # seconds without progress after which a drain ends
_OPEN = ("todo", "waiting", "processing")


class TortureRun:
    """One run, in a scratch yard that it creates, and removes if the history is legal."""

    def __init__(self, url: str | None, workers: int, tasks: int | None, seconds: float, seed: int) -> None:
        self.plan = Plan(seed, workers)
        self.tasks = tasks
        self.seconds = seconds
        self.counts = Counts()
        self.kills = self.stops = self.skews = 0
        self.ended_by = ""
        self.troubles: list[str] = []
        self.library = faketime()
        self.scratch = opening.scratch(url, SETTINGS)
        self.history = os.path.join(self.scratch.folder, "history")
        os.mkdir(self.history)
        self._processes = [TortureProcess(slot, self.counts) for slot in range(workers)]
        self.interrupted = False
        """Set by a signal handler to end the run now; what was done until then is checked."""
        self.began = time.monotonic()
        self.phase = "at work"

    def run(self, progress: Callable[[], object]) -> dict[str, Any]:
        """Run all phases and return the summary.

        No process is left when this returns or raises. The scratch yard is kept unless the history is legal.
        """

        def tick() -> None:
            self.scratch.hold()
            progress()

        reader, writer = pipe = os.pipe()
        self._errors = os.open(os.path.join(self.scratch.folder, "errors.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            self._run_processes(pipe, tick)
            self._stop_processes()
            self.phase = "draining"
            drained = self._drain(tick)
            self.phase = "checking"
            return self._checked(drained, tick)
        finally:
            for process in self._processes:
                process.send(signal.SIGKILL)
                process.ended(LAST_RESORT)
            if os.path.exists(self.scratch.folder):
                self.scratch.keep()
            for descriptor in (reader, writer, self._errors):
                os.close(descriptor)

    # At work

    def _run_processes(self, pipe: tuple[int, int], progress: Callable[[], object]) -> None:
        end = self.began + self.seconds
        faults = self.plan.faults()
        fault = next(faults)
        due = time.monotonic() + fault.pause
        while not self._is_over(end):
            now = time.monotonic()
            for process in self._processes:
                self._supervise(process, pipe, now)
            while now >= due and self._apply(fault, now):
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
        elif self.tasks is not None and sum(process.added for process in self._processes) >= self.tasks:
            self.ended_by = "tasks"
        return bool(self.ended_by)

    def _supervise(self, process: TortureProcess, pipe: tuple[int, int], now: float) -> None:
        process.find(self.history)
        process.read()
        if process.stopped_until is not None and now >= process.stopped_until:
            process.stopped_until = None
            process.send(signal.SIGCONT)
        code = process.ended()
        if code is not None:
            self._record_exit(process, code)
        if not process.pid:
            skew = self.plan.skew(process.slot, process.life + 1) if self.library else None
            self.skews += skew is not None
            process.start(
                self._arguments(process),
                self._errors,
                pipe,
                skewed(self.library, skew) if self.library and skew else {},
            )

    def _arguments(self, process: TortureProcess) -> dict[str, Any]:
        share = None
        if self.tasks is not None:
            workers = self.plan.workers
            share = self.tasks // workers + (process.slot < self.tasks % workers) - process.added
        return {
            "url": self.scratch.url,
            "history": self.history,
            "dropbox": self.scratch.dropbox,
            "seed": self.plan.seed,
            "workers": self.plan.workers,
            "quota": share,
        }

    def _record_exit(self, process: TortureProcess, code: int) -> None:
        # SIGTERM ends a process that has not set its handler yet.
        if code not in (0, -signal.SIGTERM) and not process.killed:
            self.troubles.append(
                f"process {process.life} of slot {process.slot} ended with {code} by itself: see errors.txt"
            )

    def _apply(self, fault: Fault, now: float) -> bool:
        """Apply the fault to the first process at or after its slot that is at work; return whether there was one."""
        for turn in range(len(self._processes)):
            process = self._processes[(fault.slot + turn) % len(self._processes)]
            if process.at_work:
                break
        else:
            return False
        if fault.kills:
            process.killed = True
            self.kills += 1
            process.send(signal.SIGKILL)
        else:
            self.stops += 1
            process.stopped_until = now + fault.stop
            process.send(signal.SIGSTOP)
        return True

    def _stop_processes(self) -> None:
        for process in self._processes:
            process.send(signal.SIGTERM)
            process.send(signal.SIGCONT)
        end = time.monotonic() + LAST_RESORT
        for process in self._processes:
            process.find(self.history)
            code = process.ended(max(0.0, end - time.monotonic()))
            if code is None and process.pid:
                process.killed = True
                process.send(signal.SIGKILL)
                code = process.ended(LAST_RESORT)
            if code is not None:
                self._record_exit(process, code)

    # Afterwards

    def _drain(self, progress: Callable[[], object]) -> bool:
        """Have one undisturbed worker end all tasks that can end; return False if the run was interrupted."""
        with RecordedYard(opening.open(self.scratch.url, "drain"), HistoryWriter(self.history, "drain")) as yard:
            if not self._drain_rounds(yard, progress):
                return False
            # Dropped files count as tasks once they are taken in, so whatever is missing now was never added: its process was killed.
            missing = (self.tasks or 0) - sum(yard.counts().values()) if self.ended_by == "tasks" else 0
            if missing > 0:
                yard.add_many([{"kind": "build", "data": {"by": "drain", "n": n}} for n in range(missing)])
                return self._drain_rounds(yard, progress)
        return True

    def _drain_rounds(self, yard: RecordedYard, progress: Callable[[], object]) -> bool:
        for _ in self._rounds(yard):
            progress()
            if self.interrupted:
                self.ended_by = "interrupted"
                return False
        yard.sweep()
        return True

    def _rounds(self, yard: RecordedYard) -> Iterator[None]:
        """Claim and end tasks until none is open, or no state has changed for `_STUCK_AFTER` seconds."""
        stuck_at = time.monotonic() + _STUCK_AFTER
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
                before, stuck_at = counts, time.monotonic() + _STUCK_AFTER
            if not any(counts[state] for state in _OPEN) or time.monotonic() > stuck_at:
                return
            yield
            time.sleep(_TICK)

    def _checked(self, drained: bool, progress: Callable[[], object]) -> dict[str, Any]:
        with opening.open(self.scratch.url, "judge") as yard:
            final_state = FinalState.of(yard, log=self.scratch.prompt_log, drained=drained, tick=progress)
        verdict = check(History.load(self.history), final_state)
        self.troubles += [] if self.counts.operations else ["nothing was done at all"]
        legal = verdict.legal and not self.troubles
        if legal:
            self.scratch.remove()
            shutil.rmtree(self.scratch.folder, ignore_errors=True)
        return self._summary(verdict, legal)

    def _summary(self, verdict: Verdict, legal: bool) -> dict[str, Any]:
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
            "unavailable": self.counts.unavailable,
            "published_twice": codes["published_twice"],
            "lost": codes["lost"] + codes["ending_lost"] + codes["left_open"],
            "violations": [violation.as_dict() for violation in verdict.violations],
            "troubles": self.troubles,
            "cleared": self.scratch.cleared,
            "left": self.scratch.left,
            "kept": None if legal else self.scratch.folder,
            "kept_yard": None if legal else self.scratch.label or os.path.join(self.scratch.folder, "yard"),
        }
