"""release: the task goes back as it was, and nothing is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, State
from tests.conftest import crash, taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_a_released_task_is_in_todo_and_counts_no_attempt(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.release()
    report = yard.report(id)
    assert (report.task.state, report.task.attempts, report.task.worker, report.task.error) == (
        State.TODO,
        0,
        None,
        None,
    )
    [entry] = report.history
    assert (entry["claim"], entry["outcome"], entry["reason"]) == (claim.handle, "released", None)


def test_a_released_task_is_handed_out_again_under_a_higher_fence(yard: Yard) -> None:
    yard.add("build")
    fences = []
    for _ in range(5):
        claim = taken(yard.claim())
        fences.append(claim.fence)
        claim.release()
    assert fences == sorted(set(fences))


def test_a_released_task_is_still_the_most_urgent(yard: Yard) -> None:
    urgent = yard.add("build", priority=0).id
    yard.add("build")
    taken(yard.claim()).release()
    assert taken(yard.claim()).task.id == urgent


def test_a_released_task_is_handed_out_before_nothing_ready_is_said(yard: Yard) -> None:
    made = set(yard.add_many({"kind": "build"} for _ in range(5)))
    first = taken(yard.claim())
    rest = {taken(yard.claim()).task.id for _ in range(4)}
    first.release()
    assert rest | {taken(yard.claim()).task.id} == made


def test_release_may_be_repeated(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.release()
    claim.release()
    holder = taken(yard.claim())
    claim.release()
    assert yard.get(id).state is State.PROCESSING
    holder.done()
    claim.release()
    report = yard.report(id)
    assert (report.task.state, [entry["outcome"] for entry in report.history]) == (State.DONE, ["released", "done"])


def test_after_a_release_other_verbs_find_the_claim_lost(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.release()
    with pytest.raises(ClaimLost):
        claim.heartbeat()
    with pytest.raises(ClaimLost):
        claim.done("after all")
    with pytest.raises(ClaimLost):
        claim.fail("after all")
    report = yard.report(id)
    assert (report.task.state, report.task.attempts) == (State.TODO, 0)
    assert sorted(stale["outcome"] for stale in report.stale_results) == ["done", "error"]


def test_a_release_keeps_the_counters(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    taken(yard.claim(id)).release()
    assert yard.get(id).attempts == 1
    crash(yard, id)
    assert (yard.get(id).state, yard.get(id).attempts) == (State.WAITING, 2)
