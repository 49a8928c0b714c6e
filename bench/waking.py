"""Measure how soon an idle worker begins a new task, and what an idle worker costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.yards import environment, filled, say

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 200
WORKERS = 50
IDLE = float(os.environ.get("TASKYARD_BENCH_IDLE", "60"))  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")

WORKER = """
import sys, time, taskyard
with taskyard.open(sys.argv[1]) as yard:
    print("ready", flush=True)
    while True:
        claim = yard.claim(kinds=sys.argv[2], wait=3600)
        print(time.time(), flush=True)
        claim.done()
"""
STORM = """
import sys, taskyard
with taskyard.open(sys.argv[1]) as yard:
    print("ready", flush=True)
    while True:
        yard.add_many([{"kind": "other"}] * 500)
        while (claim := yard.claim(kinds="other")) is not None:
            claim.done()
"""


def report(folder: str) -> None:
    print(f"Waiting: {ROUNDS} tasks for one idle worker of another process, and {WORKERS} idle workers for {IDLE:g} s:")
    for durability in ("fast", "durable"):
        _latency(f"{folder}/{durability}", durability)
    _idle(f"{folder}/idle")
    _storm(f"{folder}/storm")


class Crew:
    """Worker processes; the constructor returns when all are ready, and the end of the `with` block kills them."""

    def __init__(self, path: str, number: int, script: str = WORKER, kind: str = "kind0") -> None:
        command = [sys.executable, "-c", script, path, kind]
        self.members = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) for _ in range(number)
        ]
        for member in self.members:
            self.said(member)

    @staticmethod
    def said(member: subprocess.Popen[str]) -> str:
        assert member.stdout is not None
        line = member.stdout.readline()
        assert line, "a worker has ended"
        return line

    def cpu(self) -> float:
        """Return the processor seconds of all processes so far."""
        return sum(_spent(member.pid) for member in self.members)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()
            member.communicate()


def _spent(pid: int) -> float:
    with open(
        f"/proc/{pid}/schedstat"
    ) as file:  # in nanoseconds; stat counts in ticks of 10 ms, more than an idle worker uses
        exact = int(file.read().split()[0]) / 1e9
    return exact or sum(_ticks(pid)) / _TICKS


def _ticks(pid: int) -> Iterator[int]:
    with open(f"/proc/{pid}/stat") as file:
        yield from map(int, file.read().rpartition(")")[2].split()[11:13])


def _latency(path: str, durability: str) -> None:
    yard = filled(path, 0, durability)
    called, returned = [], []
    with Crew(path, 1) as crew:
        for number in range(ROUNDS):
            time.sleep(0.02 + number % 10 * 0.003)  # until the worker is idle again
            before = time.time()
            yard.add("kind0")
            after = time.time()
            begun = float(crew.said(crew.members[0]))
            called.append(begun - before)
            returned.append(begun - after)
    for label, times in (("call of add", called), ("return of add", returned)):
        times.sort()
        half, most = times[len(times) // 2], times[len(times) * 99 // 100]
        say(f"from the {label} to its claim, {durability}, p50, p99", f"{half * 1e3:.1f} ms, {most * 1e3:.1f} ms")


def _idle(path: str) -> None:
    yard = filled(path, 0)
    with Crew(path, WORKERS) as crew:
        yard.add("kind0")
        time.sleep(1 + WORKERS / 25)  # until all workers have found nothing more, and sleep
        begin, spent = time.monotonic(), crew.cpu()
        time.sleep(IDLE)
        used, passed = crew.cpu() - spent, time.monotonic() - begin
        say(f"{WORKERS} idle workers together, of one core", f"{used / passed:.3%}")
        say("an idle worker, in a minute", f"{used / WORKERS / passed * 60 * 1e3:.2f} ms")


def _storm(path: str) -> None:
    yard = filled(path, 0)
    seconds = min(IDLE, 10.0)
    with Crew(path, 1) as crew, Crew(path, 1, STORM):
        time.sleep(1)
        begin, spent = time.monotonic(), crew.cpu()
        time.sleep(seconds)
        share = (crew.cpu() - spent) / (time.monotonic() - begin)
        say("a worker beside a storm of what it does not want, of a core", f"{share:.1%}")
        times = []
        for _ in range(20):
            time.sleep(0.1)
            before = time.time()
            yard.add("kind0")
            times.append(float(crew.said(crew.members[0])) - before)
        times.sort()
        say(
            "from the call of add to its claim in the storm, p50, most",
            f"{times[10] * 1e3:.0f} ms, {times[-1] * 1e3:.0f} ms",
        )
