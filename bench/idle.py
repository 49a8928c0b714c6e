"""Measure many idle workers on one database, with and without Valkey: what they ask of it, and how soon they begin a task."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

import psycopg

import taskyard
from bench.yards import environment
from tests.servers import postgres, valkey

WORKERS = int(os.environ.get("TASKYARD_BENCH_WORKERS", "500"))
_EACH = 50  # workers of one process, in threads: as many processes would be measured for their memory
QUIET, ROUNDS, EVERY = 15.0, 200, 0.1  # seconds without tasks; tasks; seconds between two of them

PROGRAM = """
import sys, threading, time, taskyard
url, number = sys.argv[1], int(sys.argv[2])
lock = threading.Lock()
def work(name):
    with taskyard.open(url, worker=name) as yard:
        while True:
            claim = yard.claim(wait=3600)
            if claim is not None:
                now = time.monotonic_ns()
                with lock:
                    print((now - claim.task.data["at"]) / 1e6, flush=True)
                claim.done()
for n in range(number):
    threading.Thread(target=work, args=(f"{sys.argv[3]}-{n}",), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def report(_: str) -> None:
    print(
        f"{WORKERS} idle workers on PostgreSQL: statements a second while nothing happens, and for each of {ROUNDS} tasks;"
    )
    print("hand-out: from the call of add to the return of claim in another process (ms)")
    print(
        "| | connections | statements/s, quiet | statements/task | p50 | p99 | CPU of workers, quiet |\n|---|---|---|---|---|---|---|"
    )
    for name in ("PostgreSQL alone", "with Valkey"):
        with ExitStack() as stack:
            database = stack.enter_context(postgres.Server(max_connections=str(2 * WORKERS + 100)))
            url = database.url()
            if name == "with Valkey":
                url = stack.enter_context(valkey.Server("--maxclients", str(4 * WORKERS + 1000))).beside(url)
            print(f"| {name} | {_measured(url, database.url())} |", flush=True)


def _measured(url: str, plain: str) -> str:
    taskyard.init(url).close()
    script = [sys.executable, "-c", PROGRAM, url, str(_EACH)]
    crew = [
        subprocess.Popen([*script, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        for n in range(WORKERS // _EACH)
    ]
    try:
        with psycopg.connect(plain.partition("&project=")[0], autocommit=True) as sql:
            for member in crew:
                assert member.stdout is not None
                assert member.stdout.readline() == "ready\n"
            _settle(sql)
            connections = _one(sql, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'taskyard'")
            spent, before = _spent(crew), _statements(sql)
            time.sleep(QUIET)
            quiet = (_statements(sql) - before - 1) / QUIET
            busy = (_spent(crew) - spent) / QUIET
            before = _statements(sql)
            _feed(url)
            for_each = (_statements(sql) - before - 1) / ROUNDS
        return f"{connections} | {quiet:.1f} | {for_each:.0f} | {_latencies(crew)} | {busy:.0%}"
    finally:
        for member in crew:
            member.kill()
            member.communicate()


def _settle(sql: Any) -> None:
    """Wait until all workers are connected and have been quiet for a while."""
    end = time.monotonic() + 120
    last = -1
    while time.monotonic() < end:
        now = _statements(sql)
        if (
            now - last < WORKERS
            and _one(sql, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'taskyard'") >= WORKERS
        ):
            time.sleep(12)  # a connection that is idle reports what it did ten seconds later
            return
        last = now
        time.sleep(2)


def _one(sql: Any, query: str) -> int:
    [(number,)] = sql.execute(query).fetchall()
    return int(number)


def _statements(sql: Any) -> int:
    """Transactions so far: every statement of a worker is one. A backend reports them a second later."""
    time.sleep(1.5)
    return _one(sql, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")


def _feed(url: str) -> None:
    with taskyard.open(url, worker="feeder") as yard:
        for _ in range(ROUNDS):
            yard.add("build", {"at": time.monotonic_ns()})
            time.sleep(EVERY)
    time.sleep(2)


def _spent(crew: list[subprocess.Popen[str]]) -> float:
    ticks = 0
    for member in crew:
        with open(f"/proc/{member.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _latencies(crew: list[subprocess.Popen[str]]) -> str:
    found: list[float] = []
    for member in crew:
        member.kill()
        assert member.stdout is not None
        found += [float(line) for line in member.stdout if line.endswith("\n")]
    found.sort()
    assert len(found) == ROUNDS, f"{len(found)} tasks were handed out"
    return f"{found[len(found) // 2]:.1f} | {found[int(len(found) * 0.99)]:.1f}"
