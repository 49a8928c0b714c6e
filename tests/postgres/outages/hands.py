"""Workers, each a process that is told what to do by one JSON object: `python -m tests.postgres.outages.hands JSON`.

All that they ask for and are told is in the history. They work until SIGTERM.
"""

from __future__ import annotations

import json
import logging
import random
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.proof import HistoryWriter, RecordedYard

if TYPE_CHECKING:
    from taskyard.proof.recorded_yard import RecordedClaim
    from taskyard.worker import Job

told_to_end = threading.Event()


def handlers(yard: RecordedYard, concurrency: int) -> None:
    """A worker with a handler in Python, and several slots."""
    stand_in: Any = yard
    worker = taskyard.Worker(stand_in)

    @worker.handles()
    def handler(job: Job) -> Any:
        told_to_end.wait(job.data["pause"])
        return {"by": job.handle}

    worker.run(concurrency=concurrency, tell=logging.getLogger("taskyard").warning)


def loop(yard: RecordedYard, lease: float) -> None:
    """The same by hand: claim, work, done; no heartbeats, and what cannot be said now is said later."""
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())
    pause = 0.1
    while not told_to_end.is_set():
        try:
            claim = yard.claim(lease=lease)
        except taskyard.Unavailable:
            told_to_end.wait(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 3.0)
            continue
        pause = 0.1
        if claim is None:
            told_to_end.wait(0.05)
            continue
        told_to_end.wait(min(claim.task.data["pause"], lease / 4))
        _publish(claim)


def _publish(claim: RecordedClaim) -> None:
    while True:
        try:
            return claim.done({"by": claim.handle})
        except taskyard.Unavailable:
            told_to_end.wait(random.uniform(0.1, 0.5))
        except taskyard.ClaimLost:
            return None


def main(given: dict[str, Any]) -> None:
    """Be one."""
    with RecordedYard(
        taskyard.open(given["url"], given["worker"]), HistoryWriter(given["history"], given["worker"])
    ) as yard:
        if given["slots"]:
            handlers(yard, given["slots"])
        else:
            loop(yard, given["lease"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
