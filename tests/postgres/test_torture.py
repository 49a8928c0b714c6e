"""`taskyard torture` in a database: real faults, a verdict that can be bad, and nothing left behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import taskyard
from taskyard import opening
from tests.conftest import wait_until
from tests.postgres.test_projects import as_role
from tests.processes import tools
from tests.processes.test_torture import SABOTAGE
from tests.servers import postgres

if TYPE_CHECKING:
    from pathlib import Path

    from psycopg import Connection

    from taskyard import Yard

TABLES = ("task", "body", "ended", "record", "event", "key", "need", "used")


@pytest.fixture(scope="module")
def own_database() -> str:
    """A database of this module's and this process's own: a torture clears dead runs out of all of its database."""
    return postgres.database()


@pytest.fixture
def url(own_database: str) -> str:
    """The URL of a new project, that is there."""
    url = postgres.url_in(own_database)
    taskyard.init(url).close()
    return url


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


@pytest.mark.proof
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


def started(url: str, cwd: Path, *argv: str) -> subprocess.Popen[str]:
    """A long torture, that is at work."""
    words = [*tools.COMMAND, "torture", "--workers", "2", "--seconds", "100", *argv]
    env = {**tools.environment(TASKYARD=url), "TMPDIR": str(cwd)}
    process = subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list(cwd.glob("taskyard-torture-*/history/*"))) > 2)
    return process


@pytest.mark.proof
def test_what_a_killed_one_left_is_removed_by_the_next_and_nothing_else_is(
    tmp_path: Path, yard: Yard, sql: Connection[Any]
) -> None:
    """Not one that lives, nor one that was kept, nor what a user has made under such a name."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    killed = started(yard.url, tmp_path / "one")
    [dead] = beside(sql, yard)
    living = started(yard.url, tmp_path / "two")
    try:
        [alive] = set(beside(sql, yard)) - {dead}
        own = f"{yard.url.rpartition('=')[2]}-torture-0123abcd"
        taskyard.init(yard.url.rpartition("=")[0] + f"={own}").close()
        copied = f"{yard.url.rpartition('=')[2]}-torture-4567abcd"
        taskyard.init(yard.url.rpartition("=")[0] + f"={copied}").close()
        copy = "UPDATE taskyard.project SET settings = (SELECT settings FROM taskyard.project WHERE name = %s) WHERE name = %s"
        sql.execute(copy, (dead, copied))
        killed.kill()
        killed.communicate()
        (tmp_path / "one" / "mine").mkdir()
        answer = torture(yard.url, "--tasks", "5", cwd=tmp_path / "one")
        assert (answer.data["legal"], len(answer.data["cleared"])) == (True, 2)
        assert answer.data["cleared"][0] == dead
        assert set(beside(sql, yard)) == {alive, own, copied}
        assert [path.name for path in (tmp_path / "one").iterdir()] == ["mine"]
        for table in TABLES:
            orphans = f"SELECT count(*) FROM taskyard.{table} WHERE project NOT IN (SELECT id FROM taskyard.project)"
            assert sql.execute(orphans.encode()).fetchone() == (0,), table
    finally:
        living.send_signal(signal.SIGINT)
        out, err = living.communicate(timeout=tools.PATIENCE)
    assert "legal so far" in out, (out, err)
    assert set(beside(sql, yard)) == {own, copied}


def test_one_that_lives_on_after_its_connection_broke_is_left_alone(
    tmp_path: Path, yard: Yard, sql: Connection[Any]
) -> None:
    living = started(yard.url, tmp_path)
    try:
        [alive] = beside(sql, yard)
        ended = sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks, taskyard.project "
            "WHERE classid = 747160 AND objid = project.id AND name = %s "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            (alive,),
        ).fetchall()
        assert ended == [(True,)]
        (tmp_path / "other").mkdir()
        answer = torture(yard.url, "--tasks", "5", cwd=tmp_path / "other")
        assert (answer.data["legal"], answer.data["cleared"], beside(sql, yard)) == (True, [], [alive])
    finally:
        living.send_signal(signal.SIGINT)
        living.communicate(timeout=tools.PATIENCE)
    assert beside(sql, yard) == []


def test_what_was_kept_is_nobodys_to_remove(tmp_path: Path, yard: Yard, sql: Connection[Any]) -> None:
    living = started(yard.url, tmp_path)
    living.send_signal(signal.SIGINT)
    while living.poll() is None:
        living.send_signal(signal.SIGINT)  # the second one ends it without a verdict
        time.sleep(0.05)
    living.communicate()
    [kept], folders = beside(sql, yard), list(tmp_path.iterdir())
    answer = torture(yard.url, "--tasks", "5", cwd=tmp_path)
    assert (answer.data["cleared"], beside(sql, yard), list(tmp_path.iterdir())) == ([], [kept], folders)


@pytest.mark.proof
def test_behind_a_pooler_nobody_can_tell_who_lives_so_nothing_is_marked_to_be_removed(
    yard: Yard, sql: Connection[Any]
) -> None:
    def is_marked(url: str) -> bool:
        scratch = opening.scratch(url, {})
        [name] = beside(sql, yard)
        row = sql.execute("SELECT settings FROM taskyard.project WHERE name = %s", (name,)).fetchone()
        assert row is not None
        scratch.remove()
        shutil.rmtree(scratch.folder)
        return "scratch" in json.loads(row[0])

    assert is_marked(yard.url)
    assert not is_marked(f"{yard.url}&pooler=transaction")
    assert is_marked(f"{yard.url}&pooler=transaction&listen={quote(yard.url.partition('&project=')[0], safe='')}")
    elsewhere = postgres.url_in(postgres.database()).partition("&project=")[0]
    assert not is_marked(f"{yard.url}&pooler=transaction&listen={quote(elsewhere, safe='')}"), (
        "a lock of another database"
    )
