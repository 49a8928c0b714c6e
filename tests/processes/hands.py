"""Workers with handlers in Python, each a process: `python hands.py VERB YARD ARGUMENTS`. The tests start, stop and kill these."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING

import taskyard

if TYPE_CHECKING:
    from taskyard.worker import Job


def hold_the_interpreter(yard: str, seconds: str) -> None:
    """One task, whose handler is inside of one call of C for so long."""
    with taskyard.open(yard, worker="ada") as opened:
        worker = taskyard.Worker(opened)

        @worker.handles()
        def handler(job: Job) -> float:
            began, length = time.monotonic(), 20
            while time.monotonic() - began < float(seconds):
                begin = time.monotonic()
                re.match(r"(a+)+$", "a" * length + "b")
                length += 1 if time.monotonic() - begin < float(seconds) / 2 else 0
            return time.monotonic() - began

        worker.run(once=True)


def wait_for_file(yard: str, path: str, worker: str = "") -> None:
    """One task, done when there is such a file; says when it begins."""
    with taskyard.open(yard, worker=worker or None) as opened:
        hands = taskyard.Worker(opened)

        @hands.handles()
        def handler(job: Job) -> str:
            os.write(1, f"{job.handle}\n".encode())
            while not os.path.exists(path):
                time.sleep(0.01)
            return "done"

        hands.run(max_tasks=1)


def processes(yard: str, concurrency: str, drain: str = "") -> None:
    """Several processes; a task whose data is `die` kills its own, one that is `hold` takes long."""
    with taskyard.open(yard) as opened:
        worker = taskyard.Worker(opened)

        @worker.handles()
        def handler(job: Job) -> int:
            if job.data == "die":
                os.kill(os.getpid(), 9)
            os.write(1, f"{job.id} {os.getpid()}\n".encode())
            while job.data == "hold" and not job.cancelled:
                time.sleep(0.01)
            return os.getpid()

        tally = worker.run(concurrency=int(concurrency), processes=True, drain=bool(drain), grace=0.2)
        os.write(1, f"tally {sorted(tally.as_dict().items())}\n".encode())


VERBS = (hold_the_interpreter, wait_for_file, processes)

if __name__ == "__main__":
    {verb.__name__: verb for verb in VERBS}[sys.argv[1]](*sys.argv[2:])
