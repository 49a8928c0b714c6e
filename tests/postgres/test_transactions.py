"""Adds and endings inside the caller's own transaction, and the fence for the caller's own tables."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.rows import dict_row

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, State
from tests.conftest import outlast, taken, wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from psycopg import Connection

    from taskyard import Yard


@pytest.fixture
def mine(url: str) -> Iterator[Connection[Any]]:
    """The caller's own connection, with habits of its own."""
    with psycopg.connect(url.partition("&project=")[0], row_factory=dict_row) as connection:
        yield connection


def test_a_task_is_there_when_the_callers_transaction_commits(yard: Yard, mine: Connection[Any]) -> None:
    first = yard.add("build").id
    task = yard.add("test", {"n": 1}, conn=mine, key="k", after=first)
    many = yard.add_many([{"kind": "bulk", "data": n} for n in range(80)], conn=mine)
    more = yard.add_many([{"kind": "bulk", "data": n} for n in range(60)], conn=mine)
    assert yard.counts()["todo"] == 1
    with pytest.raises(taskyard.NotFound):
        yard.get(task.id)
    mine.commit()
    assert (yard.get(task.id).state, yard.get(task.id).data) == (State.BLOCKED, {"n": 1})
    assert [yard.get(id).data for id in [*many, *more]] == [*range(80), *range(60)]
    taken(yard.claim(first)).done()
    assert yard.get(task.id).state is State.TODO


def test_a_task_never_was_if_the_transaction_is_rolled_back(yard: Yard, mine: Connection[Any]) -> None:
    task = yard.add("build", conn=mine, key="k")
    mine.rollback()
    assert sum(yard.counts().values()) == 0
    assert list(yard.events()) == []
    again = yard.add("build", key="k")
    assert (again.created, again.id != task.id) == (True, True)


def test_a_conflict_leaves_the_transaction_as_it_was(yard: Yard, mine: Connection[Any]) -> None:
    yard.add("build", 1, key="k")
    mine.execute("CREATE TEMPORARY TABLE notes (text text)")
    with pytest.raises(Conflict):
        yard.add("build", 2, key="k", conn=mine)
    mine.execute("INSERT INTO notes VALUES ('still here')")
    mine.commit()


def test_a_done_is_published_with_what_the_caller_wrote_or_not_at_all(yard: Yard, mine: Connection[Any]) -> None:
    id = yard.add("build").id
    last = yard.add("test", after=id).id
    claim = taken(yard.claim(id, lease=60))
    claim.done({"n": 1}, conn=mine)
    assert yard.get(id).state is State.PROCESSING
    claim.heartbeat()  # renewal goes on until the commit, and waits for nobody
    mine.rollback()
    assert yard.get(id).state is State.PROCESSING
    claim.done({"n": 2}, conn=mine)
    claim.done({"n": 2}, conn=mine)
    mine.commit()
    assert (yard.get(id).state, yard.get(id).result) == (State.DONE, {"n": 2})
    assert yard.get(last).state is State.TODO
    claim.done({"n": 2}, conn=mine)
    assert yard.report(id).stale_results == []


def test_a_late_done_raises_and_its_result_is_kept_even_if_the_caller_rolls_back(
    yard: Yard, mine: Connection[Any]
) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    yard.cancel(id)
    with pytest.raises(ClaimLost):
        claim.done("late", conn=mine)
    mine.rollback()
    assert [stale["result"] for stale in yard.report(id).stale_results] == ["late"]


def test_an_open_done_is_not_reaped_although_its_lease_is_over(yard: Yard, mine: Connection[Any]) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.05))
    outlast(claim)
    claim.done("in the end", conn=mine)
    assert yard.sweep().reaped == 0
    mine.commit()
    assert yard.get(id).result == "in the end"


def test_whoever_waits_hears_of_the_commit(yard: Yard, url: str, mine: Connection[Any]) -> None:
    answers: list[Any] = []
    with taskyard.open(url, worker="bob") as other:
        thread = threading.Thread(target=lambda: answers.append(other.claim(wait=30)))
        thread.start()
        task = yard.add("build", conn=mine)
        wait_until(lambda: other._store._line._line)  # type: ignore[attr-defined]
        mine.commit()
        thread.join(10)
        assert taken(answers[0]).task.id == task.id


@pytest.mark.parametrize("conn", [7, "postgresql://x", object()])
def test_what_is_no_connection_is_refused(yard: Yard, conn: Any) -> None:
    with pytest.raises(Invalid, match="conn="):
        yard.add("build", conn=conn)


def test_a_connection_to_another_database_is_refused(yard: Yard, database: str) -> None:
    with taskyard.init(postgres.url_in(database, "another")):
        pass
    with (
        psycopg.connect(postgres.url_in(database).partition("&project=")[0]) as other,
        pytest.raises(Invalid, match="another database"),
    ):
        yard.add("build", conn=other)


def test_a_database_without_any_yard_is_another_one_too(yard: Yard, database: str) -> None:
    claim = taken(yard.claim(yard.add("build").id))
    with psycopg.connect(postgres.url_in(database).partition("&project=")[0]) as other:
        with pytest.raises(Invalid, match="another database"):
            yard.add("build", conn=other)
        with pytest.raises(Invalid, match="another database"):
            claim.done(conn=other)
        other.execute("SELECT 1")  # the transaction goes on


def test_a_connection_in_a_pipeline_is_refused_and_goes_on(yard: Yard, mine: Connection[Any]) -> None:
    claim = taken(yard.claim(yard.add("build").id))
    with mine.pipeline():
        with pytest.raises(Invalid, match="pipeline"):
            yard.add("test", conn=mine)
        with pytest.raises(Invalid, match="pipeline"):
            claim.done(conn=mine)
        mine.execute("SELECT 1")
    claim.done(conn=mine)
    mine.commit()
    assert yard.get(claim.task.id).state is State.DONE


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_a_transaction_that_began_before_the_claim_is_told_so_and_the_claim_goes_on(
    yard: Yard, mine: Connection[Any], level: IsolationLevel
) -> None:
    mine.isolation_level = level
    early = yard.add("build").id
    mine.execute("SELECT 1")
    for id in (early, yard.add("build").id):
        claim = taken(yard.claim(id))
        with pytest.raises(Conflict, match="before the claim"):
            claim.done("seen", conn=mine)
        assert yard.report(id).stale_results == []
    mine.rollback()
    claim.done("seen", conn=mine)
    mine.commit()
    assert yard.get(id).result == "seen"


@pytest.mark.parametrize("store", ["memory", "directory"])
def test_other_stores_know_no_connections(store: str, mine: Connection[Any], tmp_path: Path) -> None:
    with taskyard.init("memory:" if store == "memory" else tmp_path / "yard") as yard:
        with pytest.raises(Invalid, match="not in a database"):
            yard.add("build", conn=mine)
        yard.add("build")
        with pytest.raises(Invalid, match="not in a database"):
            taken(yard.claim()).done(conn=mine)


def test_the_fence_is_the_claims_and_holds_until_the_transaction_ends(
    yard: Yard, mine: Connection[Any], sql: Connection[Any]
) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.05))
    row = mine.execute("SELECT taskyard.fence(%s) AS fence", (claim.handle,)).fetchone()
    assert row == {"fence": claim.fence}
    outlast(claim)
    assert yard.sweep().reaped == 0  # locked, so alive
    claim.heartbeat()
    mine.commit()
    wait_until(lambda: yard.sweep().reaped)
    assert yard.get(id).state is State.TODO
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is over"):
        sql.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="handle"):
        sql.execute("SELECT taskyard.fence(%s)", (id,))


def test_a_cancel_waits_for_whoever_is_behind_the_fence(yard: Yard, url: str, mine: Connection[Any]) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    mine.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    with taskyard.open(url, worker="boss") as boss:
        thread = threading.Thread(target=lambda: boss.cancel(id))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        mine.commit()
        thread.join(10)
    assert yard.get(id).state is State.CANCELLED
