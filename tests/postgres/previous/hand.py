"""One member of a crew whose versions differ: `python hand.py URL HISTORY WORKER ROUNDS SEED`; all that it asks for is written down.

No test by itself: it says which schema its version was written for, waits for a line, adds and works, and goes when nothing is left.
It knows nothing that the version before does not know.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import taskyard
from taskyard import proof
from taskyard.stores.postgres import schema

# The version before calls them by these names.
RecordedYard: Any = getattr(proof, "RecordedYard", None) or getattr(proof, "Witness", None)
HistoryWriter: Any = getattr(proof, "HistoryWriter", None) or getattr(proof, "Scribe", None)


def main(url: str, history: str, worker: str, rounds: str, seed: str) -> None:
    chance = random.Random(seed)
    with RecordedYard(taskyard.open(url, worker=worker), HistoryWriter(history, worker)) as yard:
        sys.stdout.write(f"{schema.CLIENT}\n")
        sys.stdout.flush()
        sys.stdin.readline()
        known: list[str] = []
        for number in range(int(rounds)):
            known.append(_add(yard, chance, number, known))
            _work(yard, chance, 0)
        while _work(yard, chance, 1.0):
            pass


def _add(yard: Any, chance: random.Random, number: int, known: list[str]) -> str:
    options: dict[str, object] = {}
    if known and chance.random() < 0.2:
        options["after"] = [chance.choice(known[-5:])]
    if chance.random() < 0.2:
        options["key"] = f"key-{number}"  # of all members together: one of them adds it
    if chance.random() < 0.2:
        options["uses"] = [f"thing-{chance.randrange(3)}"]
    if chance.random() < 0.1:
        options["delay"] = 0.05
    data = {"number": number} if "key" in options else {"by": yard.worker, "number": number}
    return str(yard.add("build", data, priority=chance.randrange(4, 7), **options).id)


def _work(yard: Any, chance: random.Random, wait: float) -> bool:
    claim = yard.claim(wait=wait)
    if claim is None:
        return False
    how = chance.random()
    if how < 0.1:
        claim.release()
    elif how < 0.15:
        claim.fail("not today", retry=False)
    else:
        if how < 0.4:
            claim.note("half way")
            claim.heartbeat(0.5)
        claim.done({"by": yard.worker})
    return True


main(*sys.argv[1:])
