"""How full a project is, where counting takes long: what was claimed since the last count is no reason to say "3 of 2"."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Full
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard


def test_a_costly_count_that_is_carried_on_says_no_more_than_there_is_room_for(
    yard: Yard, sql: Connection[Any]
) -> None:
    yard.set_settings({"max_todo": 2})
    yard.add_many([{"kind": "build"}] * 2)
    with pytest.raises(Full, match="2 of 2"):
        yard.add("build")
    taken(yard.claim())
    one = yard.add("build")
    own = "project = (SELECT project FROM taskyard.task WHERE id = %s)"
    sql.execute(f"UPDATE taskyard.backlog_count SET cost = 100000 WHERE {own}".encode(), [one.id])
    with pytest.raises(Full, match="2 of 2") as full:
        yard.add("build")
    assert full.value.count == 2


def test_a_count_that_refuses_an_add_is_kept_for_the_next(yard: Yard, sql: Connection[Any]) -> None:
    yard.set_settings({"max_todo": 2})
    one = yard.add_many([{"kind": "build"}] * 2)[0]
    own = "WHERE project = (SELECT project FROM taskyard.task WHERE id = %s)"
    sql.execute(f"DELETE FROM taskyard.backlog_count {own}".encode(), [one])
    with pytest.raises(Full, match="2 of 2"):
        yard.add("build")
    assert sql.execute(f"SELECT counted FROM taskyard.backlog_count {own}".encode(), [one]).fetchall() == [(2,)]


def test_adds_of_the_same_kinds_in_another_order_never_wait_for_one_another(yard: Yard, sql: Connection[Any]) -> None:
    yard.set_settings({"kinds": {kind: {"max_todo": 100} for kind in ("build", "test")}})
    orders = [["build", "test"], ["test", "build"]]
    one = yard.add_many([{"kind": kind} for kind in orders[0]])[0]
    [(project,)] = sql.execute("SELECT project FROM taskyard.task WHERE id = %s", [one]).fetchall()
    sql.execute("UPDATE taskyard.backlog_count SET at = 0 WHERE project = %s", [project])  # all are counted anew
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND cardinality(pg_blocking_pids(pid)) > 0"

    def are_waiting(number: int) -> bool:
        sql.execute("SELECT pg_stat_clear_snapshot()")  # within a transaction the list of backends stays as it was
        return sql.execute(waiting, ["%take_places%"]).fetchone() == (number,)

    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = sql.execute(deadlocks).fetchone()
    adds = []
    with ThreadPoolExecutor(2) as adders:
        with sql.transaction():
            last = "SELECT FROM taskyard.backlog_count WHERE project = %s AND kind = 'test' FOR UPDATE"
            sql.execute(last, [project])
            for number, order in enumerate(reversed(orders), 1):
                adds.append(adders.submit(yard.add_many, [{"kind": kind} for kind in order]))
                wait_until(partial(are_waiting, number))
        assert [len(add.result(20)) for add in adds] == [2, 2]
    assert sql.execute(deadlocks).fetchone() == before
