"""What has ended may go; nothing else ever does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def finished(yard: Yard, number: int) -> list[str]:
    ids = [yard.add("k", {"n": n}, key=f"key {n}").id for n in range(number)]
    for _ in ids:
        taken(yard.claim()).done({"ok": True})
    return ids


def test_a_prune_tells_first_what_would_go(yard: Yard) -> None:
    ids = finished(yard, 3)
    told = yard.prune(count=1)
    assert (told["tasks"], told["applied"], told["oldest"]) == (2, False, yard.get(ids[0]).created_at)
    assert yard.counts()["done"] == 3


def test_the_newest_endings_are_kept(yard: Yard) -> None:
    ids = finished(yard, 3)
    assert yard.prune(count=1, apply=True)["tasks"] == 2
    assert yard.get(ids[2]).result == {"ok": True}
    for id in ids[:2]:
        with pytest.raises(taskyard.NotFound):
            yard.get(id)


def test_what_ended_longer_ago_than_the_age_goes(yard: Yard) -> None:
    finished(yard, 2)
    assert yard.prune(age="1h")["tasks"] == 0
    wait_until(lambda: yard.prune(age=0.001)["tasks"] == 2)
    assert yard.prune(age=0.001, apply=True)["tasks"] == 2
    assert yard.counts()["done"] == 0


def test_tasks_that_have_not_ended_stay(yard: Yard) -> None:
    yard.add("k")
    yard.add("k", delay=60)
    held = taken(yard.claim())
    assert yard.prune(count=0, apply=True)["tasks"] == 0
    held.done()
    assert sum(yard.counts().values()) == 2


def test_failed_and_cancelled_tasks_go_too(yard: Yard) -> None:
    yard.cancel(yard.add("k").id)
    yard.add("k")
    taken(yard.claim()).fail("no", retry=False)
    assert yard.prune(count=0, apply=True)["tasks"] == 2


def test_a_key_is_free_again_when_its_task_is_pruned(yard: Yard) -> None:
    (old,) = finished(yard, 1)
    yard.prune(count=0, apply=True)
    again = yard.add("other", {"n": "else"}, key="key 0")
    assert again.created
    assert again.id != old


def test_a_prune_without_a_limit_is_refused(yard: Yard) -> None:
    with pytest.raises(taskyard.Invalid, match="age or a count"):
        yard.prune()


def test_a_pruned_child_leaves_its_parent_and_a_pruned_parent_its_children(yard: Yard) -> None:
    epic = yard.add("epic").id
    first, second = (yard.add("part", parent=epic).id for _ in range(2))
    part = yard.add("part", parent=first).id
    taken(yard.claim(first)).done()
    assert yard.prune(count=0, apply=True)["tasks"] == 1
    assert yard.report(epic).children(10) == [second]
    assert (yard.get(part).parent, yard.report(part).children(10)) == (first, [])
    taken(yard.claim(second)).done()
    assert yard.prune(count=0, apply=True)["tasks"] == 1
    assert yard.report(epic).children(10) == []
