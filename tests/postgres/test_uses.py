"""What running tasks use: found by one index, freed with the statement that ends them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.core import resources
from taskyard.stores.postgres import queries
from tests.conftest import taken
from tests.postgres.test_plans import FEW, WANT, rows_read

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard

PARTS = ("a", "b", "src", ".", "..", "", "x.py", "ä", ".git")


def test_the_database_and_the_core_agree_on_paths(sql: Connection[Any]) -> None:
    chance = random.Random(7)
    names = {"/", "//", "/.", "./", "a", "a/", "/a", "a/b/", "a//b", "a/./b", "./a", "a/."}
    names |= {"/".join(chance.choices(PARTS, k=chance.randint(1, 5))) for _ in range(2000)}
    for name in names - {""}:
        path = resources.path(name)
        found = sql.execute("SELECT taskyard.path_of(%s), taskyard.folders_of(%s)", (name, path)).fetchone()
        assert found == (path, list(resources.above(path))[::-1]), name


@pytest.mark.parametrize("number", [1, 3])
def test_a_done_frees_what_was_used_in_one_statement(
    yard: Yard, sql: Connection[Any], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    ids = yard.add_many(
        [{"kind": "build", "uses": [f"port{n}", f"src/{n}/", f"docs//{n}.md"]} for n in range(number + 1)]
    )
    claims = yard.claim_many(number)
    assert [claim.task.id for claim in claims] == ids[:number]
    other = taken(yard.claim())
    pool: Any = yard._store._context.pool  # type: ignore[attr-defined]
    asked: list[object] = []
    whole = pool.attempt

    def counted(*given: Any, **named: Any) -> Any:
        asked.append(given)
        return whole(*given, **named)

    monkeypatch.setattr(pool, "attempt", counted)  # every statement, and every transaction, goes through it
    assert yard.done_many([(claim.ref, None) for claim in claims]) == [True] * number
    assert len(asked) == 1, asked
    monkeypatch.undo()
    held = sql.execute("SELECT resource FROM taskyard.used WHERE project = %s", (pool_project(yard),)).fetchall()
    assert {name for (name,) in held} == set(other.task.uses), "and nothing else was freed"
    assert [yard.get(id).uses for id in ids] == [claim.task.uses for claim in [*claims, other]]


def test_what_is_put_without_a_path_gets_one(yard: Yard, sql: Connection[Any]) -> None:
    """As a client of the schema before puts it when it copies tasks that run."""
    project = pool_project(yard)
    sql.execute("INSERT INTO taskyard.used (project, resource, age) VALUES (%s, 'src//auth/', 'x')", (project,))
    yard.add("build", uses=["src/auth/login.py"])
    assert yard.claim() is None
    sql.execute("DELETE FROM taskyard.used WHERE project = %s", (project,))
    assert yard.claim() is not None


@pytest.mark.parametrize("known", [False, True])
def test_what_many_running_tasks_use_is_not_read(yard: Yard, sql: Connection[Any], known: bool) -> None:
    project = pool_project(yard)
    fill = "INSERT INTO taskyard.used (project, resource, age) SELECT %s, 'src/' || n || name, 'x' FROM generate_series(1, 3000) AS n, "
    sql.execute(fill.encode() + b"unnest(ARRAY['/', '.py', '/a/b.py']) AS name", (project,))
    if known:
        sql.execute("ANALYZE taskyard.used")
    yard.add("build", uses=["src/1/b.py"])  # in use, with the folder around it
    yard.add("build", uses=["port", "lib/auth/", "docs/a/b.md"])
    claim = queries.load("claims")["claim"]
    for mode in ("force_custom_plan", "force_generic_plan"):
        sql.execute(f"SET plan_cache_mode = {mode}".encode())
        read = rows_read(sql, claim, {**WANT, "project": project})
        assert max(read.values()) <= FEW, (mode, read)
    sql.execute("RESET plan_cache_mode")
    held = taken(yard.claim())
    assert held.task.uses == ["port", "lib/auth/", "docs/a/b.md"]
    values = {
        "project": project, "ages": [held.task.id[4:]], "ids": [held.task.id], "fences": [held.fence],
        "nonces": [held.handle.rpartition('.')[2]], "results": [None], "tellers": ["ada"],
    }  # fmt: skip
    read = rows_read(sql, queries.load("moves")["done"], values)
    assert max(read.values()) <= FEW, read


def pool_project(yard: Yard) -> int:
    return int(yard._store._context.project)  # type: ignore[attr-defined]
