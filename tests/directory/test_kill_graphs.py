"""A process that dies while it ends, edits or adds tasks of a graph: after one sweep every need is applied, or none was."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.directory.kills import kills
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def killed_everywhere(
    tmp_path: Path,
    durability: str,
    ready: Callable[[taskyard.Yard], Any],
    verb: Callable[[taskyard.Yard, Any], Any],
    check: Callable[[taskyard.Yard, Any, bool], None],
) -> None:
    """Kill the verb at each of its system calls, sweep, and check what is there."""
    template = str(tmp_path / "template")
    with taskyard.init(template, worker="w", durability=durability) as yard:
        context = ready(yard)

    def work(url: str) -> Any:
        with taskyard.open(url, worker="w") as yard:
            return verb(yard, context) and None

    for _, url, died, _ in kills(template, tmp_path, work):
        with taskyard.open(url, worker="other") as yard:
            yard.sweep()
            check_places(url)
            check_log(yard)
            check_nothing_is_stuck(yard)
            check(yard, context, died)
        shutil.rmtree(url)


def needed_by_all(yard: taskyard.Yard) -> dict[str, str]:
    """A held task, and behind it one for each policy, and one behind the one that is cancelled."""
    first = yard.add("k").id
    ids = {policy: yard.add("k", after=f"{first}:{policy}").id for policy in ("block", "cancel", "run")}
    ids["behind"] = yard.add("k", after=f"{ids['cancel']}:cancel").id
    claim = yard.claim(first)
    assert claim is not None
    return {"first": first, "handle": claim.handle, **ids}


@pytest.mark.parametrize("durability", ["fast", "durable"])
@pytest.mark.parametrize("ending", ["fail", "cancel"])
def test_a_failure_is_applied_to_all_that_come_after_it(tmp_path: Path, durability: str, ending: str) -> None:
    def end(yard: taskyard.Yard, ids: dict[str, str]) -> None:
        if ending == "fail":
            yard.held(ids["handle"]).fail("broken", retry=False)
        else:
            yard.cancel(ids["first"])

    def check(yard: taskyard.Yard, ids: dict[str, str], died: bool) -> None:
        made = yard.get(ids["first"]).state in ("failed", "cancelled")
        assert made or died
        states = {name: str(yard.get(ids[name]).state) for name in ("block", "cancel", "run", "behind")}
        applied = {"block": "blocked", "cancel": "cancelled", "run": "todo", "behind": "cancelled"}
        assert states == (applied if made else dict.fromkeys(applied, "blocked"))

    killed_everywhere(tmp_path, durability, needed_by_all, end, check)


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_an_edit_of_after_is_made_or_not_made(tmp_path: Path, durability: str) -> None:
    def ready(yard: taskyard.Yard) -> list[str]:
        old, new = yard.add("k").id, yard.add("k").id
        return [old, new, yard.add("k", after=old).id]

    def check(yard: taskyard.Yard, ids: list[str], died: bool) -> None:
        old, new, last = ids
        after = yard.get(last).after
        assert after == [new] or (died and after == [old])
        finish(yard, after[0])
        assert yard.get(last).state == "todo"

    killed_everywhere(tmp_path, durability, ready, lambda y, ids: y.edit(ids[2], after=[ids[1]]), check)


def finish(yard: taskyard.Yard, id: str | None = None) -> None:
    claim = yard.claim(id)
    assert claim is not None
    claim.done()


GRAPH: list[dict[str, Any]] = [
    {"kind": "k", "ref": "top"},
    *({"kind": "k", "ref": f"side {n}", "after": "top"} for n in range(4)),
    {"kind": "k", "after": [f"side {n}" for n in range(4)]},
]


def work_off(yard: taskyard.Yard) -> int:
    """Do all that can be done; return how much that was."""
    done = 0
    while (claim := yard.claim()) is not None:
        claim.done()
        done += 1
    assert not any(files for _, _, files in os.walk(f"{yard.url}/sheets")), "a sheet goes with the last task that waits"
    return done


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_a_graph_is_there_as_a_whole_or_not_at_all(tmp_path: Path, durability: str) -> None:
    def check(yard: taskyard.Yard, _: None, died: bool) -> None:
        tasks = yard.find()
        assert len(tasks) == len(GRAPH) or (died and not tasks)
        if tasks:
            assert work_off(yard) == len(GRAPH)

    killed_everywhere(tmp_path, durability, lambda y: None, lambda y, _: y.add_many(GRAPH), check)


@pytest.mark.parametrize("durability", ["fast", "durable"])
@pytest.mark.parametrize("before", [0, 4])
def test_a_done_of_a_graph_frees_what_waits_for_it(tmp_path: Path, durability: str, before: int) -> None:
    def ready(yard: taskyard.Yard) -> str:
        yard.add_many(GRAPH)
        assert os.listdir(f"{yard.url}/sheets") != []
        for _ in range(before):
            finish(yard)
        claim = yard.claim()
        assert claim is not None
        return claim.handle

    def check(yard: taskyard.Yard, _: str, died: bool) -> None:
        held = yard.find(state="processing")
        assert not held or died
        for task in held:
            yard.bulk("release", [task.id], apply=True)
        work_off(yard)
        assert yard.counts()["done"] == len(GRAPH)

    killed_everywhere(tmp_path, durability, ready, lambda y, handle: y.held(handle).done(), check)


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_an_edit_takes_a_task_out_of_its_sheet_or_leaves_it_there(tmp_path: Path, durability: str) -> None:
    def ready(yard: taskyard.Yard) -> list[str]:
        return [*yard.add_many(GRAPH), yard.add("k").id]

    def check(yard: taskyard.Yard, ids: list[str], died: bool) -> None:
        edited = yard.get(ids[5]).after == [ids[1], ids[6]]
        assert edited or died
        assert work_off(yard) == len(ids)
        order = [event["task"] for event in yard.events(event="done")]
        assert all(order.index(other) < order.index(ids[5]) for other in yard.get(ids[5]).after)

    killed_everywhere(tmp_path, durability, ready, lambda y, ids: y.edit(ids[5], after=[ids[1], ids[6]]), check)


@pytest.mark.parametrize("durability", ["fast", pytest.param("durable", marks=pytest.mark.proof)])
def test_a_graph_under_keys_keeps_its_edges_if_its_end_is_looked_up_first(tmp_path: Path, durability: str) -> None:
    """Who finds a key puts its task in its place: those that it comes after must be in theirs by then."""
    keys = list("abcdef")  # so many that all keys are taken before the first task is in its place
    graph = [{"kind": "k", "key": key, "after": [{"key": keys[at - 1]}] if at else []} for at, key in enumerate(keys)]
    template = str(tmp_path / "template")
    taskyard.init(template, worker="w", durability=durability).close()

    def work(url: str) -> Any:
        with taskyard.open(url, worker="w") as yard:
            return yard.add_many(graph) and None

    for fatal, url, _, _ in kills(template, tmp_path, work):
        with taskyard.open(url, worker="other") as yard:
            yard.get_many(keys=keys[::-1])
            yard.add_many(graph)
            order = []
            while (claim := yard.claim()) is not None:
                order.append(claim.task.key)
                claim.done()
            assert order == keys, f"killed at call {fatal}"
            yard.sweep()
            check_places(url)
        shutil.rmtree(url)
