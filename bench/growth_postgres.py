"""Measure what grows with the size of a yard in PostgreSQL, as `growth` does, on tables that were never analyzed.

Costs are statements, and the processor time of this process and of the server, because other load changes that less than
elapsed time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import taskyard
from bench.growth import Row, show
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard


class Meter:
    """A database of its own without autovacuum, whose tables are never analyzed, and the costs of work on it."""

    def __init__(self, server: postgres.Server, name: str) -> None:
        import psycopg

        self.url = server.url("bench").replace("/postgres?", f"/{name}?")
        base = server.url().partition("&project=")[0]
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        taskyard.init(self.url).close()
        self.sql: Connection[Any] = psycopg.connect(base.replace("/postgres?", f"/{name}?"), autocommit=True)
        leaves = self.sql.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'taskyard'::regnamespace AND relkind = 'r'"
        )
        for (leaf,) in leaves.fetchall():
            self.sql.execute(f"ALTER TABLE {leaf} SET (autovacuum_enabled = off)".encode())
        self._yards: list[Yard] = []

    def opened(self, role: str | None = None, project: str = "bench") -> Yard:
        """Return the yard as a new process opens it; it does not sweep by itself."""
        url = self.url.replace("project=bench", f"project={project}")
        yard = taskyard.open(url if role is None else url.replace("taskyard@", f"{role}@"), worker="bench")
        yard.tends = False
        self._yards.append(yard)  # kept open: the time of a server process can be read only while it runs
        return yard

    def close(self) -> None:
        """Close all connections."""
        for yard in self._yards:
            yard.close()
        self.sql.close()

    def spent(self, work: Callable[[], object], pieces: int) -> tuple[float, float]:
        """Run `work`, and return the processor seconds and the statements of each of its `pieces`."""
        say, said = WatchedConnection.rows, 0

        def counted(*words: Any, **options: Any) -> Any:
            nonlocal said
            said += 1
            return say(*words, **options)

        WatchedConnection.rows = counted  # type: ignore[method-assign]
        try:
            begin = time.process_time() + self._served()
            work()
            return (time.process_time() + self._served() - begin) / pieces, said / pieces
        finally:
            WatchedConnection.rows = say  # type: ignore[method-assign]

    def _served(self) -> float:
        """Return the processor seconds of the server's processes for this database."""
        found = self.sql.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        total = 0.0
        for (pid,) in found.fetchall():
            with open(f"/proc/{pid}/schedstat") as file:
                total += int(file.read().split()[0]) / 1e9
        return total


def fan_out(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a done of a task that `size` others wait for."""
    yard = meter.opened()
    first = yard.add("first").id
    yard.add_many({"kind": "second", "after": [first]} for _ in range(size))
    claim = yard.claim(first)
    assert claim is not None
    cost = meter.spent(claim.done, size)
    assert yard.counts()["todo"] == size
    return cost


def passed_over(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a claim that passes `size` tasks that use a thing in use."""
    yard = meter.opened()
    yard.add_many({"kind": "job", "uses": ["gpu"]} for _ in range(size))
    yard.add("job")
    assert yard.claim() is not None
    return meter.spent(yard.claim, size)


def waking(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a worker that claims `size` tasks which are due at the same moment."""
    yard = meter.opened()
    yard.add_many({"kind": "job", "delay": 3600} for _ in range(size))
    meter.sql.execute("UPDATE taskyard.task SET due = taskyard.now() - 1")

    def drained() -> Iterator[int]:
        while claims := yard.claim_many(100):
            yield len(claims)

    return meter.spent(lambda: sum(drained()), size)


def crowded(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a claim and a done by a role that may use one project, beside `size` other projects."""
    if meter.sql.execute("SELECT FROM pg_roles WHERE rolname = 'bench_crew'").fetchone() is None:
        meter.sql.execute("CREATE ROLE bench_crew LOGIN; CREATE ROLE bench_others")
    meter.sql.execute(
        "INSERT INTO taskyard.project (name) SELECT 'other' || n FROM generate_series(1, %s) AS n", (size,)
    )
    meter.sql.execute(
        "SELECT taskyard.give_project(name, 'bench_others') FROM taskyard.project WHERE name LIKE 'other%'"
    )
    meter.sql.execute("SELECT taskyard.give_project('bench', 'bench_crew')")
    yard = meter.opened("bench_crew")
    yard.add_many({"kind": "job"} for _ in range(220))

    def many(number: int) -> None:
        for _ in range(number):
            claim = yard.claim()
            assert claim is not None
            claim.done()

    many(20)  # so that the server has planned the statements
    return meter.spent(lambda: many(200), 200)


def keyed(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a bulk add with keys."""
    return _added(meter, [{"kind": "job", "data": {"n": n}, "key": f"key-{n}"} for n in range(size)])


def unkeyed(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a bulk add without keys."""
    return _added(meter, [{"kind": "job", "data": {"n": n}} for n in range(size)])


def known(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a bulk add with keys that exist already."""
    tasks = [{"kind": "job", "data": {"n": n}, "key": f"key-{n}"} for n in range(size)]
    meter.opened().add_many(tasks)
    return _added(meter, tasks)


def _added(meter: Meter, tasks: list[dict[str, Any]]) -> tuple[float, float]:
    yard = meter.opened()
    yard.add("job")
    return meter.spent(lambda: yard.add_many(tasks), len(tasks))


def log_of_one(meter: Meter, size: int) -> tuple[float, float]:
    """Measure the log of one task among `size` tasks."""
    yard = meter.opened()
    ids = yard.add_many({"kind": "job"} for _ in range(size))
    return meter.spent(lambda: yard.events(task=ids[size // 2]), 1)


def followed(meter: Meter, size: int) -> tuple[float, float]:
    """Measure the whole log, page by page."""
    yard = meter.opened()
    yard.add_many({"kind": "job"} for _ in range(size))

    def pages() -> None:
        cursor, seen = None, 0
        while seen < size:
            page = yard.events(cursor=cursor)
            cursor, seen = page.cursor, seen + len(list(page))

    return meter.spent(pages, size)


def all_pages(meter: Meter, size: int) -> tuple[float, float]:
    """Measure a list of all tasks, page by page; a tenth of them have ended."""
    yard = meter.opened()
    yard.add_many({"kind": "job"} for _ in range(size))
    for claim in yard.claim_many(size // 10):
        claim.done()

    def pages() -> None:
        cursor = None
        while cursor is not None or not seen:
            page = yard.find(cursor=cursor)
            cursor = page.next
            seen.extend(page)

    seen: list[Any] = []
    cost = meter.spent(pages, size)
    assert len(seen) == size
    return cost


def _kinds(meter: Meter, size: int) -> Yard:
    meter.opened().add_many({"kind": f"kind{n % 500}"} for n in range(size))
    return meter.opened()


def listed(meter: Meter, size: int) -> tuple[float, float]:
    """Measure the first page of a list of `size` tasks of 500 kinds."""
    return meter.spent(_kinds(meter, size).find, 1)


def listed_kind(meter: Meter, size: int) -> tuple[float, float]:
    """Measure the first page of one kind, of `size` tasks of 500 kinds."""
    yard = _kinds(meter, size)
    return meter.spent(lambda: yard.find(kind="kind7"), size)


def ready(meter: Meter, size: int) -> tuple[float, float]:
    """Measure the first page of ready tasks, of `size` tasks of 500 kinds."""
    return meter.spent(_kinds(meter, size).ready, 1)


Measure = Callable[[Meter, int], tuple[float, float]]
ROWS: list[tuple[str, str, tuple[int, ...], Measure, float]] = [
    ("done of a task with followers", "follower", (100, 1000, 10_000), fan_out, 2),
    ("claim past tasks whose resource is in use", "task passed", (200, 2000, 20_000), passed_over, 2),
    ("tasks due at once, woken and claimed", "task", (300, 3000), waking, 2),
    ("claim and done by a role, of so many projects", "task", (20, 2000), crowded, 2),
    ("bulk add with keys", "task", (500, 5000, 20_000), keyed, 2),
    ("bulk add with known keys", "task", (500, 5000), known, 2),
    ("bulk add without keys", "task", (500, 5000, 20_000), unkeyed, 2),
    ("log of one task", "look", (1000, 100_000), log_of_one, 2),
    ("log, page by page", "event", (5000, 50_000), followed, 2),
    ("list by cursor, all pages", "task", (2000, 20_000), all_pages, 2),
    ("list, 500 kinds", "look", (1000, 100_000), listed, 2),
    ("list of one kind, 500 kinds", "task in the yard", (1000, 100_000), listed_kind, 2),
    ("ready, 500 kinds", "look", (1000, 100_000), ready, 2),
]


def report(_: str) -> None:
    """Measure all rows on a new server; without PostgreSQL's programs, print why not."""
    try:
        postgres.binaries()
    except AssertionError as reason:
        print(f"Growth on PostgreSQL: {reason}")
        return
    print("The same on PostgreSQL, in processor time of both sides and statements:")
    with postgres.Server() as server:
        show(
            [Row(what, piece, sizes, _measure(server, row), bound) for what, piece, sizes, row, bound in ROWS], "growth"
        )


def _measure(server: postgres.Server, row: Measure) -> Callable[[str, int], tuple[float, float]]:
    """Return a function that measures the row in a new database."""

    def measure(place: str, size: int) -> tuple[float, float]:
        meter = Meter(server, place.replace("/", "_").replace("-", "_"))
        try:
            return row(meter, size)
        finally:
            meter.close()

    return measure
