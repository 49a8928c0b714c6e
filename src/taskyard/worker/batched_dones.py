"""Dones of one run that are said to the store together, as many at a time as have come since it was last spoken to."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from taskyard.core import draft
from taskyard.core.errors import Invalid, Unavailable
from taskyard.worker.outcome import Ending
from taskyard.worker.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.port import YardPort
    from taskyard.worker.job import Job
    from taskyard.worker.outcome import Outcome

    Ended = tuple[Job, Outcome, Runner]

_LINGER = 0.01  # seconds that a done waits for others, while its slot has found more to do


class BatchedDones:
    """What is done and not yet said. Heartbeats go on for it until it is."""

    def __init__(
        self,
        yard: YardPort,
        ended: Callable[[list[tuple[Job, Outcome]]], None],
        wait_out: Callable[[Unavailable], bool],
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
                while self._waiting and len(some) < self._yard.batch:
                    some.append(self._waiting.popleft())
                self._say(some)

    def _say(self, some: list[Ended]) -> None:
        alone = Runner.conclude
        made: list[bool] | None = None
        while made is None:
            try:
                made = self._yard.done_many([(job.claim.ref, outcome.result) for job, outcome, _ in some])
            except Unavailable as error:
                alone = Runner.publish  # it may have been stored, and only the answer was lost
                if not self._wait_out(error):
                    made = [False] * len(some)
        for done, (job, _, _) in zip(made, some, strict=True):
            if done:
                job.claim.ended()
        self._ended(
            [
                (ended[0], ended[1] if done else alone(ended[2], *ended[:2]))
                for done, ended in zip(made, some, strict=True)
            ]
        )

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
