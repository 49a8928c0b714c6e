"""A yard's folders shared with programs that know nothing of it: their claims, their endings, and what they move of ours."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Claim, ClaimLost, Yard
from taskyard.doors.cli import main
from taskyard.stores.directory.tasks import claims
from tests.conftest import damage, taken
from tests.guests import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_AGO = time.time() - 3 * 86_400


@pytest.fixture
def root(place: str) -> Path:
    return Path(place)


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="ada") as opened:
        yield opened


def drop(root: Path, name: str = "task_123.json", **fields: object) -> Path:
    path = root / "todo" / name
    path.write_text(json.dumps(fields or {"operation": "sharpen", "amount": 0.85}), encoding="utf-8")
    return path


def shorten_lease(place: str, seconds: float) -> None:
    path = Path(place) / "yard.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["settings"]["lease"] = seconds
    path.write_text(json.dumps(content), encoding="utf-8")


def age(path: str | Path) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO))


# Lanes


@pytest.mark.parametrize("at", ["failed", "processing", "todo", "done", "twice", "inside"])
def test_a_lane_that_a_loop_has_taken_for_a_task_is_put_back(yard: Yard, root: Path, at: str) -> None:
    known = [yard.add("build", {"n": n}).id for n in range(3)]
    lane = programs.take(str(root), "agent-1")
    assert Path(lane).name == "agent-1_5-build"
    if at == "processing":
        os.rename(lane, f"{root}/processing/agent-1_5-build")
    elif at == "twice":
        os.rename(lane, root / "failed" / "5-build")
        known.append(yard.add("build", {"n": 3}).id)
        os.rename(programs.take(str(root), "agent-2"), root / "failed" / "5-build" / "agent-2_5-build")
        known.append(yard.add("build", {"n": 4}).id)
    elif at == "inside":
        known.append(yard.add("build", {"n": 3}).id)
        os.rename(lane, root / "todo" / "5-build" / "agent-1_5-build")
    else:
        os.rename(lane, root / at / ("agent-1_5-build" if at == "todo" else "5-build"))
    assert [yard.get(id).state for id in known] == ["todo"] * len(known)
    assert damage(yard) == []
    deadline = time.monotonic() + 20
    while len(yard.find("todo")) < len(known) and time.monotonic() < deadline:
        yard.sweep()
        time.sleep(0.05)
    assert {task.id for task in yard.find("todo")} == set(known)
    assert {taken(yard.claim()).task.id for _ in known} == set(known)
    assert damage(yard) == []


def test_an_agent_with_the_name_of_a_lane_confuses_nobody(yard: Yard, root: Path) -> None:
    task = yard.add("build")
    os.rename(programs.take(str(root), "5-x"), root / "failed" / "5-x_5-build")
    assert taken(yard.claim()).task.id == task.id
    assert yard.counts()["processing"] == 1


def test_what_waits_for_a_task_in_a_lane_that_is_away_stays_blocked(yard: Yard, root: Path) -> None:
    first = yard.add("build")
    second = yard.add("test", after=[first.id])
    os.rename(programs.take(str(root), "agent-1"), root / "failed" / "5-build")
    yard.sweep()
    assert yard.get(second.id).state == "blocked"
    taken(yard.claim(first.id)).done()
    assert yard.get(second.id).state == "todo"


# Their claims


def test_the_claim_of_a_guest_is_counted_and_shown(yard: Yard, root: Path) -> None:
    drop(root)
    programs.take(str(root), "agent-1")
    (entry,) = yard.outside().guests
    assert (entry["name"], entry["state"], entry["worker"]) == ("task_123", "processing", "agent-1")
    assert yard.stats()["guests"] == {"processing": 1}
    yard.sweep()
    assert os.listdir(root / "processing") == ["agent-1_task_123.json"]
    assert damage(yard) == []
    with pytest.raises(taskyard.NotFound, match="agent-1"):
        yard.get("task_123")


def test_the_claim_of_a_guest_is_given_back_when_it_was_left_for_a_lease(place: str, root: Path) -> None:
    shorten_lease(place, 0.3)
    drop(root)
    age(programs.take(str(root), "agent-1"))
    with taskyard.open(place, worker="ada") as yard:
        assert yard.claim() is None
        claim = taken(yard.claim(wait=10))
        assert claim.task.kind == "sharpen"
        assert yard.get("task_123").id == claim.task.id
        claim.done()


def test_what_a_guest_has_ended_is_never_work_again(yard: Yard, root: Path) -> None:
    drop(root, "task_1.json")
    drop(root, "task_2.json")
    os.rename(programs.take(str(root), "agent-1"), root / "done" / "task_1.json")
    os.rename(programs.take(str(root), "agent-1"), root / "failed" / "task_2.json")
    (root / "done" / "summary.txt").write_text("all went well", encoding="utf-8")
    assert yard.stats()["guests"] == {"done": 1}
    assert yard.stats()["set_aside"] == 1
    told = yard.audit(repair=True)
    assert told["verdict"] == "clean"
    assert yard.claim() is None
    assert (root / "done" / "task_1.json").exists()
    assert (root / "failed" / "task_2.json").exists()
    assert (root / "done" / "summary.txt").exists()


# Our claims in their hands


def returned(root: Path, claim: Claim, stale: bool = True) -> Path:
    """Have the guest's janitor move our claim to todo/."""
    (path,) = root.glob(f"processing/{claim.task.id}.*")
    if stale:
        age(path)
    assert programs.sweep(str(root), 0.0 if not stale else programs.STALE) == 1
    return root / "todo" / path.name


@pytest.mark.parametrize("stale", [True, False], ids=["stale", "too early"])
def test_a_claim_that_their_janitor_moves_to_todo_is_the_same_task_again(yard: Yard, root: Path, stale: bool) -> None:
    task = yard.add("build", {"n": 1})
    claim = taken(yard.claim())
    returned(root, claim, stale)
    assert damage(yard) == []
    again = taken(yard.claim())
    assert (again.task.id, again.task.data) == (task.id, {"n": 1})
    assert again.fence > claim.fence
    assert again.task.attempts == int(stale)
    with pytest.raises(ClaimLost):
        claim.done("late")
    again.done("in time")
    report = yard.report(task.id)
    assert report.task.result == "in time"
    assert [entry["outcome"] for entry in report.history] == ["crash" if stale else "released", "done"]
    assert [entry["result"] for entry in report.stale_results] == ["late"]
    assert len([event for event in yard.events(task=task.id) if event["event"] == "done"]) == 1


def test_a_dropped_file_that_we_hold_comes_back_as_the_same_task(yard: Yard, root: Path) -> None:
    drop(root)
    claim = taken(yard.claim())
    returned(root, claim)
    assert taken(yard.claim()).task.id == claim.task.id
    assert sum(yard.counts().values()) == 1


@pytest.mark.parametrize("verb", ["done", "fail", "release", "heartbeat"])
def test_a_holder_that_is_quicker_than_the_sweep_still_holds_its_task(yard: Yard, root: Path, verb: str) -> None:
    claim = taken(yard.claim(yard.add("build").id))
    file = returned(root, claim, stale=False)
    assert yard.held(claim.handle).holds()
    if verb == "heartbeat":
        claim.heartbeat()
        assert not file.exists()
        verb = "done"
    getattr(claim, verb)()
    states = {"done": "done", "fail": "waiting", "release": "todo"}
    assert yard.get(claim.task.id).state == states[verb]
    assert not file.exists()


@pytest.mark.parametrize("end", ["done", "failed"])
def test_a_task_of_ours_that_a_guest_has_ended_has_ended(yard: Yard, root: Path, end: str) -> None:
    task = yard.add("build")
    after = yard.add("test", after=[task.id])
    claim = taken(yard.claim())
    returned(root, claim)
    held = programs.take(str(root), "agent-1", "glob")
    shown = yard.get(task.id)
    assert (shown.state, shown.worker) == ("processing", "agent-1")
    assert yard.counts()["processing"] == 1
    assert damage(yard) == []
    os.rename(held, root / end / Path(held).name.partition("_")[2])
    assert yard.get(task.id).state == end
    with pytest.raises(ClaimLost):
        claim.done("late")
    yard.sweep()
    ended = yard.get(task.id)
    assert (ended.state, ended.fence) == (end, claim.fence + 1)
    assert yard.get(after.id).state == ("todo" if end == "done" else "blocked")
    assert [event["event"] for event in yard.events(task=task.id)][-2:] == ["claimed", end]
    assert damage(yard) == []
    with pytest.raises(ClaimLost):
        claim.heartbeat()


def test_a_task_of_ours_that_a_guest_has_left_comes_back(place: str, root: Path) -> None:
    shorten_lease(place, 0.3)
    with taskyard.open(place, worker="ada") as yard:
        claim = taken(yard.claim(yard.add("build").id))
        returned(root, claim)
        programs.take(str(root), "agent-1", "glob")
        again = taken(yard.claim(wait=10))
        assert again.task.id == claim.task.id
        assert again.fence > claim.fence + 1


@pytest.mark.parametrize("how", ["added", "dropped"])
def test_a_claim_of_a_task_that_waited_for_long_is_not_stale_for_their_janitor(
    yard: Yard, root: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "added":
        monkeypatch.setattr(claims, "_WAITED", -1000)  # also what was added in this very tick
        task = yard.add("build")
        age(next(root.glob(f"todo/*/*/{task.id}.*")))
    else:
        age(drop(root))
        yard.sweep()
    claim = taken(yard.claim())
    assert programs.sweep(str(root)) == 0
    claim.done()


# Names


def test_the_name_of_a_dropped_file_finds_its_task(yard: Yard, root: Path) -> None:
    drop(root)
    drop(root, "order 17.json", taskId="17", kind="print")
    drop(root, "agent-1_task_9.json", kind="scan")
    drop(root, "task.json", kind=["beginning", "of an id"][0])
    yard.sweep()
    assert yard.get("task_123").kind == "sharpen"
    assert yard.get("order 17").key == "17"
    assert yard.get("task_9").kind == "scan"
    assert yard.get("task").kind == "beginning"
    assert yard.report("task_123").task.as_dict()["dropped_as"] == "task_123"
    assert yard.cancel("task_123").state == "cancelled"
    drop(root)
    yard.sweep()
    with pytest.raises(taskyard.Ambiguous, match="2 tasks were dropped as"):
        yard.get("task_123")


def test_the_name_of_a_dropped_file_is_taken_wherever_an_id_is(yard: Yard, root: Path) -> None:
    drop(root, "0000task.json", kind="scan")  # it looks like the beginning of an id too
    yard.sweep()
    id = yard.find().pop().id
    for name in ("0000task", "0000task.json"):
        assert yard.get(name).id == id
        assert yard.events(task=name)[0]["event"] == "added"
        assert yard.edit(name, priority=3).id == id
        assert yard.shorten([name]) == [yard.get(id).short]
        taken(yard.claim(name)).release()
        assert yard.cancel(name).id == id
        assert [task.id for task in yard.wait(name, timeout=0)] == [id]
        assert yard.retry(name) is not None


def test_an_ambiguous_beginning_is_no_dropped_name(yard: Yard, root: Path) -> None:
    yard.add("build")
    yard.add("build")
    drop(root, "0000.json", kind="scan")
    yard.sweep()
    for verb in (yard.report, yard.claim, yard.cancel, lambda name: yard.events(task=name)):
        with pytest.raises(taskyard.Ambiguous):
            verb("0000")


@pytest.mark.parametrize("reason", [None, "no colour"])
def test_a_file_that_lies_aside_is_named_where_it_is_taken_for_a_task(
    yard: Yard, root: Path, reason: str | None
) -> None:
    (root / "failed" / "task_125.json").write_text('{"operation": "sharpen"}')
    if reason is not None:
        (root / "failed" / "task_125.reason").write_text(reason)
    for name in ("task_125", "task_125.json"):
        with pytest.raises(taskyard.NotFound, match=f"lies aside in failed/.*{reason or ''}") as met:
            yard.get(name)
        assert "taskyard retry task_125" in str(met.value.hint)


def test_the_name_goes_with_its_task(yard: Yard, root: Path) -> None:
    drop(root)
    taken(yard.claim()).done()
    assert list(root.glob("names/*/*"))
    yard.prune(count=0, apply=True)
    assert not list(root.glob("names/*/*"))
    with pytest.raises(taskyard.NotFound):
        yard.get("task_123")


# What is no task


def test_what_lies_in_todo_and_is_no_task_is_named(yard: Yard, root: Path) -> None:
    (root / "todo" / "notes.txt").write_text("remember", encoding="utf-8")
    (root / "todo" / "list.json").write_text("[1, 2]", encoding="utf-8")
    (root / "todo" / "old").mkdir()
    names = {entry["name"]: entry["reason"] for entry in yard.stats()["not_tasks"]}
    assert names.keys() == {"notes.txt", "list.json", "old"}
    assert "import" in str(names["list.json"])
    told = yard.audit()
    assert {finding["where"] for finding in told["findings"]} == {"todo/notes.txt", "todo/list.json", "todo/old"}
    assert told["verdict"] == "clean"


def test_a_whole_queue_is_set_aside_and_not_made_one_task(yard: Yard, root: Path) -> None:
    tasks = [{"id": "inspect-docs", "kind": "docs", "status": "ready"}, {"id": "run", "kind": "x", "status": "blocked"}]
    drop(root, "queue.json", tasks=tasks, claims=[])
    drop(root, "batch.json", operation="resize", tasks=tasks)
    yard.sweep()
    (entry,) = yard.set_aside()
    assert entry["name"] == "queue"
    assert "taskyard import lab FILE" in str(entry["reason"])
    assert [task.kind for task in yard.find()] == ["resize"]


def test_a_queue_that_was_set_aside_is_imported_by_the_command_that_the_reason_names(yard: Yard, root: Path) -> None:
    tasks = [{"id": "inspect-docs", "kind": "docs", "status": "done"}, {"id": "run", "kind": "x", "status": "ready"}]
    drop(root, "queue.json", tasks=tasks, claims=[])
    master = [{"id": 1, "title": "Plan", "status": "pending", "dependencies": []}]
    drop(root, "tasks.json", master={"tasks": master, "metadata": {}})
    yard.sweep()
    for entry in yard.set_aside():
        [words] = re.findall(r"'taskyard (import \w+ FILE)'", str(entry["reason"]))
        file = str(root / "failed" / f"{entry['name']}.json")
        assert main(["--yard", str(root), *words.replace("FILE", file).split(" ", 2)]) == 0
    found = {task.title: str(task.state) for task in yard.find()}
    assert found == {"inspect-docs": "done", "run": "todo", "Plan": "todo"}


def test_why_tells_who_has_the_file_that_a_guest_took(root: Path, yard: Yard) -> None:
    drop(root)
    os.rename(root / "todo" / "task_123.json", root / "processing" / "agent-7_task_123.json")
    [held] = yard.outside().guests
    told = yard.why(str(held["name"]))
    assert (told["task"], told["state"], told["reasons"][0]["code"]) == (None, "processing", "guest")
    assert "agent-7" in told["message"]
