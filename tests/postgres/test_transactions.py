"""Adds and endings inside the caller's own transaction, and the fence for the caller's own tables."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.rows import dict_row

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, State, opening
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
        wait_until(lambda: other._store._listener._connection)  # type: ignore[attr-defined]
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
def test_of_two_needs_the_last_lets_go_though_its_transaction_does_not_see_the_first(
    yard: Yard, mine: Connection[Any], level: IsolationLevel
) -> None:
    mine.isolation_level = level
    one, two = yard.add_many([{"kind": "build"}] * 2)
    last = yard.add("test", after=[one, two]).id
    first, second = taken(yard.claim(one)), taken(yard.claim(two))
    mine.execute("SELECT count(*) FROM taskyard.task")  # from here on it sees no other's commits
    first.done()
    with pytest.raises(psycopg.errors.SerializationFailure):
        second.done(conn=mine)
    mine.rollback()
    second.done(conn=mine)
    mine.commit()
    assert yard.get(last).state is State.TODO
    assert yard.audit()["verdict"] == "clean"


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


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("lock", ["fence", "done"])
def test_a_transaction_that_outlasts_the_lease_costs_no_claim_that_beats(
    yard: Yard, url: str, mine: Connection[Any], lock: str, ending: str
) -> None:
    id = yard.add("build").id
    with taskyard.open(url, worker="boss") as other, taken(yard.claim(lease=0.6)) as claim:
        first = str(claim.lease_until)
        if lock == "fence":
            mine.execute("SELECT taskyard.fence(%s)", (claim.handle,))
        else:
            claim.done("in the end", conn=mine)
        outlast(claim)
        assert claim.heartbeat() > first
        assert other.sweep().reaped == 0
        getattr(mine, ending)()
        assert other.sweep().reaped == 0
        assert other.get(id).state is (State.DONE if (lock, ending) == ("done", "commit") else State.PROCESSING)
        claim.done("in the end")
    assert yard.get(id).result == "in the end"
    assert yard.report(id).stale_results == []


def test_a_claim_that_beats_no_more_is_reaped_after_the_transaction_though_it_beat_in_it(
    yard: Yard, url: str, mine: Connection[Any]
) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=0.3))
    mine.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    claim.heartbeat()
    mine.commit()
    with taskyard.open(url, worker="boss") as other:
        wait_until(lambda: other.sweep().reaped)
        again = taken(other.claim(id, lease=0.3))
        assert again.fence > claim.fence
        outlast(again)
        wait_until(lambda: other.sweep().reaped)  # the other claim's heartbeat is not this one's


def test_a_heartbeat_beside_a_lock_is_let_go_in_time(
    yard: Yard, url: str, mine: Connection[Any], sql: Connection[Any]
) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    mine.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    claim.heartbeat()
    age = (claim.task.id[4:],)
    assert sql.execute("UPDATE taskyard.heartbeat SET lease_ends = 0 WHERE age = %s", age).rowcount == 1
    with taskyard.open(url) as other:
        other.sweep()
    assert sql.execute("SELECT FROM taskyard.heartbeat WHERE age = %s", age).fetchall() == []


def test_a_janitor_waits_for_no_lock_on_what_is_due(yard: Yard, url: str, mine: Connection[Any]) -> None:
    id = yard.add("build", delay=0.1).id
    yard.add("test", after=id, conn=mine)  # marks the first as followed, and so locks it
    other = yard.add("other", delay=0.1).id
    with taskyard.open(url, worker="boss") as boss:
        wait_until(lambda: boss.sweep().woken and boss.get(other).state is State.TODO)
        assert boss.get(id).state is State.WAITING
        mine.commit()
        wait_until(lambda: boss.sweep().woken and boss.get(id).state is State.TODO)


def test_who_waits_beside_a_locked_claim_that_is_overdue_does_not_look_all_the_time(
    yard: Yard, url: str, mine: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.05))
    mine.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    outlast(claim)
    with taskyard.open(url, worker="boss") as boss:
        looks: list[int] = []
        whole = boss._store.upkeep.overdue

        def overdue(limit: int) -> Any:
            looks.append(limit)
            return whole(limit)

        monkeypatch.setattr(boss._store.upkeep, "overdue", overdue)
        assert boss.claim(wait=1.2) is None
        assert len(looks) < 12


def test_after_a_copy_with_claims_a_fence_is_one_projects(yard: Yard, url: str, sql: Connection[Any]) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim(lease=60))
    yard.pause()
    here, there = url.rpartition("=")[2], f"{url.rpartition('=')[2]}-copy"
    opening.copy(url, url.replace(here, there), with_claims=True)
    fence = "SELECT taskyard.fence(%s, %s)"
    assert sql.execute(fence, (claim.handle, here)).fetchone() == (claim.fence,)
    assert sql.execute(fence, (claim.handle, there)).fetchone() == (claim.fence,)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{here}, {there}"):
        sql.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    with taskyard.open(url.replace(here, there), worker="ada") as copied:
        copied.cancel(id)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is over"):
        sql.execute(fence, (claim.handle, there))
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="is in the projects"):
        sql.execute("SELECT taskyard.fence(%s)", (claim.handle,))
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="no project"):
        sql.execute(fence, (claim.handle, "nowhere"))
