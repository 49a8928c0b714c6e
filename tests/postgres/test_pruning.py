"""A prune beside those who work: what has moved since it was chosen stays, with all that is kept of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import NotFound, State
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from taskyard import Yard

KEYS = ("one", "two", "three")


@pytest.fixture
def failed(yard: Yard) -> dict[str, str]:
    """The ids of three failed tasks, by their keys."""
    ids = {}
    for key in KEYS:
        ids[key] = yard.add("build", {"of": key}, key=key).id
        taken(yard.claim(ids[key])).fail("broken", retry=False)
    return ids


def moved_beside_a_prune(
    url: str, yard: Yard, failed: dict[str, str], monkeypatch: pytest.MonkeyPatch, move: Callable[[Yard, str], object]
) -> str:
    """Move one of the failed tasks when a prune has chosen all three, and not locked them yet; return its id."""
    context = yard._store._context  # type: ignore[attr-defined]
    on = context.on

    def moving(connection: Any, file: str, name: str, values: dict[str, Any] | None = None) -> Any:
        if name == "hold_pruned":
            with taskyard.open(url, worker="bo") as other:
                move(other, failed["two"])
        return on(connection, file, name, values)

    monkeypatch.setattr(context, "on", moving)
    assert yard.prune(count=0, apply=True)["tasks"] == 2
    assert yard.audit()["findings"] == []
    return failed["two"]


def test_a_task_that_is_retried_beside_a_prune_keeps_its_key_and_its_history(
    url: str, yard: Yard, failed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = moved_beside_a_prune(url, yard, failed, monkeypatch, lambda other, id: other.retry(id))
    assert yard.get(id).state is State.TODO
    assert [entry["outcome"] for entry in yard.report(id).history] == ["error"]
    assert yard.add("build", {"of": "two"}, key="two").id == id


def test_a_done_beside_a_prune_that_had_chosen_the_task_as_failed_stays(
    url: str, yard: Yard, failed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def finish(other: Yard, id: str) -> None:
        other.retry(id)
        taken(other.claim(id)).done("made")

    id = moved_beside_a_prune(url, yard, failed, monkeypatch, finish)
    assert (yard.get(id).state, yard.get(id).result) == (State.DONE, "made")


def test_a_failed_task_that_another_comes_after_beside_a_prune_stays(
    url: str, yard: Yard, failed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = moved_beside_a_prune(url, yard, failed, monkeypatch, lambda other, id: other.add("test", after=id))
    yard.retry(id)
    taken(yard.claim(id)).done()
    assert {task.state for task in yard.find(kind="test")} == {State.TODO}


def test_a_task_that_is_retried_while_a_prune_holds_it_is_gone(
    url: str, yard: Yard, failed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = yard._store._context  # type: ignore[attr-defined]
    on, tried = context.on, threading.Event()

    def retry() -> None:
        with taskyard.open(url, worker="bo") as other:
            tried.set()
            other.retry(failed["one"])

    with ThreadPoolExecutor(1) as others:
        tries = []

        def trying(connection: Any, file: str, name: str, values: dict[str, Any] | None = None) -> Any:
            if name == "prune_ended":
                tries.append(others.submit(retry))
                assert tried.wait(20)
            return on(connection, file, name, values)

        monkeypatch.setattr(context, "on", trying)
        assert yard.prune(count=0, apply=True)["tasks"] == len(KEYS)
        with pytest.raises(NotFound):
            tries[0].result(20)
    assert yard.audit()["findings"] == []


def test_a_prune_waits_for_no_task_that_somebodys_transaction_has_locked(
    yard: Yard, failed: dict[str, str], sql: Connection[Any]
) -> None:
    with sql.transaction():
        sql.execute("SELECT FROM taskyard.ended WHERE id = %s FOR UPDATE", [failed["two"]])
        with ThreadPoolExecutor(1) as others:
            assert others.submit(yard.prune, count=0, apply=True).result(20)["tasks"] == 2
    assert [task.id for task in yard.find(state="failed")] == [failed["two"]]
    assert yard.prune(count=0, apply=True)["tasks"] == 1
