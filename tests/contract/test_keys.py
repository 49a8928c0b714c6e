"""Idempotency keys: said twice, added once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Invalid, State
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Task, Yard


def test_the_same_key_with_the_same_kind_and_data_is_the_same_task(yard: Yard, yard_url: str) -> None:
    first = yard.add("build", {"n": 1}, key="release-7")
    assert (first.created, first.key) == (True, "release-7")
    again = yard.add("build", {"n": 1}, key="release-7")
    assert (again.id, again.created) == (first.id, False)
    with taskyard.open(yard_url) as other:
        assert other.add("build", {"n": 1}, key="release-7").id == first.id
    assert yard.counts()["todo"] == 1
    assert (yard.get(first.id).key, taken(yard.claim()).task.key) == ("release-7", "release-7")


def test_what_comes_back_is_the_task_as_it_is_now(yard: Yard) -> None:
    yard.add("build", key="k")
    taken(yard.claim()).done("result")
    again = yard.add("build", key="k")
    assert (again.state, again.result, again.created) == (State.DONE, "result", False)
    assert yard.claim() is None


@pytest.mark.parametrize(("kind", "data"), [("test", {"n": 1}), ("build", {"n": 2}), ("build", None), ("build", [1])])
def test_the_same_key_with_another_kind_or_data_is_a_conflict(yard: Yard, kind: str, data: Any) -> None:
    first = yard.add("build", {"n": 1}, key="k")
    with pytest.raises(Conflict, match=first.short) as refused:
        yard.add(kind, data, key="k")
    assert refused.value.hint
    assert sum(yard.counts().values()) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ((1, 2), [1, 2]),
        ({1: "a", "b": 2}, {"b": 2, "1": "a"}),
        (None, None),
        ("é", "\u00e9"),
    ],
)
def test_data_is_compared_as_json(yard: Yard, one: Any, other: Any) -> None:
    first = yard.add("build", one, key="k")
    assert yard.add("build", other, key="k").id == first.id


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), ({}, []), (None, {}), ([1, 2], [2, 1])])
def test_values_that_json_tells_apart_are_not_the_same(yard: Yard, one: Any, other: Any) -> None:
    yard.add("build", one, key="k")
    with pytest.raises(Conflict):
        yard.add("build", other, key="k")


def test_other_options_do_not_make_it_another_task(yard: Yard) -> None:
    first = yard.add("build", key="k", title="Docs", priority=0)
    again = yard.add("build", key="k", title="Other", priority=9, delay=60, assignee="bob")
    assert (again.id, again.title, again.priority, again.state) == (first.id, "Docs", 0, State.TODO)


def test_an_edit_does_not_change_what_the_key_means(yard: Yard) -> None:
    first = yard.add("build", {"n": 1}, key="k")
    yard.edit(first.id, data={"n": 2})
    again = yard.add("build", {"n": 1}, key="k")
    assert (again.id, again.data, again.key) == (first.id, {"n": 2}, "k")
    with pytest.raises(Conflict):
        yard.add("build", {"n": 2}, key="k")


def test_a_cancelled_or_failed_task_keeps_its_key(yard: Yard) -> None:
    cancelled, failed = yard.add("build", key="one"), yard.add("build", key="two")
    yard.cancel(cancelled.id)
    taken(yard.claim(failed.id)).fail("broken", retry=False)
    assert [(task.id, task.state) for task in (yard.add("build", key="one"), yard.add("build", key="two"))] == [
        (cancelled.id, State.CANCELLED),
        (failed.id, State.FAILED),
    ]


def test_keys_differ_to_the_letter(yard: Yard) -> None:
    keys = ["a", "A", "a ", " a", "ä", "a\u0308", "a/b", "../a", ".", "x" * 256, "x" * 255, "漢" * 256]
    ids = [yard.add("build", key=key).id for key in keys]
    assert len(set(ids)) == len(keys)
    assert [yard.add("build", key=key).id for key in keys] == ids
    assert [yard.get(id).key for id in ids] == keys


@pytest.mark.parametrize("key", ["", "x" * 257, "a\nb", "a\x00", 5, ["a"]])
def test_a_key_that_can_never_be_right_is_refused(yard: Yard, key: Any) -> None:
    with pytest.raises(Invalid, match="key"):
        yard.add("build", key=key)


def test_without_a_key_every_add_is_another_task(yard: Yard) -> None:
    assert yard.add("build", {"n": 1}).id != yard.add("build", {"n": 1}, key=None).id


def test_many_at_once_with_known_and_repeated_keys(yard: Yard) -> None:
    known = yard.add("build", 0, key="zero").id
    ids = yard.add_many(
        [
            {"kind": "build", "data": 1, "key": "one"},
            {"kind": "build"},
            {"kind": "build", "data": 0, "key": "zero"},
            {"kind": "build", "data": 1, "key": "one"},
        ]
    )
    assert (ids[2], ids[3], ids.created) == (known, ids[0], 2)
    assert yard.counts()["todo"] == 3


@pytest.mark.parametrize("own", [False, True], ids=["known before", "within the batch"])
def test_of_a_batch_with_a_conflict_nothing_is_added(yard: Yard, own: bool) -> None:
    batch: list[dict[str, Any]] = [
        {"kind": "build"},
        {"kind": "build", "data": 1, "key": "k"},
        {"kind": "build", "data": 2, "key": "k"},
    ]
    if not own:
        yard.add("build", 1, key="k")
    with pytest.raises(Conflict):
        yard.add_many(batch)
    assert yard.counts()["todo"] == (0 if own else 1)


def test_eight_threads_racing_with_one_key_add_one_task(yard: Yard, yard_url: str) -> None:
    begin = threading.Barrier(8)
    added: list[list[Task]] = []

    def race() -> None:
        with taskyard.open(yard_url) as own:
            begin.wait()
            added.append([own.add("build", n, key=f"key {n}") for n in range(10)])

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for tasks in zip(*added, strict=True):
        assert len({task.id for task in tasks}) == 1
        assert sum(task.created for task in tasks) == 1
    assert yard.counts()["todo"] == 10


def test_a_delayed_task_with_a_key_waits_once(yard: Yard) -> None:
    first = yard.add("build", key="k", delay=1000)
    again = yard.add("build", key="k", delay=1000)
    assert (again.id, again.state, again.not_before) == (first.id, State.WAITING, first.not_before)
