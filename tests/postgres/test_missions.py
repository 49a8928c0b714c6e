"""Missions in a database: whoever writes a task, and from whenever it is, its mission has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard

MEMBERS = "SELECT count(*) FROM taskyard.mission_task WHERE project = %s"


def project(sql: Connection[Any], yard: Yard) -> int:
    name = yard.url.partition("project=")[2].partition("&")[0]
    row = sql.execute("SELECT id FROM taskyard.project WHERE name = %s", [name]).fetchone()
    assert row is not None
    return int(row[0])


def members(sql: Connection[Any], number: int) -> int:
    row = sql.execute(MEMBERS, [number]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def before(yard: Yard, sql: Connection[Any]) -> Yard:
    """A project from before there were missions: its tasks name them, and nothing else knows of it."""
    yard.add_many({"kind": "build", "mission": "launch"} for _ in range(4))
    yard.add("build", mission="other")
    taken(yard.claim()).done()
    taken(yard.claim()).fail("broken", retry=False)
    number = project(sql, yard)
    sql.execute("UPDATE taskyard.task SET of_mission = NULL WHERE project = %s", [number])
    sql.execute("DELETE FROM taskyard.mission_task WHERE project = %s", [number])
    sql.execute("UPDATE taskyard.project SET missions_known = false WHERE id = %s", [number])
    return yard


@pytest.mark.parametrize("first", ["claim", "find", "mission", "missions"])
def test_tasks_from_before_are_gathered_when_a_mission_is_first_asked_for(
    before: Yard, sql: Connection[Any], first: str
) -> None:
    with taskyard.open(before.url, worker="bob") as yard:
        if first == "claim":
            taken(yard.claim(mission="launch")).release()
        elif first == "find":
            assert len(yard.find(mission="launch")) == 4
        elif first == "mission":
            assert yard.mission("launch")["total"] == 4
        else:
            assert [mission["total"] for mission in yard.missions()] == [4, 1]
        assert members(sql, project(sql, yard)) == 5
        counts = yard.mission("launch")["counts"]
        assert (counts["todo"], counts["done"], counts["failed"]) == (2, 1, 1)
        for _ in range(2):
            taken(yard.claim(mission="launch")).done()
        assert yard.claim(mission="launch") is None
        assert yard.mission("launch")["state"] == "failed"


def test_a_client_that_writes_the_mission_with_the_body_alone_is_understood(yard: Yard, sql: Connection[Any]) -> None:
    number, id = project(sql, yard), "0000" + "6a6xzeaqpeszmevb5"
    with sql.transaction():
        sql.execute(
            "INSERT INTO taskyard.task (project, age, id, state, kind, priority, fence, errors, crashes)"
            " VALUES (%s, %s, %s, 'todo', 'build', 5, 0, 0, 0)",
            [number, id[4:], id],
        )
        sql.execute(
            "INSERT INTO taskyard.body (project, id, mission, data) VALUES (%s, %s, 'launch', 'null')", [number, id]
        )
    assert taken(yard.claim(mission="launch")).task.id == id


def test_rows_that_move_between_partitions_stay_of_their_mission(yard: Yard, sql: Connection[Any]) -> None:
    yard.add("build", mission="launch")
    taken(yard.claim()).done()
    with sql.transaction(force_rollback=True):
        sql.execute("SELECT set_config('taskyard.moving', 'on', true)")
        sql.execute("DELETE FROM taskyard.ended WHERE project = %s", [project(sql, yard)])
        assert members(sql, project(sql, yard)) == 1
    row = sql.execute("SELECT pg_get_functiondef('taskyard.make_partition(text, bigint)'::regprocedure)").fetchone()
    assert row is not None
    assert "taskyard.moving" in row[0]


def test_many_workers_of_one_mission_take_each_task_once(url: str, yard: Yard) -> None:
    from concurrent.futures import ThreadPoolExecutor

    added = yard.add_many({"kind": "build", "mission": "launch"} for _ in range(60))
    yard.add_many({"kind": "build", "mission": "other"} for _ in range(20))

    def work(number: int) -> list[str]:
        done = []
        with taskyard.open(url, worker=f"w{number}") as own:
            while (claim := own.claim(mission="launch")) is not None:
                done.append(claim.task.id)
                claim.done()
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [id for some in pool.map(work, range(4)) for id in some]
    assert sorted(done) == sorted(added)
    assert yard.mission("launch")["state"] == "done"
