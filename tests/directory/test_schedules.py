"""Schedules that break the obvious version, each driven to the exact call.

Those of keys and dropped files, dependencies, uses, the log and names have files of their own; the tenth, of a command that
outlives its worker, is played with real processes in tests/processes/test_workers.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.task import State
from taskyard.stores.directory import names
from taskyard.stores.directory.tasks import segments
from tests.conftest import sampled, taken, wait_until
from tests.directory.staging import AtCall, Step, Turns, drop, every_call, yard_on
from tests.directory.stories import check_log, check_places, path_of, places, state_of
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard


# 1. A healer that believes one listing


@sampled("key", [None, "key"], ["key"])
@pytest.mark.parametrize("start", ["todo", "processing"])
def test_1_a_cancel_and_a_retry_at_any_call_of_a_sweep_lose_nothing(
    fresh: Callable[[], str], start: str, key: str | None
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            id = other.add("build", {"n": 1}, key=key).id
            if start == "processing":
                taken(other.claim())

            def step() -> None:
                other.cancel(id)
                other.retry(id)

            cue = AtCall(number, step)
            with yard_on(url, cue) as janitor:
                janitor.sweep()
                janitor.sweep()
            if cue.taken:
                assert state_of(url, id) is State.TODO, f"at {cue.call}"
                assert other.get(id).data == {"n": 1}
                check_log(other)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 20


def test_1_of_two_names_of_one_file_the_lower_goes(url: str) -> None:
    with yard_on(url) as yard:
        id = yard.add("build").id
        todo = path_of(url, id)
        claim = taken(yard.claim())
        os.link(path_of(url, id), todo)  # as a power cut may bring it back
        assert len(places(url)[id]) == 2
        yard.sweep()
        assert state_of(url, id) is State.PROCESSING
        claim.done("well")
        assert yard.get(id).result == "well"


@pytest.mark.parametrize("place", ["tmp", "dead"])
@pytest.mark.parametrize("state", ["todo", "processing", "done"])
def test_1_a_new_tasks_first_name_that_came_back_brings_nothing_back(url: str, state: str, place: str) -> None:
    """A power cut may undo half of the rename that put a task in its place: both names are there then."""
    with yard_on(url) as yard:
        id = yard.add("build").id
        claim = None if state == "todo" else taken(yard.claim())
        if claim is not None and state == "done":
            claim.done()
        os.link(path_of(url, id), f"{url}/{place}/{id}.json")
        for _ in range(2):
            with yard_on(
                url, Step("before", "rename", f"{url}/todo/", lambda: pytest.fail("put in its place again"))
            ) as other:
                other.sweep()
            check_log(yard)
        assert state_of(url, id) == state
        assert not os.path.exists(f"{url}/{place}/{id}.json")


def test_1_two_names_of_two_files_are_not_for_a_healer_to_choose_between(url: str) -> None:
    with yard_on(url) as yard:
        id = yard.add("build", key="key").id  # nlink is 2 anyway, for the key's sake
        todo = path_of(url, id)
        taken(yard.claim())
        shutil.copy(path_of(url, id), todo)
        yard.sweep()
        assert len(places(url)[id]) == 2


def test_1_a_name_that_came_back_goes_whatever_its_task_does_meanwhile(fresh: Callable[[], str]) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            id = other.add("build").id
            todo = path_of(url, id)
            claim = taken(other.claim())
            os.link(path_of(url, id), todo)
            cue = AtCall(number, lambda: claim.done("well"))
            with yard_on(url, cue) as janitor:
                janitor.sweep()
            if cue.taken:
                other.sweep()
                assert state_of(url, id) is State.DONE, f"at {cue.call}"
                assert other.get(id).result == "well"
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


# 2. Edit against claim


def test_2_a_claim_between_the_new_body_and_the_rename_wins_and_the_edit_is_refused(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build", {"n": 1}).id
        claims: list[Claim] = []
        step = Step("before", "rename", f"/todo/5-build/{id[:4]}/{id}", lambda: claims.append(taken(other.claim())))
        with yard_on(url, step) as yard, pytest.raises(taskyard.Conflict):
            yard.edit(id, data={"n": 2})
        assert step.taken
        assert state_of(url, id) is State.PROCESSING
        assert (claims[0].task.data, other.get(id).data) == ({"n": 1}, {"n": 1})
        assert [entry for _, _, files in os.walk(f"{url}/edits") for entry in files] == []
        claims[0].done()
        check_log(other)


def test_2_a_claim_and_a_release_between_the_new_body_and_the_rename_and_the_edit_is_made_after_all(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build", {"n": 1}).id
        step = Step("before", "rename", f"/todo/5-build/{id[:4]}/{id}", lambda: taken(other.claim()).release())
        with yard_on(url, step) as yard:
            yard.edit(id, data={"n": 2})
        assert step.taken
        assert state_of(url, id) is State.TODO
        assert taken(other.claim()).task.data == {"n": 2}
        check_log(other)


def test_2_a_claim_at_any_call_of_an_edit_gets_the_task_as_it_was_or_as_it_is_then(fresh: Callable[[], str]) -> None:
    seen = set()

    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            id = other.add("build", {"n": 1}).id
            claims: list[Claim | None] = []
            cue = AtCall(number, lambda: claims.append(other.claim()))
            edited = True
            with yard_on(url, cue) as yard:
                try:
                    yard.edit(id, data={"n": 2}, priority=1)
                except taskyard.Conflict:
                    edited = False
            if cue.taken:
                claim = taken(claims[0])
                assert claim.task.data == {"n": 2 if edited else 1}, f"at {cue.call}"
                assert state_of(url, id) is State.PROCESSING
                claim.done()
                check_log(other)
                seen.add(edited)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10
    assert seen == {False, True}


def test_2_an_edit_that_was_made_though_its_answer_was_lost_keeps_its_body_whatever_became_of_its_task(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file server: the rename took place, the answer is ENOENT, and somebody has claimed the task since."""
    monkeypatch.setattr("taskyard.stores.directory.filesystem.safety.is_local", lambda path: False)
    with yard_on(url, worker="other") as other:
        id = other.add("build", {"n": 1}).id
        claims: list[Claim] = []

        def cue(name: str, paths: str, made: bool) -> None:
            if name == "rename" and made and f"/{id}.1.e0.c0.b" in paths and not claims:
                claims.append(taken(yard_on(url, worker="bob").claim()))
                raise FileNotFoundError(2, "No such file or directory")

        edited = yard_on(url, cue).edit(id, data={"n": 2})
        assert edited.data == {"n": 2}
        assert claims[0].task.data == {"n": 2}
        assert other.get(id).data == {"n": 2}


# 7. A lookup races a move


@pytest.mark.parametrize("evades", [1, 2, 3])
def test_7_a_task_that_is_always_where_the_lookup_is_not_is_found_all_the_same(url: str, evades: int) -> None:
    """It comes back to todo right after todo was listed, and is claimed again before the next pass."""
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        claims = [taken(other.claim())]
        todo = f"{url}/todo/5-build/{id[:4]}"
        slipped = 0

        def cue(name: str, paths: str, made: bool) -> None:
            nonlocal slipped
            if name != "listdir":
                return
            if paths == todo and made and claims and slipped < evades:
                claims.pop().release()
                slipped += 1
            elif paths == f"{url}/done/{id[:4]}" and not made and not claims:
                claims.append(taken(other.claim()))

        with yard_on(url, cue) as yard:
            assert yard._store.stand(id).id == id
        assert slipped == evades


@pytest.mark.parametrize("verb", ["get", "cancel", "claim", "find"])
def test_7_a_lookup_finds_a_task_whenever_it_is_moved(fresh: Callable[[], str], verb: str) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            id = other.add("build").id
            held = taken(other.claim())

            def step() -> None:
                with contextlib.suppress(taskyard.ClaimLost):  # cancelled already
                    held.release()

            cue = AtCall(number, step)
            with yard_on(url, cue) as yard:
                if verb == "find":
                    assert [task.id for task in yard.find()] == [id], f"at {cue.call}"
                elif verb == "claim":
                    with contextlib.suppress(taskyard.Conflict):  # it was in somebody's hands when it was looked at
                        assert taken(yard.claim(id)).task.id == id
                else:
                    assert getattr(yard, verb)(id).id == id, f"at {cue.call}"
            check_places(url)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 5


# 12. Old segments, and lanes of equal priority


def test_12_a_release_into_a_segment_that_heads_have_passed_is_found(url: str) -> None:
    """By its own process, by another that has cached a later segment, and before it says that nothing is ready."""
    with yard_on(url) as yard, yard_on(url, worker="other") as other:
        ids = yard.add_many([{"kind": "build"}] * (segments.SIZE + 3))
        assert len({id[:4] for id in ids}) == 2
        first = taken(yard.claim())
        assert first.task.id == ids[0]
        for id in ids[1 : segments.SIZE]:
            assert taken(yard.claim()).task.id == id
        assert taken(other.claim()).task.id == ids[segments.SIZE], "heads have passed the first segment now"
        first.release()
        assert taken(yard.claim()).task.id == ids[0], "older than all that is left"
        yard.retry(yard.cancel(ids[1]).id)
        found = []
        while (claim := other.claim()) is not None:
            found.append(claim.task.id)
        assert sorted(found) == sorted([ids[1], *ids[segments.SIZE + 1 :]])


def test_12_of_twenty_lanes_of_equal_priority_none_starves(url: str) -> None:
    """Added in turns: whoever drains them takes about the oldest each time, wherever it begins."""
    lanes, each = 20, 15
    with yard_on(url) as yard:
        ids = yard.add_many({"kind": f"kind{number % lanes}"} for number in range(lanes * each))
    place = {id: number for number, id in enumerate(ids)}
    with yard_on(url, worker="other") as other:
        order = []
        while (claim := other.claim()) is not None:
            order.append(place[claim.task.id])
    assert sorted(order) == list(range(lanes * each))
    late = max(position - number for position, number in enumerate(order))
    assert late <= 2 * lanes, f"a task waited for {late} younger ones"


def test_12_of_twenty_lanes_none_starves_where_every_claim_is_a_new_process(url: str) -> None:
    lanes, each = 20, 8
    with yard_on(url) as yard:
        yard.add_many({"kind": f"kind{number % lanes}"} for number in range(lanes * each))
        waiting = Counter({f"kind{number}": 0 for number in range(lanes)})
    for _ in range(lanes * each):
        with yard_on(url, worker="other") as other:
            kind = taken(other.claim()).task.kind
        for lane in waiting:
            waiting[lane] = 0 if lane == kind else waiting[lane] + 1
        assert max(waiting.values()) < 7 * lanes, f"starving: {waiting}"


# 13. A second done with another result


def test_13_a_second_done_with_another_result_changes_nothing(url: str) -> None:
    with yard_on(url) as yard:
        id = yard.add("build").id
        handle = taken(yard.claim()).handle
        yard.held(handle).done("first")
        with pytest.raises(taskyard.Conflict):
            yard.held(handle).done("second")
        report = yard.report(id)
        assert report.task.result == "first"
        assert [entry["result"] for entry in report.stale_results] == ["second"]


@sampled("one,two", [("A", "B"), (None, "B"), ("A", None)], [("A", "B")])
def test_13_what_two_processes_publish_under_one_handle_never_changes(
    fresh: Callable[[], str], one: str | None, two: str | None
) -> None:
    """One makes so many calls, then the other so many, then the first ends, then the other: every such schedule."""
    alone = two_dones(fresh(), one, two, 10_000, 0)
    assert alone[0] >= 3
    for first in range(alone[0] + 1):
        for second in range(alone[0] + 1):
            two_dones(fresh(), one, two, first, second)


def two_dones(url: str, one: str | None, two: str | None, first: int, second: int) -> list[int]:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        handle = taken(other.claim()).handle
        seen: list[Any] = []

        def watch() -> None:
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(f"{url}/done/{id[:4]}"):
                    token = names.Token.parse(name)
                    assert token is not None
                    record = Path(url, "results", id[:4], f"{handle}.done.json")
                    seen.append(json.loads(record.read_text())["result"] if token.has_result else None)

        turns = Turns(iter([0] * (first + 1) + [1] * (second + 1) + [0]), watch)
        yards = [yard_on(url, turns.cue(actor), worker="ada") for actor in (0, 1)]
        told: dict[str | None, bool] = {}

        def end(yard: Yard, result: str | None) -> None:
            try:
                yard.held(handle).done(result)
                told[result] = True
            except taskyard.Conflict:
                told[result] = False

        turns.play(lambda: end(yards[0], one), lambda: end(yards[1], two))
        for yard in yards:
            yard.close()
        report = other.report(id)
        where = f"after {first} and {second} calls"
        assert report.task.state == "done", where
        assert len({json.dumps(result) for result in seen}) == 1, f"{seen} {where}"
        assert [report.task.result] == seen[-1:], where
        assert told == {result: result == report.task.result for result in (one, two)}, where
        losers = [result for result in (one, two) if result not in (None, report.task.result)]
        assert [entry["result"] for entry in report.stale_results if entry["result"] is not None] == losers, where
        check_log(other)
    shutil.rmtree(url)
    return turns.calls


# Beyond the list: found on the way


def test_two_bad_files_of_one_name_at_once_keep_each_its_own_reason(url: str) -> None:
    tools.settle(url, settle=0)
    drop(url, "a.json", "[1]")

    def another() -> None:
        drop(url, "a.json", {"kind": "no good"})
        other.sweep()

    with yard_on(url, worker="other") as other:
        step = Step("before", "rename", "/failed/a.reason", another)
        with yard_on(url, step) as yard:
            wait_until(lambda: (yard.sweep(), step.taken)[1])
        reasons = {
            Path(url, "failed", f"{entry['name']}.json").read_text(): entry["reason"] for entry in other.set_aside()
        }
        assert len(reasons) == 2
        assert "list" in str(reasons["[1]"])
        assert "kind" in str(reasons['{"kind": "no good"}'])


def test_a_task_with_a_key_whose_file_has_become_garbage_can_be_pruned_and_its_key_used_again(url: str) -> None:
    with yard_on(url) as yard:
        id = yard.add("build", 1, key="key").id
        Path(path_of(url, id)).write_text("garbage")
        assert yard.claim() is None
        assert yard.get(id).state == "failed"
        assert yard.prune(count=0, apply=True)["tasks"] == 1
        yard.sweep()
        assert os.listdir(f"{url}/dead") == []


@pytest.mark.parametrize("name", [".nfs0000000000a1b2c3", "0000"])
def test_what_is_no_file_of_the_log_is_neither_archived_nor_in_the_way_of_retention(url: str, name: str) -> None:
    tools.settle(url, retention_age=1)
    if name == "0000":
        Path(url, "events", name).mkdir()
    else:
        Path(url, "events", name).write_text("somebody's")
    with yard_on(url) as yard:
        yard.sweep()
    assert os.path.exists(f"{url}/events/{name}")
