"""Schedules that break the obvious version, each driven to the exact call.

The fifth and the sixth have files of their own; the tenth, of a command that outlives its worker, is played with real
processes in tests/processes/test_workers.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory import mending, names, segments
from taskyard.task import State
from tests.conftest import taken, wait_until
from tests.directory.staging import AtCall, Step, Turns, dead, die, every_call, yard_on
from tests.directory.stories import check_log, check_places, places
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard

# Strict: whoever mends one of these is told to take its mark away.


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = str(tmp_path / "yard")
    taskyard.init(path, durability="fast").close()
    return path


def drop(url: str, name: str, content: Any) -> Path:
    path = Path(url, "todo", name)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def path_of(url: str, id: str) -> str:
    [path] = [f"{folder}/{name}" for state in State for folder, _, found in os.walk(f"{url}/{state}") for name in found if name.startswith(id)]  # fmt: skip
    return path


def state_of(url: str, id: str) -> State:
    return check_places(url)[id][0]


def told(yard: Yard, id: str | None = None) -> list[tuple[str, int]]:
    return [(event["event"], event["fence"]) for event in yard.events(limit=100_000) if id in (None, event["task"])]


# 1. A healer that believes one listing


@pytest.mark.parametrize("key", [None, "key"])
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
    monkeypatch.setattr("taskyard.stores.directory.safety.is_local", lambda path: False)
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
    monkeypatch.setattr(mending, "PATIENCE", -1)
    monkeypatch.setattr(mending, "_LAST_LOOK", -1)
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
        assert id in aside["reason"]
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


# 8. Events that their writer could not log any more

VERBS: dict[str, Callable[[Yard, str], object]] = {
    "add": lambda yard, id: yard.add("other"),
    "add many": lambda yard, id: yard.add_many([{"kind": "other"}] * 20),
    "claim": lambda yard, id: yard.claim(),
    "done": lambda yard, id: taken(yard.claim()).done("r"),
    "fail": lambda yard, id: taken(yard.claim()).fail("why"),
    "release": lambda yard, id: taken(yard.claim()).release(),
    "cancel": lambda yard, id: yard.cancel(id),
    "edit": lambda yard, id: yard.edit(id, title="t"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_8_an_event_lost_between_move_and_append_is_put_back_by_the_next_sweep(url: str, verb: str) -> None:
    last = verb in ("done", "fail", "release")  # the claim's own event comes first
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        writes = iter([lambda: None, die] if last else [die])

        def cue(name: str, paths: str, made: bool) -> None:
            if name == "write" and not made:
                next(writes)()

        dead(lambda: VERBS[verb](yard_on(url, cue), id))
        before = told(other)
        other.sweep()
        assert len(told(other)) == len(before) + (20 if verb == "add many" else 1)
        check_log(other)
        other.sweep()
        assert len(told(other)) == len(before) + (20 if verb == "add many" else 1), "once is enough"


def with_a_long_log(url: str) -> None:
    """Hours of events that are none of ours, and a yard full of ended tasks."""
    line = '{"at":"2024-01-01T00:00:00.000Z","event":"done","task":"%s","fence":1,"kind":"k","worker":null,"by":"b"}\n'
    for hour in range(24):
        text = "".join(line % f"{number:021d}" for number in range(500))
        Path(url, "events", f"2024-01-01T{hour:02d}.0000.jsonl").write_text(text)


@pytest.mark.parametrize("verb", ["claim", "add", "add many"])
def test_8_putting_an_event_back_does_not_scan_everything(url: str, verb: str) -> None:
    with_a_long_log(url)
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        others = other.add_many([{"kind": "filler"}] * 50)
        dead(lambda: VERBS[verb](yard_on(url, Step("before", "write", "", die)), id))
        reads: Counter[str] = Counter()

        def cue(name: str, paths: str, made: bool) -> None:
            if not made and name in ("read_at", "read", "stamp"):
                reads[os.path.relpath(paths, url)] += 1

        with yard_on(url, cue) as janitor:
            janitor.sweep()
        old = [path for path in reads if path.startswith("events/2024")]
        log = sum(number for path, number in reads.items() if path.startswith("events/"))
        tasks = [path for path in reads if any(id in path for id in others)]
        assert (old, tasks) == ([], []), "read for nothing"
        assert log <= 10, f"the log was read {log} times for one dead writer"
        check_log(other)


def test_8_two_janitors_put_an_event_back_once(url: str) -> None:
    dead(lambda: yard_on(url, Step("before", "write", "", die)).add("build"))

    with yard_on(url, worker="other") as other:
        step = Step("before", "write", "", other.sweep)
        with yard_on(url, step) as janitor:
            janitor.sweep()
        assert told(other) == [("added", 0)]


MOVES: dict[str, Callable[[Yard, str], object]] = {
    "edit": lambda yard, id: yard.edit(id, title="t"),
    "cancel": lambda yard, id: yard.cancel(id),
    "claim": lambda yard, id: yard.claim(),
}


@pytest.mark.parametrize("rival", MOVES)
@pytest.mark.parametrize("verb", MOVES)
def test_8_a_move_that_was_intended_but_lost_its_race_is_not_told(url: str, verb: str, rival: str) -> None:
    """The rival's move has the same number; the loser is killed before it intends anything else."""
    with yard_on(url, worker="other") as other:
        id = other.add("build").id
        lost = False

        def cue(name: str, paths: str, made: bool) -> None:
            nonlocal lost
            if name == "rename" and f"/todo/5-build/{id[:4]}/{id}.0" in paths and not made:
                with yard_on(url, worker="rival") as winner:
                    MOVES[rival](winner, id)
                lost = True
            elif lost:
                die()

        def lose() -> None:
            with contextlib.suppress(taskyard.Conflict):
                MOVES[verb](yard_on(url, cue), id)
            die()

        dead(lose)
        other.sweep()
        check_log(other)
        if rival == "edit":
            taken(other.claim(id))
            other.sweep()
            check_log(other)


def test_8_a_loser_that_is_killed_later_leaves_no_false_event(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def lose_and_die() -> None:
            step = Step("before", "rename", f"/todo/5-build/{id[:4]}/{id}", lambda: yard_on(url, worker="b").claim())
            with contextlib.suppress(taskyard.Conflict):
                yard_on(url, step).edit(id, title="t")
            die()

        dead(lose_and_die)
        other.sweep()
        assert told(other, id) == [("added", 0), ("claimed", 1)]


@pytest.mark.parametrize("ending", ["done", "fail"])
def test_8_an_ending_that_was_never_made_is_not_told_after_its_claim_was_taken_over(url: str, ending: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def die_before_the_ending() -> None:
            place = "done" if ending == "done" else "failed"
            claim = taken(yard_on(url, Step("before", "rename", f"{url}/{place}/", die)).claim(id))
            claim.done({"n": 1}) if ending == "done" else claim.fail("no", retry=False)

        dead(die_before_the_ending)
        [claim] = yard_on(url, worker="ada").resume()  # before any sweep has looked after the dead
        other.sweep()
        check_log(other)
        assert (ending if ending == "done" else "failed") not in [event for event, _ in told(other, id)]
        claim.done()
        check_log(other)


def test_8_a_failure_that_was_tried_again_before_anybody_logged_it_is_told(url: str) -> None:
    with yard_on(url, worker="other") as other:
        id = other.add("build").id

        def die_after_the_failure() -> None:
            claim = taken(yard_on(url, Step("after", "rename", "/failed/", die)).claim(id))
            claim.fail("no", retry=False)

        dead(die_after_the_failure)
        other.retry(id)
        other.sweep()
        check_log(other)
        assert told(other, id) == [("added", 0), ("claimed", 1), ("failed", 1), ("retried", 2)]


# 9. The writers' locks


def test_9_a_writer_whose_forked_child_lives_is_not_judged_dead(url: str) -> None:
    """The child has the lock too; what the parent left is put right when both are gone, and not before."""
    reading, writing = os.pipe()
    waiting, going = os.pipe()

    def fork_and_die() -> None:
        yard = yard_on(url)
        yard.add("build")
        os.close(going)
        os.close(reading)
        child = os.fork()
        if child == 0:
            os.write(writing, f"{os.getpid()}\n".encode())
            os.read(waiting, 1)
            os._exit(0)
        os.close(writing)
        die()

    dead(fork_and_die)
    with yard_on(url, worker="other") as other:
        os.close(writing)
        os.close(waiting)
        with os.fdopen(reading) as pipe:
            assert int(pipe.readline())
            held = set(os.listdir(f"{url}/writers"))
            draft = f"{url}/tmp/{next(iter(held))}.77"
            Path(draft).touch()
            os.utime(draft, (0, 0))
            other.sweep()
            assert held <= set(os.listdir(f"{url}/writers")), "the child still holds the lock"
            assert os.path.exists(draft)
            os.close(going)
            assert pipe.readline() == ""

        def forgotten() -> bool:
            other.sweep()
            return not held & set(os.listdir(f"{url}/writers"))

        wait_until(forgotten)
        check_log(other)


def test_9_a_forked_child_that_ends_does_not_free_its_parents_lock(url: str) -> None:
    with yard_on(url) as yard, yard_on(url, worker="other") as other:
        yard.add("build")
        [own] = set(os.listdir(f"{url}/writers"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                yard.add("build")
                yard.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        other.sweep()
        assert own in os.listdir(f"{url}/writers")


def test_9_a_writer_is_locked_before_anybody_can_see_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock
    swept = False
    with yard_on(url, worker="other") as other, yard_on(url) as yard:
        other.sweep()

        def flock(descriptor: int, operation: int) -> None:
            nonlocal swept
            if operation & fcntl.LOCK_EX and not swept:
                swept = True
                other.sweep()
            real(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        yard.add("build")
        monkeypatch.undo()
        assert swept
        assert yard._store._ground.writer.tag in os.listdir(f"{url}/writers")  # type: ignore[attr-defined]


def test_9_what_a_writer_without_a_lock_file_is_doing_is_judged_by_its_age_only(url: str) -> None:
    """Where memory cannot be shared with files there is no lock; a janitor must not take what it is working on."""
    with yard_on(url, worker="other") as other:
        drop(url, "a.json", {"taskId": "t1"})

        def lockless(name: str, paths: str, made: bool) -> None:
            if name == "share" and not made:
                raise OSError(95, "Operation not supported", paths)
            if name == "rename" and paths.endswith(".drop") and made:
                other.sweep()

        with yard_on(url, lockless) as yard:
            assert yard.sweep().taken == 1
        assert len(check_places(url)) == 1
        assert other.set_aside() == []
        check_log(other)


# 11. The longest names


WIDE = "ü" * 10  # 60 bytes in a name
KIND = "é:" + "ß" * 8 + "a_b"  # colons count three


def test_11_the_longest_names_go_through_every_state_and_come_back(url: str) -> None:
    longest = 0

    def measure() -> None:
        nonlocal longest
        for _, folders, files in os.walk(url):
            longest = max([longest, *(len(os.fsencode(name)) for name in (*folders, *files))])

    assert len(names.Lane.of(5, KIND, WIDE).text) == 2 + 60 + 1 + 60
    for assignee, worker in ((WIDE, WIDE), (None, WIDE)):
        with yard_on(url, worker=worker) as yard:
            id = yard.add(KIND, {"ü": 1}, assignee=assignee, delay=3600, max_attempts=999, lease=30 * 86400).id
            measure()
            yard.edit(id, title="ü" * 500, delay=0)
            measure()
            for _ in range(12):
                taken(yard.claim(lease=30 * 86400)).release()
            claim = taken(yard.claim())
            claim.note("ü")
            claim.heartbeat(progress=0.5)
            assert claim.workdir is not None
            measure()
            task = yard.get(id)
            assert (task.kind, task.assignee, task.worker, task.state) == (KIND, assignee, worker, "processing")
            claim.fail("why")
            measure()
            assert (task := yard.get(id)).state == "waiting"
            assert (task.kind, task.assignee, task.attempts) == (KIND, assignee, 1)
            yard.retry(id)
            taken(yard.claim()).fail("why", retry=False)
            measure()
            assert yard.get(id).state == "failed"
            yard.retry(id)
            yard.cancel(id)
            measure()
            assert yard.get(id).state == "cancelled"
            yard.retry(id)
            last = taken(yard.claim())
            assert last.task.data == {"ü": 1}
            last.done("ü")
            with pytest.raises(taskyard.ClaimLost):
                claim.done("late")
            measure()
            assert len(last.handle) <= 160
            task = yard.get(id)
            assert (task.state, task.kind, task.worker, task.result) == ("done", KIND, worker, "ü")
            yard.sweep()
            check_log(yard)
    assert 150 < longest < 255


@pytest.mark.parametrize(
    "name", ["n" * 250, "ü" * 125, '"quoted"', "new\nline", "back\\slash", "\udcff\udcfe", "-x", "a b", "~"]
)
def test_11_a_dropped_file_of_any_name_is_set_aside_and_told(url: str, name: str) -> None:  # fmt: skip
    tools.settle(url, settle=0)
    path = os.fsencode(f"{url}/todo/") + name.encode("utf-8", "surrogateescape") + b".json"
    with open(path, "wb") as file:
        file.write(b"[]")
    with yard_on(url) as yard:
        wait_until(lambda: (yard.sweep(), yard.set_aside())[1])
        [aside] = yard.set_aside()
        assert aside["reason"] == "a task must be a JSON object, and this is a list"
        assert [event["event"] for event in yard.events()] == ["set_aside"]
        assert os.listdir(f"{url}/todo") == []


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
        yard.held(handle).done("second")
        report = yard.report(id)
        assert report.task.result == "first"
        assert [entry["result"] for entry in report.stale_results] == ["second"]


@pytest.mark.parametrize(("one", "two"), [("A", "B"), (None, "B"), ("A", None)])
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
        turns.play(lambda: yards[0].held(handle).done(one), lambda: yards[1].held(handle).done(two))
        for yard in yards:
            yard.close()
        report = other.report(id)
        where = f"after {first} and {second} calls"
        assert report.task.state == "done", where
        assert len({json.dumps(result) for result in seen}) == 1, f"{seen} {where}"
        assert [report.task.result] == seen[-1:], where
        losers = [result for result in (one, two) if result not in (None, report.task.result)]
        assert [entry["result"] for entry in report.stale_results] == losers, where
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
