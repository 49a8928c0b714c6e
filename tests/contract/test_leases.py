"""Leases: they end, they are renewed, and a late worker harms nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, Invalid, State
from tests.conftest import crash, lapse, outlast, taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard


def test_a_task_whose_lease_ended_comes_back_by_itself(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    first = taken(yard.claim(lease=0.05))
    with taskyard.open(yard_url, worker="bob") as other:
        second = taken(other.claim(wait=10))  # nobody swept: the claim itself looks
    assert second.task.id == id
    assert second.fence > first.fence


def test_a_sweep_tells_what_it_did(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=1))
    assert yard.sweep().as_dict() == {"taken": 0, "reaped": 0, "woken": 0, "expired": 0, "mended": 0, "ticked": 0}
    outlast(claim)
    assert yard.sweep().as_dict() == {"taken": 0, "reaped": 1, "woken": 0, "expired": 0, "mended": 0, "ticked": 0}
    assert not yard.sweep()


def test_a_first_crash_puts_the_task_back_at_once(yard: Yard) -> None:
    id = yard.add("build").id
    claim = crash(yard, id)
    report = yard.report(id)
    task = report.task
    assert (task.state, task.attempts, task.worker, task.lease_until) == (State.TODO, 1, None, None)
    assert task.fence > claim.fence
    assert task.error is not None
    assert "lease" in task.error
    [entry] = report.history
    assert (entry["claim"], entry["fence"], entry["worker"], entry["outcome"]) == (
        claim.handle,
        claim.fence,
        "ada",
        "crash",
    )
    assert entry["reason"] == task.error
    assert entry["at"].endswith("Z")


def test_a_lease_that_has_not_ended_is_left_alone(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=60))
    yard.sweep()
    assert claim.task.id == yard.get(claim.task.id).id
    claim.done()


@pytest.mark.parametrize(
    "verb",
    [lambda claim: claim.heartbeat(), lambda claim: claim.note("still here"), lambda claim: claim.release()],
    ids=["heartbeat", "note", "release"],
)
def test_a_late_worker_is_told_that_its_claim_is_lost(yard: Yard, verb: Callable[[Claim], None]) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    before = yard.report(id)
    with pytest.raises(ClaimLost):
        verb(late)
    after = yard.report(id)
    assert after.task.as_dict() == before.task.as_dict()
    assert (after.notes, after.stale_results) == ([], [])


def test_a_late_result_changes_nothing_and_is_kept_for_a_person(yard: Yard) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    with pytest.raises(ClaimLost):
        late.done({"by": "late"})
    report = yard.report(id)
    assert (report.task.state, report.task.result) == (State.TODO, None)
    [stale] = report.stale_results
    assert (stale["claim"], stale["fence"], stale["worker"]) == (late.handle, late.fence, "ada")
    assert (stale["outcome"], stale["result"], stale["reason"]) == ("done", {"by": "late"}, None)
    assert stale["at"].endswith("Z")


def test_a_late_failure_is_kept_too_and_not_counted(yard: Yard) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    with pytest.raises(ClaimLost):
        late.fail("too late")
    report = yard.report(id)
    assert (report.task.state, report.task.attempts) == (State.TODO, 1)
    [stale] = report.stale_results
    assert (stale["outcome"], stale["reason"], stale["result"]) == ("error", "too late", None)


def test_a_late_result_is_kept_once_however_often_it_comes(yard: Yard) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    for result in ({"n": 1}, {"n": 1}, {"n": 2}, {"n": 1}):
        with pytest.raises(ClaimLost):
            late.done(result)
    assert sorted(stale["result"]["n"] for stale in yard.report(id).stale_results) == [1, 2]


def test_a_late_worker_cannot_end_what_another_holds(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    with taskyard.open(yard_url, worker="bob") as other:
        holder = taken(other.claim())
        with pytest.raises(ClaimLost, match="bob"):
            late.done({"by": "late"})
        task = yard.get(id)
        assert (task.state, task.worker, task.result, task.fence) == (State.PROCESSING, "bob", None, holder.fence)
        holder.done({"by": "bob"})
    report = yard.report(id)
    assert report.task.result == {"by": "bob"}
    assert [stale["result"] for stale in report.stale_results] == [{"by": "late"}]


def test_claims_are_told_apart_even_if_the_worker_is_the_same(yard: Yard) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    holder = taken(yard.claim())
    assert holder.fence > late.fence
    with pytest.raises(ClaimLost):
        late.heartbeat()
    with pytest.raises(ClaimLost):
        late.done("late")
    holder.done("holder")
    with pytest.raises(ClaimLost):
        late.done("later still")
    report = yard.report(id)
    assert (report.task.worker, report.task.result) == ("ada", "holder")
    assert sorted(stale["result"] for stale in report.stale_results) == ["late", "later still"]


def test_a_late_result_equal_to_the_published_one_is_still_late(yard: Yard) -> None:
    id = yard.add("build").id
    late = crash(yard, id)
    taken(yard.claim()).done("same")
    with pytest.raises(ClaimLost):
        late.done("same")


def test_a_late_worker_with_nothing_but_its_handle_is_refused_too(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    handle = crash(yard, id).handle
    with taskyard.open(yard_url, worker="somebody") as other:
        with pytest.raises(ClaimLost):
            other.held(handle).done(7)
        with pytest.raises(ClaimLost):
            other.held(handle).heartbeat()
    assert [(stale["worker"], stale["result"]) for stale in yard.report(id).stale_results] == [("ada", 7)]


def test_a_made_up_handle_of_a_held_task_is_refused(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    id, fence, _ = claim.handle.split(".")
    with pytest.raises(ClaimLost):
        yard.held(f"{id}.{fence}.00000000").done("forged")
    with pytest.raises(ClaimLost):
        yard.held(f"{id}.{int(fence) + 1}.00000000").release()
    claim.done("true")
    assert yard.get(id).result == "true"


def test_a_lapsed_claim_that_nobody_has_reaped_can_be_renewed(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.05))
    outlast(claim)
    assert claim.heartbeat() > str(claim.lease_until)
    assert yard.get(claim.task.id).state is State.PROCESSING


def test_a_lapsed_claim_that_nobody_has_reaped_can_be_done(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.05))
    outlast(claim)
    claim.done("in the end")
    assert yard.get(claim.task.id).result == "in the end"
    yard.sweep()
    assert yard.get(claim.task.id).state is State.DONE


def test_a_lapsed_claim_that_nobody_has_reaped_can_be_released_or_failed(yard: Yard) -> None:
    yard.add_many([{"kind": "build"}, {"kind": "build"}])
    one, two = taken(yard.claim(lease=0.05)), taken(yard.claim(lease=0.05))
    outlast(two)
    one.release()
    two.fail("in the end", retry=False)
    assert yard.get(one.task.id).state is State.TODO
    assert yard.get(two.task.id).error == "in the end"


@pytest.mark.parametrize(
    "verb",
    [
        lambda claim: claim.heartbeat(),
        lambda claim: claim.note("still here"),
        lambda claim: claim.done("in the end"),
        lambda claim: claim.fail("in the end"),
        lambda claim: claim.release(),
    ],
    ids=["heartbeat", "note", "done", "fail", "release"],
)
def test_no_verb_on_a_lapsed_claim_sweeps_its_own_claim_away(
    yard: Yard, yard_url: str, verb: Callable[[Claim], None]
) -> None:
    id = yard.add("build").id
    lapsed = taken(yard.claim(lease=0.05))
    outlast(lapsed)
    with taskyard.open(yard_url, worker="ada") as fresh:
        fresh.policy.sweep_every = 0.0  # whoever looks is due to sweep
        holder = fresh.held(lapsed.handle)
        assert holder.holds()
        assert (holder.task.id, holder.task.state) == (id, State.PROCESSING)
        assert holder.lease == 0.05
        assert holder.history == []
        verb(holder)
    assert not any(event["event"] == "refused" for event in yard.events(task=id))


def test_a_lapsed_claim_that_nobody_has_reaped_is_resumed_under_its_name(yard: Yard, yard_url: str) -> None:
    yard.add("build")
    lapsed = taken(yard.claim(lease=0.05))
    outlast(lapsed)
    with taskyard.open(yard_url, worker="ada") as fresh:
        fresh.policy.sweep_every = 0.0
        [again] = fresh.resume()
        assert again.history[0]["outcome"] == "resumed"


def test_a_heartbeat_begins_the_lease_anew(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim(lease=0.3))
    first = yard.get(claim.task.id).lease_until
    assert first is not None
    wait_until(lambda: claim.heartbeat() > first)
    renewed = yard.get(claim.task.id).lease_until
    assert renewed is not None
    assert renewed > first
    lapse(yard, claim)


def test_a_task_may_bring_its_own_lease_and_a_claim_may_ask_for_another(yard: Yard) -> None:
    yard.add("build", lease=0.05)
    claim = taken(yard.claim())
    lapse(yard, claim)
    again = taken(yard.claim(lease=1000))
    assert again.lease_until is not None
    outlast_first = claim.lease_until
    assert outlast_first is not None
    assert again.lease_until > outlast_first
    yard.sweep()
    assert yard.get(again.task.id).state is State.PROCESSING
    again.release()
    lapse(yard, taken(yard.claim()))  # the task's own lease again


@pytest.mark.parametrize("lease", [0, -1, float("nan"), 31 * 86400, "long", True])
def test_a_lease_that_can_never_be_right_is_refused(yard: Yard, lease: float) -> None:
    yard.add("build")
    with pytest.raises(Invalid):
        yard.claim(lease=lease)
    assert yard.counts()["todo"] == 1


def test_only_a_held_task_has_a_lease(yard: Yard) -> None:
    id = yard.add("build").id
    assert yard.get(id).lease_until is None
    claim = taken(yard.claim())
    assert yard.get(id).lease_until is not None
    claim.done()
    assert yard.get(id).lease_until is None


def test_progress_is_shown_while_the_task_is_held(yard: Yard) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    for progress in (0, 0.25, 1):
        claim.heartbeat(progress=progress)
        assert yard.get(claim.task.id).progress == progress
    claim.heartbeat()
    assert yard.get(claim.task.id).progress == 1


def test_progress_is_that_of_the_claim_and_ends_with_it(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    with taskyard.open(yard_url) as other:
        other.held(claim.handle).heartbeat(progress=0.5)
    assert yard.get(id).progress == 0.5
    claim.release()
    assert yard.get(id).progress is None
    again = taken(yard.claim(id))
    assert (again.task.progress, yard.get(id).progress) == (None, None)
    with pytest.raises(ClaimLost):
        claim.heartbeat(progress=0.75)
    assert yard.get(id).progress is None
    again.heartbeat(progress=0.25)
    again.done()
    assert yard.get(id).progress is None


@pytest.mark.parametrize("progress", [-0.1, 1.1, float("nan"), True, "half"])
def test_progress_is_a_number_between_nought_and_one(yard: Yard, progress: float) -> None:
    yard.add("build")
    claim = taken(yard.claim())
    with pytest.raises(Invalid):
        claim.heartbeat(progress=progress)
