"""An agent that does everything wrong and reads only first lines: nothing is lost, and each reply leads it right."""

from __future__ import annotations

import re
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import State

from .conftest import Caller

if TYPE_CHECKING:
    from taskyard import Yard


def followed(caller: Caller, refusal: str, **more: Any) -> Any:
    """Make the call that the refusal names first."""
    name, words = re.findall(r"(\w+)\(([^)]*)\)", refusal.split("Next: ")[1])[0]
    named = dict(re.findall(r"(\w+)='([^']*)'", words))
    return caller.call(name, **named, **more)


def test_a_repeated_done_is_answered_as_before(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    told = caller.call("claim")
    first = caller.call("done", result={"a": 1, "b": 2})
    assert caller.call("done", result={"b": 2, "a": 1}) == first
    assert caller.call("done", result={"a": 1, "b": 2}, claim=told["claim"]) == first
    assert yard.report(task.id).stale_results == []


def test_a_done_on_a_lost_claim_is_never_answered_as_the_one_before(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    second = yard.add("build", priority=9)
    caller.call("claim")
    caller.call("done", result="ok")
    caller.call("claim")
    yard.cancel(second.id)
    assert "Next: stop that work" in caller.refused("done", result="ok")
    assert "claim()" in caller.refused("done", result="ok")


def test_a_done_after_a_resume_that_finds_nothing_is_never_answered_as_the_one_before(
    yard: Yard, caller: Caller
) -> None:
    yard.add("build")
    second = yard.add("build", priority=9)
    caller.call("claim")
    caller.call("done", result="ok")
    caller.call("claim")
    yard.cancel(second.id)
    assert caller.call("resume")["claims"] == []
    assert "claim()" in caller.refused("done", result="ok")


def test_a_second_done_with_another_result_changes_nothing(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    told = caller.call("claim")
    caller.call("done", result=1)
    assert "claim()" in caller.refused("done", result=2)
    assert "Next: leave that task; claim()" in caller.refused("done", result=2, claim=told["claim"])
    assert yard.get(task.id).result == 1
    assert yard.report(task.id).stale_results[0]["result"] == 2


def test_a_repeated_fail_or_release_is_answered_as_before(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    caller.call("claim")
    assert caller.call("fail", reason="x") == caller.call("fail", reason="x")
    yard.add("build")
    caller.call("claim")
    assert caller.call("release") == caller.call("release")


def test_a_repeated_add_makes_one_task(yard: Yard, caller: Caller) -> None:
    first = caller.call("add", kind="build", title="once")
    assert caller.call("add", kind="build", title="once")["added"] == first["added"]
    assert yard.counts()["todo"] == 1
    caller.call("add", kind="build", title="once", key="second")
    assert yard.counts()["todo"] == 2


def test_the_same_add_twice_at_once_makes_one_task(yard: Yard, caller: Caller) -> None:
    told: list[Any] = []
    calls = [Thread(target=lambda: told.append(caller.call("add", kind="build", title="once"))) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len({each["added"] for each in told}) == 1
    assert yard.counts()["todo"] == 1


def test_a_second_claim_is_refused_until_the_first_is_finished(yard: Yard, caller: Caller) -> None:
    yard.add("build", title="first")
    yard.add("build", title="second")
    told = caller.call("claim")
    refusal = caller.refused("claim")
    assert "first" in refusal
    assert followed(caller, refusal, result=1) == {"done": told["task"]}
    assert caller.call("claim")["title"] == "second"


def test_whoever_really_wants_two_claims_has_to_name_them(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    yard.add("build")
    one = caller.call("claim")
    two = caller.call("claim", another=True)
    refusal = caller.refused("done", result=1)
    assert one["claim"] in refusal
    assert two["claim"] in refusal
    assert followed(caller, refusal, result=1) == {"done": one["task"]}
    assert caller.call("done", result=2) == {"done": two["task"]}


def test_an_id_for_a_handle_leads_to_the_handle(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    told = caller.call("claim")
    for word in (task.id, told["task"]):
        refusal = caller.refused("note", claim=word, text="hi")
        assert told["claim"] in refusal
    assert followed(caller, caller.refused("done", claim=task.id), result=1) == {"done": told["task"]}


def test_an_id_of_a_task_that_is_not_held_is_no_handle(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    assert "the 'claim' that claim() answered" in caller.refused("done", claim=task.id)
    assert yard.get(task.id).state is State.TODO


def test_a_mistyped_handle_leads_to_the_right_one(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    told = caller.call("claim")
    handle = told["claim"]
    wrong = handle[:-1] + ("x" if handle[-1] != "x" else "y")
    refusal = caller.refused("done", claim=wrong, result=1)
    assert handle in refusal
    assert followed(caller, refusal, result=1) == {"done": told["task"]}


@pytest.mark.parametrize("word", ["nonsense", "", "1", "the task", "../../etc/passwd", "x" * 5000])
def test_a_made_up_handle_changes_nothing(yard: Yard, caller: Caller, word: str) -> None:
    task = yard.add("build")
    told = caller.call("claim")
    assert told["claim"] in caller.refused("done", claim=word, result=1)
    assert yard.get(task.id).state is State.PROCESSING
    caller.call("done", result=1)


def test_an_ending_that_is_not_legal_leads_back_to_itself(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    caller.call("claim")
    for verb, arguments in (("fail", {"reason": " "}), ("note", {"text": ""}), ("done", {"result": "x" * 1_100_000})):
        assert f"Next: {verb} again, put right" in caller.refused(verb, **arguments)
    caller.call("done", result=1)


def test_a_handle_of_another_agent_that_is_over_changes_nothing(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    old = caller.call("claim")
    caller.call("release")
    other = Caller(yard)
    new = other.call("claim")
    assert "Next: stop that work" in caller.refused("done", claim=old["claim"], result="late")
    assert other.call("done", result="right") == {"done": new["task"]}
    assert yard.get(task.id).result == "right"


def test_a_done_without_a_claim_leads_to_one(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    assert "kind" in followed(caller, caller.refused("done", result=1))


def test_verbs_of_other_tools_lead_to_ours(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    for word, meant in (("close", "done"), ("next_task", "claim"), ("mcp__taskyard__list", "ready"), ("comment", "note"),
                        ("mcp__taskyard__claim", "claim"), ("Taskyard-Claim", "claim"), ("Done", "done")):  # fmt: skip
        text = caller.refused(word, id="x")
        assert f"here that is {meant}" in text
    assert yard.counts()["todo"] == 1


def test_arguments_of_other_tools_lead_to_ours_and_nothing_is_done(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    caller.call("claim")
    assert "here that is result" in caller.refused("done", status="closed")
    assert "here that is claim" in caller.refused("done", handle="x")
    assert "here that is title" in caller.refused("add", kind="build", description="x")
    assert "add(kind" in caller.refused("add", title="x", nonsense=1)
    assert yard.get(task.id).state is State.PROCESSING
    assert yard.counts()["todo"] == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("claim", {"wait": "soon"}),
        ("claim", {"wait": 3600}),
        ("claim", {"wait": True}),
        ("claim", {"kind": ["a", "b"]}),
        ("claim", {"kind": "not a kind"}),
        ("claim", {"task": "0-zzzz"}),
        ("show", {}),
        ("show", {"task": "nonsense"}),
        ("show", {"task": 3}),
        ("wait", {"tasks": "0-abcd"}),
        ("wait", {"tasks": []}),
        ("wait", {"tasks": [1]}),
        ("add", {"kind": "build", "priority": 11}),
        ("add", {"kind": "build", "priority": "1"}),
        ("add", {"kind": "build", "delay": "soon"}),
        ("add", {"kind": "build", "after": ["0-zzzz"]}),
        ("add", {"tasks": [{"title": "no kind"}]}),
        ("add", {"tasks": [{"kind": "a"}], "kind": "b"}),
        ("add", {}),
        ("fail", {}),
        ("note", {}),
        ("note", {"text": "  "}),
        ("ready", {"limit": 0}),
        ("ready", {"cursor": "nonsense"}),
        ("done", {"claim": 3}),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_next_call(
    yard: Yard, caller: Caller, name: str, arguments: dict[str, Any]
) -> None:
    caller.refused(name, **arguments)
    assert sum(yard.counts().values()) == 0


def test_a_null_is_as_good_as_nothing(yard: Yard, caller: Caller) -> None:
    yard.add("build")
    told = caller.call("claim", task=None, kind=None, wait=None)
    assert caller.call("done", claim=None, result=None) == {"done": told["task"]}


def test_an_empty_text_is_as_good_as_nothing_where_none_is_needed(yard: Yard, caller: Caller) -> None:
    assert "add needs kind" in caller.refused("add", kind="", title="")
    yard.add("build")
    told = caller.call("claim", task="", kind="", mission="")
    assert caller.call("release", reason="") == {"released": told["task"]}
    assert caller.call("ready", kind="", mission="", cursor="")["ready"]


def test_a_task_that_another_holds_is_not_taken(yard: Yard, caller: Caller) -> None:
    task = yard.add("build")
    held = yard.claim(worker="bob")
    assert held is not None
    assert "Next: claim()" in caller.refused("claim", task=task.short)
    held.done()


def test_an_agent_that_shouts_done_while_the_check_fails_keeps_its_task(caller: Caller, yard: Yard) -> None:
    task = yard.add("build", verify="missing")
    caller.call("claim")
    assert "you still hold the task" in caller.refused("done", result=1)
    assert yard.get(task.id).state is State.PROCESSING
    caller.call("fail", reason="the check cannot pass")
