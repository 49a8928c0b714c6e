"""Compare queues on one PostgreSQL, with every commit synced: no-op tasks a second, by one process and by four."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from statistics import median

from tests.servers.postgres import Server

TASKS = int(os.environ.get("TASKYARD_BENCH_TASKS", "2000"))
# Each rival gets this many times `TASKS`: one that ends a hundred at a time would end too soon to be measured.
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
ROUNDS = 3


def report(_: str) -> None:
    print(f"tasks a second on PostgreSQL, {TASKS} tasks and more, synchronous_commit on, the middle of {ROUNDS} rounds")
    print(f"  {'':16}" + "".join(f"{f'{number} processes':>14}" for number in WORKERS))
    there = [name for name in RIVALS if find_spec(NEEDS.get(name, "psycopg")) is not None]
    rates: dict[tuple[str, int], list[float]] = {}
    with Server(fsync="on", full_page_writes="on", synchronous_commit="on") as server:
        # In turns: the speed of a shared machine changes from one minute to the next.
        for name, workers in [*product(there, WORKERS)] * ROUNDS:
            rates.setdefault((name, workers), []).append(_race(server, name, workers, TASKS * RIVALS[name]))
    middle = {racer: median(measured) for racer, measured in rates.items()}
    for name in RIVALS:
        told = "".join(f"{middle[name, workers]:14.0f}" for workers in WORKERS) if name in there else "  not installed"
        print(f"  {name:16}{told}")
    for ours, others in (("ours", ["bare"]), ("ours_slots", [name for name in NEEDS if name in there])):
        for workers in WORKERS if others else ():
            best = max(middle[name, workers] for name in others)
            print(f"  {ours} / best of {', '.join(others)}, {workers} processes: {middle[ours, workers] / best:.2f}")


def _race(server: Server, name: str, workers: int, tasks: int) -> float:
    """Return the tasks a second of `workers` processes, from the first start to the last done."""
    import psycopg

    base = f"postgresql://taskyard@/postgres?host={server.folder}"
    database = f"{name}_{workers}_{time.time_ns()}"
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
