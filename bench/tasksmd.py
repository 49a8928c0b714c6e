"""Measure `sync` on files of several lengths, and a watch that has nothing to do."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import taskyard
from bench.yards import environment, say
from taskyard.doors.tasksmd.sync import Options, sync

LENGTHS = (1_000, 10_000)
IDLE = 30.0  # seconds
HEAD = "| id | status | description | agent | depends_on | notes |\n|---|---|---|---|---|---|\n"


def report(folder: str) -> None:
    print("A table in sync with a directory, in seconds, and processor time:")
    for lines in LENGTHS:
        place = os.path.join(folder, str(lines))
        os.mkdir(place)
        path = os.path.join(place, "TASKS.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + "".join(_row(number) for number in range(lines)))
        with taskyard.init(os.path.join(place, "yard"), worker="bench") as yard:
            say(f"{lines} lines, all new", _timed(yard, path))
            say(f"{lines} lines, nothing changed", _timed(yard, path))
            for _ in range(10):
                yard.claim()
            say(f"{lines} lines, ten claims since", _timed(yard, path))
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("thing 77", "THING 77"))
            say(f"{lines} lines, {text.count('thing 77')} edited", _timed(yard, path))
    _idle(os.path.join(folder, str(LENGTHS[0])))


def _row(number: int) -> str:
    before = f"T{number - 1}" if number % 10 else "—"
    return f"| T{number} | not-started | Do thing {number} | — | {before} | note {number} |\n"


def _timed(yard: taskyard.Yard, path: str) -> str:
    begin, used = time.perf_counter(), time.process_time()
    sync(yard, path, Options("bench"))
    return f"{time.perf_counter() - begin:.2f} s, {time.process_time() - used:.2f} s of a processor"


def _idle(place: str) -> None:
    """Have a watch with nothing to do run for a while, and print the processor time that this took beside its start."""
    spent = [_watched(place, seconds) for seconds in (5.0, 5.0 + IDLE)]
    say(f"an idle watch of {LENGTHS[0]} lines", f"{(spent[1] - spent[0]) / IDLE * 100:.2f} % of a processor")


def _watched(place: str, seconds: float) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yard, path = os.path.join(place, "yard"), os.path.join(place, "TASKS.md")
    command = [sys.executable, "-m", "taskyard", "--yard", yard, "sync", path, "--watch"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGTERM)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
