"""Publish the dones of one run in batches: each batch has the dones since the last one."""

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

_LINGER = 0.01  # seconds that a done waits for others, while its slot has more to do


class BatchedDones:
    """The dones that are not published yet. Heartbeats go on for each until it is."""

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
        """Whether the outcome is a done that only has to be stored, without a check."""
        if outcome.ending is not Ending.DONE or job.task.verify is not None or job.lost:
            return False
        try:
            return outcome.result is None or bool(draft.payload(outcome.result, "result"))
        except Invalid:
            return False

    def put(self, job: Job, outcome: Outcome, runner: Runner) -> None:
        """Add a done to the next batch; a slot that has nothing else to do calls `flush` at once."""
        self._waiting.append((job, outcome, runner))
        if not self._some.is_set():
            self._some.set()

    def flush(self) -> None:
        """Publish all waiting dones; when this returns each is stored, or reported with its reason.

        A second caller waits for the first: so the next claim is for all slots that are idle by then.
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
                alone = Runner.publish  # it may be stored, and only the answer was lost
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
        """Publish the dones of slots that went on to other tasks, until `close`."""
        while not self._over:
            self._some.wait()
            self._some.clear()
            time.sleep(_LINGER)
            self.flush()

    def close(self) -> None:
        """Make `run` return."""
        self._over = True
        self._some.set()
