"""What grows with a yard grows in proportion at the most: rows read and statements said, in tables that nobody has analyzed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import State
from taskyard.core import ids
from taskyard.stores.postgres import log, queries
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.conftest import taken
from tests.postgres.test_plans import rows_read
from tests.postgres.test_projects import as_role
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard

MANY = 20_000
PROJECTS = 300
PAGE = 100
looking, moves = queries.load("read"), queries.load("moves")
CLAIM = queries.load("claims")["claim"]


class Scene:
    """A yard with many tasks in many kinds, one of many projects; its owner's connection, and that of a role it was given to."""

    def __init__(self, server: postgres.Server) -> None:
        self.yard = taskyard.init(server.url("full"), worker="ada")
        base = server.url().partition("&project=")[0]
        self.owner: Connection[Any] = psycopg.connect(base, autocommit=True)
        self.owner.execute("CREATE ROLE crew LOGIN; CREATE ROLE others")
        self.owner.execute("SELECT taskyard.give_project('full', 'crew')")
        self.owner.execute(
            f"INSERT INTO taskyard.project (name) SELECT 'p' || n FROM generate_series(1, {PROJECTS}) AS n".encode()
        )
        self.owner.execute("SELECT taskyard.give_project(name, 'others') FROM taskyard.project WHERE name LIKE 'p%'")
        leaves = (
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'taskyard'::regnamespace AND relkind = 'r'"
        )
        for (leaf,) in self.owner.execute(leaves.encode()).fetchall():
            self.owner.execute(f"ALTER TABLE {leaf} SET (autovacuum_enabled = off)".encode())
        self.crew: Connection[Any] = psycopg.connect(as_role(base, "crew"), autocommit=True)
        self.project = self.yard._store._context.project  # type: ignore[attr-defined]
        self.ids = [f"0000{'0' * 17}"] * MANY
        for connection in self.connections:
            self._plan(connection)
        self.ids = list(self.yard.add_many([{"kind": f"kind{n % 500}"} for n in range(MANY)]))

    def _plan(self, connection: Connection[Any]) -> None:
        """Have plans be made while there is next to nothing, as by a worker that waits for the first task."""
        self.owner.execute(
            "INSERT INTO taskyard.event (project, event, task, kind, fence, by) VALUES (1, 'x', %s, 'x', 1, 'x')",
            self.ids[:1],
        )
        nobody = {
            "project": self.project,
            "id": "x",
            "ages": [],
            "ids": [],
            "fences": [],
            "to_fences": [],
            "by": "ada",
            "more": "{}",
        }
        for statement, values in [*pages(self).values(), (moves["free_followers"], nobody), (moves["wake"], nobody)]:
            for _ in range(2):
                rows_read(connection, statement, values)
        self.owner.execute("DELETE FROM taskyard.event")

    @property
    def connections(self) -> list[Connection[Any]]:
        return [self.owner, self.crew]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.yard.close()


@pytest.fixture(scope="module", params=[None, "16"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with postgres.Server(request.param) as server:
        made = Scene(server)
        yield made
        made.close()


def found(scene: Scene, **values: Any) -> dict[str, Any]:
    """What a list asks for."""
    asked: dict[str, Any] = {
        "states": [str(state) for state in State], "kinds": None, "mission": None, "worker": None, "taker": None, "past": "", "limit": PAGE + 1,
    }  # fmt: skip
    return {"project": scene.project, **asked, **values}


def logged(scene: Scene, **values: Any) -> dict[str, Any]:
    """What the log is asked for."""
    names = ("now", "xid", "n", "task", "worker", "kind", "since", "events")
    return {"project": scene.project, "seen": log._NOTHING, **dict.fromkeys(names), "limit": PAGE, **values}


def want(scene: Scene, **values: Any) -> dict[str, Any]:
    """What a claim asks for."""
    asked: dict[str, Any] = {
        "worker": "eve", "by": "eve", "kinds": None, "age": None, "fence": None, "nonces": ["nonce0001"], "lease": None, "usual": None, "default": 60.0,
    }  # fmt: skip
    return {"project": scene.project, **asked, **values}


def pages(scene: Scene) -> dict[str, tuple[str, dict[str, Any]]]:
    """What is asked for page by page, or one by one."""
    middle = scene.ids[MANY // 2]
    [[xid, n]] = scene.owner.execute("SELECT xid::text, n FROM taskyard.event WHERE task = %s", (middle,)).fetchall()
    return {
        "list": (looking["find"], found(scene)),
        "list from a cursor": (looking["find"], found(scene, past=ids.age_key(middle))),
        "list what is open": (looking["find"], found(scene, states=["todo", "waiting"])),
        "list what has ended": (looking["find"], found(scene, states=["done", "failed"])),
        "ready": (looking["find"], found(scene, states=["todo"], taker="ada")),
        "log": (looking["log"], logged(scene)),
        "log of one task": (looking["log"], logged(scene, task=middle)),
        "log from a cursor": (looking["log"], logged(scene, now="1:999999:", xid=xid, n=n)),
        "tasks with a known key": (looking["tasks"], {"project": scene.project, "ids": scene.ids[:50]}),
        "claim anything": (CLAIM, want(scene)),
        "claim one of three kinds": (CLAIM, want(scene, kinds=["kind7", "kind8", "kind9"])),
    }


def test_a_page_is_read_and_no_more(scene: Scene) -> None:
    for connection in scene.connections:
        for what, (statement, values) in pages(scene).items():
            read = rows_read(connection, statement, values)
            own = read.pop("project", 0)  # a role is asked for its right once for each row
            assert max(read.values(), default=0) <= 2 * PAGE, (what, read)
            assert own <= sum(read.values()) + 20, (what, own, read)


def test_followers_are_let_go_one_by_one(scene: Scene) -> None:
    number = 2000
    first = scene.yard.add("first").id
    scene.yard.add_many([{"kind": "second", "after": [first]}] * number)
    values = {"project": scene.project, "id": first, "by": "ada", "more": "{}"}
    for connection in scene.connections:
        read = rows_read(connection, moves["free_followers"], values)
        assert read["task"] >= number
        assert max(read[name] for name in read if name != "project") <= 6 * number, read
    taken(scene.yard.claim(first)).done()
    freed = scene.yard.find(kind="second", limit=number)
    assert {task.state for task in freed} == {State.TODO}
    assert [event["event"] for event in scene.yard.events(task=freed[0].id)][-1] == "unblocked"
    scene.owner.execute("DELETE FROM taskyard.task WHERE kind = 'second'")


def test_what_is_due_at_once_is_woken_together(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 600
    late = list(scene.yard.add_many([{"kind": "late", "delay": 3600}] * number))
    scene.owner.execute("UPDATE taskyard.task SET due = taskyard.now() - 1 WHERE kind = 'late'")
    words = {"ages": [ids.age_key(id) for id in late], "ids": late, "fences": [0] * number, "to_fences": [1] * number}
    for connection in scene.connections:
        read = rows_read(connection, moves["wake"], {"project": scene.project, **words, "by": "ada"})
        assert number <= read["task"] <= 4 * number, read
    with scene.owner.transaction():
        scene.owner.execute("SELECT FROM taskyard.task WHERE id = %s FOR UPDATE", (late[0],))
        said = statements(monkeypatch)
        assert scene.yard.sweep().woken == number - 1, "one that is locked is left to the next sweep"
        assert len(said) < 20
    assert scene.yard.sweep().woken == 1
    assert [event["event"] for event in scene.yard.events(task=late[0])] == ["added", "due"]
    scene.owner.execute("DELETE FROM taskyard.task WHERE kind = 'late'")


def test_keys_that_are_known_are_looked_up_together(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"kind": "keyed", "key": f"key{n}"} for n in range(200)]
    first = scene.yard.add_many(tasks)
    said = statements(monkeypatch)
    again = scene.yard.add_many([*tasks, {"kind": "keyed", "key": "another"}])
    assert len(said) < 10
    assert (list(again)[:200], again.created) == (list(first), 1)


def test_a_claim_passes_what_is_in_use_row_by_row(scene: Scene) -> None:
    number = 3000
    scene.yard.add_many([{"kind": "used", "uses": ["gpu"], "priority": 0}] * number)
    holder = taken(scene.yard.claim(kinds="used"))
    for connection in scene.connections:
        for kinds in (None, ["used"], ["used", "kind7"]):
            read = rows_read(connection, CLAIM, want(scene, kinds=kinds))
            assert read["task"] <= number + 200, (kinds, read)
            assert read.get("used", 0) <= number + 200, (kinds, read)
    holder.release()
    scene.owner.execute("DELETE FROM taskyard.task WHERE kind = 'used'")


def test_nothing_is_compiled_for_a_plan_that_the_settings_make_look_dear(yard: Yard, sql: Connection[Any]) -> None:
    """Servers of this wheel cannot compile at all; where one can, a claim took 20 to 100 times as long."""
    made = sql.execute(
        "SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'taskyard'::regnamespace AND proconfig IS NOT NULL"
    )
    settings = dict(made.fetchall())
    assert {"claim", "finish", "find", "log", "wake", "free_followers", "pick", "fence"} <= set(settings)
    assert [name for name, given in settings.items() if "jit=off" not in given] == []
    assert yard._store._context.pool.run("SHOW jit", {}) == [("off",)]  # type: ignore[attr-defined]


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said to the server from now on."""
    said: list[str] = []
    say = WatchedConnection.rows

    def counted(connection: Any, statement: str, *rest: Any, **options: Any) -> Any:
        said.append(statement)
        return say(connection, statement, *rest, **options)

    monkeypatch.setattr(WatchedConnection, "rows", counted)
    return said
