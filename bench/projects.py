"""Measure what one flooding project costs the others in the same database: how long a ready task waits to be handed out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import taskyard
from bench.yards import PAYLOAD, say
from tests.servers.postgres import Server

PROJECTS = 50
ROUNDS = int(os.environ.get("TASKYARD_BENCH_PROJECTS", "12"))
SECONDS = 1.0  # of a round with the flood, and of one without it
PAUSE = 0.01  # seconds between two tasks of the quiet projects together


def report(folder: str) -> None:  # noqa: ARG001  the yards are in a database
    """Print the latency of the quiet projects, alone and beside the flood; then beside a flood at the quotas of its team."""
    say(
        "projects",
        f"{PROJECTS} projects in one database, one of them flooded by a producer and a worker without a pause",
    )
    with Server(max_connections="200") as server:
        yards = [taskyard.init(server.url(f"quiet-{number}"), worker="quiet") for number in range(PROJECTS - 1)]
        flooded = server.url("flooded")
        with taskyard.init(flooded) as yard:
            _compare(yards, flooded, "beside the flood")
            counts = yard.counts()
            print(f"  the flood: {counts['done']} done and {counts['todo']} waiting")
            yard.new_team("flood", max_todo=counts["todo"], rate=600)
            yard.give_team("flood", "flooded")
            _compare(yards, flooded, "at the quotas")
            found = yard.team()
            assert found is not None
            fill = found["fill"]
            print(
                f"  the team: {fill['todo']} of {found['max_todo']} waiting, {fill['claimed']} claims in the last minute of 600"
            )
        for yard in yards:
            yard.close()


def _compare(yards: list[taskyard.Yard], flooded: str, name: str) -> None:
    """Flood one project, and print what that means to the others."""
    crew = [_start(flooded, role) for role in ("produce", "consume")]
    time.sleep(1.0)
    quiet, beside = _in_turns(yards, crew)
    for process in crew:
        process.kill()
        process.wait()
    for what, found in (("alone", quiet), (name, beside)):
        print(f"  {what:18} p50 {_share(found, 0.5):.2f} ms, p99 {_share(found, 0.99):.2f} ms ({len(found)} tasks)")
    p50, p99 = (_share(beside, share) / _share(quiet, share) for share in (0.5, 0.99))
    print(f"  {'':18} p50 {p50:.2f} times, p99 {p99:.2f} times")


def _in_turns(yards: list[taskyard.Yard], crew: list[subprocess.Popen[bytes]]) -> tuple[list[float], list[float]]:
    """Stop the flood and let it go on again and again, so that other load on this machine counts for both alike."""
    quiet: list[float] = []
    beside: list[float] = []
    for _ in range(ROUNDS):
        for how, found in ((signal.SIGSTOP, quiet), (signal.SIGCONT, beside)):
            for process in crew:
                process.send_signal(how)
            time.sleep(0.2)
            found.extend(_latencies(yards))
    return sorted(quiet), sorted(beside)


def _latencies(yards: list[taskyard.Yard]) -> list[float]:
    """Add a task in one project after the other, and claim it: milliseconds from the return of the add to that of the claim."""
    found = []
    end, turn = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        yard = yards[turn % len(yards)]
        yard.add("build", PAYLOAD)
        begin = time.perf_counter()
        claim = yard.claim()
        found.append((time.perf_counter() - begin) * 1000)
        assert claim is not None
        claim.done()
        turn += 1
        time.sleep(PAUSE)
    return found


def _share(found: list[float], share: float) -> float:
    return found[min(len(found) - 1, int(len(found) * share))]


def _start(url: str, role: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "bench.projects", role, url])


def produce(url: str) -> None:
    """Add without a pause."""
    with taskyard.open(url, worker="flood") as yard:
        while True:
            with suppress(taskyard.Full):
                yard.add_many([{"kind": "build", "data": PAYLOAD}] * 100)


def consume(url: str) -> None:
    """Claim and end without a pause."""
    with taskyard.open(url, worker="flood") as yard:
        while True:
            for claim in yard.claim_many(100):
                claim.done()


if __name__ == "__main__":
    {"produce": produce, "consume": consume}[sys.argv[1]](sys.argv[2])
