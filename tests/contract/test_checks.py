"""A task that names a check is done only if that passes, through every door, and a lost claim is lost whatever it says."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, Conflict, Invalid
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


@pytest.mark.parametrize("by_handle", [False, True])
def test_a_done_whose_check_fails_changes_nothing(yard: Yard, near: Yard, by_handle: bool) -> None:
    near.checks["tests"] = ["sh", "-c", "echo too bad >&2; exit 3"]
    task = yard.add("build", verify="tests")
    claim = taken(yard.claim())
    held = yard.held(claim.handle) if by_handle else claim
    with pytest.raises(Conflict, match="did not pass: exit 3: too bad"):
        held.done("early")
    assert yard.get(task.id).state == "processing"
    near.checks["tests"] = ["true"]
    held.done("fine")
    assert yard.get(task.id).result == "fine"


@pytest.mark.parametrize("by_handle", [False, True])
def test_a_lost_claim_is_lost_whatever_its_check_says(yard: Yard, near: Yard, by_handle: bool) -> None:
    near.checks["tests"] = ["false"]
    task = yard.add("build", verify="tests")
    claim = taken(yard.claim())
    yard.cancel(task.id)
    with pytest.raises(ClaimLost):
        (yard.held(claim.handle) if by_handle else claim).done("late")
    assert [late["result"] for late in yard.report(task.id).stale_results] == ["late"]


def test_a_claim_that_is_lost_while_its_check_runs_is_lost(yard: Yard, near: Yard) -> None:
    task = yard.add("build", verify="tests")
    claim = taken(yard.claim())
    near.checks["tests"] = ["sh", "-c", "sleep 1; exit 1"]
    timer = threading.Timer(0.2, lambda: yard.cancel(task.id))
    timer.start()
    with pytest.raises(ClaimLost):
        claim.done()
    timer.join()


def test_a_done_that_is_said_again_needs_no_check(yard: Yard, near: Yard) -> None:
    near.checks["tests"] = ["true"]
    yard.add("build", verify="tests")
    claim = taken(yard.claim())
    claim.done("fine")
    near.checks["tests"] = ["false"]
    claim.done("fine")
    yard.held(claim.handle).done("fine")


def test_many_dones_leave_those_that_name_a_check_and_refuse_what_is_no_json(yard: Yard, near: Yard) -> None:
    near.checks["tests"] = ["false"]
    yard.add("build", verify="tests")
    yard.add("build")
    claims = yard.claim_many(2)
    with pytest.raises(Invalid):
        yard.done_many([(claim.ref, math.nan) for claim in claims])
    assert yard.done_many([(claim.ref, "made") for claim in claims]) == [False, True]
    assert yard.done_many([(claim.handle, "made") for claim in claims]) == [False, False]
    assert yard.counts()["done"] == 1


def test_a_block_whose_check_fails_fails_its_task(yard: Yard, near: Yard) -> None:
    near.checks["tests"] = ["false"]
    task = yard.add("build", verify="tests", max_attempts=1)
    with pytest.raises(Conflict, match="did not pass"), taken(yard.claim()):
        pass
    task = yard.get(task.id)
    assert task.state == "failed"
    assert "did not pass" in str(task.error)


def test_a_claim_is_renewed_while_the_check_at_its_blocks_end_runs(yard: Yard, near: Yard) -> None:
    near.checks["tests"] = ["sleep", "2"]
    task = yard.add("build", verify="tests")
    over = threading.Event()

    def sweep() -> None:
        while not over.wait(0.1):
            yard.sweep()

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        with taken(yard.claim(lease=1)):
            pass
    finally:
        over.set()
        sweeper.join()
    assert yard.get(task.id).state == "done"


def test_a_block_notices_that_its_task_was_cancelled_and_pruned(yard: Yard) -> None:
    task = yard.add("build")
    with taken(yard.claim(lease=0.3)) as claim:
        yard.cancel(task.id)
        yard.prune(count=0, apply=True)
        wait_until(lambda: claim.lost)
        claim.is_over = True  # nothing is left to end
