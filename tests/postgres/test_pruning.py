"""A prune beside those who work: what has moved since it was chosen stays, with all that is kept of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard import NotFound, State
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from taskyard import Yard

_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"


def moved_beside_a_prune(
    url: str, yard: Yard, sql: Connection[Any], move: Callable[[Yard, str], object]
) -> dict[str, str]:
    """Move the first and the last of three failed tasks while a prune, which has chosen all, waits for the one between.

    Return the key of each that was moved, by id; one that the prune was quicker with is gone.
    """
    ids = {}
    for key in ("one", "two", "three"):
        id = yard.add("build", {"of": key}, key=key).id
        taken(yard.claim(id)).fail("broken", retry=False)
        ids[id] = key
    first, between, last = ids

    def tried(id: str) -> bool:
        with taskyard.open(url, worker="bo") as other:
            try:
                move(other, id)
            except NotFound:
                return False
            return True

    def is_waited_for() -> bool:
        sql.execute("SELECT pg_stat_clear_snapshot()")  # within a transaction the list of backends stays as it was
        return sql.execute(_WAITS, [sql.info.backend_pid]).fetchone() == (1,)

    with ThreadPoolExecutor(3) as others:
        with sql.transaction():
            sql.execute("SELECT FROM taskyard.ended WHERE id = %s FOR UPDATE", [between])
            prune = others.submit(yard.prune, count=0, apply=True)
            wait_until(is_waited_for)
            tries = {id: others.submit(tried, id) for id in (first, last)}
            wait_until(lambda: any(one.done() for one in tries.values()))
        moved = {id: ids[id] for id, one in tries.items() if one.result(20)}
        pruned = prune.result(20)["tasks"]
    assert yard.audit()["findings"] == []
    assert (len(moved), pruned) == (1, 2)
    return moved


def test_a_task_that_is_retried_beside_a_prune_keeps_its_key_and_its_history(
    url: str, yard: Yard, sql: Connection[Any]
) -> None:
    for id, key in moved_beside_a_prune(url, yard, sql, lambda other, id: other.retry(id)).items():
        assert yard.get(id).state is State.TODO
        assert [entry["outcome"] for entry in yard.report(id).history] == ["error"]
        assert yard.add("build", {"of": key}, key=key).id == id


def test_a_done_beside_a_prune_that_had_chosen_the_task_as_failed_stays(
    url: str, yard: Yard, sql: Connection[Any]
) -> None:
    def finish(other: Yard, id: str) -> None:
        other.retry(id)
        taken(other.claim(id)).done("made")

    for id in moved_beside_a_prune(url, yard, sql, finish):
        assert (yard.get(id).state, yard.get(id).result) == (State.DONE, "made")


def test_a_failed_task_that_another_comes_after_beside_a_prune_stays(
    url: str, yard: Yard, sql: Connection[Any]
) -> None:
    for id in moved_beside_a_prune(url, yard, sql, lambda other, id: other.add("test", after=id)):
        yard.retry(id)
        taken(yard.claim(id)).done()
    assert {task.state for task in yard.find(kind="test")} == {State.TODO}
