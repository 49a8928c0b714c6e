"""Measure each operation in one process, beside a bare loop of the same renames and reads."""

from __future__ import annotations

import os
import time

from bench.yards import PAYLOAD, filled, say

ROUND = 250
ROUNDS = 20


def report(folder: str) -> None:
    print("One process, 200-byte payload, best of 20 rounds:")
    _claim_and_done(folder)
    for durability in ("fast", "durable", "strict"):
        _others(folder, durability)
    _bulk(folder)


def _claim_and_done(folder: str) -> None:
    """Measure Taskyard and the bare loop in turns, so that other load affects both alike."""
    yard = filled(f"{folder}/claims", ROUND * ROUNDS)
    bare = Bare(f"{folder}/bare", ROUND * ROUNDS)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(ROUND):
            claim = yard.claim()
            assert claim is not None
            claim.task.data  # noqa: B018  parsed, as a worker would have it
            claim.done()
        ours.append((time.perf_counter() - begin) / ROUND)
        begin = time.perf_counter()
        bare.round()
        theirs.append((time.perf_counter() - begin) / ROUND)
    say("claim + done, fast, data parsed, events written", f"{1 / min(ours):,.0f}/s")
    say("bare loop of the same two renames and one read", f"{1 / min(theirs):,.0f}/s")
    say("ours, of the bare loop's rate", f"{min(theirs) / min(ours):.0%}")


class Bare:
    """A bare loop: the least that a claim by rename can cost in Python."""

    def __init__(self, folder: str, tasks: int) -> None:
        self._folder = folder
        for part in ("todo/lane/seg", "processing", "done/seg"):
            os.makedirs(f"{folder}/{part}")
        content = b'{"taskyard":1,"id":"%s","kind":"kind0","priority":5,"data":{"text":"%s"}}\n' % (
            b"0" * 21,
            b"x" * 200,
        )
        self._names = [f"{number:021d}.0.e0.c0" for number in range(tasks)]
        for name in self._names:
            with open(f"{folder}/todo/lane/seg/{name}.json", "wb") as file:
                file.write(content)

    def round(self) -> None:
        names, self._names = self._names[:ROUND], self._names[ROUND:]
        for name in names:
            claimed = f"{name}.5-kind0.l1800000.bench-00000000{ROUND}.json"
            os.rename(f"{self._folder}/todo/lane/seg/{name}.json", f"{self._folder}/processing/{claimed}")
            descriptor = os.open(f"{self._folder}/processing/{claimed}", os.O_RDONLY)
            os.read(descriptor, 4096)
            os.close(descriptor)
            os.rename(f"{self._folder}/processing/{claimed}", f"{self._folder}/done/seg/{claimed}")


def _others(folder: str, durability: str) -> None:
    yard = filled(f"{folder}/{durability}", 0, durability)
    rounds, each = (10, 100) if durability == "fast" else (5, 40)
    costs: dict[str, list[float]] = {}

    def clocked(label: str, begin: float) -> None:
        costs.setdefault(label, []).append((time.perf_counter() - begin) / each)

    for _ in range(rounds):
        begin = time.perf_counter()
        ids = [yard.add("kind0", PAYLOAD).id for _ in range(each)]
        clocked("add", begin)
        begin = time.perf_counter()
        claims = [claim for _ in range(each) if (claim := yard.claim()) is not None]
        clocked("claim", begin)
        begin = time.perf_counter()
        for claim in claims:
            claim.heartbeat()
        clocked("heartbeat", begin)
        begin = time.perf_counter()
        for claim in claims:
            claim.done({"ok": True})
        clocked("done with a result", begin)
        begin = time.perf_counter()
        for id in ids:
            yard.get(id)
        clocked("get", begin)
    for label, times in costs.items():
        say(f"{label}, {durability}", f"{min(times) * 1e6:,.0f} us")


def _bulk(folder: str) -> None:
    tasks = [{"kind": "kind0", "data": PAYLOAD}] * 2000
    for durability in ("fast", "durable"):
        yard = filled(f"{folder}/bulk-{durability}", 0, durability)
        times, single = [], []
        for _ in range(5):
            begin = time.perf_counter()
            yard.add_many(tasks)
            times.append((time.perf_counter() - begin) / len(tasks))
            begin = time.perf_counter()
            for _ in range(50):
                yard.add("kind0", PAYLOAD)
            single.append((time.perf_counter() - begin) / 50)
        say(f"bulk add of 2,000, {durability}", f"{1 / min(times):,.0f}/s")
        say(f"single add over bulk add, per task, {durability}", f"{min(single) / min(times):.1f} times")
