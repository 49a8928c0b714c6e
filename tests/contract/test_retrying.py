"""retry by hand: what has failed or was cancelled starts over, what waits is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard import ClaimLost, Conflict, NotFound, State
from tests.conftest import crash, retried, taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_a_failed_task_starts_over_with_its_counters_at_zero_but_not_its_fence(yard: Yard) -> None:
    id = yard.add("build", max_attempts=1).id
    crash(yard, id)
    claim = taken(yard.claim())
    claim.fail("broken")
    failed = yard.get(id)
    assert (failed.state, failed.attempts) == (State.FAILED, 2)
    task = retried(yard, id)
    assert (task.state, task.attempts, task.error, task.worker) == (State.TODO, 0, "broken", None)
    assert task.fence > failed.fence
    again = taken(yard.claim())
    assert again.fence > claim.fence
    assert [entry["outcome"] for entry in again.history] == ["crash", "error"]
    again.done()
    assert yard.get(id).error is None


def test_after_a_retry_all_attempts_are_there_again(yard: Yard) -> None:
    id = yard.add("build", max_attempts=2).id
    taken(yard.claim()).fail("broken", retry=False)
    yard.retry(id)
    taken(yard.claim()).fail("broken again")
    assert (yard.get(id).state, yard.get(id).attempts) == (State.WAITING, 1)


def test_crashes_start_over_too(yard: Yard) -> None:
    id = yard.add("build").id
    for _ in range(2):
        crash(yard, id)
    yard.retry(id)  # it waits: this only makes it due
    crash(yard, id)
    assert yard.get(id).state is State.FAILED
    yard.retry(id)
    crash(yard, id)
    assert (yard.get(id).state, yard.get(id).attempts) == (State.TODO, 1)


def test_the_claim_that_failed_the_task_stays_lost_after_a_retry(yard: Yard) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    old.fail("broken", retry=False)
    yard.retry(id)
    with pytest.raises(ClaimLost):
        old.done("after all")
    with pytest.raises(ClaimLost):
        old.heartbeat()
    holder = taken(yard.claim())
    with pytest.raises(ClaimLost):
        old.done("after all")
    holder.done("new")
    assert yard.get(id).result == "new"


def test_a_cancelled_task_can_be_retried(yard: Yard) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    cancelled = yard.cancel(id)
    task = retried(yard, id)
    assert task.state is State.TODO
    assert task.fence > cancelled.fence
    with pytest.raises(ClaimLost):
        old.done("late")
    taken(yard.claim()).done("new")
    assert yard.get(id).result == "new"


def test_a_waiting_task_is_due_and_keeps_its_counters(yard: Yard) -> None:
    delayed = yard.add("build", delay=1000).id
    assert retried(yard, delayed).state is State.TODO
    taken(yard.claim(delayed)).fail("broken")
    task = retried(yard, delayed)
    assert (task.state, task.attempts) == (State.TODO, 1)
    assert taken(yard.claim()).task.id == delayed


def test_what_is_in_todo_held_or_done_cannot_be_retried(yard: Yard) -> None:
    id = yard.add("build").id
    with pytest.raises(Conflict):
        yard.retry(id)
    claim = taken(yard.claim())
    with pytest.raises(Conflict):
        yard.retry(id)
    claim.heartbeat()
    claim.done()
    with pytest.raises(Conflict) as caught:
        yard.retry(id)
    assert caught.value.hint
    assert yard.get(id).state is State.DONE


def test_retrying_takes_a_prefix_and_knows_no_unknown_id(yard: Yard) -> None:
    id = yard.add("build").id
    yard.cancel(id)
    assert retried(yard, yard.shorten([id])[0]).id == id
    with pytest.raises(NotFound):
        yard.retry("0" * 21)


def test_the_fence_only_rises_whatever_happens(yard: Yard) -> None:
    id = yard.add("build").id
    seen = [yard.get(id).fence]

    def look() -> None:
        seen.append(yard.get(id).fence)

    for _ in range(2):
        claim = taken(yard.claim(id))
        look()
        claim.release()
        look()
        crash(yard, id)
        look()
        taken(yard.claim(id)).fail("broken")
        look()
        yard.cancel(id)
        look()
        yard.retry(id)
        look()
    assert seen == sorted(set(seen))
