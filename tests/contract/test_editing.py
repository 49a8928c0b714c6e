"""edit: a task that nobody holds is changed, and whoever claims it then gets the new one."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, Conflict, Invalid, NotFound, State
from taskyard.core import times
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard


def test_what_is_named_is_changed_and_the_rest_stays(yard: Yard) -> None:
    before = yard.add(
        "build", {"n": 1}, title="Docs", priority=3, assignee="ada", mission="M", max_attempts=7, lease=60, key="k"
    )
    task = yard.edit(before.id, title="Documents", data={"n": 2})
    assert (task.title, task.data) == ("Documents", {"n": 2})
    after = task.as_dict()
    changed = {name for name, value in before.as_dict().items() if after[name] != value}
    assert changed == {"title", "data", "fence"}
    assert task.fence > before.fence
    assert yard.get(before.id).as_dict() == after
    claim = taken(yard.claim())
    assert (claim.task.title, claim.task.data, claim.task.mission, claim.lease) == ("Documents", {"n": 2}, "M", 60)


def test_everything_that_can_be_edited(yard: Yard) -> None:
    id = yard.add("build").id
    task = yard.edit(id, title="T", data=[1], priority=0, assignee="bob", max_attempts=1)
    assert (task.title, task.data, task.priority, task.assignee, task.max_attempts) == ("T", [1], 0, "bob", 1)
    again = yard.edit(id, title=None, data=None, priority=None, assignee=None, max_attempts=None)
    assert (again.title, again.data, again.priority, again.assignee, again.max_attempts) == (None, None, 5, None, 3)


def test_a_later_edit_builds_on_the_one_before(yard: Yard) -> None:
    id = yard.add("build", "one", title="A").id
    yard.edit(id, title="B")
    yard.edit(id, data="two")
    yard.edit(id, priority=1)
    assert (yard.get(id).title, yard.get(id).data, yard.get(id).priority) == ("B", "two", 1)
    claim = taken(yard.claim())
    claim.release()
    yard.edit(id, title="C")
    assert (yard.get(id).data, taken(yard.claim()).task.title) == ("two", "C")


def test_an_edited_body_outlives_every_ending(yard: Yard) -> None:
    done, failed, cancelled = yard.add_many({"kind": "build"} for _ in range(3))
    for id in (done, failed, cancelled):
        yard.edit(id, data={"edited": True}, title="New")
    taken(yard.claim(done)).done()
    taken(yard.claim(failed)).fail("broken", retry=False)
    yard.cancel(cancelled)
    for id in (done, failed, cancelled):
        assert (yard.get(id).data, yard.get(id).title) == ({"edited": True}, "New")
    yard.retry(failed)
    assert taken(yard.claim(failed)).task.data == {"edited": True}


def test_priority_and_assignee_steer_who_gets_it_and_when(yard: Yard) -> None:
    first, second = yard.add("build").id, yard.add("build").id
    yard.edit(second, priority=0)
    assert taken(yard.claim()).task.id == second
    yard.edit(first, assignee="bob")
    assert yard.claim() is None
    assert yard.ready() == []
    assert [task.id for task in yard.ready(worker="bob")] == [first]
    yard.edit(first, assignee=None, priority=9)
    assert taken(yard.claim()).task.id == first


def test_another_process_sees_the_edit_too(yard: Yard, yard_url: str) -> None:
    ids = yard.add_many([{"kind": "build"}] * 3)
    with taskyard.open(yard_url, worker="bob") as other:
        assert taken(other.claim()).task.id == ids[0]  # it knows now what lies there
        yard.edit(ids[1], data="new", priority=0)
        yard.edit(ids[2], assignee="ada")
        claim = taken(other.claim())
        assert (claim.task.id, claim.task.data, claim.task.priority) == (ids[1], "new", 0)
        assert other.claim() is None


def test_a_task_is_put_off_and_made_due(yard: Yard) -> None:
    id = yard.add("build").id
    task = yard.edit(id, delay=1000)
    assert task.state is State.WAITING
    assert task.not_before is not None
    assert abs(times.moment(task.not_before, "it") / 1000 - time.time() - 1000) < 60
    assert yard.claim() is None
    later = yard.edit(id, not_before="2050-01-01T00:00:00Z")
    assert (later.state, later.not_before) == (State.WAITING, "2050-01-01T00:00:00.000Z")
    now = yard.edit(id, delay=0)
    assert (now.state, now.not_before) == (State.TODO, None)
    assert taken(yard.claim()).task.id == id


def test_a_task_that_was_put_off_a_little_comes_by_itself(yard: Yard) -> None:
    id = yard.add("build", delay=1000).id
    yard.edit(id, delay=0.05)
    assert taken(yard.claim(wait=10)).task.id == id


def test_a_moment_in_the_past_is_now(yard: Yard) -> None:
    id = yard.add("build", delay=1000).id
    yard.edit(id, not_before="2020-01-01T00:00:00Z")
    assert taken(yard.claim()).task.id == id


def test_a_waiting_task_keeps_its_time_while_other_things_are_edited(yard: Yard) -> None:
    before = yard.add("build", delay=1000)
    task = yard.edit(before.id, title="New", priority=0)
    assert (task.state, task.not_before, task.title) == (State.WAITING, before.not_before, "New")
    yard.retry(before.id)
    claim = taken(yard.claim())
    claim.fail("broken")
    waiting = yard.get(before.id)
    edited = yard.edit(before.id, title="Newer")
    assert (edited.state, edited.not_before, edited.attempts) == (State.WAITING, waiting.not_before, 1)
    assert edited.error == "broken"


def test_attempts_count_on_against_the_new_number(yard: Yard) -> None:
    id = yard.add("build", max_attempts=2).id
    taken(yard.claim()).fail("broken")
    task = yard.edit(id, max_attempts=3, delay=0)
    assert (task.state, task.attempts, task.max_attempts) == (State.TODO, 1, 3)
    taken(yard.claim()).fail("again")
    assert yard.get(id).state is State.WAITING
    yard.edit(id, max_attempts=1, delay=0)
    taken(yard.claim()).fail("once more")
    assert (yard.get(id).state, yard.get(id).attempts) == (State.FAILED, 3)


def test_what_is_held_or_has_ended_cannot_be_edited(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    with pytest.raises(Conflict, match="processing") as refused:
        yard.edit(id, title="New")
    assert refused.value.hint
    claim.done()
    with pytest.raises(Conflict, match="done"):
        yard.edit(id, title="New")
    other = yard.add("build").id
    yard.cancel(other)
    with pytest.raises(Conflict, match="cancelled"):
        yard.edit(other, title="New")
    assert yard.get(id).title is None


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"kind": "test"},
        {"mission": "x"},
        {"key": "x"},
        {"lease": 5},
        {"colour": "red"},
        {"priority": 10},
        {"title": ""},
        {"assignee": ""},
        {"max_attempts": 0},
        {"delay": -1},
        {"delay": 5, "not_before": "2050-01-01T00:00:00Z"},
        {"not_before": "tomorrow"},
        {"data": float("nan")},
        {"data": "x" * (1 << 20)},
    ],
)
def test_an_edit_that_can_never_be_right_changes_nothing(yard: Yard, wrong: dict[str, Any]) -> None:
    before = yard.add("build", "data", title="Docs")
    with pytest.raises(Invalid):
        yard.edit(before.id, **wrong)
    assert yard.get(before.id).as_dict() == before.as_dict()


def test_an_edit_takes_a_prefix_and_knows_no_unknown_id(yard: Yard) -> None:
    id = yard.add("build").id
    assert yard.edit(yard.shorten([id])[0], title="New").id == id
    with pytest.raises(NotFound):
        yard.edit("0" * 21, title="New")


def test_an_edit_shuts_out_whoever_gave_the_task_up(yard: Yard) -> None:
    id = yard.add("build").id
    old = taken(yard.claim())
    old.release()
    yard.edit(id, data="new")
    with pytest.raises(ClaimLost):
        old.done("late")
    assert yard.get(id).state is State.TODO


def test_data_that_the_caller_goes_on_to_change_is_not_the_tasks(yard: Yard) -> None:
    data = {"n": 1}
    id = yard.add("build", data).id
    data["n"] = 2
    assert yard.edit(id, title="New").data == {"n": 1}
    mine = {"n": 3}
    yard.edit(id, data=mine)
    mine["n"] = 4
    assert yard.get(id).data == {"n": 3}


def test_edits_and_claims_racing_leave_every_task_whole(yard: Yard, yard_url: str) -> None:
    """Schedule 2 of the design: a claim in the middle of an edit, and the task is in todo and in processing."""
    ids = yard.add_many([{"kind": "build", "data": 0}] * 40)
    stop = threading.Event()
    edited: dict[str, int] = {}

    def edit() -> None:
        with taskyard.open(yard_url, worker="editor") as own:
            for number in range(1, 1000):
                for id in ids:
                    if stop.is_set():
                        return
                    try:
                        own.edit(id, data=number, priority=number % 3)
                        edited[id] = number
                    except Conflict:
                        continue

    editor = threading.Thread(target=edit)
    editor.start()
    seen: dict[str, Any] = {}
    try:
        while len(seen) < len(ids):
            claim = taken(yard.claim(wait=10))
            assert claim.task.id not in seen
            seen[claim.task.id] = claim.task.data
            claim.done()
    finally:
        stop.set()
        editor.join()
    assert sorted(seen) == sorted(ids)
    assert (yard.counts()["done"], sum(yard.counts().values())) == (len(ids), len(ids))
    for id, data in seen.items():
        assert data == edited.get(id, 0) == yard.get(id).data
