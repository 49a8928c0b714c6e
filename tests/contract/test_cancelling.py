"""cancel: a task is called off, and whoever holds it loses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, Conflict, NotFound, State
from tests.conftest import crash, damage, retried, taken

if TYPE_CHECKING:
    from taskyard import Yard


@pytest.mark.parametrize("delay", [0, 1000], ids=["todo", "waiting"])
def test_a_cancelled_task_is_not_handed_out(yard: Yard, delay: float) -> None:
    before = yard.add("build", delay=delay)
    task = yard.cancel(before.id)
    assert (task.id, task.state, task.worker) == (before.id, State.CANCELLED, None)
    assert task.fence > before.fence
    assert yard.claim() is None
    assert yard.report(task.id).history == []


@pytest.mark.parametrize("held", [False, True], ids=["unheld", "held"])
def test_why_a_task_was_cancelled_is_its_error_until_it_is_retried(yard: Yard, held: bool) -> None:
    id = yard.add("build", max_attempts=9).id
    taken(yard.claim(id)).fail("no flour")
    retried(yard, id)  # due now
    if held:
        taken(yard.claim(id))
    assert yard.cancel(id, "no bakery, nor any customer").error == "no bakery, nor any customer"
    assert yard.get(id).error == "no bakery, nor any customer"
    assert [entry["outcome"] for entry in yard.report(id).history] == ["error", *(["cancelled"] if held else [])]
    assert retried(yard, id).error == "no flour"
    assert yard.get(id).error == "no flour"
    assert yard.cancel(id).error == "no flour"  # without a reason, what went wrong before is all there is to say
    retried(yard, id)
    yard.cancel(id, "once more")
    assert yard.get(id).error == "once more"


@pytest.mark.parametrize("delay", [0, 3600])
def test_why_a_task_was_cancelled_that_nobody_ever_claimed_is_its_error(yard: Yard, delay: float) -> None:
    id = yard.add("build", delay=delay).id
    yard.cancel(id, "not needed")
    assert yard.get(id).error == "not needed"
    assert yard.report(id).history == []
    assert retried(yard, id).error is None


def test_a_running_task_that_is_cancelled_loses_its_claim(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    task = yard.cancel(id, "not wanted any more")
    assert (task.state, task.worker, task.lease_until, task.attempts) == (State.CANCELLED, None, None, 0)
    [entry] = yard.report(id).history
    assert (entry["claim"], entry["outcome"], entry["reason"], entry["worker"]) == (
        claim.handle,
        "cancelled",
        "not wanted any more",
        "ada",
    )
    with pytest.raises(ClaimLost):
        claim.heartbeat()
    with pytest.raises(ClaimLost):
        claim.release()
    with pytest.raises(ClaimLost):
        claim.done("finished anyway")
    report = yard.report(id)
    assert (report.task.state, report.task.result) == (State.CANCELLED, None)
    assert [stale["result"] for stale in report.stale_results] == ["finished anyway"]


def test_what_has_ended_cannot_be_cancelled(yard: Yard) -> None:
    done, failed, cancelled = yard.add_many({"kind": "build"} for _ in range(3))
    taken(yard.claim(done)).done("fine")
    taken(yard.claim(failed)).fail("broken", retry=False)
    yard.cancel(cancelled)
    for id, state in ((done, State.DONE), (failed, State.FAILED), (cancelled, State.CANCELLED)):
        before = yard.get(id)
        with pytest.raises(Conflict):
            yard.cancel(id)
        assert yard.get(id).as_dict() == before.as_dict()
        assert before.state is state


def test_a_task_in_backoff_can_be_cancelled_and_keeps_its_counters(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    taken(yard.claim(id)).fail("broken")
    task = yard.cancel(id)
    assert (task.state, task.attempts, task.error) == (State.CANCELLED, 2, "broken")
    yard.sweep()
    assert yard.get(id).state is State.CANCELLED


def test_cancelling_takes_a_prefix_and_knows_no_unknown_id(yard: Yard) -> None:
    id = yard.add("build").id
    assert yard.cancel(yard.shorten([id])[0]).id == id
    with pytest.raises(NotFound):
        yard.cancel("0" * 21)


def test_any_reason_can_be_given_and_damages_nothing(yard: Yard) -> None:
    task = yard.add("build")
    reason = "the rest of its batch could not be added"
    assert yard.cancel(task.id, reason).error == reason
    assert damage(yard) == []
