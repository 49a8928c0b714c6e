"""A doctor of databases: what the server is and how it is set."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Unavailable
from tests.processes import tools
from tests.servers import postgres
from tests.servers.pooler import Pooler

if TYPE_CHECKING:
    from psycopg import Connection


def examined(url: str, *options: str) -> tuple[int, dict[str, Any]]:
    answer = subprocess.run(
        [*tools.COMMAND, "doctor", "--json", *options],
        env=tools.environment(TASKYARD=url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr == ""
    return answer.returncode, json.loads(answer.stdout)


def test_a_server_that_may_forget_is_told_of(url: str) -> None:
    code, told = examined(url)
    checks = {check["check"]: check for check in told["data"]["checks"]}
    assert code == 0
    assert told["data"]["verdict"] == "warn"
    assert checks["durability"]["fsync"] == "off"  # as the servers of tests are
    assert {checks[name]["verdict"] for name in ("release", "clock", "project")} == {"green"}
    assert abs(checks["clock"]["skew"]) < 60


def test_a_database_without_the_project_is_told_of_and_stays_as_it_is(url: str, sql: Connection[Any]) -> None:
    code, told = examined(url.replace("project=", "project=other-"))
    checks = {check["check"]: check for check in told["data"]["checks"]}
    assert (code, checks["project"]["verdict"]) == (0, "warn")
    assert sql.execute("SELECT count(*) FROM taskyard.project WHERE name LIKE 'other-%'").fetchone() == (0,)


def test_what_is_for_disks_is_refused_for_databases(url: str) -> None:
    assert examined(url, "--peer")[0] == 2


def test_a_server_that_is_not_there_is_unavailable() -> None:
    url = postgres.url().replace("host=", "host=/nowhere")
    assert examined(url)[0] == 8


def test_a_pooler_of_which_the_url_says_nothing_is_told_of(url: str) -> None:
    with Pooler(postgres.folder(), "session") as pooler:
        for said, verdict in (("", "warn"), ("&pooler=session", "green"), ("&pooler=transaction", "green")):
            told = examined(f"{pooler.url(url)}{said}")[1]
            assert {check["check"]: check["verdict"] for check in told["data"]["checks"]}["pooler"] == verdict
    told = examined(url)[1]
    assert {check["check"]: check["verdict"] for check in told["data"]["checks"]}["pooler"] == "green"


def test_a_role_that_cannot_make_temporary_tables_is_told_of(database: str) -> None:
    url, role = postgres.url_in(database), f"role_{database}"
    taskyard.init(url).close()
    with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
        sql.execute(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC".encode())
        sql.execute(f"CREATE ROLE {role} LOGIN".encode())
        sql.execute("SELECT taskyard.give_project(%s, %s)", (url.rpartition("=")[2], role))
    crew = url.replace("taskyard@", f"{role}@")
    told = examined(crew)[1]
    assert {check["check"]: check["verdict"] for check in told["data"]["checks"]}["rights"] == "warn"
    with taskyard.open(crew) as yard:
        yard.add_many([{"kind": "build"}] * 50)
        with pytest.raises(Unavailable, match="temporary tables") as refused:
            yard.add_many([{"kind": "build"}] * 51)
        assert "docs/postgres.md" in str(refused.value.hint)
