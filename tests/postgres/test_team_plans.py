"""What a team's quotas cost among many tasks and projects: a handful of rows, by an index; and nothing where there is no team."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.stores.postgres import queries
from tests.postgres.test_plans import CLAIM, FILL, SEVERAL, WANT, rows_read
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

PROJECTS = 2_000
OWNED = 20
HELD = 40
CLAIMED = 900
MANY = f"""
INSERT INTO taskyard.team (name, max_todo, max_running, rate) SELECT 'team' || n, 10000000, 1000, 1000 FROM generate_series(1, 50) AS n;
INSERT INTO taskyard.project (name, team) SELECT 'p' || n, n / {OWNED} FROM generate_series({OWNED}, {PROJECTS}) AS n WHERE n < {OWNED} * 51;
INSERT INTO taskyard.project (name) SELECT 'q' || n FROM generate_series(1, {PROJECTS}) AS n;
UPDATE taskyard.project SET team = 1 WHERE id = 1;
INSERT INTO taskyard.task (project, age, id, state, kind, priority, fence, errors, crashes, worker, nonce, lease, lease_ends)
SELECT project.id, lpad(n::text, 17, '9'), '0000' || lpad(n::text, 17, '9'), 'processing', 'build', 5, 1, 0, 0, 'w', 'n' || n, 60, taskyard.now() + 60000
FROM taskyard.project, generate_series(1, {HELD // OWNED}) AS n WHERE project.name LIKE 'p%';
INSERT INTO taskyard.team_pace (team, total, at, claims)
SELECT team.id, n, taskyard.now() - 50000 + n, 1 FROM taskyard.team, generate_series(1, {CLAIMED}) AS n;
INSERT INTO taskyard.team_count (team, counted, since, at, cost) SELECT id, 100, 0, taskyard.now(), 1 FROM taskyard.team;
"""
OWN = {"project": 1}
STATEMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "claim anything": (CLAIM, WANT),
    "claim one kind": (CLAIM, {**WANT, "worker": "nobody", "kinds": ["kind7"]}),
    "claim one": (CLAIM, {**WANT, "age": "00000000000000003", "fence": 0}),
    "claim several": (CLAIM, {**WANT, "nonces": SEVERAL}),
    "overdue": (queries.load("upkeep")["overdue"], {**OWN, "limit": 200}),
    "take places": (queries.load("add")["take_team_places"], {**OWN, "number": 1, "brief": True, "alone": False}),
    "the quotas that are reached": (queries.load("teams")["reached"], OWN),
    "the tokens of the team": (queries.load("teams")["tokens"], OWN),
    "the other projects": (queries.load("teams")["ring"], OWN),
}
# Twice: a claim looks before it picks, and counts once more when it is alone.
MOST = {
    "task": 2 * HELD + 100,
    "project": 3 * OWNED + 20,
    "team": 60,
    "team_pace": 15,
    "team_backlog": 5,
    "team_count": 5,
}


@pytest.fixture(scope="module")
def full() -> Iterator[Connection[Any]]:
    """A database with thousands of projects, in one of them many open tasks, of which nobody has told the planner."""
    name = postgres.database()
    taskyard.init(postgres.url_in(name, "full")).close()
    with psycopg.connect(postgres.url_in(name).partition("&project=")[0], autocommit=True) as connection:
        for table in ("task", "body", "project", "team_pace"):
            connection.execute(f"ALTER TABLE taskyard.{table} SET (autovacuum_enabled = off)".encode())
        connection.execute(FILL.format(number=50_000).encode())
        connection.execute(MANY.encode())
        yield connection
    with psycopg.connect(postgres.url().partition("&project=")[0], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_quotas_read_what_the_team_holds_and_no_more_whatever_the_planner_knows(full: Connection[Any]) -> None:
    for known in (False, True):
        if known:
            full.execute("ANALYZE")
        for mode in ("force_custom_plan", "force_generic_plan"):
            full.execute(f"SET plan_cache_mode = {mode}".encode())
            for what, (statement, values) in STATEMENTS.items():
                for table, number in rows_read(full, statement, values).items():
                    assert number <= MOST.get(table, 100), (what, table, number, mode, f"analyzed: {known}")


def test_a_project_without_a_team_reads_nothing_of_teams(full: Connection[Any]) -> None:
    [(lone,)] = full.execute("SELECT id FROM taskyard.project WHERE name = 'q7'").fetchall()
    for what, (statement, values) in STATEMENTS.items():
        if what.startswith(("claim", "overdue")):
            read = rows_read(full, statement, {**values, "project": lone})
            assert {table: number for table, number in read.items() if table.startswith("team") and number} == {}, what
            assert read["project"] <= 10, what
