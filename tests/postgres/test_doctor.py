"""A doctor of databases: what the server is and how it is set."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.processes import tools
from tests.servers import postgres

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
