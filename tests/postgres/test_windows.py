"""Partitions: there ahead, gone when they are past and empty, and made beside those who work where a yard has slept for too long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable
from taskyard.doors.cli import main
from taskyard.stores.postgres import upkeep
from tests.conftest import taken
from tests.postgres.test_projects import as_role
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard

PARENTS = ("ended", "record", "event")


@pytest.fixture
def yard(database: str) -> Iterator[Yard]:
    with taskyard.init(postgres.url_in(database), worker="ada") as opened:
        yield opened


@pytest.fixture
def sql(database: str, yard: Yard) -> Iterator[Connection[Any]]:
    assert yard.created
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0], autocommit=True) as connection:
        yield connection


def windows(sql: Connection[Any]) -> list[str]:
    found = sql.execute(
        "SELECT right(relname, 2) FROM pg_class WHERE relkind = 'r' AND relname ~ '^ended_..$' AND relnamespace = 'taskyard'::regnamespace"
    )
    return sorted(row[0] for row in found)


def sleep_for_a_month(yard: Yard, sql: Connection[Any]) -> None:
    """Leave the yard as it is when nobody has swept since before its last window."""
    for window in windows(sql):
        for parent in PARENTS:
            sql.execute(f"DROP TABLE taskyard.{parent}_{window}".encode())
    mend_at(yard, float("inf"))


def mend_at(yard: Yard, moment: float) -> None:
    yard._store.upkeep._mend_at = moment  # type: ignore[attr-defined]


def in_other(sql: Connection[Any]) -> dict[str, int]:
    """How many rows of each table are in no window."""
    found = {}
    for parent in PARENTS:
        row = sql.execute(f"SELECT count(*) FROM taskyard.{parent}_other".encode()).fetchone()
        assert row is not None
        found[parent] = row[0]
    return found


def test_partitions_are_there_ahead_and_go_when_they_are_past_and_empty(yard: Yard, sql: Connection[Any]) -> None:
    now = windows(sql)
    assert len(now) == 2
    sql.execute("SELECT taskyard.make_window(3)")
    assert windows(sql) == ["03", *now]
    assert yard.sweep().mended == 3
    assert windows(sql) == now
    assert yard.sweep().mended == 0


def test_a_yard_that_wakes_without_partitions_makes_them_and_moves_nothing(yard: Yard, sql: Connection[Any]) -> None:
    sleep_for_a_month(yard, sql)
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.note("half way")
    claim.done({"ok": True})
    before = in_other(sql)
    assert before["ended"] == 1
    told = yard.report(id).task.as_dict(), list(yard.events())
    mend_at(yard, 0.0)
    assert yard.sweep().mended == 6
    assert len(windows(sql)) == 2
    assert in_other(sql) == before, "whoever waits for the lock has nothing to wait for"
    assert (yard.report(id).task.as_dict(), list(yard.events())) == told


def test_a_row_from_a_clock_that_was_ahead_is_moved_into_its_partition(yard: Yard, sql: Connection[Any]) -> None:
    sleep_for_a_month(yard, sql)
    late = "1577836800000 + ((((taskyard.now() - 1577836800000) >> 30) + 1) << 30)"
    sql.execute(
        f"INSERT INTO taskyard.event (project, at, event, task, kind, fence, by) VALUES (1, {late}, 'noted', 'x', 'x', 1, 'x')".encode()
    )
    mend_at(yard, 0.0)
    assert yard.sweep().mended == 6
    assert in_other(sql)["event"] == 0


def test_nobody_who_works_notices_that_partitions_are_made(yard: Yard, sql: Connection[Any]) -> None:
    """Found there by others: rows that belong into the new partition, sent to the old one, or not committed yet."""
    sleep_for_a_month(yard, sql)
    over = threading.Event()

    def work(number: int) -> int:
        done = 0
        with taskyard.open(yard.url, worker=f"w{number}") as own:
            own.tends = False
            while not over.is_set():
                own.add("build", key=f"{number}-{done}")
                claim = taken(own.claim())
                claim.note("half way")
                claim.done()
                done += 1
        return done

    with ThreadPoolExecutor(4) as crew:
        hands = [crew.submit(work, number) for number in range(4)]
        made = 0
        try:
            while made < 6 and not any(hand.done() for hand in hands):
                mend_at(yard, 0.0)
                made += yard.sweep().mended
        finally:
            over.set()
        done = sum(hand.result(60) for hand in hands)
    assert made == 6
    assert yard.counts()["done"] == done
    assert yard.audit()["findings"] == []


def test_a_partition_that_finds_its_table_in_use_is_made_later(yard: Yard, sql: Connection[Any], database: str) -> None:
    sleep_for_a_month(yard, sql)
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0]) as reader:
        reader.execute("SELECT count(*) FROM taskyard.record_other")  # and left open, as by a dump
        mend_at(yard, 0.0)
        assert yard.sweep().mended == 4, "of the two other tables"
        assert main(["janitor", "--yard", yard.url]) == 0
    assert yard._store.upkeep._mend_at < time.monotonic() + upkeep._REFUSED_EVERY  # type: ignore[attr-defined]
    mend_at(yard, 0.0)
    assert yard.sweep().mended == 2


def test_a_refused_prune_keeps_nobody_from_making_partitions_and_reaping(
    yard: Yard, sql: Connection[Any], database: str
) -> None:
    project = yard.url.rpartition("=")[2]
    role = f"crew_{database}"
    sql.execute(f"CREATE ROLE {role} LOGIN".encode())
    sql.execute("SELECT taskyard.give_project(%s, %s)", (project, role))
    sql.execute(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC".encode())
    sql.execute("UPDATE taskyard.project SET settings = '{\"retention_count\": 1}'")
    sleep_for_a_month(yard, sql)
    yard.add("build")
    taken(yard.claim(lease=1))
    sql.execute("UPDATE taskyard.task SET lease = 0.001, lease_ends = taskyard.now() - 1")
    with taskyard.open(as_role(yard.url, role), worker="bob") as crew:
        with pytest.raises(Unavailable):
            crew.prune(count=0, apply=True)
        swept = crew.sweep()
        assert (swept.mended, swept.reaped) == (6, 1)


def test_every_table_can_be_pruned_under_a_publication_of_all_tables(yard: Yard, sql: Connection[Any]) -> None:
    sleep_for_a_month(yard, sql)
    sql.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    for moment in (float("inf"), 0.0):  # what is in no window, and what is in one that was made since
        mend_at(yard, moment)
        yard.sweep()
        id = yard.add("build", key="k", uses="x").id
        last = yard.add("test", after=id).id
        claim = taken(yard.claim(id))
        claim.note("half way")
        claim.release()
        taken(yard.claim(id)).done()
        taken(yard.claim(last)).fail("broken", retry=False)
        sql.execute("UPDATE taskyard.event SET at = at + 120000 WHERE %s", (moment == 0.0,))
        assert yard.prune(count=0, apply=True)["tasks"] == 2
    assert main(["migrate", "--new-epoch", "--yard", yard.url]) == 0
    sql.execute(
        "UPDATE taskyard.record SET at = at; UPDATE taskyard.event SET at = at - 120000; DELETE FROM taskyard.event"
    )
