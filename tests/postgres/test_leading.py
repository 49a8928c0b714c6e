"""Which orchestrator leads a project, where the server's clock was set right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taskyard

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard


def test_a_dead_leader_is_followed_though_the_clock_was_set_back(url: str, yard: Yard, sql: Connection[Any]) -> None:
    id = yard.add("build").id
    term = yard.lead(60)["term"]
    own = "project = (SELECT project FROM taskyard.task WHERE id = %s)"
    sql.execute(f"UPDATE taskyard.leader SET renewed_at = renewed_at + 7200000 WHERE {own}".encode(), [id])
    with taskyard.open(url, worker="bo") as other:
        told = other.lead(60)
        assert (told["leads"], told["term"]) == (True, term + 1)
        assert not yard.lead(60)["leads"]
