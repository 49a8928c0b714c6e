"""Measure what idle listeners cost a busy yard in PostgreSQL, and how soon a task wakes them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psycopg

import taskyard
from bench.waking import WORKER, Crew
from bench.yards import PAYLOAD, environment, say
from tests.servers.postgres import Server

TASKS = int(os.environ.get("TASKYARD_BENCH_TASKS", "2000"))
PROCESSES = 4
LISTENERS = (0, 1, 8)
ROUNDS = 50
MOVES = 3  # of each task: added, claimed, done

BUSY = """
import sys, taskyard
with taskyard.open(sys.argv[1], worker="busy") as yard:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        yard.add("busy", {"text": "x" * 200})
        yard.claim(kinds="busy").done()
"""


def report(_: str) -> None:
    print(
        f"PostgreSQL: {PROCESSES} processes that add, claim and end {TASKS} tasks each, beside workers that wait for others:"
    )
    with Server(fsync="on", full_page_writes="on", synchronous_commit="on") as server:
        for number in LISTENERS:
            rate, notices = _storm(server.url(f"storm{number}"), number)
            say(f"tasks a second, beside {number} who wait", f"{rate:,.0f}")
            say("notices, of all moves", f"{notices / (TASKS * PROCESSES * MOVES):.2%}")
        _latency(server.url("latency"))


def _storm(url: str, listeners: int) -> tuple[float, int]:
    """Return the tasks a second beside `listeners` idle workers, and the number of notifications."""
    taskyard.init(url).close()
    busy = [sys.executable, "-c", BUSY, url, str(TASKS)]
    with Crew(url, listeners), _counting(url) as counter:
        time.sleep(3)  # until all listeners have found nothing, and sleep
        crew = [
            subprocess.Popen(busy, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
            for _ in range(PROCESSES)
        ]
        for member in crew:
            Crew.said(member)
        begin = time.monotonic()
        for member in crew:
            assert member.stdin is not None
            member.stdin.close()
        for member in crew:
            assert member.wait() == 0
        rate = TASKS * PROCESSES / (time.monotonic() - begin)
        return rate, sum(1 for _ in counter.notifies(timeout=0.5))


def _counting(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection that gets every notification; it does not hold a sleeper's lock, so that it causes none."""
    counter = psycopg.connect(url.replace(f"&project={url.rpartition('=')[2]}", ""), autocommit=True)
    row = counter.execute("SELECT id FROM taskyard.project WHERE name = %s", (url.rpartition("=")[2],)).fetchone()
    assert row is not None
    counter.execute(f"LISTEN taskyard_{row[0]}".encode())
    return counter


def _latency(url: str) -> None:
    times = []
    with taskyard.init(url) as yard, Crew(url, 1, WORKER) as crew:
        for number in range(ROUNDS):
            time.sleep(0.4 + number % 10 * 0.01)  # until the worker is idle again, even on a slow machine
            yard.add("kind0", PAYLOAD)
            after = time.time()
            times.append(float(crew.said(crew.members[0])) - after)
    times.sort()
    half, most = times[len(times) // 2], times[len(times) * 99 // 100]
    say("from the return of add to its claim, p50, p99", f"{half * 1e3:.1f} ms, {most * 1e3:.1f} ms")
