"""Missions: named goals that group tasks, on every store."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Conflict, Invalid, NotFound, State, TimedOut, Worker
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard


def states(yard: Yard) -> dict[str, str]:
    return {mission["name"]: mission["state"] for mission in yard.missions()}


def test_a_mission_that_was_made_is_there_before_it_has_tasks(yard: Yard) -> None:
    made = yard.new_mission("launch", brief="Ship it\nby Friday", owner="ada")
    assert (made["created"], made["state"], made["total"], made["progress"]) == (True, "empty", 0, None)
    shown = yard.mission("launch")
    assert (shown["name"], shown["brief"], shown["owner"]) == ("launch", "Ship it\nby Friday", "ada")
    assert shown["created_at"] is not None
    assert (shown["started_at"], shown["ended_at"]) == (None, None)
    assert [mission["name"] for mission in yard.missions()] == ["launch"]


def test_the_same_words_again_change_nothing(yard: Yard) -> None:
    first = yard.new_mission("launch", brief="Ship it", owner="ada")
    again = yard.new_mission("launch", brief="Ship it", owner="ada")
    assert (first["created"], again["created"]) == (True, False)
    assert again["created_at"] == first["created_at"]


@pytest.mark.parametrize(
    "other", [{"brief": "Something else", "owner": "ada"}, {"brief": "Ship it", "owner": "bob"}, {}]
)
def test_other_words_about_the_same_name_are_a_conflict(yard: Yard, other: dict[str, str]) -> None:
    yard.new_mission("launch", brief="Ship it", owner="ada")
    with pytest.raises(Conflict) as caught:
        yard.new_mission("launch", **other)
    assert caught.value.hint
    assert yard.mission("launch")["brief"] == "Ship it"


def test_of_many_who_make_one_mission_at_once_one_makes_it(yard: Yard) -> None:
    made: list[bool] = []
    threads = [threading.Thread(target=lambda: made.append(yard.new_mission("launch")["created"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]


def test_a_task_makes_its_mission_by_naming_it(yard: Yard) -> None:
    task = yard.add("build", mission="launch")
    yard.add("build")
    shown = yard.mission("launch")
    assert (shown["state"], shown["total"], shown["brief"], shown["owner"]) == ("open", 1, None, None)
    assert shown["created_at"] == shown["started_at"] == task.created_at
    assert [one["id"] for one in shown["next"]] == [task.id]
    assert yard.new_mission("launch", brief="Ship it")["created"]
    assert yard.mission("launch")["brief"] == "Ship it"


def test_an_unknown_mission_is_not_found(yard: Yard) -> None:
    for look in (
        yard.mission,
        yard.cancel_mission,
        lambda name: yard.wait(mission=name),
        yard.stats,
    ):
        with pytest.raises(NotFound) as caught:
            look("nowhere")
        assert caught.value.hint


@pytest.mark.parametrize("name", ["", "a\nb", "m" * 257])
def test_an_illegal_name_is_invalid(yard: Yard, name: str) -> None:
    with pytest.raises(Invalid):
        yard.new_mission(name)
    with pytest.raises(Invalid):
        yard.mission(name)
    with pytest.raises(Invalid):
        yard.claim(mission=name)


@pytest.mark.parametrize("name", ["1.0", "Übung ☃", "a/b", "..", "~", "x" * 256, "'; --", "%41", "5-build@ada"])
def test_any_printable_name_is_a_mission(yard: Yard, name: str) -> None:
    task = yard.add("build", mission=name, assignee="ada")
    yard.add("build", mission=f"{name[:-1]}!", assignee="ada")
    yard.new_mission(name, brief="odd")
    assert yard.mission(name)["total"] == 1
    assert {name, f"{name[:-1]}!"} == set(states(yard))
    claim = taken(yard.claim(mission=name, worker="ada"))
    assert claim.task.id == task.id
    claim.done()
    assert yard.mission(name)["state"] == "done"


def test_its_state_follows_from_its_tasks(yard: Yard) -> None:
    first = yard.add("build", mission="launch")
    yard.add("test", mission="launch", after=[first.id])
    assert yard.mission("launch")["state"] == "open"
    claim = taken(yard.claim(mission="launch"))
    assert yard.mission("launch")["state"] == "running"
    claim.done()
    shown = yard.mission("launch")
    assert (shown["state"], shown["progress"], shown["ended_at"]) == ("running", 0.5, None)
    taken(yard.claim(mission="launch")).done()
    shown = yard.mission("launch")
    assert (shown["state"], shown["progress"]) == ("done", 1.0)
    assert shown["started_at"] == first.created_at
    assert shown["ended_at"] >= shown["started_at"]


def test_a_mission_has_failed_once_nothing_is_open_and_something_failed(yard: Yard) -> None:
    yard.add_many({"kind": "build", "mission": "launch"} for _ in range(2))
    broken = taken(yard.claim(mission="launch"))
    broken.fail("no luck", retry=False)
    assert yard.mission("launch")["state"] == "running"
    taken(yard.claim(mission="launch")).done()
    shown = yard.mission("launch")
    assert (shown["state"], shown["progress"]) == ("failed", 0.5)
    assert [(task["id"], task["reason"]) for task in shown["failed"]] == [(broken.task.id, "no luck")]
    yard.retry(broken.task.id)
    assert yard.mission("launch")["state"] == "running"


def test_cancelled_tasks_do_not_count_against_it(yard: Yard) -> None:
    one, two = yard.add_many({"kind": "build", "mission": "launch"} for _ in range(2))
    yard.cancel(one)
    taken(yard.claim(two)).done()
    shown = yard.mission("launch")
    assert (shown["state"], shown["progress"], shown["total"]) == ("done", 1.0, 2)


def test_show_names_what_runs_and_who_runs_it(yard: Yard) -> None:
    yard.add("build", mission="launch", title="Build it")
    claim = taken(yard.claim(mission="launch", worker="ada"))
    claim.heartbeat(progress=0.5)
    shown = yard.mission("launch")
    [running] = shown["running"]
    assert (running["id"], running["title"], running["worker"]) == (claim.task.id, "Build it", "ada")
    assert running["progress"] == 0.5
    assert running["lease_until"] is not None
    assert shown["workers"] == ["ada"]
    assert shown["counts"]["processing"] == 1


def test_a_claim_by_mission_takes_the_most_urgent_then_the_oldest_of_it(yard: Yard) -> None:
    yard.add("build", mission="other", priority=0)
    yard.add("build", priority=0)
    late = yard.add("build", mission="launch", priority=7).id
    first = yard.add("test", mission="launch").id
    second = yard.add("build", mission="launch").id
    urgent = yard.add("build", mission="launch", priority=1).id
    order = [taken(yard.claim(mission="launch")).task.id for _ in range(4)]
    assert order == [urgent, first, second, late]
    assert yard.claim(mission="launch") is None
    assert yard.claim(mission="launc") is None


def test_a_claim_by_mission_and_kind_takes_what_is_both(yard: Yard) -> None:
    yard.add("build", mission="launch")
    yard.add("test", mission="other")
    wanted = yard.add("test", mission="launch").id
    assert taken(yard.claim(kinds="test", mission="launch")).task.id == wanted
    assert yard.claim(kinds="test", mission="launch") is None


def test_many_can_be_claimed_by_mission(yard: Yard) -> None:
    mine = yard.add_many({"kind": "build", "mission": "launch"} for _ in range(30))
    yard.add_many({"kind": "build", "mission": "other"} for _ in range(30))
    claims = yard.claim_many(50, mission="launch")
    assert [claim.task.id for claim in claims] == mine
    assert yard.claim_many(50, mission="launch") == []


def test_a_claim_without_a_mission_takes_the_oldest_of_all(yard: Yard) -> None:
    added = [yard.add("build", mission=f"m{n % 12}" if n % 13 else None).id for n in range(30)]
    assert [taken(yard.claim()).task.id for _ in range(30)] == added


def test_an_assigned_task_of_a_mission_is_only_for_its_assignee(yard: Yard) -> None:
    task = yard.add("build", mission="launch", assignee="ada")
    assert yard.claim(mission="launch", worker="bob") is None
    assert taken(yard.claim(mission="launch", worker="ada")).task.id == task.id


def test_a_paused_kind_is_not_claimed_by_mission(yard: Yard) -> None:
    yard.add("build", mission="launch")
    task = yard.add("test", mission="launch")
    yard.pause("build")
    assert taken(yard.claim(mission="launch")).task.id == task.id
    assert yard.claim(mission="launch") is None
    yard.unpause("build")
    yard.pause()
    assert yard.claim(mission="launch") is None


def test_tasks_of_a_mission_that_use_one_thing_run_one_at_a_time(yard: Yard) -> None:
    one, two = yard.add_many({"kind": "build", "mission": "launch", "uses": ["gpu"]} for _ in range(2))
    free = yard.add("build", mission="launch").id
    first = taken(yard.claim(mission="launch"))
    assert first.task.id == one
    assert taken(yard.claim(mission="launch")).task.id == free
    assert yard.claim(mission="launch") is None
    first.done()
    assert taken(yard.claim(mission="launch")).task.id == two


def test_a_task_keeps_its_mission_through_every_move(yard: Yard) -> None:
    id = yard.add("build", mission="launch", delay=1000, max_attempts=5).id
    yard.retry(id)
    taken(yard.claim(mission="launch")).release()
    yard.edit(id, priority=1, title="Again", assignee="ada")
    claim = taken(yard.claim(mission="launch", worker="ada"))
    claim.fail("not yet")
    assert yard.mission("launch")["counts"]["waiting"] == 1
    yard.retry(id)
    taken(yard.claim(mission="launch", worker="ada")).fail("never", retry=False)
    yard.retry(id)
    yard.cancel(id)
    assert yard.mission("launch")["counts"]["cancelled"] == 1
    yard.retry(id)
    claim = taken(yard.claim(mission="launch", worker="ada"))
    assert (claim.task.id, claim.task.mission) == (id, "launch")
    claim.done()
    assert yard.mission("launch")["counts"]["done"] == 1
    assert yard.mission("launch")["total"] == 1


def test_a_claim_that_is_resumed_keeps_its_mission(yard: Yard) -> None:
    yard.add("build", mission="launch")
    taken(yard.claim(mission="launch", worker="ada"))
    [again] = yard.resume("ada")
    again.release()
    assert taken(yard.claim(mission="launch")).task.mission == "launch"


def test_lists_and_ready_choose_by_mission(yard: Yard) -> None:
    mine = yard.add_many({"kind": "build", "mission": "launch"} for _ in range(5))
    yard.add_many({"kind": "build", "mission": "other"} for _ in range(5))
    done = taken(yard.claim(mission="launch"))
    done.done()
    assert [task.id for task in yard.find(mission="launch")] == mine
    assert [task.id for task in yard.ready(mission="launch")] == mine[1:]
    first = yard.find(mission="launch", limit=2)
    assert [task.id for task in yard.find(mission="launch", limit=2, cursor=first.next)] == mine[2:4]


def test_stats_count_one_mission(yard: Yard) -> None:
    yard.add("build", mission="launch")
    yard.add("test", mission="launch", delay=100)
    yard.add("test", mission="other")
    counted = yard.stats(mission="launch")
    assert counted["kinds"] == {"build": {"todo": 1}, "test": {"waiting": 1}}
    assert counted["counts"]["todo"] == 1
    assert yard.stats()["counts"]["todo"] == 2


def test_the_log_can_be_read_by_mission(yard: Yard) -> None:
    mine = yard.add("build", mission="launch").id
    other = yard.add("build", mission="other").id
    taken(yard.claim(other)).done()
    taken(yard.claim(mine)).done()
    yard.add("build")
    events = yard.events(mission="launch")
    assert [(event["event"], event["task"]) for event in events] == [
        (word, mine) for word in ("added", "claimed", "done")
    ]
    first = yard.events(mission="launch", limit=2)
    assert [event["event"] for event in first] == ["added", "claimed"]
    assert [event["event"] for event in yard.events(mission="launch", cursor=first.cursor)] == ["done"]
    assert yard.events(mission="nowhere") == []


def test_watch_sees_only_the_mission(yard: Yard) -> None:
    yard.add("build", mission="other")
    end = yard.log_end()
    yard.add("build", mission="other")
    mine = yard.add("build", mission="launch").id
    assert [event["task"] for event in yard.watch(mission="launch", cursor=end, timeout=10)] == [mine]
    with pytest.raises(TimedOut):
        yard.watch(mission="launch", timeout=0)


def test_wait_returns_when_the_whole_mission_has_ended(yard: Yard) -> None:
    first, second = yard.add_many({"kind": "build", "mission": "launch"} for _ in range(2))
    yard.add("build", mission="other")
    with pytest.raises(TimedOut):
        yard.wait(mission="launch", timeout=0)
    taken(yard.claim(first)).done({"n": 1})
    worker = Worker(yard)
    worker.handles("build")(lambda _: {"n": 2})
    thread = threading.Thread(target=lambda: worker.run(mission="launch", drain=True))
    thread.start()
    ended = yard.wait(mission="launch", timeout=30)
    thread.join()
    assert [(task.id, task.state, task.result) for task in ended] == [
        (first, State.DONE, {"n": 1}), (second, State.DONE, {"n": 2}),
    ]  # fmt: skip
    with pytest.raises(Invalid):
        yard.wait(first, mission="launch")


def test_a_worker_for_one_mission_drains_that_and_no_other(yard: Yard) -> None:
    yard.add_many({"kind": "build", "mission": "launch"} for _ in range(3))
    yard.add("build", mission="other")
    worker = Worker(yard)
    worker.handles("build")(lambda _: None)
    tally = worker.run(mission="launch", drain=True)
    assert tally["done"] == 3
    assert states(yard) == {"launch": "done", "other": "open"}
    assert yard.remains(None)
    assert not yard.remains(None, "launch")


def test_cancelling_a_mission_cancels_all_that_has_not_ended(yard: Yard) -> None:
    first = yard.add("build", mission="launch").id
    taken(yard.claim(first)).done()
    yard.add("build", mission="launch")
    running = taken(yard.claim(mission="launch"))
    yard.add("build", mission="launch", delay=100)
    todo = yard.add("build", mission="launch").id
    yard.add("build", mission="launch", after=[todo])
    other = yard.add("build", mission="other").id
    ended = yard.cancel_mission("launch", "not needed")
    assert (ended["cancelled"], ended["ran"], ended["state"], ended["reason"]) == (4, 1, "cancelled", "not needed")
    assert (ended["counts"]["done"], ended["counts"]["cancelled"]) == (1, 4)
    assert yard.get(todo).error == "not needed"
    assert yard.get(other).state is State.TODO
    assert yard.holding([running.handle]) == [False]
    assert states(yard)["launch"] == "cancelled"


def test_a_cancelled_mission_lives_on_when_more_is_done_for_it(yard: Yard) -> None:
    yard.new_mission("launch")
    assert yard.cancel_mission("launch")["state"] == "cancelled"
    task = yard.add("build", mission="launch")
    assert yard.mission("launch")["state"] == "open"
    yard.cancel_mission("launch", "again")
    assert (yard.mission("launch")["state"], yard.mission("launch")["reason"]) == ("cancelled", "again")
    yard.retry(task.id)
    taken(yard.claim(mission="launch")).done()
    assert yard.mission("launch")["state"] == "done"


def test_an_id_and_a_mission_exclude_each_other_in_a_claim(yard: Yard) -> None:
    task = yard.add("build", mission="launch")
    with pytest.raises(Invalid):
        yard.claim(task.id, mission="launch")


def test_kind_and_assignee_leave_room_for_the_mission(yard: Yard) -> None:
    kind, assignee = "k" * 49, "a" * 58
    yard.add(kind, mission="launch", assignee=assignee)
    with pytest.raises(Invalid):
        yard.add(kind, mission="launch", assignee=f"{assignee}a")
    with pytest.raises(Invalid):
        yard.add(f"{kind}k", mission="launch")
    task = yard.add(kind, mission="launch")
    with pytest.raises(Invalid):
        yard.edit(task.id, assignee="a" * 60)


def test_pruned_tasks_leave_the_numbers(yard: Yard) -> None:
    for _ in range(3):
        yard.add("build", mission="launch")
        taken(yard.claim(mission="launch")).done()
    yard.new_mission("launch", brief="Ship it")
    yard.prune(count=1, apply=True)
    assert yard.mission("launch")["total"] == 1
    yard.prune(count=0, apply=True)
    shown: dict[str, Any] = yard.mission("launch")
    assert (shown["total"], shown["state"], shown["brief"]) == (0, "empty", "Ship it")
