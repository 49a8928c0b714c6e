"""Hot statements among many tasks: each reads a handful of rows, by an index, also before the tables were ever analyzed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.stores.postgres import queries
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

FEW = 100  # rows that one statement may read of any table
FILL = """
INSERT INTO taskyard.task (project, age, id, state, kind, priority, assignee, fence, errors, crashes, due, worker, nonce, lease, lease_ends)
SELECT 1, age, lpad((n / 1024)::text, 4, '0') || age, state, kind, priority, assignee, 0, 0, 0,
       CASE WHEN state = 'waiting' THEN taskyard.now() + 3600000 END,
       CASE WHEN state = 'processing' THEN 'w' || n % 97 END, CASE WHEN state = 'processing' THEN 'nonce' || n END,
       60, CASE WHEN state = 'processing' THEN taskyard.now() + 60000 END
FROM (
    SELECT n, lpad(n::text, 17, '0') AS age, CASE WHEN n % 20000 = 19999 THEN 'rare' ELSE 'kind' || n % 50 END AS kind, n % 10 AS priority,
           CASE WHEN n % 20 = 0 THEN 'worker' || n % 7 END AS assignee,
           CASE WHEN n % 25000 = 1 THEN 'processing' WHEN n % 50 = 2 THEN 'waiting' ELSE 'todo' END::taskyard.state AS state
    FROM generate_series(1, {number}) AS n
) AS made;
INSERT INTO taskyard.body (project, id, mission, data)
SELECT project, id, CASE age::bigint % 3 WHEN 0 THEN 'mission' || age::bigint % 100 WHEN 1 THEN 'crowd' END, '{{}}' FROM taskyard.task;
INSERT INTO taskyard.deadline (project, age, at)
SELECT project, age, taskyard.now() + CASE state WHEN 'processing' THEN -3600000 ELSE 3600000 END FROM taskyard.task
"""
AGE = "00000000000000001"
GUARD = {"project": 1, "age": AGE, "id": f"0000{AGE}", "state": "processing", "fence": 0, "nonce": "nonce1"}
MOVE = {
    **GUARD, "to": "done", "to_fence": 1, "errors": 0, "crashes": 0, "delay": 0, "outcome": "done", "reason": None, "result": "{}", "by": "ada",
    "keeps": True, "event": "done", "more": None, "logs_due": False, "lifts": False, "worker": "ada", "claim_fence": 0, "claim_nonce": "nonce1", "submitted": None,
}  # fmt: skip
WANT = {
    "project": 1,
    "worker": "worker3",
    "by": "worker3",
    "nonces": ["nonce"],
    "lease": None,
    "usual": None,
    "default": 60.0,
    "kinds": None,
    "age": None,
    "fence": None,
}
SEVERAL = [f"nonce-{number}" for number in range(10)]
CLAIM = queries.load("claims")["claim"]
OF_MISSION = queries.load("claims")["claim_of_mission"]
DONE = {
    "project": 1,
    "ages": [AGE],
    "ids": [f"0000{AGE}"],
    "fences": [0],
    "nonces": ["nonce1"],
    "results": ["{}"],
    "tellers": ["ada"],
}
moves = queries.load("moves")
HOT: dict[str, tuple[str, dict[str, Any]]] = {
    "claim anything": (CLAIM, WANT),
    "claim what is everybody's": (CLAIM, {**WANT, "worker": "nobody"}),
    "claim one kind": (CLAIM, {**WANT, "worker": "nobody", "kinds": ["kind7"]}),
    "claim two kinds": (CLAIM, {**WANT, "kinds": ["kind7", "kind9"]}),
    "claim one": (CLAIM, {**WANT, "age": "00000000000000003", "fence": 0}),
    "claim several": (CLAIM, {**WANT, "nonces": SEVERAL}),
    "claim several of one kind": (CLAIM, {**WANT, "worker": "nobody", "nonces": SEVERAL, "kinds": ["kind7"]}),
    "claim of a mission": (OF_MISSION, {**WANT, "mission": "mission7"}),
    "claim one kind of a mission": (OF_MISSION, {**WANT, "mission": "crowd", "kinds": ["kind7"]}),
    "claim a rare kind of a mission": (OF_MISSION, {**WANT, "mission": "crowd", "kinds": ["rare", "nowhere"]}),
    "claim several of a mission": (OF_MISSION, {**WANT, "mission": "mission7", "nonces": SEVERAL}),
    "claim of a mission without tasks": (OF_MISSION, {**WANT, "mission": "nowhere"}),
    "find of a mission": (
        queries.load("read")["find_of_mission"],
        {**WANT, "mission": "mission7", "states": ["todo"], "taker": None, "past": "", "limit": 20, "worker": None},
    ),
    "renew": (
        queries.load("claims")["renew"],
        {**GUARD, "progress": None, "note": None, "more": None, "token": None, "by": "ada"},
    ),
    "holding": (queries.load("claims")["holding"], {"project": 1, "ages": [AGE]}),
    "end": (moves["end"].replace("{lapsed}", ""), MOVE),
    "end several": (moves["done"], DONE),
    "back": (moves["back"].replace("{lapsed}", ""), {**MOVE, "to": "todo", "outcome": "released"}),
    "stand": (queries.load("read")["stand"], GUARD),
    "get": (queries.load("read")["get"], GUARD),
    "held": (queries.load("read")["held"], WANT),
    "expire": (queries.load("upkeep")["expire"], {"project": 1, "by": "ada", "limit": 200}),
    "find what one worker holds": (
        queries.load("read")["find_held"],
        {**WANT, "mission": None, "past": "", "limit": 6},
    ),
    "overdue": (queries.load("upkeep")["overdue"], {"project": 1, "limit": 200}),
    "which kinds are ready": ("SELECT taskyard.ready_kinds(1, 'worker3')", {}),
}
PAGE = {
    "project": 1,
    "taker": "worker3",
    "kinds": None,
    "mission": None,
    "past": None,
    "past_priority": None,
    "ageing": None,
    "limit": 101,
}
AGED = {**WANT, "ageing": 60.0}
READY = queries.load("read")["ready"]
READY_OF_MISSION = queries.load("read")["ready_of_mission"]
OF_MISSION_AGED = queries.load("claims")["claim_of_mission_aged"]
CLAIM_AGED = queries.load("claims")["claim_aged"]
ORDERED: dict[str, tuple[str, dict[str, Any], int]] = {
    "claim with ageing": (CLAIM_AGED, AGED, 400),
    "claim one kind with ageing": (CLAIM_AGED, {**AGED, "kinds": ["kind7"]}, 400),
    "claim several with ageing": (CLAIM_AGED, {**AGED, "nonces": SEVERAL}, 600),
    "claim of a mission with ageing": (OF_MISSION_AGED, {**AGED, "mission": "crowd"}, 400),
    "claim a rare kind of a mission with ageing": (
        OF_MISSION_AGED,
        {**AGED, "mission": "crowd", "kinds": ["rare"]},
        FEW,
    ),
    "what is ready of a mission": (READY_OF_MISSION, {**PAGE, "mission": "crowd"}, 400),
    "what is ready of a rare kind of a mission": (
        READY_OF_MISSION,
        {**PAGE, "mission": "crowd", "kinds": ["rare"]},
        FEW,
    ),
    "what is ready": (READY, PAGE, 400),
    "what is ready, from the middle on": (READY, {**PAGE, "past": "00000000000020000", "past_priority": 4}, 400),
    "what is ready of one kind": (READY, {**PAGE, "kinds": ["kind7"]}, 400),
    "what is ready, with ageing": (READY, {**PAGE, "ageing": 60.0}, 3000),
}
"""Statements that follow the order of claims, each with the rows that it may read: those of a page, or heads of ten levels."""
SEGMENT = 1024  # tasks that one segment has, of which any may be the one that is named
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "named by its short name": (queries.load("add")["named"], {"project": 1, "begins": ["0007"], "ends": ["7777"]}),
    "named by a beginning": (queries.load("add")["named"], {"project": 1, "begins": ["0007000000"], "ends": [""]}),
    "alike": (
        queries.load("read")["alike"],
        {"project": 1, "segments": ["0007"], "ends": ["7777", "7778"], "length": 4},
    ),
}


@pytest.fixture(scope="module", params=[50_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def full(request: pytest.FixtureRequest) -> Iterator[Connection[Any]]:
    """A database with many open tasks, of which nobody has told the planner; a million with the proofs."""
    name = postgres.database()
    taskyard.init(postgres.url_in(name, "full")).close()
    with psycopg.connect(postgres.url_in(name).partition("&project=")[0], autocommit=True) as connection:
        connection.execute("ALTER TABLE taskyard.task SET (autovacuum_enabled = off)")
        connection.execute("ALTER TABLE taskyard.body SET (autovacuum_enabled = off)")
        connection.execute("ALTER TABLE taskyard.deadline SET (autovacuum_enabled = off)")
        connection.execute(FILL.format(number=request.param).encode())
        yield connection
    with psycopg.connect(postgres.url().partition("&project=")[0], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_hot_statements_read_a_handful_of_rows_whatever_the_planner_knows(full: Connection[Any]) -> None:
    for known in (False, True):
        if known:
            full.execute("ANALYZE taskyard.task, taskyard.body, taskyard.deadline")
        for mode in ("force_custom_plan", "force_generic_plan"):
            full.execute(f"SET plan_cache_mode = {mode}".encode())
            for what, (statement, values) in HOT.items():
                read = rows_read(full, statement, values)
                assert max(read.values(), default=0) <= FEW, (what, mode, f"analyzed: {known}", read)


def test_the_order_of_claims_reads_what_it_hands_out_whatever_the_planner_knows(full: Connection[Any]) -> None:
    for known in (False, True):
        if known:
            full.execute("ANALYZE taskyard.task, taskyard.body, taskyard.deadline")
        for what, (statement, values, most) in ORDERED.items():
            read = rows_read(full, statement, values)
            assert max(read.values(), default=0) <= most, (what, f"analyzed: {known}", read)


@pytest.mark.parametrize(
    "release", [None, "16"]
)  # until 17 an index was not searched for each of several values by itself
def test_a_plan_that_was_made_when_there_was_nothing_serves_many_as_well(release: str | None) -> None:
    """A worker that waits in an empty yard keeps its plans, and nobody has analyzed what was added since."""
    with postgres.Server(release) as server:
        taskyard.init(server.url("full")).close()
        with psycopg.connect(server.url().partition("&project=")[0], autocommit=True) as connection:
            for table in ("task", "body", "deadline"):
                connection.execute(f"ALTER TABLE taskyard.{table} SET (autovacuum_enabled = off)".encode())
            for fill in (30, 20_000):
                connection.execute(
                    "DELETE FROM taskyard.task; DELETE FROM taskyard.body; DELETE FROM taskyard.deadline"
                )
                connection.execute(FILL.format(number=fill).encode())
                for what, (statement, values) in HOT.items():
                    read = rows_read(connection, statement, values)
                    assert max(read.values(), default=0) <= FEW, (what, read)


def test_a_name_is_looked_for_in_one_segment_whatever_the_planner_knows(full: Connection[Any]) -> None:
    for known in (False, True):
        if known:
            full.execute("ANALYZE taskyard.task, taskyard.body, taskyard.deadline")
        for what, (statement, values) in NAMED.items():
            read = rows_read(full, statement, values, prepare=False)
            assert max(read.values(), default=0) <= SEGMENT, (what, f"analyzed: {known}", read)


def rows_read(
    connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool = True
) -> dict[str, int]:
    """How many rows of each table the statement reads, however it finds them; then it is taken back."""
    with connection.transaction(force_rollback=True):
        before = counted(connection)
        connection.execute(statement.encode(), values, prepare=prepare)
        after = counted(connection)
    return {name: number - before.get(name, 0) for name, number in after.items()}


def counted(connection: Connection[Any]) -> dict[str, int]:
    """What this connection has read and not yet told others."""
    found = connection.execute(
        "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
        " WHERE schemaname = 'taskyard'"
    )
    return {name: int(number) for name, number in found}
