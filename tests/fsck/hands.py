"""The members of a busy crew, each a process: `python hands.py VERB YARD NAME`; they end when their stdin does, or are killed."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading

import taskyard


def _told() -> threading.Thread:
    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    told.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    return told


def add(place: str, name: str) -> None:
    """Add tasks in every way there is."""
    told = _told()
    with taskyard.open(place, worker=name) as yard:
        for turn in itertools.count():
            if not told.is_alive():
                return
            first = yard.add("single", {"turn": turn}, priority=turn % 3)
            yard.add("follower", {"turn": turn}, after=[first.id])
            yard.add("keyed", {"turn": turn // 2}, key=f"{name}-{turn // 2}")
            yard.add("late", delay=0.01 * (turn % 5))
            yard.add("used", uses=["the only one"])
            yard.add_many([{"kind": "bulk", "data": "x" * 100}] * 5)
            try:
                yard.edit(yard.add("edited").id, title=f"turn {turn}", priority=turn % 10)
            except taskyard.Conflict:
                pass  # somebody was quicker
            with open(f"{place}/todo/.{name}-{turn}", "w", encoding="utf-8") as file:
                file.write(json.dumps({"kind": "dropped", "turn": turn}))
            os.rename(f"{place}/todo/.{name}-{turn}", f"{place}/todo/{name}-{turn}.json")


def work(place: str, name: str) -> None:
    """Claim tasks and end them in every way there is."""
    told = _told()
    with taskyard.open(place, worker=name) as yard:
        yard.vouch(60)
        for turn in itertools.count():
            if not told.is_alive():
                return
            claim = yard.claim(wait=0.2)
            if claim is None:
                continue
            try:
                _end(yard, claim, turn % 12)
            except (taskyard.ClaimLost, taskyard.Conflict):
                continue


def _end(yard: taskyard.Yard, claim: taskyard.Claim, way: int) -> None:
    if way == 0:
        claim.fail("once more")
    elif way == 1:
        claim.fail("never", retry=False)
        yard.retry(claim.handle.split(".")[0])
    elif way == 2:
        claim.release()
    elif way == 3:
        yard.cancel(claim.task.id)
    elif way == 4:
        claim.note("a word")
        claim.heartbeat(progress=0.5)
        claim.done()
    elif way == 5:
        for again in yard.resume(yard.worker):
            again.done("again")
    else:
        claim.done({"way": way} if way % 2 else None)


def tend(place: str, name: str) -> None:
    """Sweep and prune without a pause."""
    told = _told()
    with taskyard.open(place, worker=name) as yard:
        while told.is_alive():
            yard.sweep()
            yard.prune(count=200, apply=True)


if __name__ == "__main__":
    {"add": add, "work": work, "tend": tend}[sys.argv[1]](*sys.argv[2:])
