"""Measure an outage: PostgreSQL is stopped under load while workers finish and producers add, and all of it is replayed.

`python -m bench.spool ROLE JSON` is one of the processes of that load.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import taskyard
from bench.yards import say
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from taskyard.worker import Job

SECONDS = float(os.environ.get("TASKYARD_BENCH_OUTAGE", "30"))
PRODUCERS, WORKERS, SLOTS = 2, 2, 4
PAUSE = 0.05  # seconds between two adds of a producer, and of one task's work
HELD = 100  # tasks that one more worker holds when the server is stopped, and finishes one by one meanwhile
BEFORE = 3.0  # seconds of load before the outage
_PATIENCE = 120.0


def report(folder: str) -> None:
    """Print what an outage of 30 s cost."""
    say(
        "spool",
        f"PostgreSQL stopped for {SECONDS:g} s: {PRODUCERS} producers, {WORKERS} workers with {SLOTS} slots each",
    )
    told = outage(folder, SECONDS)
    print(
        f"  {told['spooled_adds']} adds and {told['spooled_endings']} endings spooled, in two spools;"
        f" lost {told['lost']}, doubled {told['doubled']}, stale {told['stale']}, refused {told['refused']}"
    )
    print(
        f"  after the server was back: first claim {told['first_claim']:.1f} s, spools empty {told['empty']:.1f} s,"
        f" all added tasks done {told['normal']:.1f} s"
    )


def outage(folder: str, seconds: float) -> dict[str, Any]:
    """Run the load, stop the server for so long, and compare what was acknowledged with what is there at last."""
    with Server(synchronous_commit="on") as server:
        url = server.url()
        with taskyard.init(url) as yard:
            yard.add_many({"kind": "held", "data": {"n": -n}} for n in range(1, HELD + 1))
        crew = [_start("produce", number, url, folder) for number in range(PRODUCERS)]
        crew += [_start("work", number, url, folder) for number in range(WORKERS)]
        holder = _start("finish", 0, url, folder, seconds=seconds)
        _read(holder)  # it holds its tasks
        time.sleep(BEFORE)
        server.stop()
        time.sleep(seconds)
        spooled = _entries(folder)
        for member in crew[:PRODUCERS]:
            member.send_signal(signal.SIGTERM)
        server.start()
        return {**spooled, **_judged(url, folder, crew, holder)}


def _judged(url: str, folder: str, crew: list[subprocess.Popen[str]], holder: subprocess.Popen[str]) -> dict[str, Any]:
    begin = time.monotonic()
    told: dict[str, Any] = {}
    acknowledged = [number for member in crew[:PRODUCERS] for number in _read(member)["added"]]
    with taskyard.open(url, worker="judge") as yard:
        since = yard.log_end()
        yard.watch(event="claimed", cursor=since, timeout=_PATIENCE)
        told["first_claim"] = time.monotonic() - begin
        while any(_entries(folder)[sort] for sort in ("spooled_adds", "spooled_endings")):
            _look(begin)
        told["empty"] = time.monotonic() - begin
        while yard.counts()["done"] < len(acknowledged) + HELD:
            _look(begin)
        told["normal"] = time.monotonic() - begin
        for member in crew[PRODUCERS:]:
            member.send_signal(signal.SIGTERM)
        executed = [number for member in crew[PRODUCERS:] for number in _read(member)["done"]]
        tasks, cursor = [], None
        while True:
            page = yard.find(limit=1000, cursor=cursor)
            tasks += [yard.get(task.id) for task in page]
            cursor = page.next
            if cursor is None:
                break
        there = [task.data["n"] for task in tasks]
        told["doubled"] = len(there) - len(set(there)) + len(executed) - len(set(executed))
        told["lost"] = len({*acknowledged, *range(-HELD, 0)} - set(there)) + sum(task.state != "done" for task in tasks)
        told["stale"] = len(yard.events(event="refused"))
    _read(holder)
    for member in (*crew, holder):
        member.wait()
    told["refused"] = sum(len(files) for place, _, files in os.walk(folder) if place.endswith("/failed"))
    return told


def _look(begin: float) -> None:
    if time.monotonic() - begin > _PATIENCE:
        raise TimeoutError("it does not come back")
    time.sleep(0.05)


def _entries(folder: str) -> dict[str, int]:
    """Return how many entries wait in the spools, of adds and of endings."""
    counts = {"spooled_adds": 0, "spooled_endings": 0}
    for place, _, files in os.walk(folder):
        for name in files if place.endswith("/todo") else ():
            try:
                with open(f"{place}/{name}", encoding="utf-8") as file:
                    verb = json.load(file)["verb"]
            except FileNotFoundError:
                continue
            counts["spooled_adds" if verb == "add" else "spooled_endings"] += 1
    return counts


def _start(role: str, number: int, url: str, folder: str, **more: Any) -> subprocess.Popen[str]:
    """Start one process of the load; those with odd numbers have a spool of their own, as on another machine."""
    given = {"url": url, "number": number, **more}
    environment = {**os.environ, "TASKYARD_SPOOL": f"{folder}/spool-{number % 2}"}
    return subprocess.Popen(
        [sys.executable, "-m", "bench.spool", role, json.dumps(given)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _read(member: subprocess.Popen[str]) -> Any:
    assert member.stdout
    return json.loads(member.stdout.readline())


def produce(url: str, number: int) -> None:
    """Add a task again and again until SIGTERM, then print which were acknowledged."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    added: list[int] = []
    with taskyard.open(url, worker=f"producer-{number}") as yard:
        while not over.wait(PAUSE):
            n = number * 1_000_000 + len(added) + 1
            yard.add("build", {"n": n})
            added.append(n)
    print(json.dumps({"added": added}), flush=True)


def work(url: str, number: int) -> None:
    """Be a worker until SIGTERM, then print what was done."""
    done: list[int] = []
    with taskyard.open(url, worker=f"worker-{number}") as yard:
        worker = taskyard.Worker(yard)

        @worker.handles("build")
        def handler(job: Job) -> dict[str, int]:
            time.sleep(PAUSE)
            done.append(job.data["n"])
            return {"n": job.data["n"]}

        worker.run(concurrency=SLOTS)
    print(json.dumps({"done": done}), flush=True)


def finish(url: str, number: int, seconds: float) -> None:
    """Hold many tasks, and finish them one by one during the outage."""
    with taskyard.open(url, worker=f"finisher-{number}") as yard:
        claims = yard.claim_many(HELD, kinds="held", lease=600)
        print(json.dumps(len(claims)), flush=True)
        time.sleep(BEFORE)
        for claim in claims:
            time.sleep(0.8 * seconds / HELD)
            claim.done({"held": True})
    print(json.dumps(len(claims)), flush=True)


if __name__ == "__main__":
    roles: dict[str, Any] = {"produce": produce, "work": work, "finish": finish}
    roles[sys.argv[1]](**json.loads(sys.argv[2]))
