"""`--review`: what a worker has done counts when another one accepts it; rejected, it goes back with the note."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, Conflict
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Task, Yard


@pytest.fixture
def boss(yard: Yard, yard_url: str) -> Iterator[Yard]:
    """The same yard, for another worker."""
    with taskyard.open(yard_url, worker="bob") as opened:
        yield opened


def submitted(yard: Yard, result: object = None, **options: object) -> Task:
    """A task that was done, and waits for review."""
    task = yard.add("build", review=True, **options)  # type: ignore[arg-type]
    assert yard.get(task.id).review == "wanted"
    taken(yard.claim(task.id)).done(result)
    return yard.get(task.id)


def test_what_comes_after_waits_until_the_result_is_accepted(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, {"answer": 42})
    after = yard.add("use", after=[task.id])
    assert (task.state, task.review, task.result, task.evidence) == ("waiting", "pending", None, None)
    yard.sweep()
    assert yard.claim() is None, "neither it nor what comes after it is handed out"
    done = boss.accept(task.id)
    assert (done.state, done.review, done.evidence, done.result) == ("done", "accepted", "verified", {"answer": 42})
    assert (done.worker, done.fence) == ("bob", task.fence)
    claim = taken(yard.claim())
    assert claim.id == after.id
    assert claim.inputs[task.id] == {"answer": 42}
    history = yard.report(task.id).history
    assert [(entry["worker"], entry["outcome"]) for entry in history] == [("ada", "released"), ("bob", "done")]


def test_a_rejected_task_goes_back_with_the_note_and_a_higher_fence(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, "first try")
    back = boss.reject(task.id, "the tests are missing")
    assert (back.state, back.review, back.attempts) == ("todo", "wanted", 0)
    again = taken(yard.claim(task.id))
    assert again.fence > back.fence > task.fence
    assert [entry["reason"] for entry in again.history] == ["waits for review", "rejected: the tests are missing"]
    again.done("second try")
    assert boss.accept(task.id).result == "second try"
    with pytest.raises(Conflict, match="waits for review"):
        boss.accept(task.id)


def test_a_done_that_is_said_again_gets_the_same_answer_before_and_after_the_review(yard: Yard, boss: Yard) -> None:
    yard.add("build", review=True)
    claim = taken(yard.claim())
    handle = claim.handle
    for _ in range(2):
        yard.held(handle).done({"answer": 42})
    with pytest.raises(ClaimLost):
        yard.held(handle).done({"answer": 43})
    assert yard.settled(handle) is not None
    boss.accept(claim.id)
    yard.held(handle).done({"answer": 42})
    assert yard.get(claim.id).result == {"answer": 42}


@pytest.mark.parametrize("result", [None, {"answer": None}, [1, 2]], ids=["none", "object", "list"])
def test_the_result_is_accepted_as_it_was_submitted(yard: Yard, boss: Yard, result: object) -> None:
    task = submitted(yard, result)
    assert boss.accept(task.id).result == result


def test_endings_of_many_at_once_leave_what_needs_a_review(yard: Yard) -> None:
    plain, judged = yard.add("build"), yard.add("build", review=True)
    claims = [taken(yard.claim(task.id)) for task in (plain, judged)]
    assert yard.done_many([(claim.handle, "work") for claim in claims]) == [True, False]
    assert (yard.get(plain.id).state, yard.get(judged.id).state) == ("done", "processing")
    claims[1].done("work")
    assert yard.get(judged.id).review == "pending"


def test_lists_tell_reported_from_verified_and_which_reviews_are_wanted(yard: Yard, boss: Yard) -> None:
    reported, judged, pending, wanted = (yard.add("build", review=number > 0) for number in range(4))
    for task in (reported, judged, pending):
        taken(yard.claim(task.id)).done("work")
    boss.accept(judged.id)
    lines = {task.id: task.as_line() for task in yard.find()}
    told = {id: (line.get("review"), line.get("evidence")) for id, line in lines.items()}
    assert told == {
        reported.id: (None, "reported"),
        judged.id: ("accepted", "verified"),
        pending.id: ("pending", None),
        wanted.id: ("wanted", None),
    }
    assert [task.as_line()["review"] for task in yard.ready()] == ["wanted"]


def test_nobody_reviews_their_own_work_and_nothing_else_is_reviewed(yard: Yard, boss: Yard) -> None:
    task = submitted(yard)
    with pytest.raises(Conflict, match="another one reviews it"):
        yard.accept(task.id)
    with pytest.raises(Conflict, match="another one reviews it"):
        yard.reject(task.id, "no")
    plain = yard.add("plain")
    for id in (plain.id, yard.add("build", review=True).id):
        with pytest.raises(Conflict, match="waits for review"):
            boss.accept(id)
    taken(yard.claim(plain.id)).done()
    assert (yard.get(plain.id).evidence, yard.get(plain.id).review) == ("reported", None)
    assert boss.accept(task.id).state == "done"


def judged_at_once(yard: Yard, url: str, task: Task, names: str, accepting: str) -> list[str]:
    """Have all of these workers judge at one moment; return those that were answered that they have."""
    winners: list[str] = []
    ready = threading.Barrier(len(names))

    def review(name: str) -> None:
        with taskyard.open(url, worker=name) as own:
            ready.wait()
            with suppress(Conflict):
                own.accept(task.id) if name in accepting else own.reject(task.id, f"{name} says no")
                winners.append(name)

    crew = [threading.Thread(target=review, args=(name,)) for name in names]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    return winners


@pytest.mark.parametrize("accepting", ["", "ab", "abcd"], ids=["rejects", "both", "accepts"])
def test_of_accept_and_reject_at_once_one_wins(yard: Yard, yard_url: str, accepting: str) -> None:
    for result in ("work", None, "more work"):
        task = submitted(yard, result)
        (winner,) = judged_at_once(yard, yard_url, task, "abcd", accepting)
        found, (_, last) = yard.get(task.id), yard.report(task.id).history  # those who came too late are in no history
        for late in yard.report(task.id).stale_results:  # the note of one who came too late is kept
            assert late["worker"] != winner
            assert late["reason"] == f"rejected: {late['worker']} says no"
        assert last["worker"] == winner
        # A file server loses replies, so there two who have made one move may both log it.
        moved = [event for event in yard.events(task=task.id) if event["event"] != "refused"]
        assert {event["by"] for event in moved if event["worker"] in tuple("abcd")} == {winner}
        if winner in accepting:
            assert (found.state, found.worker, found.result, last["outcome"]) == ("done", winner, result, "done")
        else:
            assert (found.state, last["outcome"], last["reason"]) == ("todo", "released", f"rejected: {winner} says no")
            taken(yard.claim(task.id)).fail("enough", retry=False)


@pytest.mark.parametrize("accepting", ["", "b"], ids=["rejects", "accepts"])
def test_of_two_judgements_of_one_name_at_once_one_wins(yard: Yard, yard_url: str, accepting: str) -> None:
    for _ in range(3):
        task = submitted(yard, "work")
        assert judged_at_once(yard, yard_url, task, "bb", accepting) == ["b"]
        if not accepting:
            taken(yard.claim(task.id)).fail("enough", retry=False)


def test_an_assigned_task_is_done_by_who_has_accepted_it(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, "work", assignee="ada")
    assert boss.accept(task.id).worker == "bob"
    assert [found.worker for found in yard.find("done")] == ["bob"]
    assert yard.audit()["findings"] == []


def test_a_submitted_task_can_be_cancelled_or_tried_anew(yard: Yard, boss: Yard) -> None:
    first, second = submitted(yard), submitted(yard)
    assert yard.cancel(first.id).state == "cancelled"
    assert yard.retry(second.id).state == "todo"  # type: ignore[union-attr]
    for id in (first.id, second.id):
        with pytest.raises(Conflict, match="waits for review"):
            boss.accept(id)


@pytest.mark.parametrize("name", ["delay", "not_before", "expires", "after"])
def test_an_edit_that_would_lose_what_was_submitted_is_refused(yard: Yard, boss: Yard, name: str) -> None:
    changes = {"delay": 1, "not_before": "2030-01-01T00:00:00Z", "expires": 60, "after": [yard.add("other").id]}
    task = submitted(yard, "work")
    for value in (changes[name], None):
        with pytest.raises(Conflict, match=f"waits for review, and an edit of {name}") as refused:
            yard.edit(task.id, **{name: value})  # type: ignore[arg-type]
        assert all(verb in (refused.value.hint or "") for verb in ("accept", "reject", "retry", "cancel"))
    assert yard.get(task.id).as_dict() == task.as_dict()
    assert boss.accept(task.id).result == "work"


def test_other_edits_leave_what_was_submitted(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, "work")
    changes = {"title": "new", "data": {"b": 2}, "priority": 1, "assignee": "eve", "timeout": 9, "max_attempts": 4}
    for name, value in changes.items():
        assert yard.edit(task.id, **{name: value}).review == "pending", name  # type: ignore[arg-type]
    assert boss.accept(task.id).result == "work"


def test_the_refusal_of_a_review_says_what_is_true_of_the_task(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, "work")
    yard.cancel(task.id)
    with pytest.raises(Conflict) as refused:
        boss.accept(task.id)
    assert refused.value.hint == f"it ended without a review; 'taskyard retry {task.short}' has it done again"


def test_a_check_runs_before_the_review(yard: Yard, boss: Yard) -> None:
    yard.add("build", review=True, verify="tests")
    claim = taken(yard.claim())
    assert (claim.task.verify, claim.task.needs_review) == ("tests", True)
    with pytest.raises(Conflict, match="does not know"):
        claim.done()
    claim.done("checked", verified=True)
    assert yard.get(claim.id).review == "pending"
    assert boss.accept(claim.id).evidence == "verified"


def test_an_edit_keeps_the_review(yard: Yard, boss: Yard) -> None:
    task = yard.add("build", review=True)
    yard.edit(task.id, title="Build it")
    claim = taken(yard.claim(task.id))
    claim.done(1)
    yard.edit(task.id, title="Build it well")
    assert boss.accept(task.id).result == 1


def test_what_waits_for_review_does_not_keep_a_worker_from_draining(yard: Yard) -> None:
    submitted(yard)
    assert not yard.remains(None)


def test_a_deadline_does_not_end_what_waits_for_review(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, expires=0.5)
    created = yard.get(task.id).expires
    assert created is not None
    wait_until(lambda: yard.add("clock").created_at > created)
    yard.sweep()
    assert boss.accept(task.id).state == "done"


def test_why_names_the_review_that_things_wait_for(yard: Yard, boss: Yard) -> None:
    task = submitted(yard)
    after = yard.add("use", after=[task.id])
    assert "waits for review" in yard.why()["message"]
    assert f"taskyard accept {task.short}" in yard.why()["next"]
    assert yard.why(task.id)["reasons"][0]["code"] == "review"
    behind = yard.why(after.id)
    assert behind["reasons"][0]["code"] == "behind_review"
    assert f"taskyard accept {task.short}" in behind["next"]
    boss.accept(task.id)
    assert yard.why(after.id)["reasons"][0]["code"] == "ready"


def test_a_large_result_is_cut_in_the_history_that_the_next_claim_gets(yard: Yard, boss: Yard) -> None:
    task = submitted(yard, "x" * 100_000)
    boss.reject(task.id, "shorter")
    assert taken(yard.claim(task.id)).history[0]["result"] == "[cut]"
    assert yard.report(task.id).history[0]["result"] == "x" * 100_000


def test_a_late_verb_of_who_submitted_is_logged_as_theirs_after_the_review(yard: Yard, boss: Yard) -> None:
    id = yard.add("build", review=True).id
    claim = taken(yard.claim(id))
    claim.done()
    boss.accept(id)
    with pytest.raises(ClaimLost):
        claim.note("one thing more")
    [refused] = [event for event in yard.events(task=id) if event["event"] == "refused"]
    assert (refused["worker"], refused["fence"]) == ("ada", claim.fence)
