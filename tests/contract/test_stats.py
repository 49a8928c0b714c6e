"""stats: counts, ages and rates; which figures are estimates; and nothing is changed by looking."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost
from taskyard.core import ids
from tests.conftest import crash, taken

if TYPE_CHECKING:
    from taskyard import Yard

NOTHING = {"added": 0, "claimed": 0, "done": 0, "failed": 0, "reaped": 0, "refused": 0}


def test_an_empty_yard_has_no_ages_and_no_rates(yard: Yard) -> None:
    stats = yard.stats()
    assert stats["oldest_ready"] is None
    assert stats["ages"] == {"todo": None, "processing": None, "blocked": None}
    assert stats["rates"] == {"minute": NOTHING, "hour": NOTHING}
    assert stats["approximate"] == []


def test_rates_count_what_happened_in_the_last_minute_and_hour(yard: Yard) -> None:
    yard.add_many({"kind": "build"} for _ in range(5))
    taken(yard.claim()).done()
    taken(yard.claim()).fail("broken", retry=False)
    lost = crash(yard, yard.find(state="todo")[0].id)
    with pytest.raises(ClaimLost):
        lost.done()
    expected = {"added": 5, "claimed": 3, "done": 1, "failed": 1, "reaped": 1, "refused": 1}
    assert yard.stats()["rates"] == {"minute": expected, "hour": expected}


def test_the_oldest_of_each_state_is_named_with_its_age(yard: Yard) -> None:
    held, first, second = (
        yard.add("build", priority=priority, assignee=assignee).id
        for priority, assignee in ((0, None), (9, "bob"), (0, None))
    )
    blocked = yard.add("test", after=[second]).id
    taken(yard.claim(held))
    began = time.time()
    stats = yard.stats()
    assert stats["oldest_ready"]["id"] == first
    assert stats["oldest_ready"]["short"] == yard.shorten([first])[0]
    ages = stats["ages"]
    assert ages["todo"] == stats["oldest_ready"]["age"]
    for state, id in (("todo", first), ("processing", held), ("blocked", blocked)):
        assert abs(began - ids.created(id) / 1000 - ages[state]) < 5


def test_counts_are_exact_for_kinds_priorities_and_edits(yard: Yard) -> None:
    made = yard.add_many({"kind": f"kind{n % 2}", "priority": n % 3} for n in range(30))
    for id in made[:6]:
        taken(yard.claim(id)).done()
    yard.edit(made[10], priority=9, assignee="bob")
    yard.cancel(made[10])
    yard.cancel(made[11])
    for exact in (False, True):
        stats = yard.stats(exact=exact)
        assert stats["kinds"]["kind0"] == {"todo": 11, "done": 3, "cancelled": 1}
        assert stats["kinds"]["kind1"] == {"todo": 11, "done": 3, "cancelled": 1}
        assert stats["approximate"] == []
