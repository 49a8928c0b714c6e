"""How full a project is, where counting takes long: what was claimed since the last count is no reason to say "3 of 2"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Full
from tests.conftest import taken

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
