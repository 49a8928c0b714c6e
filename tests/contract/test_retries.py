"""Failed attempts: errors and crashes are counted apart, come back with a delay, and end at their caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, State
from taskyard.core import times
from tests.conftest import crash, taken

if TYPE_CHECKING:
    from taskyard import Yard


def err(yard: Yard, id: str, reason: str = "broken") -> None:
    taken(yard.claim(id)).fail(reason)


def test_a_failed_attempt_waits_before_the_next(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.fail("broken")
    report = yard.report(id)
    task = report.task
    assert (task.state, task.attempts, task.error, task.worker) == (State.WAITING, 1, "broken", None)
    assert task.fence > claim.fence
    assert task.not_before is not None
    [entry] = report.history
    assert (entry["claim"], entry["outcome"], entry["reason"]) == (claim.handle, "error", "broken")
    delay = times.moment(task.not_before, "") - times.moment(entry["at"], "")
    assert 3000 <= delay <= 7000  # 5 s and a quarter either way, and some slack
    assert yard.claim() is None


def test_the_delay_doubles(yard: Yard) -> None:
    id = yard.add("build", max_attempts=9).id
    for _ in range(4):
        err(yard, id)
        yard.retry(id)
    err(yard, id)
    task = yard.get(id)
    assert task.not_before is not None
    delay = times.moment(task.not_before, "") - times.moment(yard.report(id).history[-1]["at"], "")
    assert 59_000 <= delay <= 101_000  # 80 s


def test_the_third_error_is_the_last(yard: Yard) -> None:
    id = yard.add("build").id
    for number in (1, 2):
        err(yard, id, f"broken {number}")
        assert yard.get(id).state is State.WAITING
        yard.retry(id)
    err(yard, id, "broken 3")
    report = yard.report(id)
    assert (report.task.state, report.task.attempts, report.task.error) == (State.FAILED, 3, "broken 3")
    assert [entry["reason"] for entry in report.history] == ["broken 1", "broken 2", "broken 3"]
    fences = [entry["fence"] for entry in report.history]
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_task_may_bring_its_own_number_of_attempts(yard: Yard, most: int) -> None:
    id = yard.add("build", max_attempts=most).id
    for _ in range(most - 1):
        err(yard, id)
        yard.retry(id)
    err(yard, id)
    assert yard.get(id).state is State.FAILED


def test_a_failure_without_retry_is_final_at_once(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).fail("hopeless", retry=False)
    assert (yard.get(id).state, yard.get(id).attempts) == (State.FAILED, 1)


def test_the_first_crash_is_free_the_second_waits_and_the_third_is_the_last(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    assert yard.get(id).state is State.TODO
    crash(yard, id)
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.WAITING, 2)
    assert task.not_before is not None
    yard.retry(id)
    last = crash(yard, id)
    report = yard.report(id)
    assert (report.task.state, report.task.attempts, report.task.worker) == (State.FAILED, 3, None)
    assert [entry["outcome"] for entry in report.history] == ["crash"] * 3
    assert report.task.error == report.history[-1]["reason"]
    with pytest.raises(ClaimLost):
        last.done("too late")


def test_errors_and_crashes_are_counted_apart(yard: Yard) -> None:
    id = yard.add("build").id
    crash(yard, id)
    err(yard, id)
    yard.retry(id)
    crash(yard, id)
    yard.retry(id)
    err(yard, id)
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.WAITING, 4)  # two of each, and neither cap is reached
    yard.retry(id)
    err(yard, id)
    assert (yard.get(id).state, yard.get(id).attempts) == (State.FAILED, 5)


def test_crashes_have_their_own_cap_whatever_max_attempts_says(yard: Yard) -> None:
    id = yard.add("build", max_attempts=1).id
    crash(yard, id)
    assert yard.get(id).state is State.TODO


def test_after_a_retried_fail_other_verbs_find_the_claim_lost(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.fail("broken")
    for verb in (claim.heartbeat, claim.release, claim.done):
        with pytest.raises(ClaimLost):
            verb()
    with pytest.raises(ClaimLost):
        claim.done("after all")
    report = yard.report(id)
    assert (report.task.state, report.task.attempts) == (State.WAITING, 1)
    assert "after all" in [stale["result"] for stale in report.stale_results]


def test_a_retried_fail_may_be_repeated_and_counts_once(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.fail("broken")
    claim.fail("broken")
    assert yard.get(id).attempts == 1
    yard.retry(id)
    holder = taken(yard.claim())
    claim.fail("broken")
    assert yard.get(id).state is State.PROCESSING
    holder.done()
    report = yard.report(id)
    assert ([entry["outcome"] for entry in report.history], report.stale_results) == (["error", "done"], [])


def test_a_retried_fail_with_another_reason_is_too_late(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.fail("broken")
    with pytest.raises(ClaimLost):
        claim.fail("out of paper")
    report = yard.report(id)
    assert (report.task.error, report.task.attempts) == ("broken", 1)
    assert [stale["reason"] for stale in report.stale_results] == ["out of paper"]


def test_a_task_done_in_the_end_has_no_error(yard: Yard) -> None:
    id = yard.add("build").id
    err(yard, id)
    yard.retry(id)
    claim = taken(yard.claim())
    assert yard.get(id).error == "broken"
    assert [entry["reason"] for entry in claim.history] == ["broken"]
    claim.done()
    task = yard.get(id)
    assert (task.error, task.attempts) == (None, 1)
    assert [entry["outcome"] for entry in claim.history] == ["error"]  # what was before this claim


def test_a_given_moment_comes_back_after_the_backoff(yard: Yard) -> None:
    given = "2001-01-31T12:00:00.000Z"
    id = yard.add("build", not_before=given).id
    err(yard, id)
    assert yard.get(id).not_before != given
    yard.retry(id)
    assert yard.get(id).not_before == given
