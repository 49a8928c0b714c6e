"""Measure how an open transaction slows a busy yard in PostgreSQL: the same load before, during and after it, as a picture.

While a snapshot is open that may still see them, the server cannot remove the old versions of moved and ended rows. They pile
up where claims search for the next task.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from bench.picture import Series, plot
from bench.waking import Crew
from bench.yards import environment, filled, say
from tests.servers.postgres import Server

PART = float(os.environ.get("TASKYARD_BENCH_CHURN", "50"))  # seconds of each of the three parts
WORKERS = 2
SLOTS, BULK = 16, 10
RATE = float(os.environ.get("TASKYARD_BENCH_RATE", "1000"))  # tasks a second of each worker, at most
BACKLOG = 200
PICTURE = os.environ.get("TASKYARD_BENCH_PICTURE")  # the file to write the picture to

BUSY = """
import sys, threading, time, taskyard
rate, seconds, slots, bulk = float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
pause = slots * bulk / rate
counts, spent, slowest = ([0] * int(seconds + 2) for _ in range(3))
telling = threading.Lock()
with taskyard.open(sys.argv[1], worker="busy", durability="fast") as yard:
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.monotonic()

    def work(number):
        due = begin + pause * number / slots
        while (now := time.monotonic()) < begin + seconds:
            if now < due:
                time.sleep(due - now)
            due = max(due + pause, time.monotonic() - pause)  # what was missed is not made up for
            yard.add_many([{"kind": "busy", "data": {"text": "x" * 200}}] * bulk)
            for _ in range(bulk):
                asked = time.monotonic()
                claim = yard.claim()
                took = time.monotonic() - asked
                claim.done()
                with telling:
                    at = int(asked - begin)
                    counts[at] += 1
                    spent[at] += took
                    slowest[at] = max(slowest[at], took)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
for second in range(int(seconds)):
    print(second, counts[second], spent[second], slowest[second], flush=True)
"""


class _Second:
    """The figures of one second of the run."""

    def __init__(self) -> None:
        self.tasks, self.claiming, self.slowest, self.dead = 0, 0.0, 0.0, 0


def report(_: str) -> None:
    print(
        f"PostgreSQL: {WORKERS * RATE:.0f} tasks a second added, claimed and ended, with a snapshot kept from {PART:g} to {2 * PART:g} s:"
    )
    with Server(autovacuum_naptime="5s") as server:  # the default is a minute, longer than a part of the run
        seconds = _run(server.url())
    parts = [seconds[int(PART * part) + 1 : int(PART * (part + 1)) - 1] for part in range(3)]
    for label, part in zip(("before", "while it is kept", "after"), parts, strict=True):
        tasks = sum(one.tasks for one in part)
        say(f"tasks a second, {label}", f"{tasks / len(part):.0f}")
        say(
            f"a claim, {label}, mean, slowest",
            f"{sum(one.claiming for one in part) / tasks * 1e3:.1f} ms, {max(one.slowest for one in part) * 1e3:.0f} ms",
        )
        say(f"dead rows of open tasks at the end, {label}", f"{part[-1].dead:,}")
    last = parts[1][-5:]
    say("tasks a second in the last seconds of it", f"{sum(one.tasks for one in last) / len(last):.0f}")
    if PICTURE:
        Path(PICTURE).write_text(_picture(seconds), encoding="utf-8")


def _run(url: str) -> list[_Second]:
    filled(url, BACKLOG).close()
    seconds = [_Second() for _ in range(int(3 * PART) + 1)]
    words = [sys.executable, "-c", BUSY, url, str(RATE), str(3 * PART), str(SLOTS), str(BULK)]
    crew = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(WORKERS)
    ]
    for member in crew:
        Crew.said(member)
    dsn = url.partition("&project=")[0]
    with psycopg.connect(dsn, autocommit=True) as watcher, psycopg.connect(dsn) as keeper:
        keeper.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for member in crew:
            assert member.stdin is not None
            member.stdin.close()
        begin = time.monotonic()
        for number, second in enumerate(seconds):
            time.sleep(max(0.0, begin + number - time.monotonic()))
            if number == int(PART):
                keeper.execute("SELECT count(*) FROM taskyard.project")
            elif number == int(2 * PART):
                keeper.rollback()
            second.dead = _dead(watcher)
    for member in crew:
        assert member.stdout is not None
        for line in member.stdout:
            at, count, spent, slowest = line.split()
            one = seconds[int(at)]
            one.tasks += int(count)
            one.claiming += float(spent)
            one.slowest = max(one.slowest, float(slowest))
        assert member.wait() == 0
    return seconds[:-1]


def _dead(watcher: psycopg.Connection[tuple[object, ...]]) -> int:
    """Return the number of dead rows in the table of open tasks, by the server's statistics."""
    row = watcher.execute(
        "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'taskyard.task'::regclass"
    ).fetchone()
    assert row is not None
    return int(str(row[0]))


def _picture(seconds: list[_Second]) -> str:
    means = [one.claiming / one.tasks * 1e3 if one.tasks else None for one in seconds]
    return plot(
        f"{WORKERS} processes add, claim and end tasks; another transaction keeps its snapshot from {PART:g} to {2 * PART:g} s",
        (PART, 2 * PART),
        [
            Series("tasks a second", [one.tasks for one in seconds]),
            Series("a claim, ms", means),
            Series("dead rows of open tasks", [one.dead for one in seconds]),
        ],
    )
