"""The third and the fourth schedule that break the obvious version: keys, and files that are dropped with one taskId."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory.recovery import crashes
from tests.conftest import taken, wait_until
from tests.directory.staging import AtCall, Step, dead, die, drop, every_call, yard_on
from tests.directory.stories import check_log, check_places, places, told

if TYPE_CHECKING:
    from collections.abc import Callable


# 3. Keys


def adds_and_dies(url: str, when: str, call: str, part: str) -> None:
    """An adder with a key that is killed at this call."""
    dead(lambda: yard_on(url, Step(when, call, part, die)).add("build", 1, key="key"))


@pytest.mark.parametrize("healer", ["sweep", "add"])
def test_3_a_key_whose_adder_died_after_the_link_has_its_task(url: str, healer: str) -> None:
    adds_and_dies(url, "after", "link", "/keys/")
    assert places(url) == {}
    with yard_on(url, worker="other") as other:
        if healer == "sweep":
            other.sweep()
        again = other.add("build", 1, key="key")
        assert not again.created
        assert list(check_places(url)) == [again.id]
        other.sweep()
        check_log(other)
        assert os.listdir(f"{url}/tmp") in ([], ["clock"])


@pytest.mark.parametrize("healer", ["sweep", "add"])
def test_3_a_key_that_was_being_looked_at_in_dead_has_its_task_all_the_same(url: str, healer: str) -> None:
    """Its adder was killed after the link, and then one who prunes, who had put the key back and not removed its other name."""
    adds_and_dies(url, "after", "link", "/keys/")
    [key] = Path(url, "keys").glob("*/*")
    os.link(key, f"{url}/dead/{key.name}.0123abcd")
    with yard_on(url, worker="other") as other:
        if healer == "sweep":
            other.sweep()
            assert len(check_places(url)) == 1
        again = other.add("build", 1, key="key")
        assert not again.created
        assert list(check_places(url)) == [again.id]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("call", "part"), [("create", "/tmp/"), ("link", "/keys/"), ("rename", "/todo/5-build/"), ("write", "")]
)
def test_3_a_key_is_never_without_its_task_wherever_its_adder_died(url: str, when: str, call: str, part: str) -> None:  # fmt: skip
    adds_and_dies(url, when, call, part)
    with yard_on(url, worker="other") as other:
        other.sweep()
        taken_keys = [entry for _, _, files in os.walk(f"{url}/keys") for entry in files]
        assert len(taken_keys) == len(check_places(url))
        other.add("build", 1, key="key")
        assert len(check_places(url)) == 1
        check_log(other)


@pytest.mark.parametrize("durability", ["fast", "durable"])
def test_3_two_who_add_with_one_key_add_one_task_at_any_interleaving(fresh: Callable[[], str], durability: str) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            ids = []
            cue = AtCall(number, lambda: ids.append(other.add("build", 1, key="key").id))
            with yard_on(url, cue) as yard:
                ids.append(yard.add("build", 1, key="key").id)
            if cue.taken:
                assert ids == list(check_places(url)) * 2, f"at {cue.call}"
                other.sweep()
                assert list(check_places(url)) == ids[:1]
                assert os.listdir(f"{url}/tmp") in ([], ["clock"])
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10


def test_3_a_task_that_its_adders_rival_helped_in_is_added_once_in_the_log(url: str) -> None:
    with yard_on(url, worker="other") as other:
        step = Step("after", "link", "/keys/", lambda: other.add("build", 1, key="key"))
        with yard_on(url, step) as yard:
            id = yard.add("build", 1, key="key").id
        assert step.taken
        assert told(other, id) == [("added", 0)]


def test_3_a_janitor_that_steals_a_slow_adders_file_loses_nothing(
    fresh: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without patience: every file in tmp/ counts as left behind at once."""
    monkeypatch.setattr(crashes, "PATIENCE", -1)
    monkeypatch.setattr(crashes, "_LAST_LOOK", -1)
    outcomes = set()

    def play(number: int) -> AtCall:
        url = fresh()
        with yard_on(url, worker="other") as other:
            cue = AtCall(number, other.sweep)
            acknowledged = None
            with yard_on(url, cue) as yard, contextlib.suppress(taskyard.Unavailable):
                acknowledged = yard.add("build", 1, key="key").id
            if cue.taken:
                other.sweep()
                found = check_places(url)
                assert acknowledged is None or list(found) == [acknowledged], f"at {cue.call}"
                id = other.add("build", 1, key="key").id
                assert list(check_places(url)) == [id], f"at {cue.call}"
                other.sweep()
                assert os.listdir(f"{url}/tmp") in ([], ["clock"])
                assert os.listdir(f"{url}/dead") == []
                outcomes.add(acknowledged is not None)
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 10
    assert outcomes == {False, True}, "before the link the add is refused, after it the task is there"


@pytest.mark.parametrize("part", ["/dead/", "/tmp/"])
def test_3_a_janitor_that_dies_with_a_stolen_file_in_its_hands_does_not_block_the_key(url: str, part: str) -> None:
    """Nobody sweeps: the adder must see to it itself, or say that it cannot, and not wait for ever."""
    adds_and_dies(url, "after", "link", "/keys/")
    [written] = [name for name in os.listdir(f"{url}/tmp") if name.endswith(".json")]
    if part == "/dead/":
        os.rename(f"{url}/tmp/{written}", f"{url}/dead/{written}")
    added = in_time(lambda: yard_on(url).add("build", 1, key="key"))
    assert added, "an add with this key never comes back"
    assert len(check_places(url)) == 1


def test_3_a_pruner_that_dies_before_it_lets_go_of_the_key_does_not_block_it(url: str) -> None:
    with yard_on(url) as yard:
        yard.add("build", 1, key="key")
        taken(yard.claim()).done()
    dead(lambda: yard_on(url, Step("after", "rename", "/dead/", die)).prune(count=0, apply=True))
    assert in_time(lambda: yard_on(url).add("build", 1, key="key")), "an add with this key never comes back"
    with yard_on(url) as yard:
        yard.sweep()
        assert len(check_places(url)) == 1


def in_time(work: Callable[[], object], seconds: float = 5.0) -> bool:
    """Whether a forked child gets this done in so many seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


# 4. Two files, one taskId


@pytest.mark.parametrize(
    "second", [{"taskId": "t1", "n": 1}, {"taskId": "t1", "n": 2}, {"taskId": "t1", "kind": "other"}]
)
def test_4_of_two_dropped_files_with_one_task_id_one_is_the_task_and_the_other_is_set_aside(
    url: str, second: dict[str, Any]
) -> None:
    with yard_on(url) as yard:
        drop(url, "first.json", {"taskId": "t1", "n": 1})
        drop(url, "second.json", second)
        yard.sweep()
        [id] = check_places(url)
        task = yard.get(id)
        [aside] = yard.set_aside()
        assert task.key == "t1"
        assert id != "t1", "a task's id is its yard's to choose"
        assert aside["reason"] is not None
        assert "t1" in aside["reason"]
        assert task.short in aside["reason"]
        kept = json.loads(Path(url, "failed", f"{aside['name']}.json").read_text())
        assert sorted([json.dumps(kept), json.dumps(task.data)]) == sorted(
            map(json.dumps, [{"taskId": "t1", "n": 1}, second])
        )
        assert os.listdir(f"{url}/tmp") in ([], ["clock"])


def test_4_two_sweepers_make_one_task_of_two_files_with_one_task_id_at_any_interleaving(
    fresh: Callable[[], str],
) -> None:
    def play(number: int) -> AtCall:
        url = fresh()
        drop(url, "first.json", {"taskId": "t1", "n": 1})
        drop(url, "second.json", {"taskId": "t1", "n": 2})
        with yard_on(url, worker="other") as other:
            cue = AtCall(number, other.sweep)
            with yard_on(url, cue) as yard:
                yard.sweep()
            if cue.taken:
                assert len(check_places(url)) == 1, f"at {cue.call}"
                assert len(other.set_aside()) == 1, f"at {cue.call}"
                assert all(entry["reason"] for entry in other.set_aside())
                assert os.listdir(f"{url}/tmp") in ([], ["clock"])
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 20


def test_4_a_file_that_is_replaced_while_it_is_taken_in_is_not_lost(fresh: Callable[[], str]) -> None:
    """Moved over the first by its owner, between the look at the first and the rename out of the box."""

    def play(number: int) -> AtCall:
        url = fresh()
        drop(url, "a.json", {"taskId": "one"})

        def replace() -> None:
            new = drop(url, ".a.new", {"taskId": "two"})
            os.rename(new, f"{url}/todo/a.json")

        cue = AtCall(number, replace)
        with yard_on(url, cue) as yard:
            yard.sweep()
        with yard_on(url) as yard:
            yard.sweep()  # what came after the last look is found by the next
            kept = {yard.get(id).key for id in check_places(url)}
        if cue.taken:
            assert "two" in kept, f"lost by a replacement before {cue.call}"
        shutil.rmtree(url)
        return cue

    assert every_call(play) > 20


@pytest.mark.parametrize("dead", [False, True])
def test_the_key_of_a_pruned_task_is_free_where_the_two_are_not_one_file_any_more(url: str, dead: bool) -> None:
    """As on overlayfs: a task of a lower layer is copied when it moves, and its key goes on to count two names."""
    with taskyard.open(url, worker="ada") as yard:
        first = yard.add("build", {"n": 1}, key="same")
        taken(yard.claim()).done()
        (key,) = Path(url, "keys").rglob("*.json")
        (task,) = Path(url, "done").rglob("*.json")
        copy = Path(url, "tmp", ".copy")
        copy.write_bytes(task.read_bytes())
        copy.rename(task)
        os.link(key, f"{url}-below")
        assert os.stat(key).st_nlink == 2
        if dead:  # whoever prunes it dies before it comes to the key
            task.rename(Path(url, "dead", task.name))
        else:
            wait_until(lambda: yard.prune(age=0, apply=True)["tasks"] == 1)
        second = yard.add("build", {"n": 2}, key="same")
        assert second.created
        assert second.id != first.id
        yard.sweep()
        assert yard.add("build", {"n": 2}, key="same").id == second.id
