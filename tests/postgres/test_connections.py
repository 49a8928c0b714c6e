"""Connections that break, answers that are lost, processes that fork: nothing is done twice, and nothing is left undone."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import State, Unavailable
from taskyard.core import moves, times
from taskyard.stores.postgres import pool
from taskyard.stores.postgres.libpq.connection import LibpqConnection
from taskyard.stores.postgres.libpq.errors import Error
from taskyard.stores.postgres.watched_connection import WatchedConnection
from tests.conftest import taken, wait_until
from tests.postgres.conftest import BOTH_DRIVERS
from tests.servers import postgres

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard

pytestmark = BOTH_DRIVERS


def backends(yard: Yard) -> list[int]:
    return [line.reported_pid for line in yard._store._context.pool.checkout.idle]  # type: ignore[attr-defined]


def cut(yard: Yard, sql: Connection[Any]) -> None:
    """End every connection that the yard has, as a server does that is restarted."""
    for pid in backends(yard):
        sql.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_every_verb_outlives_its_connection(yard: Yard, sql: Connection[Any]) -> None:
    cut(yard, sql)
    id = yard.add("build").id
    cut(yard, sql)
    claim = taken(yard.claim())
    cut(yard, sql)
    claim.heartbeat(progress=0.5)
    cut(yard, sql)
    assert yard.get(id).progress == 0.5
    cut(yard, sql)
    claim.done({"ok": True})
    cut(yard, sql)
    assert [task.state for task in yard.find()] == [State.DONE]
    assert [event["event"] for event in yard.events()] == ["added", "claimed", "done"]


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The next statement that begins with one of these words is done, and its answer is lost."""
    words: list[str] = []

    def losing(whole: Any, error: type[Exception]) -> Any:
        def rows(connection: Any, statement: str, values: Any, prepare: bool | None = None) -> Any:
            answer = whole(connection, statement, values, prepare)
            for word in words:
                if word in statement:
                    words.remove(word)
                    connection.close()
                    raise error("the connection is lost")
            return answer

        return rows

    monkeypatch.setattr(WatchedConnection, "rows", losing(WatchedConnection.rows, psycopg.OperationalError))
    monkeypatch.setattr(LibpqConnection, "rows", losing(LibpqConnection.rows, Error))
    return words


def test_a_claim_whose_answer_was_lost_is_found_again(yard: Yard, lost: list[str]) -> None:
    ids = yard.add_many([{"kind": "build"}] * 2)
    lost.append("taskyard.claim(")
    claim = taken(yard.claim())
    assert (claim.task.id, claim.fence) == (ids[0], 1)
    assert yard.counts()["todo"] == 1
    claim.done()
    assert lost == []


@pytest.mark.parametrize("ending", ["done", "fail", "release", "fail for good"])
def test_an_ending_whose_answer_was_lost_is_made_once(yard: Yard, lost: list[str], ending: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    lost.append({"done": "taskyard.finish_each(", "fail for good": "WITH gone"}.get(ending, "WITH moved"))
    if ending == "done":
        claim.done({"n": 1})
    elif ending == "release":
        claim.release()
    else:
        claim.fail("broken", retry=ending == "fail")
    assert lost == []
    report = yard.report(id)
    assert len(report.history) == 1
    assert report.stale_results == []
    assert len(yard.events(task=id)) == 3


@pytest.mark.parametrize("verb", ["accept", "reject"])
@pytest.mark.parametrize("wins", [True, False], ids=["first", "second"])
def test_a_review_whose_answer_was_lost_is_told_whose_it_was(
    yard: Yard, lost: list[str], monkeypatch: pytest.MonkeyPatch, verb: str, wins: bool
) -> None:
    id = yard.add("build", review=True).id
    taken(yard.claim()).done({"n": 1})
    store, at = yard._store, yard._store.stand(id)
    nonce = yard.report(id).history[-1]["claim"].rpartition(".")[2]

    def judged(name: str) -> bool:
        reviewer = moves.Reviewer(name, nonce, f"word-of-{name}")
        move = moves.accepted(at, reviewer, 1) if verb == "accept" else moves.rejected(at, reviewer, f"{name} says no")
        return store.shift([(at, move)], name)[0]

    assert wins or judged("bob")
    pool, cut = store._context.pool, [verb] if verb == "accept" else []  # type: ignore[attr-defined]
    whole = pool.attempt

    def attempt(once: Any, recover: Any = None, **options: Any) -> Any:
        def cut_off(connection: Connection[Any]) -> Any:
            answer = once(connection)
            if cut:
                cut.clear()
                connection.close()
                raise psycopg.OperationalError("the connection is lost")
            return answer

        return whole(cut_off, recover, **options)

    monkeypatch.setattr(pool, "attempt", attempt)
    lost += ["WITH moved"] if verb == "reject" else []
    assert judged("eve") is wins
    assert lost + cut == []
    assert [entry["worker"] for entry in yard.report(id).history] == ["ada", "eve" if wins else "bob"]


def test_dones_that_were_said_together_and_whose_answer_was_lost_are_all_told_as_made(
    yard: Yard, lost: list[str]
) -> None:
    yard.add_many([{"kind": "build"}] * 3)
    claims = yard.claim_many(3)
    late = yard._store.stand(claims[2].task.id)
    claims[2].release()
    lost.append("taskyard.finish_each(")
    shifts = [(at, moves.done(at, "made")) for at in (yard._store.stand(claim.id) for claim in claims[:2])]
    assert yard._store.shift([*shifts, (late, moves.done(late, "late"))], "ada") == [True, True, False]
    assert lost == []
    assert [event["event"] for event in yard.events(event="done")] == ["done", "done"]


def test_a_note_whose_answer_was_lost_is_made_once(yard: Yard, lost: list[str]) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.note("half way")
    lost.append("noted AS")
    claim.note("half way")  # the same words again are another note
    assert lost == []
    assert [note["text"] for note in yard.report(id).notes] == ["half way"] * 2
    assert [event["event"] for event in yard.events(task=id)] == ["added", "claimed", "noted", "noted"]


@pytest.mark.parametrize("verb", ["cancel", "edit"])
def test_a_word_from_outside_whose_answer_was_lost_is_not_refused(yard: Yard, lost: list[str], verb: str) -> None:
    id = yard.add("build").id
    lost.append("WITH gone" if verb == "cancel" else "WITH held")
    task = yard.cancel(id) if verb == "cancel" else yard.edit(id, title="New")
    assert (lost, task.fence) == ([], 1)
    assert len(yard.events(task=id)) == 2


def test_an_add_whose_answer_was_lost_adds_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    adder = yard._store._adder  # type: ignore[attr-defined]
    whole = adder._once
    broken: list[bool] = []

    def once(connection: Connection[Any], batch: Any, by: str) -> Any:
        answer = whole(connection, batch, by)
        if not broken:
            broken.append(True)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return answer

    monkeypatch.setattr(adder, "_once", once)
    one = yard.add("build", {"n": 1}, key="k")
    assert (one.created, one.data) == (True, {"n": 1})
    broken.clear()
    ids = yard.add_many([{"kind": "build", "data": n} for n in range(100)])
    assert [yard.get(id).data for id in ids] == list(range(100))
    assert yard.counts()["todo"] == 101


def test_a_forked_child_has_connections_of_its_own(yard: Yard) -> None:
    ids = yard.add_many([{"kind": "build"}] * 20)
    before = backends(yard)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(10):
                taken(yard.claim()).done("child")
            code = 0 if not set(backends(yard)) & set(before) else 2
        finally:
            os._exit(code)
    for _ in range(10):
        taken(yard.claim()).done("parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backends(yard) == before
    assert sorted(str(yard.get(id).result) for id in ids) == ["child"] * 10 + ["parent"] * 10


def test_a_closed_yard_leaves_no_connection(url: str, sql: Connection[Any]) -> None:
    yard = taskyard.open(url, worker="ada")
    waiter = threading.Thread(target=lambda: yard.claim(wait=0.2))
    waiter.start()
    waiter.join()
    pids = backends(yard)
    yard.close()
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s)"
    wait_until(lambda: sql.execute(query, (pids,)).fetchone() == (0,))


def test_a_server_that_goes_away_is_unavailable_and_a_claim_is_there_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.3)
    with postgres.Server() as server, taskyard.init(server.url(), worker="ada") as yard:
        yard.add("build")
        claim = taken(yard.claim(lease=60))
        server.stop()
        with pytest.raises(Unavailable) as refused:
            claim.heartbeat()
        assert refused.value.hint
        server.start()
        claim.heartbeat()
        claim.done("after all")
        assert yard.get(claim.task.id).result == "after all"


def test_a_restart_costs_nobody_a_lease() -> None:
    with postgres.Server() as server, taskyard.init(server.url(), worker="ada") as yard:
        yard.add("build")
        claim = taken(yard.claim(lease=0.8))
        server.stop()
        wait_until(lambda: times.rfc3339(int(time.time() * 1000)) > str(claim.lease_until))
        server.start()
        assert yard.sweep().reaped == 0
        claim.done()


def test_behind_a_pooler_of_transactions_nothing_is_prepared_and_nobody_listens(url: str) -> None:
    with taskyard.open(f"{url}&pooler=transaction", worker="ada") as yard:
        for _ in range(12):
            yard.add("build")
            taken(yard.claim()).done()
        store: Any = yard._store
        [line] = store._context.pool.checkout.idle
        assert not isinstance(line, WatchedConnection) or len(line._prepared._names) == 0
        store.wakeup.listen()
        assert store._listener._connection is None
