"""Compare a task of a random graph with an independent one: the cost of its add, and of its claim and done."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import taskyard
from bench.yards import say
from tests.servers.postgres import Server

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = int(os.environ.get("TASKYARD_BENCH_TASKS", "3000"))
EDGES = 3  # for each task
ROUNDS = 3


class Cost(NamedTuple):
    """Seconds of one task."""

    add: float
    work: float

    @property
    def whole(self) -> float:
        """Add, claim and done together."""
        return self.add + self.work


def random_graph(tasks: int, edges: int, chance: random.Random) -> list[dict[str, Any]]:
    """Return tasks that each come after up to `edges` of those before them."""
    return [
        {"kind": "step", "ref": f"t{number}", "data": number, "after": _before(number, edges, chance)}
        for number in range(tasks)
    ]


def _before(number: int, edges: int, chance: random.Random) -> list[dict[str, str]]:
    return [{"ref": f"t{other}"} for other in sorted({chance.randrange(number) for _ in range(edges) if number})]


def independent(tasks: int) -> list[dict[str, Any]]:
    """Return tasks that come after nothing."""
    return [{"kind": "step", "data": number} for number in range(tasks)]


def measure(url: str, tasks: list[dict[str, Any]]) -> Cost:
    """Add these tasks to a new yard at once, then claim and end them one by one; return what one of them took."""
    with taskyard.init(url, worker="bench") as yard:
        begin = time.perf_counter()
        yard.add_many(tasks)
        added = time.perf_counter()
        for _ in tasks:
            claim = yard.claim()
            assert claim is not None, "a task was left behind"
            claim.done()
        return Cost((added - begin) / len(tasks), (time.perf_counter() - added) / len(tasks))


def report(folder: str) -> None:
    """Print both stores."""
    print(
        f"a task of a graph ({TASKS} tasks, {EDGES} edges each) against an independent one, the best of {ROUNDS} rounds"
    )
    _compare("directory", lambda name: f"{folder}/{name}")
    with Server(fsync="on", full_page_writes="on", synchronous_commit="on") as server:
        _compare("PostgreSQL", server.url)


def _compare(store: str, place: Callable[[str], str]) -> None:
    graph, plain = random_graph(TASKS, EDGES, random.Random(1)), independent(TASKS)
    # In turns: the speed of a shared machine changes from one minute to the next.
    rounds = [(measure(place(f"plain{n}"), plain), measure(place(f"graph{n}"), graph)) for n in range(ROUNDS)]
    one, other = (Cost(*map(min, zip(*costs, strict=True))) for costs in zip(*rounds, strict=True))
    for what, alone, linked in (
        ("add", one.add, other.add),
        ("claim and done", one.work, other.work),
        ("together", one.whole, other.whole),
    ):
        say(f"{store}: {what}", f"{alone * 1e6:.0f} us, {linked * 1e6:.0f} us: {linked / alone:.2f}x")
