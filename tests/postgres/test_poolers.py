"""Poolers in front of the server: found out before anything is set, and nothing is done twice behind them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Invalid, Unavailable
from taskyard.core.draft import Draft
from taskyard.doors.cli import main
from taskyard.stores.postgres import driver, pool, silence
from taskyard.stores.postgres.add import Batch
from tests.conftest import taken, wait_until
from tests.servers import postgres
from tests.servers.pooler import Pooler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

SETTINGS = ("search_path", "standard_conforming_strings", "array_nulls", "synchronous_commit", "enable_seqscan")


@pytest.fixture
def url(database: str) -> str:
    """The URL of a project in a database of its own: some tests lock a table for all of it."""
    url = postgres.url_in(database)
    taskyard.init(url).close()
    return url


@pytest.fixture
def pooler(request: pytest.FixtureRequest) -> Iterator[Pooler]:
    """A pooler of the mode, and with the number of connections, that the test names."""
    with Pooler(postgres.folder(), *request.param) as pooler:
        yield pooler


def behind(mode: str, size: int = 20) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pooler", [(mode, size)], ids=[mode], indirect=True)


def base(url: str) -> str:
    """What libpq gets of a yard's URL."""
    return url.partition("&project=")[0]


def use(url: str) -> None:
    """Every sort of statement, and a wait for the bell."""
    with taskyard.open(url, worker="ada") as yard:
        first = yard.add("build").id
        yard.add("test", after=first, key="k")
        yard.add_many([{"kind": "bulk"}] * 60)
        for _ in range(8):
            claim = taken(yard.claim())
            claim.heartbeat()
            claim.done()
        assert yard.claim(kinds=["none"], wait=0.3) is None
        yard.prune(count=0, apply=True)
        yard.sweep()


@behind("transaction", 1)
def test_a_pooler_of_transactions_of_which_the_url_says_nothing_is_left_as_it_was(url: str, pooler: Pooler) -> None:
    with psycopg.connect(base(pooler.url(url)), autocommit=True) as application:

        def state() -> list[Any]:
            found = [application.execute(f"SHOW {name}".encode()).fetchone() for name in SETTINGS]
            found.append(application.execute("SELECT count(*) FROM pg_prepared_statements").fetchone())
            found.append(
                application.execute("SELECT array_agg(channel) FROM pg_listening_channels() AS channel").fetchone()
            )
            locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            return [*found, application.execute(locks.encode()).fetchone()]

        before = state()
        use(pooler.url(url))
        for words in (["add", "build"], ["doctor"], ["stats"], ["migrate"], ["init"]):
            assert main([*words, "--yard", pooler.url(url)]) == 0
        assert state() == before


@pytest.mark.parametrize(
    "pooler", [("session", 20), ("transaction", 20)], ids=["session", "transaction"], indirect=True
)
def test_behind_a_pooler_no_process_of_the_server_is_believed_to_be_known(url: str, pooler: Pooler) -> None:
    for said, pooled in (("", True), ("&pooler=session", False)):
        with taskyard.open(f"{pooler.url(url)}{said}", worker="ada") as yard:
            store: Any = yard._store
            [line] = store._context.pool.checkout.idle
            assert (line.pid, line.pooled) == (None, pooled)
    with taskyard.open(url) as yard:
        [line] = yard._store._context.pool.checkout.idle  # type: ignore[attr-defined]
        assert (line.pid, line.pooled) == (line.reported_pid, False)


@behind("session")
def test_a_pooler_that_is_said_to_be_one_of_sessions_is_told_settings_and_listened_behind(
    url: str, pooler: Pooler, sql: Connection[Any]
) -> None:
    with taskyard.open(f"{pooler.url(url)}&pooler=session", worker="ada", durability="strict") as yard:
        store: Any = yard._store
        [(path, commit)] = store._context.pool.run(
            "SELECT current_setting('search_path'), current_setting('synchronous_commit')", {}
        )
        assert (path, commit) == ("pg_catalog, pg_temp", "on")
        answers: list[Any] = []
        waiter = threading.Thread(target=lambda: answers.append(yard.claim(wait=30)))
        waiter.start()
        wait_until(lambda: store._listener._connection)
        task = yard.add("build")
        waiter.join(10)
        assert taken(answers[0]).task.id == task.id


@behind("transaction")
def test_a_durability_that_a_pooler_cannot_give_is_refused(url: str, pooler: Pooler) -> None:
    for said in ("", "&pooler=transaction"):
        with pytest.raises(Invalid, match="durability strict"):
            taskyard.open(f"{pooler.url(url)}{said}", durability="strict")


@behind("transaction", 1)
def test_a_pooler_without_a_free_connection_is_waited_for_with_a_limit(
    url: str, pooler: Pooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "FIRST_TIMEOUT", 2)
    with psycopg.connect(base(pooler.url(url))) as application:
        application.execute("SELECT 1")  # and its transaction stays open
        with pytest.raises(Unavailable) as refused:
            taskyard.open(pooler.url(url))
        assert "pooler" in str(refused.value.hint)
        application.rollback()
        use(pooler.url(url))


@pytest.mark.parametrize("said", ["", "&pooler=session"])
@behind("session")
def test_a_slow_add_behind_a_pooler_of_sessions_is_waited_for(
    url: str, pooler: Pooler, sql: Connection[Any], monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(silence, "SILENCE", 0.2)
    with taskyard.open(f"{pooler.url(url)}{said}", worker="ada") as yard:
        asked: Any = yard._store._context.pool._waiting_since  # type: ignore[attr-defined]
        sql.autocommit = False
        sql.execute("LOCK TABLE taskyard.body IN EXCLUSIVE MODE")
        adding = threading.Thread(target=lambda: yard.add("build"))
        adding.start()
        wait_until(lambda: asked)
        adding.join(1.5)  # several times as long as a server may be silent
        assert adding.is_alive()
        sql.rollback()
        adding.join()
        assert yard.counts()["todo"] == 1


@behind("transaction", 1)
def test_a_slow_statement_that_has_the_only_connection_of_a_pooler_is_waited_for(
    url: str, pooler: Pooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "SILENCE", 0.2)
    with taskyard.open(pooler.url(url), worker="ada") as yard:
        store: Any = yard._store
        assert store._context.pool.run("SELECT pg_sleep(2), 7", {})[0][1] == 7


ADDS: dict[str, Any] = {
    "one": lambda yard: [yard.add("build")],
    "with a key": lambda yard: [yard.add("build", key="k")],
    "two": lambda yard: [yard.get(id) for id in yard.add_many([{"kind": "build"}] * 2)],
    "by COPY": lambda yard: [yard.get(id) for id in yard.add_many([{"kind": "build"}] * 60)],
}


@pytest.mark.parametrize("adds", ADDS)
@pytest.mark.parametrize("pooler", [("session", 9), ("transaction", 9)], ids=["session", "transaction"], indirect=True)
def test_an_add_that_is_lost_behind_a_pooler_and_made_all_the_same_is_made_once(
    url: str, pooler: Pooler, sql: Connection[Any], adds: str
) -> None:
    with taskyard.open(pooler.url(url), worker="ada") as yard:
        asked: Any = yard._store._context.pool._waiting_since  # type: ignore[attr-defined]
        added: list[Any] = []
        adding = threading.Thread(target=lambda: added.extend(ADDS[adds](yard)))
        sql.autocommit = False
        sql.execute("LOCK TABLE taskyard.body IN EXCLUSIVE MODE")
        adding.start()
        waiting = "SELECT FROM pg_locks WHERE relation = 'taskyard.body'::regclass AND NOT granted"
        wait_until(lambda: len(sql.execute(waiting).fetchall()) == 1)
        pooler.cut()
        wait_until(lambda: len(sql.execute(waiting).fetchall()) == 2)  # it is said again, and the first is still there
        assert asked
        sql.rollback()
        adding.join()
        assert sorted(task.id for task in added) == sorted(task.id for task in yard.find())
        assert all(task.created for task in added)
        assert yard.counts()["todo"] == len(added)


@behind("transaction")
def test_an_add_that_comes_after_it_was_said_again_is_refused_by_the_server(url: str, pooler: Pooler) -> None:
    with taskyard.open(pooler.url(url), worker="ada") as yard:
        store: Any = yard._store
        batch = Batch([Draft("build", None, {})])
        said = [
            store._context.pool.attempt(lambda connection: store._adder._once_only(connection, batch, "ada"))[0]
            for _ in range(3)
        ]
        assert {task.id for task in said} == {task.id for task in yard.find()}
        assert yard.counts()["todo"] == 1


@behind("transaction")
def test_tokens_are_let_go_and_there_are_none_without_a_pooler(url: str, pooler: Pooler, sql: Connection[Any]) -> None:
    tokens = "SELECT count(*) FROM taskyard.token JOIN taskyard.project ON id = project WHERE name = %s"
    name = (url.rpartition("=")[2],)
    with taskyard.open(url) as yard:
        yard.add("build")
        assert sql.execute(tokens, name).fetchone() == (0,)
    with taskyard.open(pooler.url(url)) as yard:
        yard.add("build")
        assert sql.execute(tokens, name).fetchone() == (1,)
        sql.execute(
            "UPDATE taskyard.token SET until = 0 WHERE project = (SELECT id FROM taskyard.project WHERE name = %s)",
            name,
        )
        yard.sweep()
        assert sql.execute(tokens, name).fetchone() == (0,)


@pytest.mark.parametrize("pooler", [("session", 9), ("transaction", 9)], ids=["session", "transaction"], indirect=True)
def test_a_note_that_is_lost_behind_a_pooler_and_made_all_the_same_is_made_once(
    url: str, pooler: Pooler, sql: Connection[Any]
) -> None:
    with taskyard.open(pooler.url(url), worker="ada") as yard:
        id = yard.add("build").id
        claim = taken(yard.claim(lease=60))
        noting = threading.Thread(target=lambda: claim.note("half way"))
        sql.autocommit = False
        sql.execute("LOCK TABLE taskyard.record IN EXCLUSIVE MODE")
        noting.start()
        waiting = "SELECT FROM pg_locks WHERE relation = 'taskyard.record'::regclass AND NOT granted"
        wait_until(lambda: len(sql.execute(waiting).fetchall()) == 1)
        pooler.cut()
        wait_until(lambda: len(sql.execute(waiting).fetchall()) == 2)
        sql.rollback()
        noting.join()
        assert [note["text"] for note in yard.report(id).notes] == ["half way"]
        assert [event["event"] for event in yard.events(task=id)] == ["added", "claimed", "noted"]


@behind("transaction", 1)
def test_a_pooler_that_gives_no_connection_any_more_is_given_up_and_said_to_have_none(
    url: str, pooler: Pooler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "SILENCE", 0.2)
    monkeypatch.setattr(silence, "QUEUE", 0.4)
    monkeypatch.setattr(silence, "CHECK_TIMEOUT", 0.2)
    monkeypatch.setattr(driver, "CONNECT_TIMEOUT", 2)
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    with (
        taskyard.open(f"{pooler.url(url)}&pooler=transaction") as yard,
        psycopg.connect(base(pooler.url(url))) as other,
    ):
        other.execute("SELECT 1")  # and its transaction stays open
        with pytest.raises(Unavailable, match="a pooler there has no connection free"):
            yard.counts()
        other.rollback()
        assert yard.counts()["todo"] == 0
