"""A yard with some of everything in it, made by the verbs that users have."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

from taskyard import ClaimLost, Conflict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from taskyard import Claim, Yard

KINDS = ("build", "docs.html", "ci:lint", "žluťoučký", "漢字")
WORKERS = ("ada", "Grace H", "λ-worker")
TEXTS = ("plain", 'quotes " and \\', "line\nbreak\ttab", "🙂 emoji", "", "\u0000 and \u2028", "ÀÉÎ")


def data(chance: random.Random, n: int) -> Any:
    """Some JSON; now and then a larger one."""
    return chance.choice(
        (
            None,
            n,
            -1.5e-7,
            chance.choice(TEXTS),
            [n, [None, True], {}],
            {"n": n, "text": chance.choice(TEXTS), "žluť": {"b": [1.0, 2], "a": False}},
            {"large": chance.choice(TEXTS) * chance.randrange(1, 2000)},
        )
    )


# How often a task has each option, and what it is then.
OPTIONS: dict[str, tuple[float, Callable[[random.Random], Any]]] = {
    "title": (0.5, lambda chance: f"Task {chance.choice(('ü', '漢', 'x'))}"),
    "priority": (0.3, lambda chance: chance.randrange(10)),
    "assignee": (0.2, lambda chance: chance.choice(WORKERS)),
    "mission": (0.2, lambda chance: chance.choice(("1.0", "übung"))),
    "max_attempts": (0.2, lambda chance: chance.randrange(1, 6)),
    "lease": (0.2, lambda chance: chance.choice((60, 90.5, 7200))),
    "uses": (0.2, lambda chance: chance.sample(("db", "GPU 0", "č"), chance.randrange(1, 3))),
    "verify": (0.1, lambda _: "tests"),
    "review": (0.1, lambda _: True),
    "delay": (0.06, lambda _: 90_000),
}


def options(chance: random.Random, n: int, ids: list[str]) -> dict[str, Any]:
    """Options of a task, of every sort."""
    given = {name: make(chance) for name, (share, make) in OPTIONS.items() if chance.random() < share}
    if chance.random() < 0.3:
        given["key"] = f"key {n} ß"
    if "delay" not in given and chance.random() < 0.06:
        given["not_before"] = "2039-01-31T12:00:00.250Z"
    if chance.random() < 0.1:
        given |= {"expires": "2041-01-31T12:00:00.250Z", "timeout": chance.choice([0.5, 90])}
    if ids and chance.random() < 0.15:
        given["after"] = chance.sample(ids[-50:], min(len(ids), chance.randrange(1, 4)))
    return given


def fill(yard: Yard, count: int, seed: int = 1, root: Path | None = None) -> None:
    """Add so many tasks, and have a life with them; with a root also through the drop box."""
    chance = random.Random(seed)
    ids: list[str] = []
    for start in range(0, count, 200):
        batch = [
            {"kind": chance.choice(KINDS), "data": data(chance, n), **options(chance, n, ids)}
            for n in range(start, min(start + 200, count))
        ]
        ids += yard.add_many(batch)
        live(yard, chance, ids[start:], moves=len(batch))
    if root is not None:
        for n in range(5):
            dropped = {"operation": "sharpen", "n": n, "text": "dropped ž"}
            (root / "todo" / f"order-{n}.json").write_text(json.dumps(dropped), encoding="utf-8")
        (root / "todo" / "bad 1.json").write_text('{"kind": "not a kind!"}', encoding="utf-8")
        (root / "todo" / os.fsdecode(b"bad \xff.json")).write_text('{"priority": 99}', encoding="utf-8")
        yard.sweep()
    yard.pause(KINDS[1])


def live(yard: Yard, chance: random.Random, ids: list[str], moves: int) -> None:
    """Claims that end in every way, edits, cancels and retries."""
    for _ in range(moves):
        step = chance.random()
        id = chance.choice(ids)
        if step < 0.7:
            work(yard, chance, yard.claim(worker=chance.choice(WORKERS), lease=chance.choice((None, 600))))
            continue
        task = yard.get(id)
        state = task.state
        if task.review == "pending" and step < 0.85:
            yard.accept(id) if chance.random() < 0.5 else yard.reject(id, "not good enough ž")
        elif step < 0.8 and state in ("todo", "waiting", "blocked"):
            changes: dict[str, Any] = {"data": {"edited": chance.random()}, "title": "edited ü"}
            changes |= chance.choice(({}, {"priority": 2}, {"delay": 40_000}, {"assignee": "ada"}))
            yard.edit(id, **changes)
        elif step < 0.88 and not state.ended:
            yard.cancel(id, chance.choice((None, "not now ž")))
        elif state in ("failed", "cancelled", "waiting"):
            yard.retry(id)


def work(yard: Yard, chance: random.Random, claim: Claim | None) -> None:
    """What a worker does with one claim."""
    if claim is None:
        return
    step = chance.random()
    if step < 0.15:
        claim.note(chance.choice([text for text in TEXTS if text.strip() and "\u0000" not in text]))
        claim.heartbeat(progress=0.25)
    if step < 0.05 and claim.workdir is not None:
        with open(f"{claim.workdir}/log ü.txt", "w", encoding="utf-8") as file:
            file.write("what it did\n" * 3)
    chance.choices(list(ENDS), list(ENDS.values()))[0](yard, chance, claim)


def _cancelled(yard: Yard, chance: random.Random, claim: Claim) -> None:
    yard.cancel(claim.task.id)
    late(claim, {"late": chance.random()})


def _resumed(yard: Yard, _: random.Random, claim: Claim) -> None:
    for again in yard.resume(claim.task.worker):
        again.done({"resumed": True})
    late(claim, "too late ž")


def _said_twice(_: Yard, chance: random.Random, claim: Claim) -> None:
    claim.done(5)
    late(claim, {"another": chance.random()})


# How claims end, and how often.
ENDS: dict[Callable[[Yard, random.Random, Claim], Any], int] = {
    lambda _, __, claim: claim.done(): 25,
    lambda _, chance, claim: claim.done(data(chance, 7)): 25,
    lambda _, __, claim: claim.fail("it broke ž\nfor a reason"): 12,
    lambda _, __, claim: claim.fail("for good", retry=False): 6,
    lambda _, __, claim: claim.release(): 7,
    _cancelled: 5,
    _resumed: 5,
    _said_twice: 15,
}


def late(claim: Claim, result: Any) -> None:
    """A word that comes too late, and is kept aside."""
    try:
        claim.done(result)
    except (ClaimLost, Conflict):
        return
    raise AssertionError("a claim that is over was believed")


def wind_down(yard: Yard) -> None:
    """Pause, and have nothing be held."""
    yard.pause()
    for worker in WORKERS:
        for claim in yard.resume(worker):
            claim.release()


def slow(root: Path) -> None:
    """Have nothing come due while yards are compared: whoever looks at a yard also wakes what is due there."""
    content = json.loads((root / "yard.json").read_text())
    content["settings"] |= {"backoff": 90_000, "backoff_cap": 90_000, "checks": {"tests": ["true", "ü"]}}
    (root / "yard.json").write_text(json.dumps(content))
