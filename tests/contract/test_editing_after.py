"""edit of what a task comes after: the task is blocked, or let go, as if it had been added so; no cycle can be made."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Invalid, NotFound
from taskyard.core.needs import on_failure
from tests.conftest import retried, sized, taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard


def finish(yard: Yard, id: str) -> None:
    taken(yard.claim(id)).done()


def events(yard: Yard, id: str) -> list[tuple[str, int]]:
    return [(event["event"], event["fence"]) for event in yard.events(task=id)]


def test_a_task_in_todo_is_blocked_by_an_edit_and_freed_as_ever(yard: Yard) -> None:
    first, last = yard.add("build").id, yard.add("test").id
    task = yard.edit(last, after=[first])
    assert (task.state, task.after, task.fence) == ("blocked", [first], 1)
    assert yard.claim(kinds="test") is None
    finish(yard, first)
    assert (yard.get(last).state, yard.get(last).after) == ("todo", [first])
    assert events(yard, last) == [("added", 0), ("edited", 1), ("blocked", 1), ("unblocked", 2)]


def test_a_blocked_task_is_let_go_by_an_edit(yard: Yard) -> None:
    first = yard.add("build").id
    ids = yard.add_many([{"kind": "test", "after": first}] * 2)
    assert (yard.edit(ids[0], after=None).state, yard.get(ids[0]).after) == ("todo", [])
    assert (yard.edit(ids[1], after=[]).state, yard.get(ids[1]).after) == ("todo", [])
    assert events(yard, ids[0]) == [("added", 0), ("blocked", 0), ("edited", 1), ("unblocked", 1)]
    finish(yard, first)
    assert {taken(yard.claim()).task.id for _ in ids} == set(ids)


def test_what_is_not_due_waits_before_and_after(yard: Yard) -> None:
    first = yard.add("build").id
    waits = yard.add("test", delay=3600).id
    due = yard.get(waits).not_before
    assert yard.edit(waits, after=first).state == "blocked"
    assert yard.edit(waits, after=None).state == "waiting"
    assert yard.get(waits).not_before == due
    assert yard.edit(waits, after=first, delay=7200).state == "blocked"
    finish(yard, first)
    assert yard.get(waits).state == "waiting"
    assert yard.edit(waits, after=None, delay=0).state == "todo"
    blocked = yard.add("test", after=yard.add("build").id).id
    assert yard.edit(blocked, after=None, delay=3600).state == "waiting"


def test_what_is_done_already_blocks_nothing(yard: Yard) -> None:
    done, failed = yard.add("build").id, yard.add("build").id
    finish(yard, done)
    taken(yard.claim(failed)).fail("broken", retry=False)
    last = yard.add("test").id
    assert yard.edit(last, after=[done, f"{failed}:run"]).state == "todo"
    assert yard.get(last).after == [done, failed]
    blocked = yard.add("test", after=yard.add("build").id).id
    assert yard.edit(blocked, after=done).state == "todo"


def test_an_edit_behind_what_failed_follows_the_rule_at_once(yard: Yard) -> None:
    failed = yard.add("build").id
    taken(yard.claim(failed)).fail("broken", retry=False)
    blocks, cancels = yard.add("test").id, yard.add("test").id
    behind = yard.add("ship", after=f"{cancels}:cancel").id
    assert yard.edit(blocks, after=failed).state == "blocked"
    assert yard.edit(cancels, after=f"{failed}:cancel").state == "cancelled"
    assert yard.get(behind).state == "cancelled"


def test_an_edit_replaces_the_whole_list_and_its_policies(yard: Yard) -> None:
    one, two, three = yard.add_many([{"kind": "build"}] * 3)
    last = yard.add("test", after=[one, f"{two}:cancel"]).id
    task = yard.edit(last, after=[f"{two}:run", three])
    assert ([str(id) for id in task.after], [on_failure(id) for id in task.after]) == ([two, three], ["run", "block"])
    finish(yard, one)
    assert yard.get(last).state == "blocked"
    yard.cancel(two)
    assert yard.get(last).state == "blocked"
    finish(yard, three)
    assert yard.get(last).state == "todo"


def test_an_edit_of_something_else_leaves_the_order_alone(yard: Yard) -> None:
    first = yard.add("build").id
    last = yard.add("test", after=f"{first}:cancel").id
    task = yard.edit(last, title="New")
    assert (task.state, [on_failure(id) for id in task.after]) == ("blocked", ["cancel"])
    yard.cancel(first)
    assert yard.get(last).state == "cancelled"


def test_names_are_looked_up_as_for_add(yard: Yard) -> None:
    first = yard.add("build", key="build 1").id
    last = yard.add("test").id
    assert yard.edit(last, after=yard.shorten([first])).after == [first]
    assert yard.edit(last, after="build 1:run").after == [first]
    assert yard.edit(last, after=[first, first.upper(), "build 1"]).after == [first]
    for unknown in ("z" * 21, "0-zzzz", "nobody", {"key": "nobody"}, {"ref": "build 1"}):
        with pytest.raises(NotFound):
            yard.edit(last, after=unknown)
    with pytest.raises(Invalid, match="twice"):
        yard.edit(last, after=[first, f"{first}:run"])
    assert yard.get(last).after == [first]


def test_only_what_is_neither_held_nor_ended_can_be_edited(yard: Yard) -> None:
    first, other = yard.add("build").id, yard.add("test").id
    claim = taken(yard.claim(other))
    with pytest.raises(Conflict):
        yard.edit(other, after=first)
    claim.fail("broken")
    assert yard.get(other).state == "waiting"
    assert yard.edit(other, after=first).state == "blocked"
    yard.cancel(other)
    with pytest.raises(Conflict):
        yard.edit(other, after=None)
    assert retried(yard, other).state == "blocked"
    assert yard.edit(other, after=None).state in ("todo", "waiting")
    for ended in (first,):
        finish(yard, ended)
        with pytest.raises(Conflict):
            yard.edit(ended, after=other)


def test_a_cycle_is_refused_with_its_path_and_changes_nothing(yard: Yard) -> None:
    ids = yard.add_many(
        [
            {"kind": "a", "ref": "a"},
            {"kind": "b", "ref": "b", "after": "a"},
            {"kind": "c", "ref": "c", "after": "b"},
            {"kind": "d", "after": "c"},
        ]
    )
    a, b, c, d = yard.shorten(ids)
    for after, path in (
        (ids[0], f"{a} cannot come after itself"),
        (ids[1], f"{a} after {b} after {a}"),
        (ids[3], f"{a} after {d} after {c} after {b} after {a}"),
    ):
        with pytest.raises(Invalid, match=path):
            yard.edit(ids[0], after=after)
    assert (yard.get(ids[0]).state, yard.get(ids[0]).after, yard.get(ids[0]).fence) == ("todo", [], 0)
    yard.edit(ids[1], after=None)
    yard.edit(ids[0], after=ids[3])  # the other way round now
    order = []
    while (claim := yard.claim()) is not None:
        order.append(claim.task.kind)
        claim.done()
    assert order == ["b", "c", "d", "a"]


def test_a_task_may_come_after_a_younger_one(yard: Yard) -> None:
    old = yard.add("test").id
    young = yard.add("build").id
    yard.edit(old, after=young)
    yard.cancel(young)
    yard.cancel(old)
    wait_until(lambda: yard.prune(age=0, apply=True) and sum(yard.counts().values()) == 0)


@sized("rounds", 10, 100)
def test_two_edits_at_once_never_leave_a_cycle(yard: Yard, yard_url: str, rounds: int) -> None:
    with taskyard.open(yard_url, worker="bob") as other:
        for _ in range(rounds):
            one, two = yard.add_many([{"kind": "step"}] * 2)
            start = threading.Barrier(2)

            def cross(own: Yard, id: str, after: str, start: threading.Barrier = start) -> None:
                start.wait()
                try:
                    own.edit(id, after=after)
                except (Conflict, Invalid):
                    pass

            threads = [
                threading.Thread(target=cross, args=(yard, one, two)),
                threading.Thread(target=cross, args=(other, two, one)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not (yard.get(one).after and yard.get(two).after)
            while (claim := yard.claim()) is not None:
                claim.done()
            assert (yard.get(one).state, yard.get(two).state) == ("done", "done")


@sized("rounds", 10, 100)
def test_what_ends_while_another_task_is_put_behind_it_frees_it(yard: Yard, yard_url: str, rounds: int) -> None:
    with taskyard.open(yard_url, worker="bob") as other:
        for _ in range(rounds):
            first, last = yard.add("build").id, yard.add("test").id
            held = taken(yard.claim(first))
            start = threading.Barrier(2)

            def put_behind(first: str = first, last: str = last, start: threading.Barrier = start) -> None:
                start.wait()
                other.edit(last, after=first)

            editor = threading.Thread(target=put_behind)
            editor.start()
            start.wait()
            held.done()
            editor.join()
            yard.sweep()
            assert (yard.get(last).state, yard.get(last).after) == ("todo", [first])
            finish(yard, last)


def test_an_edit_that_crosses_another_one_is_never_made(
    yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = yard.add_many([{"kind": "step"}] * 2)
    shift = yard._store.shift
    with taskyard.open(yard_url, worker="bob") as other:

        def shift_second(*args: Any) -> list[bool]:
            monkeypatch.setattr(yard._store, "shift", shift)
            other.edit(two, after=one)  # after the first editor has looked for cycles
            return shift(*args)

        monkeypatch.setattr(yard._store, "shift", shift_second)
        with pytest.raises(Invalid, match="come after one another"):
            yard.edit(one, after=two)
    assert (yard.get(one).after, yard.get(two).after) == ([], [one])
    assert [event["task"] for event in yard.events(event="edited")] == [two]


def test_a_need_that_is_edited_back_to_blocking_is_shown_so(yard: Yard) -> None:
    first = yard.add("build").id
    second = yard.add("test", after=f"{first}:run").id
    yard.edit(second, after=first)
    assert yard.get(second).as_dict()["after"] == [first]


@pytest.mark.parametrize("name", ["id", "short"])
def test_what_the_failure_of_another_task_means_must_be_known(yard: Yard, name: str) -> None:
    first, second = yard.add("build"), yard.add("build")
    after = [f"{getattr(first, name)}:bogus"]
    with pytest.raises(Invalid, match="'bogus' is nothing that can follow task") as refused:
        yard.edit(second.id, after=after)
    assert ":block, :cancel, :run" in (refused.value.hint or "")
    with pytest.raises(Invalid, match="'bogus' is nothing that can follow task"):
        yard.add("build", after=after)
    assert yard.get(second.id).after == []
