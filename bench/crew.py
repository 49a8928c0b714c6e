"""Measure a crew, with and without a random SIGKILL every 100 ms, and how soon another worker begins a killed one's task."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import taskyard
from bench.yards import environment, say
from taskyard.core.task import State

if TYPE_CHECKING:
    from collections.abc import Mapping

TASKS, WORKERS, KILL_EVERY, RECOVERIES = 5000, 4, 0.1, 20
PATIENCE = 3600.0
# One task in five fails at its first attempt. Each leaves a child process, which the guard must end.
TASK = 'sleep 60 & case "$TASKYARD_TASK$TASKYARD_FENCE" in *[abcdef]1) exit 1;; esac'


class Drained:
    """The result of one crew: seconds, kills, and tasks by state."""

    def __init__(self, seconds: float, kills: int, counts: Mapping[State, int]) -> None:
        self.seconds = seconds
        self.kills = kills
        self.counts = counts


def _worker(yard: str, *words: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "taskyard", "--yard", yard, "work", *words]
    return subprocess.Popen(command, env={**environment(), **(more or {})}, stdout=subprocess.DEVNULL)


def drained(
    path: str, tasks: int, workers: int, kill_every: float | None, environment: Mapping[str, str] | None = None
) -> Drained:
    """Run `workers` workers until `tasks` tasks have ended; a killed worker is replaced at once."""
    with taskyard.open(path, worker="bench") as yard:
        yard.add_many({"kind": "build", "data": number} for number in range(tasks))
        begin, kills, last = time.monotonic(), 0, 0

        def hire() -> subprocess.Popen[bytes]:
            return _worker(path, "--drain", "--", "sh", "-c", TASK, more=environment)

        crew = [hire() for _ in range(workers)]
        try:
            while any(member.poll() is None for member in crew):
                assert time.monotonic() - begin < PATIENCE
                time.sleep(kill_every or 0.1)
                counts = yard.counts()
                ended = counts["done"] + counts["failed"]
                # Only after another task has ended: else workers on a busy machine would be killed faster than they start.
                if kill_every is not None and last < ended < tasks:
                    last = ended
                    victim = random.randrange(workers)
                    crew[victim].kill()
                    crew[victim].wait()
                    crew[victim] = hire()
                    kills += 1
        finally:
            for member in crew:
                member.kill()
                member.wait()
        seconds = time.monotonic() - begin
        _wait_for_guards(path)
        return Drained(seconds, kills, {State(name): number for name, number in yard.counts().items()})


def _forgive(path: str) -> None:
    """Raise `max_crashes`, so that no task fails because its workers were killed."""
    with open(f"{path}/yard.json", encoding="utf-8") as file:
        content = json.load(file)
    content["settings"]["max_crashes"] = 1000
    with open(f"{path}/yard.json", "w", encoding="utf-8") as file:
        json.dump(content, file)


def _wait_for_guards(path: str) -> None:
    """Wait until no killed worker has a process left, which the lock of its file shows."""
    with taskyard.open(path) as yard:
        while yard.sweep() or any(_is_locked(f"{path}/workers/{name}") for name in os.listdir(f"{path}/workers")):
            time.sleep(0.01)


def _is_locked(path: str) -> bool:
    import fcntl

    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def recoveries(path: str, rounds: int) -> list[float]:
    """Return the seconds from each kill in mid-task until another worker begins the task; the first run must have ended."""
    delays = []
    with taskyard.open(path, worker="bench") as yard:
        for turn in range(rounds):
            up = f"{path}-up-{turn}"
            script = f'test "$(cat {up}.* 2>/dev/null)" && kill -0 $(cat {up}.*) 2>/dev/null && echo early > {up}; '
            script += f"echo $$ > {up}-$$; mv {up}-$$ {up}.$TASKYARD_FENCE; exec sleep 60"
            yard.add("build")
            pair = [_worker(path, "--", "sh", "-c", script)]
            _appears(f"{up}.1")
            pair.append(_worker(path, "--max-tasks", "1", "--", "sh", "-c", script))
            while len(os.listdir(f"{path}/workers")) < 2:
                time.sleep(0.005)
            time.sleep(0.2)  # so that the second worker is idle when the first is killed
            begin = time.monotonic()
            pair[0].kill()
            _appears(up + ".3", up + ".2")
            delays.append(time.monotonic() - begin)
            assert not os.path.exists(up), "it was begun while the first was still at it"
            for member in pair:
                member.send_signal(signal.SIGKILL)
                member.wait()
            _wait_for_guards(path)
            for task in yard.find(state=["todo", "waiting", "processing"]):
                yard.cancel(task.id)
    return delays


def _appears(*paths: str) -> None:
    end = time.monotonic() + 120
    while not any(map(os.path.exists, paths)):
        assert time.monotonic() < end, "it was not begun"
        time.sleep(0.001)


def report(folder: str) -> None:
    print(f"A crew of {WORKERS}, {TASKS} tasks, one in five failing once; a command and a child of it for each:")
    seconds = {}
    for label, every in (("nobody is killed", None), (f"a random SIGKILL every {KILL_EVERY * 1e3:.0f} ms", KILL_EVERY)):
        path = f"{folder}/crew-{every}"
        taskyard.init(path).close()
        _forgive(path)
        told = drained(path, TASKS, WORKERS, every)
        seconds[every] = told.seconds
        say(label, f"{told.seconds:.1f} s, {told.kills} kills")
        say("  of these done, failed", f"{told.counts[State.DONE]}, {told.counts[State.FAILED]}")
    say("ratio", f"{seconds[KILL_EVERY] / seconds[None]:.2f}")
    path = f"{folder}/recovery"
    taskyard.init(path).close()
    delays = recoveries(path, RECOVERIES)
    say(
        f"from SIGKILL to another's start, {RECOVERIES} times: median, worst",
        f"{statistics.median(delays):.2f} s, {max(delays):.2f} s",
    )
