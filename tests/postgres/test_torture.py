"""`taskyard torture` in a database: real faults, a verdict that can be bad, and nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.postgres.test_projects import as_role
from tests.processes import tools
from tests.processes.test_torture import SABOTAGE

if TYPE_CHECKING:
    from pathlib import Path

    from psycopg import Connection

    from taskyard import Yard

TABLES = ("task", "body", "ended", "record", "event", "key", "need", "used")


def torture(url: str, *argv: str, cwd: Path, **env: str) -> tools.Answer:
    return tools.taskyard(url, "torture", *argv, cwd=cwd, env={"TMPDIR": str(cwd), **env})


def beside(sql: Connection[Any], yard: Yard) -> list[str]:
    """The scratch projects beside this yard's."""
    name = yard.url.rpartition("=")[2]
    return [
        row[0] for row in sql.execute("SELECT name FROM taskyard.project WHERE name LIKE %s", (f"{name}-torture-%",))
    ]


def test_a_short_torture_is_survived_and_leaves_nothing(tmp_path: Path, yard: Yard, sql: Connection[Any]) -> None:
    yard.add("mine")
    told = torture(yard.url, "--workers", "4", "--seconds", "6", cwd=tmp_path).data
    assert (told["legal"], told["violations"], told["lost"], told["published_twice"]) == (True, [], 0, 0)
    assert told["kills"] >= 3
    assert told["stops"] > 0
    assert told["done"] + told["failed"] + told["cancelled"] + told["blocked"] == told["tasks"]
    assert (told["kept"], told["kept_yard"], list(tmp_path.iterdir()), beside(sql, yard)) == (None, None, [], [])
    assert [event["event"] for event in yard.events()] == ["added"], "the user's own project is as it was"
    for table in TABLES:
        orphans = f"SELECT count(*) FROM taskyard.{table} WHERE project NOT IN (SELECT id FROM taskyard.project)"
        assert sql.execute(orphans.encode()).fetchone() == (0,), table


def test_a_store_that_is_broken_is_found_out_and_kept(tmp_path: Path, yard: Yard, sql: Connection[Any]) -> None:
    (tmp_path / "sabotage").mkdir()
    (tmp_path / "sabotage" / "sitecustomize.py").write_text(SABOTAGE)
    env = {"PYTHONPATH": str(tmp_path / "sabotage"), "SABOTAGE": "fences_from_nought"}
    for _ in range(6):  # on a machine that is very busy little may happen in five seconds
        answer = torture(yard.url, "--seconds", "5", cwd=tmp_path, **env)
        told = answer.envelope["data"]
        if not told["legal"]:
            break
    assert answer.code == 1, told
    assert {violation["code"] for violation in told["violations"]} & {"fence_repeated", "fence_fell"}
    [project] = beside(sql, yard)
    assert told["kept_yard"].endswith(f"project={project}")
    with taskyard.open(yard.url.rpartition("=")[0] + f"={project}") as kept:
        assert sum(kept.counts().values()) == told["tasks"]


def test_no_answer_has_the_password_in_it(tmp_path: Path, yard: Yard) -> None:
    url = yard.url.replace("taskyard@", "taskyard:sesame@")
    env = {"SABOTAGE": "fences_from_nought", "PYTHONPATH": str(tmp_path / "sabotage")}
    (tmp_path / "sabotage").mkdir()
    (tmp_path / "sabotage" / "sitecustomize.py").write_text(SABOTAGE)
    answer = torture(url, "--seconds", "1", cwd=tmp_path, **env)
    assert "sesame" not in answer.out + answer.err


@pytest.mark.parametrize("way", ["another project", "a role that may not"])
def test_what_cannot_be_is_refused_before_anything_is_made(
    tmp_path: Path, yard: Yard, sql: Connection[Any], way: str
) -> None:
    url = yard.url.replace("project=", "project=other-")
    if way == "a role that may not":
        role = f"role_torture_{yard.url.rpartition('=')[2].replace('-', '_')}"
        sql.execute(f"CREATE ROLE {role} LOGIN".encode())
        sql.execute("SELECT taskyard.give_project(%s, %s)", (yard.url.rpartition("=")[2], role))
        url = as_role(yard.url, role)
    answer = torture(url, "--seconds", "1", cwd=tmp_path)
    assert (answer.code, answer.error["code"]) == (8, "unavailable")
    assert answer.error["hint"]
    assert (list(tmp_path.iterdir()), beside(sql, yard)) == ([], [])
