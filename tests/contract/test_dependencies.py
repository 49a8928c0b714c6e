"""A task that comes after others is blocked until all of them are done, on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Ambiguous, Conflict, Invalid, NotFound
from tests.conftest import lapse, retried, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def finish(yard: Yard, id: str) -> None:
    taken(yard.claim(id)).done()


def told(yard: Yard, id: str) -> list[tuple[str, int]]:
    return [(event["event"], event["fence"]) for event in yard.events(task=id)]


def test_a_task_is_blocked_until_what_it_comes_after_is_done(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=[first])
    assert (second.state, second.after, second.fence) == ("blocked", [first], 0)
    assert yard.get(second.id).state == "blocked"
    assert [task.id for task in yard.ready()] == [first]
    finish(yard, first)
    task = yard.get(second.id)
    assert (task.state, task.after, task.fence) == ("todo", [first], 1)
    assert taken(yard.claim()).task.id == second.id


def test_the_log_tells_of_both(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first).id
    finish(yard, first)
    assert told(yard, second) == [("added", 0), ("blocked", 0), ("unblocked", 1)]
    blocked, unblocked = yard.events(task=second)[1:]
    assert (blocked["after"], blocked["kind"], blocked["worker"], blocked["by"]) == ([first], "test", None, "ada")
    assert (unblocked["freed_by"], unblocked["kind"], unblocked["worker"], unblocked["by"]) == (first, "test", None, "ada")  # fmt: skip


def test_all_of_several_must_be_done(yard: Yard) -> None:
    firsts = [yard.add("build").id for _ in range(3)]
    last = yard.add("test", after=firsts).id
    for id in firsts:
        assert yard.get(last).state == "blocked"
        finish(yard, id)
    assert yard.get(last).state == "todo"
    assert yard.get(last).after == firsts


def test_one_task_lets_many_go(yard: Yard) -> None:
    first = yard.add("build").id
    others = yard.add_many([{"kind": "test", "after": [first]}] * 7)
    assert yard.counts()["blocked"] == 7
    finish(yard, first)
    assert {task.id for task in yard.ready()} == set(others)


def test_a_chain_is_worked_off_link_by_link(yard: Yard) -> None:
    chain = [yard.add("link").id]
    for _ in range(4):
        chain.append(yard.add("link", after=chain[-1]).id)
    order = []
    while (claim := yard.claim()) is not None:
        order.append(claim.task.id)
        claim.done()
    assert order == chain


def test_what_is_done_already_is_no_obstacle(yard: Yard) -> None:
    first = yard.add("build").id
    finish(yard, first)
    second = yard.add("test", after=[first])
    assert (second.state, second.after, second.fence) == ("todo", [first], 0)
    assert told(yard, second.id) == [("added", 0)]
    third = yard.add("test", after=[first, second.id])
    assert (third.state, third.after) == ("blocked", [first, second.id])
    finish(yard, second.id)
    assert yard.get(third.id).state == "todo"


def test_blocked_wins_over_waiting_and_what_is_not_due_then_waits(yard: Yard) -> None:
    first = yard.add("build").id
    later = yard.add("test", after=first, delay=3600)
    soon = yard.add("test", after=first, delay=0.01)
    assert (later.state, soon.state) == ("blocked", "blocked")
    assert later.not_before is not None
    assert yard.get(later.id).not_before == later.not_before
    finish(yard, first)
    assert yard.get(later.id).state == "waiting"
    assert yard.get(later.id).not_before == later.not_before
    wait_until(lambda: (yard.sweep(), yard.get(soon.id).state == "todo")[1])


def test_a_blocked_task_whose_time_has_passed_is_ready_at_once_when_it_is_let_go(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first, not_before="2020-01-01T00:00:00Z").id
    assert yard.get(second).state == "blocked"
    finish(yard, first)
    assert yard.get(second).state == "todo"


@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_a_dependency_that_is_not_done_blocks_until_it_is_retried_and_done(yard: Yard, ending: str) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first).id
    if ending == "fail":
        taken(yard.claim(first)).fail("broken", retry=False)
    else:
        yard.cancel(first)
    assert yard.get(second).state == "blocked"
    third = yard.add("test", after=first)
    assert third.state == "blocked"
    retried(yard, first)
    assert yard.get(second).state == "blocked"
    finish(yard, first)
    assert (yard.get(second).state, yard.get(third.id).state) == ("todo", "todo")


def test_attempts_at_a_dependency_that_fail_or_are_given_back_free_nothing(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first).id
    taken(yard.claim(first)).release()
    lapse(yard, taken(yard.claim(first, lease=0.05)))
    taken(yard.claim(first)).fail("broken")
    assert yard.get(second).state == "blocked"
    yard.retry(first)
    finish(yard, first)
    assert yard.get(second).state == "todo"


def test_an_unknown_dependency_is_refused_and_nothing_is_added(yard: Yard) -> None:
    first = yard.add("build").id
    unknown = "zzzz" + first[4:]
    for bad in (unknown, "no-id", [first, unknown]):
        with pytest.raises(NotFound):
            yard.add("test", after=bad)
        with pytest.raises(NotFound):
            yard.add_many([{"kind": "test"}, {"kind": "test", "after": bad}])
    assert yard.counts() | {"todo": 0} == dict.fromkeys(yard.counts(), 0)
    finish(yard, first)
    assert yard.claim() is None


def test_a_beginning_is_enough_where_one_task_has_it(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first[:-1].upper())
    assert second.after == [first]
    assert yard.get(second.id).after == [first]
    with pytest.raises(Ambiguous):
        yard.add_many([{"kind": "build"}, {"kind": "build", "after": yard.add("build").id[:4]}])


def test_a_task_that_is_named_twice_counts_once(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=[first, first.upper(), first[:-1]])
    assert second.after == [first]
    finish(yard, first)
    assert yard.get(second.id).state == "todo"


def test_there_is_a_most_and_only_names_are_names(yard: Yard) -> None:
    many = yard.add_many([{"kind": "build"}] * 101)
    assert yard.add("test", after=many).state == "blocked"
    with pytest.raises(Invalid, match="20000"):
        yard.add("test", after=[f"{number:021}" for number in range(20_001)])
    for bad in (
        7,
        [7],
        {"id": 7},
        {"id": many[0], "ref": "a"},
        {"name": many[0]},
        {"id": many[0], "on_failure": "wait"},
    ):
        with pytest.raises(Invalid):
            yard.add("test", after=bad)  # type: ignore[arg-type]
    assert yard.add("test", after=[]).state == "todo"
    assert yard.add("test", after=None).after == []
    assert yard.add("test", after={"id": many[0]}).after == many[:1]


def test_a_claim_of_a_blocked_task_is_told_what_it_waits_for(yard: Yard) -> None:
    first, second = yard.add("build").id, yard.add("build").id
    last = yard.add("test", after=[first, second]).id
    with pytest.raises(Conflict, match="blocked") as refusal:
        yard.claim(last)
    assert refusal.value.hint is not None
    assert yard.get(first).short in refusal.value.hint
    assert yard.get(second).short in refusal.value.hint
    finish(yard, first)
    with pytest.raises(Conflict) as refusal:
        yard.claim(last)
    assert yard.get(first).short not in str(refusal.value.hint)
    finish(yard, second)
    assert taken(yard.claim(last)).task.id == last


def test_a_blocked_task_cannot_be_retried(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first).id
    with pytest.raises(Conflict) as refusal:
        yard.retry(last)
    assert yard.get(first).short in str(refusal.value.hint)


def test_a_blocked_task_can_be_cancelled_and_is_blocked_again_when_it_is_retried(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first).id
    assert yard.cancel(last).state == "cancelled"
    assert retried(yard, last).state == "blocked"
    assert told(yard, last) == [("added", 0), ("blocked", 0), ("cancelled", 1), ("retried", 2), ("blocked", 2)]
    yard.cancel(last)
    finish(yard, first)
    assert yard.get(last).state == "cancelled"
    assert retried(yard, last).state == "todo"


def test_what_comes_after_a_cancelled_blocked_task_waits_on(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=first).id
    third = yard.add("ship", after=second).id
    yard.cancel(second)
    finish(yard, first)
    assert yard.get(third).state == "blocked"
    retried(yard, second)
    finish(yard, second)
    assert yard.get(third).state == "todo"


def test_an_edit_loses_neither_what_a_task_comes_after_nor_what_it_uses(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", {"n": 1}, after=first, uses="port 80").id
    edited = yard.edit(last, data={"n": 2}, title="t", priority=1, assignee="ada", max_attempts=7)
    assert (edited.state, edited.after, edited.uses, edited.data, edited.priority) == (
        "blocked", [first], ["port 80"], {"n": 2}, 1,
    )  # fmt: skip
    finish(yard, first)
    claim = taken(yard.claim(last))
    assert (claim.task.after, claim.task.uses, claim.task.title, claim.task.data) == ([first], ["port 80"], "t", {"n": 2})  # fmt: skip


def test_an_edit_says_when_a_blocked_task_is_due_once_it_is_let_go(yard: Yard) -> None:
    first = yard.add("build").id
    later = yard.add("test", after=first).id
    now = yard.add("test", after=first, delay=3600).id
    assert yard.edit(later, delay=3600).state == "blocked"
    assert yard.edit(now, delay=0).state == "blocked"
    finish(yard, first)
    assert (yard.get(later).state, yard.get(now).state) == ("waiting", "todo")


def test_lists_and_counts_know_blocked_tasks(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first, uses=["a"]).id
    assert [task.id for task in yard.find(state="blocked")] == [last]
    assert yard.stats()["kinds"]["test"] == {"blocked": 1}
    assert yard.counts()["blocked"] == 1
    assert yard.claim(kinds="test") is None
    finish(yard, first)
    assert list(yard.find(state="blocked")) == []
    assert yard.counts()["blocked"] == 0


def test_a_key_and_a_dependency_go_together(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", {"n": 1}, after=first, key="once")
    again = yard.add("test", {"n": 1}, after=first, key="once")
    assert (again.id, again.created, again.state, again.after) == (last.id, False, "blocked", [first])
    with pytest.raises(Conflict):
        yard.add("test", {"n": 2}, after=first, key="once")
    finish(yard, first)
    yard.prune(age=0, apply=True)
    wait_until(lambda: yard.prune(age=0, apply=True) and not yard.find(state="done"))
    again = yard.add("test", {"n": 1}, after=first, key="once")  # what it came after is gone, and it is known
    assert (again.id, again.created, again.state) == (last.id, False, "todo")
    with pytest.raises(NotFound):
        yard.add("test", {"n": 1}, after=first, key="twice")
    assert yard.add("test", {"n": 1}, key="twice").created


@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_a_prune_keeps_what_a_blocked_task_still_needs(yard: Yard, ending: str) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first).id
    unneeded = yard.add("build").id
    for id in (first, unneeded):
        if ending == "fail":
            taken(yard.claim(id)).fail("broken", retry=False)
        else:
            yard.cancel(id)
    wait_until(lambda: yard.prune(age=0, apply=True) and not _is_there(yard, unneeded))
    assert _is_there(yard, first)
    retried(yard, first)
    finish(yard, first)
    assert yard.get(last).state == "todo"
    wait_until(lambda: yard.prune(age=0, apply=True) and not _is_there(yard, first))
    finish(yard, last)
    assert yard.get(last).after == [first]


def test_a_prune_takes_a_whole_chain_that_nobody_needs_any_more(yard: Yard) -> None:
    chain = [yard.add("link").id]
    for _ in range(3):
        chain.append(yard.add("link", after=chain[-1]).id)
    for id in chain:
        yard.cancel(id)
    wait_until(lambda: yard.prune(age=0)["tasks"] == 4)
    assert yard.prune(count=1, apply=True)["tasks"] == 0  # the one that stays needs the one before it, and so on
    assert yard.prune(age=0, apply=True)["tasks"] == 4
    assert sum(yard.counts().values()) == 0


def test_what_waits_for_a_dependency_hears_of_it(yard: Yard, yard_url: str) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=first).id
    with taskyard.open(yard_url, worker="bob") as other:
        finish(other, first)
        assert taken(other.claim(wait=5)).task.id == last


def _is_there(yard: Yard, id: str) -> bool:
    try:
        yard.get(id)
    except NotFound:
        return False
    return True
