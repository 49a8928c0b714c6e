"""Measure what grows with the size of a yard: the cost by the piece at several sizes, and the bound for its growth.

Costs are processor time and filesystem calls, because other load changes them less than elapsed time.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import taskyard
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Row(NamedTuple):
    """One line of the report."""

    what: str
    piece: str
    sizes: tuple[int, ...]
    measure: Callable[[str, int], tuple[float, float]]
    """Takes a folder and a size; returns the processor seconds and the calls of one piece."""
    bound: float
    """The largest allowed ratio of a piece's cost at the last size to that at the first."""


class Counted:
    """A disk that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._disk = Disk()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._disk, name)

        def counted(*args: Any, **options: Any) -> Any:
            self.calls += 1
            return call(*args, **options)

        setattr(self, name, counted)
        return counted


def opened(path: str) -> tuple[Yard, Counted]:
    """Return the yard as a new process opens it, made if it does not exist; it does not sweep by itself."""
    taskyard.init(path, durability="fast").close()
    disk = Counted()
    store = DirectoryStore(path, None, cast("Disk", disk))
    store.policy.sweep_every = 1e6
    return Yard(store, "bench"), disk


def spent(disk: Counted, work: Callable[[], object], pieces: int) -> tuple[float, float]:
    """Run `work`, and return the processor seconds and the calls of each of its `pieces`."""
    calls, begin = disk.calls, time.process_time()
    work()
    return (time.process_time() - begin) / pieces, (disk.calls - calls) / pieces


def fan_out(path: str, size: int) -> tuple[float, float]:
    """Measure a done of a task that `size` others wait for."""
    yard, disk = opened(path)
    first = yard.add("first").id
    yard.add_many({"kind": "second", "after": [first]} for _ in range(size))
    claim = yard.claim(first)
    assert claim is not None
    cost = spent(disk, claim.done, size)
    assert yard.counts()["todo"] == size
    return cost


def in_use(path: str, size: int) -> tuple[float, float]:
    """Measure a claim by a new process, if `size` older tasks use a thing in use, and an earlier claim has passed them."""
    yard, _ = opened(path)
    yard.add_many({"kind": "job", "uses": ["gpu"]} for _ in range(size))
    yard.add_many({"kind": "job"} for _ in range(20))
    assert yard.claim() is not None
    assert yard.claim() is not None
    return _claims(path, 10)


def _claims(path: str, number: int) -> tuple[float, float]:
    costs = []
    for _ in range(number):
        yard, disk = opened(path)
        costs.append(spent(disk, lambda yard=yard: yard.claim(), 1))  # type: ignore[misc]
        yard.close()
    return sorted(costs)[number // 2]


def passed_over(path: str, size: int) -> tuple[float, float]:
    """Measure the first claim that passes `size` tasks that use a thing in use."""
    yard, disk = opened(path)
    yard.add_many({"kind": "job", "uses": ["gpu"]} for _ in range(size))
    yard.add("job")
    assert yard.claim() is not None
    return spent(disk, yard.claim, size)


def waking(path: str, size: int) -> tuple[float, float]:
    """Measure a worker that claims `size` tasks which are due at the same moment."""
    yard, disk = opened(path)
    ids = yard.add_many({"kind": "job", "delay": 3600} for _ in range(size))
    _make_due(path)
    return spent(disk, lambda: list(_drained(yard)), len(ids))


def _make_due(path: str) -> None:
    """Rename all waiting tasks, so that they have been due for a second."""
    past = round(time.time() * 1000) - 1000
    bucket = time.strftime("%Y-%m-%dT%H-%M", time.gmtime(past / 1000))
    for folder, _, files in list(os.walk(f"{path}/waiting")):
        target = f"{path}/waiting/{bucket}/{os.path.basename(folder)}"
        for name in files:
            os.makedirs(target, exist_ok=True)
            os.rename(f"{folder}/{name}", f"{target}/{name.rpartition('.d')[0]}.d{past}.json")


def _drained(yard: Yard) -> Iterator[str]:
    while claim := yard.claim():
        yield claim.task.id


def keyed(path: str, size: int) -> tuple[float, float]:
    """Measure a bulk add with keys."""
    return _added(path, [{"kind": "job", "data": {"n": n}, "key": f"key-{n}"} for n in range(size)])


def unkeyed(path: str, size: int) -> tuple[float, float]:
    """Measure a bulk add without keys."""
    return _added(path, [{"kind": "job", "data": {"n": n}} for n in range(size)])


def _added(path: str, tasks: list[dict[str, Any]]) -> tuple[float, float]:
    yard, disk = opened(path)
    yard.add("job")
    return spent(disk, lambda: yard.add_many(tasks), len(tasks))


def log_of_one(path: str, size: int) -> tuple[float, float]:
    """Measure the log of one task among `size` tasks."""
    yard, disk = opened(path)
    ids = yard.add_many({"kind": "job"} for _ in range(size))
    return spent(disk, lambda: yard.events(task=ids[size // 2]), size)


def all_pages(path: str, size: int) -> tuple[float, float]:
    """Measure a list of all tasks, each page by a new process."""
    yard, _ = opened(path)
    yard.add_many({"kind": "job"} for _ in range(size))
    cursor: str | None = None
    costs: list[tuple[float, float]] = []
    while cursor is not None or not costs:
        yard, disk = opened(path)
        pages: list[str | None] = []
        costs.append(
            spent(disk, lambda yard=yard, cursor=cursor, pages=pages: pages.append(yard.find(cursor=cursor).next), 1)  # type: ignore[misc]
        )
        cursor = pages[0]
    return sum(cost[0] for cost in costs) / len(costs), sum(cost[1] for cost in costs) / len(costs)


def counted(path: str, size: int) -> tuple[float, float]:
    """Measure `stats` of a yard with `size` tasks, by a new process."""
    yard, _ = opened(path)
    yard.add_many({"kind": "job"} for _ in range(size))
    yard, disk = opened(path)
    return spent(disk, yard.stats, size)


def by_short_name(path: str, size: int) -> tuple[float, float]:
    """Measure `get` of one task by its short name, by a new process."""
    yard, _ = opened(path)
    made = yard.add_many({"kind": "job"} for _ in range(size))
    [name] = yard.shorten(made[500:501])
    yard, disk = opened(path)
    return spent(disk, lambda: yard.get(name), 1)


def _lanes(path: str, size: int) -> tuple[Yard, Counted]:
    yard, _ = opened(path)
    yard.add_many({"kind": f"kind{n % 500}"} for n in range(size))
    return opened(path)


def listed(path: str, size: int) -> tuple[float, float]:
    """Measure the first page of a list of `size` tasks in 500 lanes."""
    yard, disk = _lanes(path, size)
    return spent(disk, yard.find, size)


def ready(path: str, size: int) -> tuple[float, float]:
    """Measure the first page of ready tasks, of `size` tasks in 500 lanes."""
    yard, disk = _lanes(path, size)
    return spent(disk, yard.ready, size)


def drained_lanes(path: str, size: int) -> tuple[float, float]:
    """Measure a claim that finds nothing, after `size` lanes were drained."""
    yard, _ = opened(path)
    yard.add_many({"kind": f"kind{n}"} for n in range(size))
    list(_drained(yard))
    yard, disk = opened(path)
    return spent(disk, yard.claim, size)


def dropped(path: str, size: int) -> tuple[float, float]:
    """Measure a list while `size` files are in the drop box."""
    yard, disk = opened(path)
    for n in range(size):
        with open(f"{path}/todo/order-{n}.json", "w", encoding="ascii") as file:
            json.dump({"n": n}, file)
    return spent(disk, yard.find, 1)


ROWS = [
    Row("done of a task with followers", "follower", (100, 1000, 10_000), fan_out, 2),
    Row("claim behind tasks whose resource is in use", "claim", (100, 1000, 4000), in_use, 2),
    Row("the first claim that passes them", "task passed", (100, 1000, 4000), passed_over, 2),
    Row("tasks due at once, woken and claimed", "task", (300, 3000), waking, 2),
    Row("bulk add with keys", "task", (500, 5000), keyed, 2),
    Row("bulk add without keys", "task", (500, 5000), unkeyed, 2),
    Row("log of one task", "task in the log", (1000, 10_000, 100_000), log_of_one, 1),
    Row("list by cursor, each page of 100", "page", (2000, 20_000), all_pages, 2),
    Row("stats", "task", (1000, 100_000), counted, 1.5),
    Row("show by a short name", "look", (2000, 20_000, 100_000), by_short_name, 2),
    Row("list, 500 lanes", "task in the yard", (10_000, 100_000), listed, 1),
    Row("ready, 500 lanes", "task in the yard", (10_000, 100_000), ready, 1),
    Row("claim of nothing, drained lanes", "lane", (300, 3000), drained_lanes, 2),
    Row("list beside a full drop box", "list", (1000, 10_000), dropped, 2),
]


def report(folder: str) -> None:
    print(
        "Growth on a directory: what a piece costs at each size in processor time and calls, last over first, and the bound:"
    )
    show(ROWS, folder)


def show(rows: list[Row], folder: str) -> None:
    """Measure and print each of these rows."""
    wanted = os.environ.get("TASKYARD_BENCH_ROWS", "")
    for number, row in enumerate(row for row in rows if wanted in row.what):
        costs = [row.measure(f"{folder}/{number}-{size}", size) for size in row.sizes]
        figures = "  ".join(
            f"{size:,}: {seconds * 1e6:,.0f} us, {calls:,.1f}"
            for size, (seconds, calls) in zip(row.sizes, costs, strict=True)
        )
        grown = costs[-1][0] / costs[0][0]
        verdict = "" if grown <= row.bound else "  OVER"
        print(
            f"  {row.what}, by the {row.piece}\n      {figures}  {grown:.2f} times (bound {row.bound:g}){verdict}",
            flush=True,
        )
