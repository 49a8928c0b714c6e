"""done and a final fail: published once, and the winner may repeat itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, State
from taskyard.core.draft import PAYLOAD_MOST
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Claim, Yard


@pytest.fixture
def claim(yard: Yard) -> Claim:
    yard.add("build")
    return taken(yard.claim())


def test_a_done_task_has_its_result_its_worker_and_its_history(yard: Yard, claim: Claim) -> None:
    claim.done({"lines": 3})
    report = yard.report(claim.task.id)
    task = report.task
    assert (task.state, task.result, task.worker, task.error) == (State.DONE, {"lines": 3}, "ada", None)
    assert (task.fence, task.attempts) == (claim.fence, 0)
    [entry] = report.history
    assert (entry["claim"], entry["fence"], entry["worker"], entry["outcome"]) == (
        claim.handle,
        claim.fence,
        "ada",
        "done",
    )
    assert report.stale_results == []


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, "☃\0\u2028", [1, [2.5, {"a": None}]], 10**30])
def test_results_come_back_exactly(yard: Yard, claim: Claim, result: Any) -> None:
    claim.done(result)
    kept = yard.get(claim.task.id).result
    assert kept == result
    assert type(kept) is type(result)


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), "\ud800", "x" * PAYLOAD_MOST])
def test_a_result_that_no_yard_could_keep_is_refused_and_the_claim_goes_on(
    yard: Yard, claim: Claim, result: Any
) -> None:
    with pytest.raises(Invalid):
        claim.done(result)
    assert yard.get(claim.task.id).state is State.PROCESSING
    claim.done("fine")


def test_a_result_of_one_mebibyte_is_taken(yard: Yard, claim: Claim) -> None:
    claim.done("x" * (PAYLOAD_MOST - 2))
    assert len(yard.get(claim.task.id).result) == PAYLOAD_MOST - 2


@pytest.mark.parametrize("result", [None, {"a": 1, "b": [2]}, (1, 2), {1: "one"}])
def test_done_repeated_by_the_winner_is_fine(yard: Yard, yard_url: str, claim: Claim, result: Any) -> None:
    claim.done(result)
    first = yard.report(claim.task.id)
    claim.done(result)
    with taskyard.open(yard_url) as other:
        other.held(claim.handle).done(result)
    again = yard.report(claim.task.id)
    assert again.task.as_dict() == first.task.as_dict()
    assert again.history == first.history
    assert again.stale_results == []


def test_done_repeated_with_another_result_the_first_stands_and_the_second_is_stale(yard: Yard, claim: Claim) -> None:
    claim.done("first")
    for _ in range(2):
        with pytest.raises(Conflict, match="another result") as refusal:
            claim.done("second")
        assert claim.task.id in refusal.value.message
    report = yard.report(claim.task.id)
    assert report.task.result == "first"
    assert [(stale["claim"], stale["outcome"], stale["result"]) for stale in report.stale_results] == [
        (claim.handle, "done", "second")
    ]
    assert len(report.history) == 1


def test_a_result_after_none_is_stale_too(yard: Yard, claim: Claim) -> None:
    claim.done()
    with pytest.raises(Conflict):
        claim.done("afterthought")
    report = yard.report(claim.task.id)
    assert report.task.result is None
    assert [stale["result"] for stale in report.stale_results] == ["afterthought"]


def test_done_without_the_result_that_it_had_is_another_ending(yard: Yard, claim: Claim) -> None:
    claim.done("first")
    with pytest.raises(Conflict):
        claim.done()
    assert yard.get(claim.task.id).result == "first"


def test_a_second_ending_is_told_what_its_worker_holds_now(yard: Yard, yard_url: str, claim: Claim) -> None:
    claim.done("first")
    yard.add_many([{"kind": "build"}, {"kind": "test"}])
    now = taken(yard.claim())
    with taskyard.open(yard_url, worker="bob") as other:
        bobs = taken(other.claim())
    with taskyard.open(yard_url, worker="ada") as fresh:
        held = fresh.held(claim.handle)
        with pytest.raises(Conflict) as result:
            held.done("second")
        with pytest.raises(Conflict) as reason:
            held.fail("no, broken")
    for error in (result.value, reason.value):
        assert claim.task.id in error.message
        assert now.handle in str(error.hint)
        assert bobs.handle not in str(error.hint)
    with taskyard.open(yard_url) as nameless, pytest.raises(Conflict) as refusal:
        nameless.held(claim.handle).done("second")
    assert now.handle in str(refusal.value.hint)  # of the worker that ended the task


def test_fail_after_done_is_a_conflict_and_kept_as_stale(yard: Yard, claim: Claim) -> None:
    claim.done("fine")
    with pytest.raises(Conflict):
        claim.fail("no, broken")
    report = yard.report(claim.task.id)
    assert (report.task.state, report.task.result, report.task.attempts, report.task.error) == (
        State.DONE,
        "fine",
        0,
        None,
    )
    assert [(stale["outcome"], stale["reason"]) for stale in report.stale_results] == [("error", "no, broken")]


def test_done_after_a_final_fail_is_a_conflict_and_kept_as_stale(yard: Yard, claim: Claim) -> None:
    claim.fail("broken", retry=False)
    with pytest.raises(Conflict):
        claim.done("no, fine")
    report = yard.report(claim.task.id)
    assert (report.task.state, report.task.result, report.task.error) == (State.FAILED, None, "broken")
    assert [(stale["outcome"], stale["result"]) for stale in report.stale_results] == [("done", "no, fine")]


def test_a_final_fail_has_its_reason_its_worker_and_its_history(yard: Yard, claim: Claim) -> None:
    claim.fail("broken", retry=False)
    report = yard.report(claim.task.id)
    task = report.task
    assert (task.state, task.error, task.worker, task.attempts, task.fence) == (
        State.FAILED,
        "broken",
        "ada",
        1,
        claim.fence,
    )
    [entry] = report.history
    assert (entry["claim"], entry["outcome"], entry["reason"]) == (claim.handle, "error", "broken")


def test_a_final_fail_repeated_by_the_winner_is_fine(yard: Yard, claim: Claim) -> None:
    claim.fail("broken", retry=False)
    first = yard.report(claim.task.id)
    claim.fail("broken", retry=False)
    claim.fail("broken")
    again = yard.report(claim.task.id)
    assert again.task.as_dict() == first.task.as_dict()
    assert (again.history, again.stale_results) == (first.history, [])


def test_a_final_fail_with_another_reason_is_a_conflict_and_kept_as_stale(yard: Yard, claim: Claim) -> None:
    claim.fail("broken", retry=False)
    with pytest.raises(Conflict, match="another reason"):
        claim.fail("out of paper")
    report = yard.report(claim.task.id)
    assert (report.task.error, len(report.history)) == ("broken", 1)
    assert [(stale["outcome"], stale["reason"]) for stale in report.stale_results] == [("error", "out of paper")]


@pytest.mark.parametrize("final", [True, False], ids=["done", "failed"])
def test_after_its_ending_a_claim_is_good_for_nothing_else(yard: Yard, claim: Claim, final: bool) -> None:
    if final:
        claim.done()
    else:
        claim.fail("broken", retry=False)
    for verb in (claim.heartbeat, claim.release):
        with pytest.raises(ClaimLost):
            verb()
    with pytest.raises(ClaimLost):
        claim.note("one more thing")
    assert yard.get(claim.task.id).state is (State.DONE if final else State.FAILED)


def test_an_ended_task_is_not_handed_out(yard: Yard, claim: Claim) -> None:
    claim.done()
    assert yard.claim() is None


def test_an_ending_of_a_task_that_never_was_is_not_found(yard: Yard) -> None:
    with pytest.raises(taskyard.NotFound):
        yard.held("0" * 21 + ".1.00000000").done()


@pytest.mark.parametrize("reason", ["", "  ", "\n"])
def test_a_failure_needs_a_reason_that_says_something(yard: Yard, claim: Claim, reason: str) -> None:
    with pytest.raises(Invalid):
        claim.fail(reason)
    claim.done()


def test_reasons_of_any_text_come_back(yard: Yard, claim: Claim) -> None:
    reason = "Traceback:\n\tä ☃ \U0001f680 $(x) \u2028 \0 'q' \"q\""
    claim.fail(reason, retry=False)
    assert yard.get(claim.task.id).error == reason


def test_an_endless_reason_keeps_both_ends(yard: Yard, claim: Claim) -> None:
    claim.fail("begin" + "x" * 200_000 + "end", retry=False)
    error = yard.get(claim.task.id).error
    assert error is not None
    assert len(error) < 70_000
    assert error.startswith("begin")
    assert error.endswith("end")


def test_bytes_that_were_no_text_do_not_keep_a_failure_from_being_told(yard: Yard, claim: Claim) -> None:
    claim.fail("no such file: \udcff", retry=False)
    assert yard.get(claim.task.id).error == "no such file: ?"


def _cancel_and_raise(yard: Yard, claim: Claim) -> None:
    yard.cancel(claim.task.id)
    raise ValueError("mine")


class Interrupted(BaseException):
    """Stands in for KeyboardInterrupt, which would end the test run."""


def test_a_block_that_ends_ends_its_task(yard: Yard, claim: Claim) -> None:
    with claim as entered:
        assert entered is claim
    assert yard.get(claim.task.id).state is State.DONE


def test_a_block_that_raises_fails_its_task_and_the_error_goes_on(yard: Yard, claim: Claim) -> None:
    with pytest.raises(ZeroDivisionError), claim:
        _ = 1 / 0
    task = yard.get(claim.task.id)
    assert (task.state, task.attempts, task.error) == (State.WAITING, 1, "ZeroDivisionError: division by zero")


def test_a_block_that_is_interrupted_releases_its_task(yard: Yard, claim: Claim) -> None:
    with pytest.raises(Interrupted), claim:
        raise Interrupted
    task = yard.get(claim.task.id)
    assert (task.state, task.attempts) == (State.TODO, 0)


def test_a_block_may_end_its_task_itself(yard: Yard, claim: Claim) -> None:
    with claim:
        claim.done("mine")
    report = yard.report(claim.task.id)
    assert (report.task.state, report.task.result, report.stale_results) == (State.DONE, "mine", [])


@pytest.mark.parametrize("error", [None, ValueError("after")])
def test_a_block_that_released_its_task_leaves_it_released(yard: Yard, claim: Claim, error: Exception | None) -> None:
    try:
        with claim:
            claim.release()
            if error is not None:
                raise error
    except ValueError:
        pass
    assert yard.get(claim.task.id).state is State.TODO
    assert len(yard.report(claim.task.id).history) == 1


def test_a_block_whose_claim_was_lost_says_so_at_its_end(yard: Yard, claim: Claim) -> None:
    with pytest.raises(ClaimLost), claim:
        yard.cancel(claim.task.id)
    assert yard.get(claim.task.id).state is State.CANCELLED


def test_an_error_in_a_block_whose_claim_was_lost_is_the_one_that_is_raised(yard: Yard, claim: Claim) -> None:
    with pytest.raises(ValueError, match="mine"), claim:
        _cancel_and_raise(yard, claim)


def test_of_two_dones_of_a_claim_that_come_together_the_first_stands(yard: Yard) -> None:
    yard.add("build")
    yard.add("build")
    claim, other = taken(yard.claim()), taken(yard.claim())
    assert yard.done_many([(claim.ref, "first"), (other.ref, 1), (claim.ref, "second")]) == [True, True, False]
    assert (yard.get(claim.task.id).result, yard.get(other.task.id).result) == ("first", 1)
