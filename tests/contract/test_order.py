"""What is handed out first: the most urgent, then the oldest; with ageing nothing waits for ever. `ready` lists in that order."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Invalid
from taskyard.core import ids, order
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Claim, Yard
    from taskyard.yard.arguments import Page

MIXED = [(5, "a"), (9, "b"), (0, "a"), (5, "c"), (3, "b"), (5, "a"), (0, "c"), (9, "a"), (4, "b"), (3, "a")]


def listed(page: Page) -> list[str]:
    return [task.id for task in page]


def drained(yard: Yard) -> list[str]:
    """The ids of all that claims hand out, in their order."""
    found = []
    while (claim := yard.claim()) is not None:
        found.append(claim.task.id)
    return found


def paged(yard: Yard, limit: int) -> list[str]:
    page = yard.ready(limit=limit)
    found = listed(page)
    while page.next is not None:
        page = yard.ready(limit=limit, cursor=page.next)
        found += listed(page)
    return found


def mixed(yard: Yard) -> list[str]:
    """Add tasks of several lanes, some of them assigned; return the ids in the order of claims."""
    made = [
        (priority, number, yard.add(kind, priority=priority, assignee="ada" if number % 4 == 1 else None).id)
        for number, (priority, kind) in enumerate(MIXED * 2)
    ]
    return [id for _, _, id in sorted(made)]


def age(yard: Yard, id: str, milliseconds: int) -> None:
    """Wait until the next task will be so much younger than this one."""
    wait_until(lambda: time.time_ns() // 1_000_000 - ids.created(id) > milliseconds)


def test_what_ready_lists_is_what_claims_hand_out(yard: Yard) -> None:
    made = mixed(yard)
    assert listed(yard.ready()) == made
    assert drained(yard) == made


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 19, 20])
def test_pages_of_ready_follow_one_another_in_the_order_of_claims(yard: Yard, limit: int) -> None:
    made = mixed(yard)
    assert paged(yard, limit) == made


def test_ready_can_be_narrowed_and_keeps_its_order(yard: Yard) -> None:
    made = mixed(yard)
    kinds = {task.id: task.kind for task in yard.find()}
    assert listed(yard.ready(kind=["a", "c"])) == [id for id in made if kinds[id] != "b"]
    yard.pause("b")
    assert paged(yard, 4) == [id for id in made if kinds[id] != "b"]


def test_claims_and_adds_between_two_pages_repeat_and_lose_nothing(yard: Yard) -> None:
    made = mixed(yard)
    first = yard.ready(limit=5)
    for id in (made[0], made[4], made[6]):
        taken(yard.claim(id))
    late = yard.add("a", priority=9).id
    yard.add("a", priority=0)
    rest = yard.ready(limit=100, cursor=first.next)
    assert listed(rest) == [made[5], *made[7:], late]


def test_a_released_task_is_first_again(yard: Yard) -> None:
    made = mixed(yard)
    taken(yard.claim()).release()
    assert listed(yard.ready(limit=1)) == made[:1]
    assert taken(yard.claim()).task.id == made[0]


def test_many_lanes_of_equal_priority_are_served_oldest_first(yard: Yard) -> None:
    made = yard.add_many({"kind": f"kind{n % 30}"} for n in range(120))
    assert paged(yard, 50) == made
    assert drained(yard) == made


@pytest.mark.parametrize("cursor", ["", "x", "0" * 21, f"{'0' * 21}.x", f"{'0' * 21}.12"])
def test_ready_refuses_a_cursor_that_is_not_its_own(yard: Yard, cursor: str) -> None:
    with pytest.raises(Invalid):
        yard.ready(cursor=cursor)


def test_with_ageing_an_old_task_overtakes_a_young_one_that_is_more_urgent(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 0.02
    old = yard.add("a", priority=9).id
    age(yard, old, 190)  # nine levels are worth 180 ms
    middle = yard.add("b", priority=4).id
    urgent = yard.add("a", priority=0).id
    last = yard.add("c", priority=9).id
    expected = sorted(
        [(old, 9), (middle, 4), (urgent, 0), (last, 9)], key=lambda task: order.rank(task[1], task[0], 0.02)
    )
    assert expected[0][0] == old
    assert expected[-1][0] == last
    assert listed(yard.ready()) == [id for id, _ in expected]
    assert paged(yard, 1) == [id for id, _ in expected]
    assert drained(yard) == [id for id, _ in expected]


def test_with_ageing_the_more_urgent_of_two_young_tasks_is_first(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 3600.0
    made = mixed(yard)
    assert paged(yard, 3) == made
    assert drained(yard) == made


def test_without_ageing_the_most_urgent_is_first_however_old_others_are(yard: Yard) -> None:
    old = yard.add("a", priority=1).id
    age(yard, old, 50)
    urgent = yard.add("a", priority=0).id
    assert drained(yard) == [urgent, old]


def test_a_batch_of_claims_keeps_the_order_of_ageing(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 0.02
    old = yard.add("a", priority=9).id
    age(yard, old, 400)
    urgent = yard.add("b", priority=0).id
    assert [claim.task.id for claim in yard.claim_many(2)] == [old, urgent]


def test_with_ageing_an_old_task_of_a_mission_overtakes_an_urgent_one_of_it(yard: Yard, near: Yard) -> None:
    # The first task of a mission marks a directory, which then reads its settings.
    old = yard.add("a", priority=9, mission="launch").id
    near.policy.ageing = 0.02
    age(yard, old, 400)
    urgent = yard.add("b", priority=0, mission="launch").id
    yard.add("a", priority=0)
    assert listed(yard.ready(mission="launch")) == [old, urgent]
    assert listed(yard.ready(mission="launch", kind="b")) == [urgent]
    assert [claim.task.id for claim in yard.claim_many(3, mission="launch")] == [old, urgent]


def test_tasks_of_a_mission_come_by_priority_then_age_over_all_its_kinds(yard: Yard) -> None:
    made = [
        (priority, number, yard.add(kind, priority=priority, mission="launch").id)
        for number, (priority, kind) in enumerate(MIXED * 2)
        if kind != "c"
    ]
    yard.add("c", mission="launch", priority=0)
    yard.add("a", mission="other", priority=0)
    expected = [id for _, _, id in sorted(made)]
    page = yard.ready(mission="launch", kind=["a", "b"], limit=4)
    found = listed(page)
    while page.next is not None:
        page = yard.ready(mission="launch", kind=["a", "b"], limit=4, cursor=page.next)
        found += listed(page)
    assert found == expected
    claims = [taken(yard.claim(kinds=["a", "b"], mission="launch")).task.id for _ in expected]
    assert claims == expected
    assert yard.claim(kinds=["a", "b"], mission="launch") is None


def starve(yard: Yard, rounds: int) -> tuple[str, list[str]]:
    """Run younger tasks on one of two things while the other is in use; return the task that wants both, and what ran."""
    held: list[Claim] = []
    yard.add("one", uses=["left"])
    held.append(taken(yard.claim()))
    both = yard.add("both", uses=["left", "right"]).id
    age(yard, both, 10)
    ran = []
    for number in range(rounds):
        yard.add("one", uses=["right" if number % 2 == 0 else "left"])
        claim = yard.claim()  # what is free when the other one is not
        if claim is None:
            claim = held.pop()
            claim.done()
            continue
        ran.append(claim.task.id)
        if claim.task.id == both:
            return both, ran
        held.append(claim)
        held.pop(0).done()
    return both, ran


def test_without_ageing_a_task_that_uses_two_things_can_starve(yard: Yard) -> None:
    both, ran = starve(yard, 12)
    assert both not in ran
    assert len(ran) == 12


def test_with_ageing_a_task_that_uses_two_things_gets_them_as_they_come_free(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 0.001
    both, ran = starve(yard, 12)
    assert ran == [both]


def waiting_for_two(yard: Yard, near: Yard, kind: str = "both") -> tuple[Claim, str]:
    """Return a claim on `left`, and a task that a claim has passed over because it wants `left` and `right`."""
    near.policy.ageing = 0.001
    yard.add("one", uses=["left"])
    holder = taken(yard.claim())
    both = yard.add(kind, uses=["left", "right"]).id
    age(yard, both, 10)
    assert yard.claim() is None
    return holder, both


def test_what_is_kept_for_an_old_task_is_not_ready_for_a_younger_one(yard: Yard, near: Yard, yard_url: str) -> None:
    holder, both = waiting_for_two(yard, near)
    young = yard.add("one", uses=["right"], priority=0).id
    free = yard.add("one", uses=["middle"]).id
    assert listed(yard.ready()) == [free]
    with taskyard.open(yard_url, worker="bob") as bob:
        bob.policy.ageing = 0.001
        assert taken(bob.claim()).task.id == free
        assert bob.claim() is None
        holder.done()
        assert taken(bob.claim()).task.id == both
        assert bob.claim() is None
    [again] = [claim for claim in yard.find(state="processing") if claim.id == both]
    yard.cancel(again.id)
    assert taken(yard.claim()).task.id == young


@pytest.mark.parametrize("way", ["cancel", "edit", "pause", "claim"])
def test_what_was_kept_is_free_again_when_the_old_task_does_not_want_it(yard: Yard, near: Yard, way: str) -> None:
    holder, both = waiting_for_two(yard, near)
    young = yard.add("one", uses=["right"]).id
    assert yard.claim() is None
    if way == "cancel":
        yard.cancel(both)
    elif way == "edit":
        yard.edit(both, delay=1000)
    elif way == "pause":
        yard.pause("both")
    else:
        holder.done()
        taken(yard.claim(both)).done()
    assert listed(yard.ready()) == [young]
    assert taken(yard.claim()).task.id == young


def test_an_older_task_goes_before_the_one_that_things_are_kept_for(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 0.001
    old = yard.add("one", uses=["right"], priority=9).id
    yard.pause("one")
    yard.add("two", uses=["left"])
    taken(yard.claim())
    both = yard.add("both", uses=["left", "right"]).id
    age(yard, both, 10)
    assert yard.claim() is None
    yard.unpause("one")
    assert taken(yard.claim()).task.id == old


def test_of_two_old_tasks_that_want_the_same_the_older_goes_first(yard: Yard, near: Yard) -> None:
    near.policy.ageing = 0.001
    for resource in ("left", "right"):
        yard.add("one", uses=[resource])
    left, right = taken(yard.claim()), taken(yard.claim())
    first = yard.add("both", uses=["left", "right"]).id
    second = yard.add("both", uses=["right", "left"]).id
    age(yard, second, 10)
    assert yard.claim() is None
    right.done()
    assert yard.claim() is None
    left.done()
    claim = taken(yard.claim())
    assert claim.task.id == first
    assert yard.claim() is None
    claim.done()
    assert taken(yard.claim()).task.id == second


def test_a_claim_of_this_very_task_may_take_what_is_kept_for_another(yard: Yard, near: Yard) -> None:
    waiting_for_two(yard, near)
    young = yard.add("one", uses=["right"]).id
    assert taken(yard.claim(young)).task.id == young
