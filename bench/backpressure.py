"""Measure a producer that is ten times too fast on a yard with `max_todo`, and what the bound costs an add beside many tasks."""

from __future__ import annotations

import os
import threading
import time

import taskyard
from bench.yards import PAYLOAD, filled, say
from tests.servers.postgres import Server

SECONDS = float(os.environ.get("TASKYARD_BENCH_BACKPRESSURE", "10"))
MOST = 1000
RATE = 100.0  # tasks a second that the worker does; the producer could add ten times as many
BACKLOG = int(os.environ.get("TASKYARD_BENCH_BACKLOG", "100000"))
ADDS = 200


def report(folder: str) -> None:
    """Print how a producer is held on a directory and in PostgreSQL, and what an add costs near and far from the bound."""
    say("backpressure", f"max_todo {MOST}, {RATE:g} tasks a second done, a producer without a pause")
    with Server() as server:
        for name, url in (("directory", f"{folder}/held"), ("postgresql", server.url("held"))):
            _held(name, url)
        for name, url in (("directory", f"{folder}/bound"), ("postgresql", server.url("bound"))):
            _cost(name, url)


def _held(name: str, url: str) -> None:
    """Produce as fast as it goes for some seconds, then drain."""
    with taskyard.init(url, worker="bench", durability="fast") as yard:
        yard.set_settings({"max_todo": MOST})
        over = threading.Event()
        added = [0]

        def produce() -> None:
            with taskyard.open(url, worker="producer") as own:
                while not over.is_set():
                    try:
                        own.add("build", PAYLOAD, wait=0.5)
                    except taskyard.Full:
                        continue
                    added[0] += 1

        producer = threading.Thread(target=produce)
        producer.start()
        most, done, memory, begin = 0, 0, 0, time.monotonic()
        while (now := time.monotonic()) < begin + SECONDS:
            claim = yard.claim(wait=1)
            if claim is not None:
                claim.done()
                done += 1
            if done % 50 == 0:
                most = max(most, yard.counts()["todo"])
                memory = memory or (_resident() if now > begin + SECONDS / 2 else 0)
            time.sleep(max(0.0, begin + done / RATE - time.monotonic()))
        over.set()
        producer.join()
        grown = _resident() - memory
        while (claim := yard.claim()) is not None:
            claim.done()
            done += 1
        lost = added[0] - done
    print(
        f"  {name:12} added {added[0]}, at most {most} waiting, lost {lost}; memory grew {grown} KiB in the second half"
    )


def _cost(name: str, url: str) -> None:
    """Add some tasks beside many: without a bound, far below one, and at one where every add is refused."""
    with filled(url, BACKLOG) as yard:
        times = []
        for most in (None, 10 * BACKLOG, BACKLOG + ADDS):
            yard.set_settings({"max_todo": most})
            _adds(yard, 1)
            begin = time.perf_counter()
            _adds(yard, ADDS)
            times.append((time.perf_counter() - begin) / ADDS * 1000)
    free, below, full = times
    print(
        f"  {name:12} an add beside {BACKLOG} tasks: {free:.2f} ms unbounded, {below:.2f} ms below the bound, {full:.2f} ms refused"
    )


def _adds(yard: taskyard.Yard, number: int) -> None:
    for _ in range(number):
        try:
            yard.add("kind0", PAYLOAD)
        except taskyard.Full:
            continue


def _resident() -> int:
    """Return this process's resident memory in KiB."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
