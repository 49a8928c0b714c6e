"""Connections are few: no verb takes a second one, none waits for one without a limit, and heartbeats queue behind nobody."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import State, Unavailable
from taskyard.doors.cli import main
from taskyard.stores.postgres import checkout, driver
from tests.conftest import taken, wait_until
from tests.servers import postgres
from tests.servers.pooler import Pooler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from taskyard import Yard

THREADS = 2 * checkout.MOST


@pytest.fixture
def url(database: str) -> str:
    """The URL of a project in a database of its own: some tests lock a table for all of it."""
    url = postgres.url_in(database)
    taskyard.init(url).close()
    return url


@pytest.fixture
def one_server_connection(url: str) -> Iterator[str]:
    """The yard by way of a pooler that has a single connection to the server."""
    with Pooler(postgres.folder(), "transaction", 1) as pooler:
        yield f"{pooler.url(url)}&pooler=transaction"


def lock(sql: Connection[Any], table: str) -> None:
    sql.autocommit = False
    sql.execute(f"LOCK TABLE taskyard.{table} IN EXCLUSIVE MODE".encode())


def test_threads_that_add_known_keys_are_all_answered(yard: Yard) -> None:
    first = yard.add("build", key="k").id
    with ThreadPoolExecutor(THREADS) as crew:
        tasks = list(crew.map(lambda _: yard.add("build", key="k"), range(10 * THREADS)))
    assert {(task.id, task.created) for task in tasks} == {(first, False)}


def test_a_known_key_is_answered_on_a_single_connection(one_server_connection: str) -> None:
    with taskyard.open(one_server_connection, worker="ada") as yard:
        first = yard.add("build", {"n": 1}, key="k")
        assert yard.add("build", {"n": 1}, key="k").id == first.id
        many = yard.add_many([{"kind": "build", "data": {"n": 1}, "key": "k"}, {"kind": "test", "after": first.id}])
        assert many[0] == first.id
    assert main(["add", "build", "--data", '{"n": 1}', "--key", "k", "--yard", one_server_connection]) == 0


def test_every_verb_does_with_a_single_connection(one_server_connection: str) -> None:
    with taskyard.open(one_server_connection, worker="ada") as yard:
        first = yard.add("build", uses="gpu").id
        last = yard.add("test", after=first).id
        yard.add_many([{"kind": "bulk"}] * 60)
        claim = taken(yard.claim(first))
        claim.note("half way")
        assert yard.resume()[0].task.id == first
        taken(yard.claim(kinds=["bulk"])).fail("broken", retry=False)
        yard.cancel(last)
        yard.retry(last)
        yard.edit(last, title="New")
        yard.report(first)
        yard.find()
        yard.sweep()
        assert yard.prune(count=0, apply=True)["tasks"] == 1
        assert yard.events()


def test_a_key_whose_task_is_pruned_in_this_moment_is_new(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    first = yard.add("build", key="k").id
    taken(yard.claim()).done()
    looking: Any = yard._store._reader  # type: ignore[attr-defined]
    whole = looking.tasks

    def tasks(connection: Any, wanted: list[str]) -> Any:
        monkeypatch.setattr(looking, "tasks", whole)
        with ThreadPoolExecutor(1) as other:
            other.submit(yard.prune, count=0, apply=True).result()
        return whole(connection, wanted)

    monkeypatch.setattr(looking, "tasks", tasks)
    again = yard.add("build", key="k")
    assert (again.created, again.id != first) == (True, True)


def test_a_second_connection_is_refused_to_a_thread_that_has_one(yard: Yard) -> None:
    pool: Any = yard._store._context.pool  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="one connection at a time"):
        pool.attempt(lambda _: yard.counts())
    assert yard.counts()["todo"] == 0


def test_a_connection_that_stays_in_use_is_waited_for_with_a_limit_and_an_error_that_says_so(
    yard: Yard, sql: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "MOST", 2)
    monkeypatch.setattr(checkout, "PATIENCE", 0.3)
    place: Any = yard._store._context.pool.checkout  # type: ignore[attr-defined]
    lock(sql, "body")
    with ThreadPoolExecutor(2) as crew:
        held = [crew.submit(yard.add, "build") for _ in range(2)]
        wait_until(lambda: place.is_full)
        with pytest.raises(Unavailable, match=r"all 2 connections .* in use for 0\.3 s"):
            yard.counts()
        sql.rollback()
        assert [one.result().state for one in held] == [State.TODO] * 2
    assert yard.counts()["todo"] == 2


def test_heartbeats_go_on_while_every_other_connection_waits_for_a_lock(
    yard: Yard, sql: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "MOST", 3)
    yard.add("build")
    claim = taken(yard.claim(lease=60))
    place: Any = yard._store._context.pool.checkout  # type: ignore[attr-defined]
    lock(sql, "body")
    with ThreadPoolExecutor(3) as crew:
        held = [crew.submit(yard.add, "test") for _ in range(3)]
        wait_until(lambda: place.is_full)
        yard._look_at = 0.0  # it is time to sweep, and there is no connection for that
        before = claim.lease_until
        assert str(before) < claim.heartbeat()
        assert claim.holds()
        sql.rollback()
        for one in held:
            one.result()


def test_a_worker_whose_handlers_add_known_keys_goes_on(url: str) -> None:
    with taskyard.open(url, worker="ada") as yard:
        yard.add("known", key="k")
        taken(yard.claim(kinds=["known"]))
        yard.add_many([{"kind": "build"}] * (2 * THREADS))
        worker = taskyard.Worker(yard)

        @worker.handles("build")
        def build(task: Any) -> None:
            for _ in range(3):
                assert not yard.add("known", key="k").created

        ending = threading.Thread(
            target=lambda: worker.run(drain=True, concurrency=THREADS, kinds=["build"]), daemon=True
        )
        ending.start()
        ending.join(60)
        assert not ending.is_alive()
        assert yard.counts()["done"] == 2 * THREADS


def test_a_server_that_gives_no_more_connections_is_worked_with_by_those_that_there_are(
    yard: Yard, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = driver.connect
    made: list[bool] = []

    def few(*given: Any, **named: Any) -> Any:
        if len(made) >= 2:
            raise driver.unreachable(given[0], psycopg.OperationalError("FATAL: sorry, too many clients already"))
        made.append(True)
        return whole(*given, **named)

    with taskyard.open(url, worker="bob") as other:
        monkeypatch.setattr(driver, "connect", few)
        with ThreadPoolExecutor(8) as crew:
            tasks = list(crew.map(lambda _: other.add("build"), range(40)))
        assert len({task.id for task in tasks}) == 40
