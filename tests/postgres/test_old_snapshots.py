"""Claims while a transaction keeps its snapshot: what was handed out cannot be removed, and is not waded through every time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from tests.conftest import taken
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard

ENDED = 6000
LEFT = 40
CLAIM = "SELECT id, priority FROM taskyard.claim(1, 'ada', %s::text[], NULL, NULL, ARRAY[%s], NULL, NULL, 60)"
# What was read since this connection last told others; they are told at the earliest a second later.
PAGES = "SELECT pg_stat_get_xact_blocks_fetched('taskyard.task'::regclass)"


@pytest.fixture(scope="module")
def database() -> str:
    return postgres.database()


@pytest.fixture(scope="module")
def worn(database: str) -> Iterator[Yard]:
    """A yard in which many tasks have ended since a transaction began that is still there."""
    url = postgres.url_in(database, "worn")
    with (
        taskyard.init(url, worker="ada", durability="fast") as yard,
        psycopg.connect(url.partition("&project=")[0]) as keeper,
    ):
        keeper.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        keeper.execute("SELECT count(*) FROM taskyard.task")
        yard.add_many([{"kind": "build"}] * (ENDED + LEFT))
        with ThreadPoolExecutor(16) as crew:
            list(crew.map(lambda _: taken(yard.claim()).done(), range(ENDED)))
        yield yard


@pytest.fixture
def line(worn: Yard, database: str) -> Iterator[Connection[Any]]:
    """A connection that has claimed nothing yet; what is claimed on it is given back."""
    with psycopg.connect(worn.url.partition("&project=")[0], autocommit=True) as connection:
        yield connection


def claimed(line: Connection[Any], kinds: list[str] | None, nonce: str) -> tuple[str, int, int]:
    """The id and the priority of what was handed out, and the pages that were read for it."""
    before = line.execute(PAGES).fetchone()
    row = line.execute(CLAIM, (kinds, nonce)).fetchone()
    after = line.execute(PAGES).fetchone()
    assert before is not None
    assert row is not None
    assert after is not None
    return row[0], row[1], after[0] - before[0]


@pytest.mark.parametrize("kinds", [None, ["build"]])
def test_one_claim_wades_and_the_next_begin_where_it_came_out(line: Connection[Any], kinds: list[str] | None) -> None:
    with line.transaction(force_rollback=True):
        _, _, waded = claimed(line, kinds, "nonce0001")
        _, _, stepped = claimed(line, kinds, "nonce0002")
    assert waded > 64
    assert stepped < waded / 4, (waded, stepped)


def test_what_is_new_and_more_urgent_is_handed_out_first_all_the_same(worn: Yard, line: Connection[Any]) -> None:
    with line.transaction(force_rollback=True):
        claimed(line, None, "nonce0001")
        urgent = worn.add("build", priority=2).id
        assert claimed(line, None, "nonce0002")[:2] == (urgent, 2)
    worn.cancel(urgent)


def test_what_comes_back_is_found_within_a_second_or_when_nothing_else_is_left(
    worn: Yard, line: Connection[Any]
) -> None:
    back = taken(worn.claim())
    claimed(line, None, "nonce0001")
    back.release()
    end = time.monotonic() + 5
    found = []
    while back.task.id not in found and time.monotonic() < end:
        with line.transaction(force_rollback=True):
            found.append(claimed(line, None, "nonce0002")[0])
        time.sleep(0.05)
    assert found[-1] == back.task.id


def test_nothing_is_remembered_where_there_is_nothing_to_wade_through(yard: Yard, sql: Connection[Any]) -> None:
    yard.add_many([{"kind": "build"}] * 3)
    project = yard._store._context.project  # type: ignore[attr-defined]
    sql.execute(CLAIM.replace("claim(1,", f"claim({project},"), (None, "nonce0001"))
    found = sql.execute("SELECT current_setting('taskyard.ford', true)").fetchone()
    assert found in ((None,), ("",))
