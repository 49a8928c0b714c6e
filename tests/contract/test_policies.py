"""What a failed or cancelled task means to those that come after it: block, cancel or run, by what each need says."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict
from taskyard.core.needs import on_failure
from tests.conftest import crash, retried, sized, taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard


def fail(yard: Yard, id: str) -> None:
    taken(yard.claim(id)).fail("broken", retry=False)


def cancel(yard: Yard, id: str) -> None:
    yard.cancel(id)


def crash_for_good(yard: Yard, id: str) -> None:
    for _ in range(yard.policy.max_crashes):
        yard.retry(id) if yard.get(id).state == "waiting" else None
        crash(yard, id)


ENDINGS: dict[str, tuple[Callable[[Yard, str], None], str]] = {
    "fail": (fail, "failed"),
    "cancel": (cancel, "was cancelled"),
    "crash": (crash_for_good, "failed"),
}
POLICIES = {"block": "blocked", "cancel": "cancelled", "run": "todo"}


def short(yard: Yard, id: str) -> str:
    return yard.shorten([id])[0]


def events(yard: Yard, id: str) -> list[str]:
    return [event["event"] for event in yard.events(task=id)]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("policy", POLICIES)
def test_each_need_says_what_the_end_of_another_task_means(yard: Yard, ending: str, policy: str) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:{policy}")
    assert (last.state, last.after, on_failure(last.after[0])) == ("blocked", [first], policy)
    assert on_failure(yard.get(last.id).after[0]) == policy
    end, says = ENDINGS[ending]
    end(yard, first)
    task = yard.get(last.id)
    assert task.state == POLICIES[policy]
    assert task.as_dict()["after"] == ([first] if policy == "block" else [{"id": first, "on_failure": policy}])
    if policy == "cancel":
        assert task.error == f"task {short(yard, first)}, which it comes after, {says}"
    assert yard.audit()["verdict"] == "clean"


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_task_that_is_added_later_is_treated_the_same(yard: Yard, ending: str, policy: str) -> None:
    first = yard.add("build").id
    ENDINGS[ending][0](yard, first)
    last = yard.add("test", after={"id": first, "on_failure": policy})
    assert last.state == POLICIES[policy]
    assert yard.get(last.id).state == POLICIES[policy]
    expected = {"block": ["blocked"], "cancel": ["blocked", "cancelled"], "run": []}
    assert events(yard, last.id) == ["added", *expected[policy]]


def test_the_log_says_with_which_task_another_was_cancelled(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:cancel").id
    other = yard.add("test", after=f"{first}:run").id
    fail(yard, first)
    cancelled = yard.events(task=last)[-1]
    assert (cancelled["event"], cancelled["fence"], cancelled["cancelled_by"], cancelled["by"]) == (
        "cancelled", 1, first, "ada",
    )  # fmt: skip
    assert cancelled["reason"] == yard.get(last).error
    freed = yard.events(task=other)[-1]
    assert (freed["event"], freed["fence"], freed["freed_by"]) == ("unblocked", 1, first)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_done_task_frees_those_behind_it_whatever_their_needs_say(yard: Yard, policy: str) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:{policy}").id
    taken(yard.claim(first)).done()
    assert yard.get(last).state == "todo"


@pytest.mark.parametrize("policy", POLICIES)
def test_an_attempt_that_fails_and_is_retried_means_nothing_yet(yard: Yard, policy: str) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:{policy}").id
    taken(yard.claim(first)).fail("once")
    crash(yard, retried(yard, first).id)
    assert yard.get(last).state == "blocked"


def test_the_middle_of_a_chain_fails_under_each_policy(yard: Yard) -> None:
    ids = yard.add_many(
        [
            {"kind": "first", "ref": "first"},
            {"kind": "middle", "ref": "middle", "after": "first"},
            {"kind": "blocks", "after": ["middle"]},
            {"kind": "cancels", "ref": "cancels", "after": [{"ref": "middle", "on_failure": "cancel"}]},
            {"kind": "runs", "ref": "runs", "after": "middle:run"},
            {"kind": "both", "after": ["cancels:run", "runs"]},
        ]
    )
    taken(yard.claim(ids[0])).done()
    fail(yard, ids[1])
    assert [str(yard.get(id).state) for id in ids[2:]] == ["blocked", "cancelled", "todo", "blocked"]
    taken(yard.claim(ids[4])).done()
    assert yard.get(ids[5]).state == "todo"


def test_a_cancelled_task_takes_with_it_what_comes_after_it(yard: Yard) -> None:
    ids = yard.add_many(
        [
            {"kind": "a", "ref": "a"},
            {"kind": "b", "ref": "b", "after": "a:cancel"},
            {"kind": "c", "ref": "c", "after": "b:cancel"},
            {"kind": "d", "ref": "d", "after": "c"},
            {"kind": "e", "ref": "e", "after": ["c:run", "b:run"]},
            {"kind": "f", "after": ["d:cancel"]},
        ]
    )
    fail(yard, ids[0])
    assert [str(yard.get(id).state) for id in ids[1:]] == ["cancelled", "cancelled", "blocked", "todo", "blocked"]
    assert yard.get(ids[2]).error == f"task {short(yard, ids[1])}, which it comes after, was cancelled"


def test_one_need_that_cancels_is_enough_and_one_that_blocks_holds_the_rest(yard: Yard) -> None:
    one, two, three = yard.add_many([{"kind": "build"}] * 3)
    doomed = yard.add("test", after=[one, f"{two}:cancel", f"{three}:run"]).id
    held = yard.add("test", after=[one, f"{two}:run", f"{three}:run"]).id
    yard.cancel(three)
    assert (yard.get(doomed).state, yard.get(held).state) == ("blocked", "blocked")
    fail(yard, two)
    assert (yard.get(doomed).state, yard.get(held).state) == ("cancelled", "blocked")
    taken(yard.claim(one)).done()
    assert (yard.get(doomed).state, yard.get(held).state) == ("cancelled", "todo")


def test_a_batch_behind_a_failed_task_is_cancelled_as_it_is_added(yard: Yard) -> None:
    failed = yard.add("build").id
    fail(yard, failed)
    ids = yard.add_many(
        [
            {"kind": "c", "after": "b:cancel"},
            {"kind": "d", "after": "b:run"},
            {"kind": "b", "ref": "b", "after": f"{failed}:cancel"},
        ]
    )
    assert [str(yard.get(id).state) for id in ids] == ["cancelled", "todo", "cancelled"]


def test_a_retry_of_what_failed_brings_nothing_back(yard: Yard) -> None:
    first = yard.add("build").id
    cancelled = yard.add("test", after=f"{first}:cancel").id
    freed = yard.add("test", after=f"{first}:run").id
    blocked = yard.add("test", after=first).id
    fail(yard, first)
    retried(yard, first)
    assert [str(yard.get(id).state) for id in (cancelled, freed, blocked)] == ["cancelled", "todo", "blocked"]
    taken(yard.claim(first)).done()
    assert [str(yard.get(id).state) for id in (cancelled, freed, blocked)] == ["cancelled", "todo", "todo"]
    assert retried(yard, cancelled).state == "todo"


def test_a_retry_in_vain_is_refused_until_what_failed_is_retried(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:cancel").id
    fail(yard, first)
    with pytest.raises(Conflict, match="which is failed") as refusal:
        yard.retry(last)
    assert short(yard, first) in str(refusal.value.hint)
    retried(yard, first)
    assert retried(yard, last).state == "blocked"
    fail(yard, first)
    assert yard.get(last).state == "cancelled"


def test_what_was_cancelled_by_hand_while_it_was_blocked_waits_for_no_more_than_it_must(yard: Yard) -> None:
    first = yard.add("build").id
    runs = yard.add("test", after=f"{first}:run").id
    cancels = yard.add("test", after=f"{first}:cancel").id
    yard.cancel(runs)
    yard.cancel(cancels, "not wanted")
    fail(yard, first)
    assert yard.get(cancels).error == "not wanted"
    assert retried(yard, runs).state == "todo"


def test_what_a_cancelled_task_comes_after_can_be_pruned_with_it(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:cancel").id
    kept = yard.add("test", after=first).id
    fail(yard, first)
    wait_until(lambda: yard.prune(age=0, apply=True) and yard.counts()["cancelled"] == 0)
    assert (yard.counts()["failed"], yard.get(kept).state) == (1, "blocked")  # a blocked task still needs it
    yard.cancel(kept)
    wait_until(lambda: yard.prune(age=0, apply=True) and sum(yard.counts().values()) == 0)
    assert last != kept


@pytest.mark.parametrize("ending", ["done", "fail", "cancel"])
@sized("rounds", 5, 40)
def test_whatever_ends_while_others_are_added_behind_it_is_heard_by_all(
    yard: Yard, yard_url: str, ending: str, rounds: int
) -> None:
    """Every one of them is freed, cancelled or blocked in the end, as if it had been added before, or after."""
    ends: dict[str, Callable[[Yard, str], Any]] = {
        "done": lambda own, id: taken(own.claim(id)).done(),
        "fail": fail,
        "cancel": cancel,
    }
    expected = POLICIES if ending != "done" else dict.fromkeys(POLICIES, "todo")
    with taskyard.open(yard_url, worker="bob") as other:
        for _ in range(rounds):
            first = yard.add("build").id
            added: list[tuple[str, str]] = []
            ready = threading.Event()

            def keep_adding(first: str = first, added: list[Any] = added, ready: threading.Event = ready) -> None:
                for _ in range(4):
                    for policy in POLICIES:
                        added.append((policy, other.add("test", after=f"{first}:{policy}").id))
                        ready.set()

            adder = threading.Thread(target=keep_adding)
            adder.start()
            ready.wait()
            ends[ending](yard, first)
            adder.join()
            yard.sweep()
            assert {(policy, str(yard.get(id).state)) for policy, id in added} == set(expected.items())
