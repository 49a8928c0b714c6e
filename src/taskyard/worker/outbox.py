"""Dones of one run that are said to the store together, as many at a time as have come since it was last spoken to."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from taskyard import draft, settling
from taskyard.errors import Invalid, Unavailable
from taskyard.worker.outcome import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome
    from taskyard.worker.runner import Runner
    from taskyard.yard import Yard

    Ended = tuple[Job, Outcome, Runner]

_LINGER = 0.01  # seconds that a done waits for others, while its slot has found more to do


class Outbox:
    """What is done and not yet said. Heartbeats go on for it until it is."""

    def __init__(
        self, yard: Yard, ended: Callable[[list[tuple[Job, Outcome]]], None], wait_out: Callable[[Unavailable], bool]
    ) -> None:
        self._yard = yard
        self._ended = ended
        self._wait_out = wait_out
        self._waiting: deque[Ended] = deque()
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._over = False

    def takes(self, job: Job, outcome: Outcome) -> bool:
        """Whether there is nothing more to see to than to say it."""
        if outcome.ending is not Ending.DONE or job.task.verify is not None or job.lost:
            return False
        try:
            return outcome.result is None or bool(draft.payload(outcome.result, "result"))
        except Invalid:
            return False

    def put(self, job: Job, outcome: Outcome, runner: Runner) -> None:
        """To be said with the next ones; whoever has nothing else to do says it at once (`flush`)."""
        self._waiting.append((job, outcome, runner))
        if not self._some.is_set():
            self._some.set()

    def flush(self) -> None:
        """Say what there is to say; at the return it is stored, or told why not.

        Whoever comes while others do so waits for them: so the next claim is for all slots that are idle then.
        """
        with self._lock:
            while self._waiting:
                some: list[Ended] = []
                while self._waiting and len(some) < self._yard._store.batch:
                    some.append(self._waiting.popleft())
                self._say(some)

    def _say(self, some: list[Ended]) -> None:
        made = self._stored(some)
        self._ended(
            [
                (job, outcome if done else runner.conclude(job, outcome))
                for done, (job, outcome, runner) in zip(made, some, strict=True)
            ]
        )

    def _stored(self, some: list[Ended]) -> list[bool]:
        while True:
            try:
                return settling.finish(self._yard, [(job.claim, outcome.result) for job, outcome, _ in some])
            except Unavailable as error:
                if not self._wait_out(error):
                    return [False] * len(some)

    def run(self) -> None:
        """Say what slots have put down and gone on, until `close`."""
        while not self._over:
            self._some.wait()
            self._some.clear()
            time.sleep(_LINGER)
            self.flush()

    def close(self) -> None:
        """Have `run` return."""
        self._over = True
        self._some.set()
