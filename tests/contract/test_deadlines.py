"""expires: a task that no worker has started by its deadline is cancelled, and is never handed out after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Conflict, Invalid, State
from taskyard.core import times
from tests.conftest import crash, retried, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Task, Yard

PAST = "2001-01-01T00:00:00Z"
REASON = "expired: no worker had started it by 2001-01-01T00:00:00.000Z"


@pytest.fixture(autouse=True)
def _nobody_sweeps_unasked(yard: Yard) -> None:
    yard.tends = False


def expired(yard: Yard, id: str) -> Task:
    """The task, when a sweep has cancelled it."""

    def cancelled() -> Task | None:
        yard.sweep()
        task = yard.get(id)
        return task if task.state is State.CANCELLED else None

    return wait_until(cancelled)


def test_a_task_shows_its_deadline_and_its_timeout(yard: Yard) -> None:
    task = yard.add("build", expires="2100-01-01T00:00:00Z", timeout="2m")
    for shown in (task, yard.get(task.id), taken(yard.claim()).task):
        assert (shown.expires, shown.timeout) == ("2100-01-01T00:00:00.000Z", 120.0)
        assert (shown.as_dict()["expires"], shown.as_dict()["timeout"]) == (shown.expires, shown.timeout)
    assert "expires" not in yard.add("build").as_dict()


def test_a_deadline_can_be_a_duration_by_the_clock_of_the_store(yard: Yard) -> None:
    before = times.rfc3339(int(time.time() * 1000) + 3_599_000)
    task = yard.add("build", expires="1h")
    assert yard.get(task.id).expires == task.expires
    assert before < str(task.expires) < times.rfc3339(int(time.time() * 1000) + 3_601_000)


@pytest.mark.parametrize("delay", [None, 3600], ids=["todo", "waiting"])
def test_a_sweep_cancels_what_no_worker_has_started_in_time(yard: Yard, near: Yard, delay: float | None) -> None:
    near.tends = False  # else an add may sweep on the way
    late = yard.add("build", expires=PAST, delay=delay)
    stays = [yard.add("build", delay=delay).id, yard.add("build", delay=delay, expires="2h").id]
    assert yard.sweep().expired == 1
    assert (yard.get(late.id).state, yard.get(late.id).error) == (State.CANCELLED, REASON)
    assert [yard.get(id).state for id in stays] == [State.WAITING if delay else State.TODO] * 2
    [event] = [event for event in yard.events(task=late.id) if event["event"] == "cancelled"]
    assert (event["reason"], event["by"]) == (REASON, "ada")
    assert yard.sweep().expired == 0


def test_a_task_expires_when_its_time_has_come(yard: Yard) -> None:
    id = yard.add("build", expires=0.05).id
    assert str(expired(yard, id).error).startswith("expired: no worker had started it by ")


def test_a_claim_never_hands_out_an_expired_task(yard: Yard) -> None:
    late = [yard.add("build", expires=PAST).id for _ in range(3)]
    alive = yard.add("build", expires="2h").id
    assert taken(yard.claim()).task.id == alive
    assert yard.claim() is None
    assert {yard.get(id).state for id in late} == {State.CANCELLED}
    assert [event["task"] for event in yard.events() if event["event"] == "claimed"] == [alive]


def test_an_expired_task_cannot_be_claimed_by_its_id_either(yard: Yard) -> None:
    id = yard.add("build", expires=PAST).id
    with pytest.raises(Conflict, match=r"cancelled|expired"):
        yard.claim(id)
    assert yard.get(id).state is State.CANCELLED


def test_a_blocked_task_expires_too(yard: Yard) -> None:
    first = yard.add("build")
    last = yard.add("ship", after=first.id, expires=PAST)
    yard.sweep()
    assert yard.get(last.id).state is State.CANCELLED
    assert yard.get(first.id).state is State.TODO


@pytest.mark.parametrize(("policy", "state"), [("cancel", "cancelled"), ("run", "todo"), ("block", "blocked")])
def test_what_comes_after_an_expired_task_follows_its_policy(yard: Yard, policy: str, state: str) -> None:
    first = yard.add("build", expires=PAST)
    last = yard.add("ship", after=f"{first.id}:{policy}")
    yard.sweep()
    assert yard.get(last.id).state == state


def test_a_task_that_was_started_in_time_goes_on_after_its_deadline(yard: Yard) -> None:
    id = yard.add("build", expires=0.3, max_attempts=5).id
    claim = taken(yard.claim(id))
    deadline = str(claim.task.expires)
    wait_until(lambda: times.rfc3339(int(time.time() * 1000) - 20) > deadline)
    assert yard.sweep().expired == 0
    claim.done({"size": 1})
    assert yard.get(id).state is State.DONE


def test_a_crash_or_an_error_takes_the_deadline_away_because_the_task_was_started(yard: Yard) -> None:
    crashed, failed = (yard.add("build", expires=1.0, max_attempts=5).id for _ in range(2))
    crash(yard, crashed)
    taken(yard.claim(failed)).fail("no flour")
    deadline = str(yard.get(failed).expires)
    wait_until(lambda: times.rfc3339(int(time.time() * 1000) - 20) > deadline)
    yard.sweep()
    assert yard.get(crashed).state is State.TODO
    assert yard.get(failed).state is State.WAITING
    assert taken(yard.claim(crashed)).task.expires is not None


def test_a_release_keeps_the_deadline_because_the_task_was_not_started(yard: Yard) -> None:
    id = yard.add("build", expires=0.2).id
    taken(yard.claim(id)).release()
    assert expired(yard, id).attempts == 0


def test_a_retry_by_hand_puts_an_expired_task_back_without_its_deadline(yard: Yard) -> None:
    id = yard.add("build", expires=PAST).id
    yard.sweep()
    assert retried(yard, id).state is State.TODO
    assert yard.sweep().expired == 0
    assert taken(yard.claim()).task.id == id


def test_a_deadline_can_be_edited_and_taken_away(yard: Yard) -> None:
    moved, freed, added = yard.add("a", expires="1h"), yard.add("b", expires="1h"), yard.add("c")
    yard.edit(moved.id, expires="2100-01-01T00:00:00Z")
    yard.edit(freed.id, expires=None)
    yard.edit(added.id, expires=PAST, timeout=5)
    assert yard.get(moved.id).expires == "2100-01-01T00:00:00.000Z"
    assert (yard.get(freed.id).expires, yard.get(added.id).timeout) == (None, 5.0)
    assert yard.sweep().expired == 1
    assert yard.get(added.id).state is State.CANCELLED
    assert [yard.get(task.id).state for task in (moved, freed)] == [State.TODO] * 2


def test_an_edit_of_something_else_keeps_deadline_and_timeout(yard: Yard) -> None:
    id = yard.add("build", expires="2100-01-01T00:00:00Z", timeout=7).id
    yard.edit(id, priority=1)
    task = yard.get(id)
    assert (task.priority, task.expires, task.timeout) == (1, "2100-01-01T00:00:00.000Z", 7.0)


def test_a_waiter_is_woken_by_a_deadline_and_takes_what_is_left(yard: Yard) -> None:
    yard.add("build", expires=0.2, assignee="bea")
    last = yard.add("ship", after=f"{yard.add('build', assignee='bea', expires=0.2).id}:run")
    assert taken(yard.claim(wait=50)).task.id == last.id


def test_tasks_with_uses_checks_and_deadlines_keep_all_three(yard: Yard) -> None:
    id = yard.add("build", expires="2h", uses=["disk"], lease=60, max_attempts=7).id
    claim = taken(yard.claim())
    assert (claim.task.uses, claim.task.max_attempts, claim.lease) == (["disk"], 7, 60)
    other = yard.add("build", expires="2h", uses=["disk"])
    assert yard.claim() is None
    claim.release()
    assert {taken(yard.claim()).task.id, other.id} == {id, other.id}


@pytest.mark.parametrize(
    "options",
    [
        {"expires": "soon"}, {"expires": 0}, {"expires": -1}, {"expires": "2026-01-31T12:00:00"}, {"timeout": 0}, {"timeout": "x"},
        {"expires": 5, "delay": 10}, {"expires": "2030-01-01T00:00:00Z", "not_before": "2031-01-01T00:00:00Z"},
    ],
)  # fmt: skip
def test_what_is_no_deadline_or_timeout_is_refused(yard: Yard, options: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        yard.add("build", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("begins", [{"not_before": "2100-01-02T00:00:00Z"}, {"delay": "2d"}], ids=["moment", "delay"])
def test_an_edit_that_would_have_a_task_expire_before_it_is_due_is_refused(yard: Yard, begins: dict[str, Any]) -> None:
    task = yard.add("build", **begins)
    tomorrow = times.rfc3339(int(time.time() * 1000) + 86_400_000)
    with pytest.raises(Invalid, match="before it is due"):
        yard.edit(task.id, expires=tomorrow)
    assert yard.edit(task.id, expires="2100-01-03T00:00:00Z", title="Later").state is State.WAITING
    assert yard.edit(task.id, delay=0, expires=tomorrow).state is State.TODO


def test_a_task_whose_deadline_is_before_its_delay_ends_can_be_edited_and_done(yard: Yard) -> None:
    soon = times.rfc3339(int(time.time() * 1000) + 1_800_000)
    task = yard.add("build", {"n": 1}, delay=3600, expires=soon)
    assert yard.edit(task.id, priority=0).state is State.WAITING
    assert retried(yard, task.id).state is State.TODO
    assert yard.edit(task.id, title="Now").state is State.TODO
    claim = taken(yard.claim())
    assert (claim.task.id, claim.task.data, claim.task.priority) == (task.id, {"n": 1}, 0)
    claim.done()
    assert yard.prune(count=0, apply=True)["tasks"] == 1
