"""One run: tasks, workers, a place where the server is hurt, and what the history tells of it afterwards."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import psycopg

import taskyard
from taskyard.proof import FinalState, History, HistoryWriter, RecordedYard, check
from taskyard.stores.postgres.address import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof import Verdict

ROOT = Path(__file__).parents[3]
LEASE = 2.0  # seconds
SLOTS = (4, 4, 0, 0)  # of each worker; a loop by hand has none
SETTINGS = {"lease": LEASE, "sweep_every": 0.5, "backoff": 0.05, "backoff_cap": 0.4, "max_crashes": 50}
# What workers do by themselves is tried here: with a spool, a done would be acknowledged before the server is back.
WITHOUT_SPOOL = {**os.environ, "TASKYARD_SPOOL": "off"}
BACK_WITHIN = 10.0  # seconds
_LONG_EVERY, _LONG = 100, 1.5 * LEASE  # some tasks take longer than a lease
_WORK = 40.0  # seconds of work in all the others
_MORE = 20
_BATCH = 500
_PATIENCE = 240.0
_LOOK = 0.02


class Cut:
    """One outage: from when to when, by the clock that all processes share."""

    def __init__(self) -> None:
        self.begin = time.monotonic_ns()
        self.end = 0


class Run:
    """Workers on the yard of this URL until all of its tasks have ended."""

    def __init__(self, url: str, tasks: int, seed: int = 1) -> None:
        self.url = url
        self.tasks = tasks
        self.chance = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="taskyard-outages-")
        self.history = f"{self.folder}/history"
        self.cuts: list[Cut] = []
        self.kills = 0
        self._hands: dict[str, subprocess.Popen[bytes]] = {}
        self.began = time.monotonic()
        self.seconds = 0.0
        self.good = False

    def __enter__(self) -> Self:
        taskyard.init(self.url).close()
        with psycopg.connect(Address(self.url).conninfo, autocommit=True) as sql:
            sql.execute("UPDATE taskyard.project SET settings = %s", (json.dumps(SETTINGS),))
        self._add(range(self.tasks))
        for number, slots in enumerate(SLOTS):
            self.start(f"hand-{number}", slots)
        return self

    def _add(self, numbers: range) -> None:
        with RecordedYard(taskyard.open(self.url, "owner"), HistoryWriter(self.history, "owner")) as yard:
            for first in range(0, len(numbers), _BATCH):
                batch = numbers[first : first + _BATCH]
                yard.add_many([{"kind": "build", "data": {"n": n, "pause": self._pause(n)}} for n in batch])

    def add_more(self) -> None:
        """A few tasks for workers that had none left, and were cut off while they waited."""
        self._add(range(self.tasks, self.tasks + _MORE))
        self.tasks += _MORE

    def _pause(self, number: int) -> float:
        mean = min(0.2, _WORK / self.tasks)
        return _LONG if number % _LONG_EVERY == 7 else round(2 * mean * self.chance.random(), 4)

    def start(self, worker: str, slots: int) -> None:
        given = {"url": self.url, "history": self.history, "worker": worker, "slots": slots, "lease": LEASE}
        words = [sys.executable, "-m", "tests.postgres.outages.hands", json.dumps(given)]
        with open(f"{self.folder}/errors.txt", "ab") as errors:
            self._hands[worker] = subprocess.Popen(
                words, cwd=ROOT, stdout=errors, stderr=errors, start_new_session=True, env=WITHOUT_SPOOL
            )

    def kill(self) -> None:
        """SIGKILL to one of the workers; another takes its place."""
        worker = self.chance.choice(sorted(self._hands))
        process = self._hands[worker]
        process.kill()
        process.wait()
        self.kills += 1
        self.start(worker, SLOTS[int(worker.rpartition("-")[2])])

    def until(self, share: float) -> None:
        """Wait until this share of the tasks has ended, and everybody has come back from the last outage."""
        end = time.monotonic() + _PATIENCE
        while self.ended() < share * self.tasks or not self._all_back():
            assert time.monotonic() < end, f"it does not go on: {self.ended()} of {self.tasks}\n{self.said()}"
            for worker, process in self._hands.items():
                assert process.poll() is None, f"{worker} has ended by itself: {process.returncode}\n{self.said()}"
            time.sleep(_LOOK)

    def _all_back(self) -> bool:
        if self.cuts and len(self._answers(History.load(self.history), self.cuts[-1])) < len(SLOTS):
            time.sleep(10 * _LOOK)
            return False
        return True

    def ended(self) -> int:
        with psycopg.connect(Address(self.url).conninfo, autocommit=True, connect_timeout=5) as sql:
            [(number,)] = sql.execute("SELECT count(*) FROM taskyard.ended").fetchall()
            return int(number)

    def said(self) -> str:
        return Path(self.folder, "errors.txt").read_text()[-4000:]

    def outage(self) -> Iterator[None]:
        """What is done between two steps of this happens while nobody can reach the database."""
        cut = Cut()
        yield
        cut.end = time.monotonic_ns()
        self.cuts.append(cut)

    def judge(self) -> dict[str, Any]:
        """Wait for the last task, end the workers, and tell."""
        self.until(1.0)
        self.seconds = time.monotonic() - self.began
        for process in self._hands.values():
            while not hears(process):
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
        codes = {worker: process.wait(30) for worker, process in self._hands.items()}
        with taskyard.open(self.url, "judge") as yard:
            final_state = FinalState.of(yard, drained=True)
        history = History.load(self.history)
        verdict = check(history, final_state)
        told = {**self._figures(history, verdict), "codes": codes, "verdict": verdict}
        self.good = not (wrong := faults(told))
        return {**told, "wrong": wrong if self.good else [*wrong, f"the history is in {self.folder}"]}

    def _figures(self, history: History, verdict: Verdict) -> dict[str, Any]:
        answers = [self._answers(history, cut) for cut in self.cuts]
        return {
            "tasks": verdict.figures["done"],
            "seconds": round(self.seconds, 1),
            "executions": verdict.figures["executions"],
            "kills": self.kills,
            "outages": len(self.cuts),
            "refused_late": verdict.figures["refused_late"],
            "lost_claims": self._lost_claims(history),
            "held_through": sum(self._held_through(history, cut) for cut in self.cuts),
            "first_claim": max((self._first_claim(history, cut) for cut in self.cuts), default=0.0),
            "all_back": max((each[-1] for each in answers), default=0.0),
            "back": min((len(each) for each in answers), default=len(SLOTS)),
        }

    def _first_claim(self, history: History, cut: Cut) -> float:
        """Seconds from the end of the outage until a task was handed out again."""
        ends = (op.end for op in history if op.verb == "claim" and op.answer is not None and op.answer["claims"])
        return min(((end - cut.end) / 1e9 for end in ends if end is not None and end > cut.end), default=float("inf"))

    def _answers(self, history: History, cut: Cut) -> list[float]:
        """Seconds from the end of the outage until each worker's next claim was answered, be it that nothing is ready."""
        first: dict[str, int] = {}
        for op in history:
            if op.verb == "claim" and op.answer is not None and op.end is not None and op.end > cut.end:
                first[op.worker] = min(op.end, first.get(op.worker, op.end))
        return sorted((at - cut.end) / 1e9 for at in first.values()) or [float("inf")]

    def _held_through(self, history: History, cut: Cut) -> int:
        """Claims that were held when the outage began, and done after it."""
        held = {
            handle
            for op in history
            if op.verb == "claim" and op.answer and op.end is not None and op.end < cut.begin
            for handle in op.answer["claims"]
        }
        return sum(
            op.verb == "done"
            and op.answer is not None
            and op.end is not None
            and op.end > cut.end
            and op.arguments["claim"] in held
            for op in history
        )

    def _lost_claims(self, history: History) -> list[str]:
        """Claims that were held in an outage, and over when their holder came back; on a busy machine others may lapse too."""
        since = {
            handle: op.end
            for op in history
            if op.verb == "claim" and op.answer is not None and op.end is not None
            for handle in op.answer["claims"]
        }
        late = {op.arguments["claim"]: op.end for op in history if op.error == "claim_lost" and op.end is not None}
        return [
            handle
            for handle, at in late.items()
            if any(since.get(handle, 0) < cut.end and at > cut.begin for cut in self.cuts)
        ]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in self._hands.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        if kind is None and self.good:
            shutil.rmtree(self.folder)


def hears(process: subprocess.Popen[bytes]) -> bool:
    """Whether SIGTERM would end it in order: one that was started a moment ago has no handler yet, and would be killed."""
    if process.poll() is not None:
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught & 1 << (signal.SIGTERM - 1))


def faults(told: dict[str, Any]) -> list[str]:
    """What is not as promised."""
    found = [str(told["verdict"])] if not told["verdict"].legal else []
    if any(told["codes"].values()):
        found.append(f"workers ended with {told['codes']}")
    if told["outages"]:
        if told["lost_claims"]:
            found.append(f"claims were lost to an outage: {', '.join(told['lost_claims'])}")
        if not told["held_through"]:
            found.append("nobody held a task when the server went away: nothing was tried")
        if told["back"] < len(SLOTS):
            found.append(f"only {told['back']} of {len(SLOTS)} workers have claimed again")
    if told["all_back"] >= BACK_WITHIN:
        found.append(f"it took {told['all_back']:.1f} s until all claimed again")
    return found
