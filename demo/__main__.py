"""Three workers on one yard; one is killed in mid-task; nothing is lost. Run it with `make demo`."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import IO

import taskyard

TASKS = 12
WORKERS = ("ada", "grace", "linus")
LEASE = 2.0  # seconds; short, so that the dead worker's task comes back while you watch
WORK = 0.4  # seconds that each little job takes
VICTIM = "grace"


def main() -> int:
    """Run the whole scene, or with arguments be one of its workers."""
    if len(sys.argv) == 3:
        return work(*sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="taskyard-demo-") as folder:
        return scene(f"{folder}/yard")


def work(url: str, name: str) -> int:
    """Claim, do and end tasks until nothing is left to do."""
    yard = taskyard.open(url, worker=name)
    while True:
        claim = yard.claim(lease=LEASE, wait=LEASE / 4)
        if claim is None:
            counts = yard.counts()
            if not counts["todo"] and not counts["processing"] and not counts["waiting"]:
                return 0
            continue
        with claim:
            number = claim.task.data["number"]
            say(name, f"begins {number:2d} (fence {claim.fence})")
            time.sleep(WORK)
            claim.done({"square": number * number, "by": name})
            say(name, f"has done {number:2d}")


def scene(url: str) -> int:
    """Fill a yard, start the crew, kill one of it, and look at what became of the tasks."""
    yard = taskyard.init(url)
    ids = yard.add_many([{"kind": "square", "data": {"number": number}} for number in range(1, TASKS + 1)])
    say("yard", f"{TASKS} tasks in {url}")
    crew = {name: subprocess.Popen([sys.executable, "-m", "demo", url, name]) for name in WORKERS}
    lost = wait_for_claim(yard, VICTIM)
    crew[VICTIM].send_signal(signal.SIGKILL)
    say("yard", f"{VICTIM} is killed while holding {lost.data['number']}; its lease of {LEASE:g} s runs out by itself")
    tasks = yard.wait(*ids, timeout=60)
    for process in crew.values():
        process.wait()
    return verdict(yard, tasks, lost)


def wait_for_claim(yard: taskyard.Yard, worker: str) -> taskyard.Task:
    """The task that this worker is working on, as soon as it is."""
    while True:
        for line in yard.find(state="processing", worker=worker):
            return yard.get(line.id)
        time.sleep(0.02)


def verdict(yard: taskyard.Yard, tasks: list[taskyard.Task], lost: taskyard.Task) -> int:
    """Say whether every task was done exactly once, from what the yard itself has kept."""
    endings = {task.id: [entry["outcome"] for entry in yard.report(task.id).history] for task in tasks}
    right = [task for task in tasks if task.result and task.result["square"] == task.data["number"] ** 2]
    once = [id for id, outcomes in endings.items() if outcomes.count("done") == 1]
    by = Counter(task.worker for task in tasks)
    print()
    for task in tasks:
        if task.id == lost.id:
            number, fence = task.data["number"], task.fence
            print(f"  task {number}: {' then '.join(endings[task.id])}; done by {task.worker} under fence {fence}")
    print(f"  done exactly once: {len(once)} of {TASKS}; right results: {len(right)}; by worker: {dict(by)}")
    print("\nNext: taskyard init, taskyard add KIND, taskyard claim; README.md tells the rest.")
    return 0 if len(once) == len(right) == TASKS and "crash" in endings[lost.id] else 1


def say(who: str, what: str, stream: IO[str] = sys.stdout) -> None:
    """One line of the scene, at once."""
    print(f"{who:>6}  {what}", file=stream, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
