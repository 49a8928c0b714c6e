"""The plans of hot statements, at a million tasks: each goes by the index that was made for it, and reads nothing else."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.stores.postgres import claims, queries
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

MANY = 1_000_000
FILL = f"""
INSERT INTO taskyard.task (project, age, id, state, kind, priority, assignee, fence, errors, crashes, due, worker, nonce, lease, lease_ends)
SELECT 1, age, '0000' || age, state, kind, priority, assignee, 0, 0, 0,
       CASE WHEN state = 'waiting' THEN taskyard.now() + 3600000 END,
       CASE WHEN state = 'processing' THEN 'w' || n % 97 END, CASE WHEN state = 'processing' THEN 'nonce' || n END,
       60, CASE WHEN state = 'processing' THEN taskyard.now() + 60000 END
FROM (
    SELECT n, lpad(n::text, 17, '0') AS age, 'kind' || n % 50 AS kind, n % 10 AS priority,
           CASE WHEN n % 20 = 0 THEN 'worker' || n % 7 END AS assignee,
           CASE WHEN n % 1000 = 1 THEN 'processing' WHEN n % 50 = 2 THEN 'waiting' ELSE 'todo' END::taskyard.state AS state
    FROM generate_series(1, {MANY}) AS n
) AS made;
INSERT INTO taskyard.body (project, id, data) SELECT project, id, '{{}}' FROM taskyard.task;
ANALYZE taskyard.task, taskyard.body
"""
AGE = "00000000000000001"
GUARD = {"project": 1, "age": AGE, "id": f"0000{AGE}", "state": "processing", "fence": 1, "nonce": "nonce1"}
MOVE = {
    **GUARD, "to": "done", "to_fence": 1, "errors": 0, "crashes": 0, "delay": 0, "outcome": "done", "reason": None, "result": "{}", "by": "ada",
    "keeps": True, "event": "done", "more": None, "tells_due": False, "worker": "ada", "followed": False,
}  # fmt: skip
WANT = {"project": 1, "worker": "worker3", "nonce": "nonce", "lease": None, "usual": None, "default": 60.0}
EXPECTED: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("claim anything", claims._statement("any", 8), WANT, {"task_any", "task_assigned", "task_pkey", "body_pkey"}),
    ("claim some kinds", claims._statement("some", 8), {**WANT, "kinds": ["kind7", "kind9"]}, {"task_kind", "task_assigned_kind", "task_pkey", "body_pkey"}),
    ("claim one", claims._statement("one", 1), {**WANT, "age": AGE, "fence": 0}, {"task_pkey", "body_pkey"}),
    ("renew", queries.load("claims")["renew"], {**GUARD, "progress": None, "note": None, "more": None}, {"task_pkey"}),
    ("end", queries.load("moves")["end"].replace("{lapsed}", ""), MOVE, {"task_pkey", "body_pkey"}),
    ("back", queries.load("moves")["back"].replace("{lapsed}", ""), {**MOVE, "to": "todo", "outcome": "released"}, {"task_pkey", "body_pkey"}),
    ("reap", queries.load("moves")["back"].replace("{lapsed}", queries.load("moves")["passing_over"]), {**MOVE, "to": "todo", "outcome": "crash"}, {"task_pkey", "body_pkey"}),
    ("overdue", queries.load("tending")["overdue"], {"project": 1, "limit": 200}, {"task_held", "task_waiting"}),
    ("stand", queries.load("looking")["stand"], GUARD, {"task_pkey"}),
    ("ready kinds", queries.load("claims")["ready_kinds"], WANT, {"task_kind", "task_assigned_kind"}),
    ("held", queries.load("looking")["held"], WANT, {"task_held"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def full() -> Iterator[Connection[Any]]:
    """A database with a million open tasks."""
    name = postgres.database()
    taskyard.init(postgres.url_in(name, "full")).close()
    with psycopg.connect(postgres.url_in(name).partition("&project=")[0], autocommit=True) as connection:
        connection.execute(FILL.encode())
        connection.execute("SET plan_cache_mode = force_generic_plan")  # what a worker's prepared statements come to
        yield connection
    with psycopg.connect(postgres.url().partition("&project=")[0], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_every_hot_statement_goes_by_its_index(full: Connection[Any]) -> None:
    for number, (what, statement, values, expected) in enumerate(EXPECTED):
        nodes = list(walked(plan(full, f"hot{number}", statement, values)))
        used = {node["Index Name"] for node in nodes if "Index Name" in node}
        of_tasks = {name for name in used if name.startswith(("task_", "body_"))}
        assert of_tasks == expected, what
        read = [node["Relation Name"] for node in nodes if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")]
        assert not {"task", "body"} & set(read), (what, read)
        assert not [name for name in read if name.startswith(("ended", "record", "event"))], (what, read)


def plan(connection: Connection[Any], name: str, statement: str, values: dict[str, Any]) -> Any:
    """The plan for any values, of the statement as it is prepared."""
    order: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"${order.index(match[1]) + 1}"

    numbered = re.sub(r"%\(([a-z_]+)\)s", number, statement)
    connection.execute(f"PREPARE {name} AS {numbered}".encode())
    given = ", ".join(psycopg.sql.Literal(values[each]).as_string(connection) for each in order)
    row = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE {name} ({given})".encode()).fetchone()
    assert row is not None
    found = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return found[0]["Plan"]


def walked(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walked(child)
