"""One of several orchestrators leads a yard, by a lease on the store's time: on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard

LONG, SHORT = 60.0, 0.05


def other(yard: Yard) -> Yard:
    """The same yard, as another process opens it."""
    return taskyard.open(yard.url, worker="bob")


def test_one_leads_and_the_others_know_who(near: Yard) -> None:
    bob = other(near)
    first = near.lead(LONG)
    assert first["leads"]
    assert near.lead(LONG) == first, "to lead on is no new term"
    assert bob.lead(LONG) == {**first, "leads": False}
    assert first["leader"] == near.worker
    bob.close()


def test_a_leader_that_resigns_is_followed_at_once(near: Yard) -> None:
    bob = other(near)
    term = near.lead(LONG)["term"]
    assert not bob.resign(), "nobody resigns for another"
    assert near.resign()
    assert not near.resign()
    assert bob.lead(LONG)["leads"]
    assert bob.lead(LONG)["term"] > term
    assert not near.lead(LONG)["leads"]
    bob.close()


def test_a_leader_that_is_silent_is_followed_and_knows_it_when_it_comes_back(near: Yard) -> None:
    bob = other(near)
    assert near.lead(LONG)["leads"]
    wait_until(lambda: bob.lead(SHORT)["leads"])
    late = near.lead(LONG)
    assert (late["leads"], late["leader"]) == (False, "bob")
    bob.close()


def test_a_leader_that_was_late_and_not_followed_leads_on(near: Yard) -> None:
    term = near.lead(SHORT)["term"]
    bob = other(near)
    assert wait_until(lambda: near.lead(SHORT))["term"] == term
    bob.close()


def test_the_assignee_changes_only_where_nothing_has_happened_since(near: Yard) -> None:
    task = near.add("build")
    fence = near.reassign(task.id, "ada", task.fence)
    assert fence is not None
    assert near.get(task.id).assignee == "ada"
    assert near.reassign(task.id, "bob", task.fence) is None, "it has moved on"
    assert near.reassign(task.id, None, fence) is not None
    claim = taken(near.claim(task.id))
    assert near.reassign(task.id, "bob", claim.fence) is None, "a worker holds it"
    claim.done()
    with pytest.raises(taskyard.NotFound):
        near.reassign("0000" + "0" * 17, "bob", 0)
