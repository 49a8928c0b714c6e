"""Queues on one PostgreSQL, in one run, with every commit synced: how many no-op tasks a second by one process and by four."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

from tests.servers.postgres import Server

TASKS = int(os.environ.get("TASKYARD_BENCH_TASKS", "2000"))
# With how many times as many tasks: whoever ends a hundred at a time is done too soon to be measured else.
RIVALS = {
    "bare": 1,
    "ours": 1,
    "procrastinating": 1,
    "pgqueueing": 5,
    "ours_slots": 20,
    "bare_batches": 20,
}
NEEDS = {"procrastinating": "procrastinate", "pgqueueing": "pgqueuer"}
WORKERS = (1, 4)


def report(_: str) -> None:
    print(f"tasks a second on PostgreSQL, {TASKS} tasks and more, synchronous_commit on")
    print(f"  {'':16}" + "".join(f"{f'{number} processes':>14}" for number in WORKERS))
    with Server(fsync="on", full_page_writes="on", synchronous_commit="on") as server:
        for name, times in RIVALS.items():
            if find_spec(NEEDS.get(name, "psycopg")) is None:
                print(f"  {name:16}  not installed: pip install 'taskyard[bench]'")
                continue
            rates = [_race(server, name, workers, TASKS * times) for workers in WORKERS]
            print(f"  {name:16}" + "".join(f"{rate:14.0f}" for rate in rates), flush=True)


def _race(server: Server, name: str, workers: int, tasks: int) -> float:
    """Tasks a second from the first start to the last done of so many processes."""
    import psycopg

    base = f"postgresql://taskyard@/postgres?host={server.folder}"
    database = f"{name}_{workers}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    dsn = base.replace("/postgres?", f"/{database}?")
    import_module(f"bench.rivals.{name}").fill(dsn, tasks)
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.rivals", name, dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(workers)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    told = [racer.communicate()[0].split() for racer in racers]
    ended = sum(int(number) for number, _, _ in told)
    assert ended == tasks, f"{name} has done {ended} of {tasks}"
    return ended / (max(float(last) for _, _, last in told) - min(float(start) for _, start, _ in told))
