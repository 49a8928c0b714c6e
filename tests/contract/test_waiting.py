"""wait: until all have ended, or the time is over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Invalid, NotFound, State, TimedOut
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_waiting_for_nothing_is_over_at_once(yard: Yard) -> None:
    assert yard.wait() == []


def test_what_has_ended_already_is_given_back_at_once(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).done(7)
    [task] = yard.wait(id, timeout=0)
    assert (task.id, task.state, task.result) == (id, State.DONE, 7)


def test_a_wait_ends_when_all_have_ended_however_they_end(yard: Yard, yard_url: str) -> None:
    made = yard.add_many({"kind": "build", "data": n} for n in range(3))

    def work() -> None:
        with taskyard.open(yard_url) as other:
            taken(other.claim(made[0])).done("fine")
            taken(other.claim(made[1])).fail("broken", retry=False)
            other.cancel(made[2])

    thread = threading.Thread(target=work)
    thread.start()
    tasks = yard.wait(*reversed(made), timeout=10)
    thread.join()
    assert [(task.id, task.state) for task in tasks] == [
        (made[2], State.CANCELLED),
        (made[1], State.FAILED),
        (made[0], State.DONE),
    ]
    assert tasks[2].result == "fine"


def test_a_wait_that_takes_too_long_times_out(yard: Yard) -> None:
    ended, going_on = yard.add_many([{"kind": "build"}, {"kind": "build"}])
    taken(yard.claim(ended)).done()
    with pytest.raises(TimedOut) as caught:
        yard.wait(ended, going_on, timeout=0.05)
    assert going_on in caught.value.message
    with pytest.raises(TimedOut):
        yard.wait(going_on, timeout=0)


def test_a_task_in_backoff_has_not_ended(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).fail("broken")
    with pytest.raises(TimedOut):
        yard.wait(id, timeout=0.02)


def test_a_wait_takes_beginnings_and_repeated_ids(yard: Yard) -> None:
    id = yard.add("build").id
    taken(yard.claim()).done()
    assert [task.id for task in yard.wait(id[:12], id, id, timeout=1)] == [id] * 3


def test_a_wait_for_an_unknown_task_is_not_found(yard: Yard) -> None:
    with pytest.raises(NotFound):
        yard.wait("0" * 21, timeout=1)


def test_nobody_can_wait_for_a_negative_time(yard: Yard) -> None:
    with pytest.raises(Invalid):
        yard.wait(timeout=-1)
