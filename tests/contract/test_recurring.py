"""Recurring tasks: each tick is added exactly once, whoever sweeps, whatever the clock does; missed ticks are one, or none."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Invalid, NotFound
from taskyard.core import times
from taskyard.core.schedule import GRACE
from taskyard.yard import cron
from taskyard.yard.ticks import Ticks
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def sweep_at(yard: Yard, now: int) -> int:
    """Add the ticks that are due at this moment, as a sweep does."""
    return Ticks().add_due(yard._store, now=now)


def moment(text: str) -> int:
    return times.moment(text, "moment")


def far_off(
    yard: Yard, expression: str, *words: Any, name: str = "nightly", begin: str = "2040-06-01T00:30:00Z", **options: Any
) -> dict[str, Any]:
    """Make a schedule whose next tick is long after any real sweep of this test."""
    made = yard.new_schedule(name, expression, "build", *words, **options)
    [at] = yard._store.schedules.all()
    first = cron.times_of(made["cron"], made["tz"])(moment(begin))
    assert yard._store.schedules.move(at, at.moved(due=first))
    return made


def next_of(yard: Yard, name: str = "nightly") -> int:
    found = yard.schedule(name)["next_at"]
    assert found is not None
    return moment(found)


def ticks_of(yard: Yard, kind: str = "build") -> list[str]:
    """The ticks that tasks stand for, in order, out of their keys."""
    keys = [yard.get(task.id).key or "" for task in yard.find(kind=kind, limit=1000)]
    return sorted(key.split(":", 3)[3] for key in keys)


def test_a_schedule_comes_back_as_it_was_made(yard: Yard) -> None:
    made = yard.new_schedule(
        "nightly", "30  2 * * *", "build", {"a": [1]}, tz="Europe/Berlin", missed="skip", priority=2
    )
    assert made.pop("created") is True
    assert made["task"] == {"kind": "build", "data": {"a": [1]}, "priority": 2}
    assert (made["cron"], made["tz"], made["missed"], made["paused"]) == ("30 2 * * *", "Europe/Berlin", "skip", False)
    assert made["last_at"] is None
    assert yard.schedules() == [made]
    upcoming = (shown := yard.schedule("nightly")).pop("upcoming")
    assert shown == made
    assert upcoming[0] == made["next_at"]
    assert len(upcoming) == 5
    with taskyard.open(yard.url) as other:
        assert other.schedules() == [made]


def test_the_same_words_change_nothing_and_others_are_refused(yard: Yard) -> None:
    made = yard.new_schedule("nightly", "@daily", "build")
    assert yard.new_schedule("nightly", "0 0 * * *", "build") == {**made, "created": False}
    for words in (
        {"cron": "1 0 * * *"},
        {"kind": "test"},
        {"data": 1},
        {"tz": "Europe/Berlin"},
        {"missed": "skip"},
        {"priority": 1},
    ):
        given: dict[str, Any] = {"name": "nightly", "cron": "@daily", "kind": "build", **words}
        with pytest.raises(Conflict):
            yard.new_schedule(**given)
    assert len(yard.schedules()) == 1


@pytest.mark.parametrize(
    "words",
    [
        {"cron": "x"},
        {"cron": "61 * * * *"},
        {"cron": "* * * *"},
        {"cron": ""},
        {"cron": "* " * 200},
        {"tz": "Mars/Base"},
        {"tz": "../../etc/passwd"},
        {"tz": ""},
        {"missed": "all"},
        {"kind": "no kind"},
        {"key": "mine"},
        {"after": ["0-0000"]},
        {"not_before": "2030-01-01T00:00:00Z"},
        {"expires": "2100-01-01T00:00:00Z"},
        {"colour": "red"},
        {"name": ""},
        {"name": "x" * 61},
    ],
)
def test_what_makes_no_schedule_is_refused(yard: Yard, words: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        yard.new_schedule(**{"name": "nightly", "cron": "@daily", "kind": "build", **words})
    assert yard.schedules() == []


@pytest.mark.parametrize("verb", ["schedule", "pause_schedule", "unpause_schedule", "remove_schedule"])
def test_an_unknown_schedule_is_not_found(yard: Yard, verb: str) -> None:
    with pytest.raises(NotFound):
        getattr(yard, verb)("nightly")


@pytest.mark.parametrize("name", ["a b", "käse", "x/y", "..", "%41", "a.b:c"])
def test_any_name_is_a_schedules_name(yard: Yard, name: str) -> None:
    far_off(yard, "@hourly", name=name)
    assert [each["name"] for each in yard.schedules()] == [name]
    assert sweep_at(yard, next_of(yard, name)) == 1
    assert yard.get(yard.schedule(name)["last_task"]).kind == "build"
    yard.remove_schedule(name)
    assert yard.schedules() == []


def test_a_tick_is_added_once_with_its_data_and_says_where_it_came_from(yard: Yard) -> None:
    far_off(yard, "@hourly", {"a": 1}, title="At night", priority=1, mission="m", uses=["db"], lease=9)
    due = next_of(yard)
    assert sweep_at(yard, due - 1) == 0
    assert sweep_at(yard, due) == 1
    assert sweep_at(yard, due) == 0
    shown = yard.schedule("nightly")
    task = yard.get(shown["last_task"])
    assert (task.kind, task.data, task.title, task.priority) == ("build", {"a": 1}, "At night", 1)
    assert (task.mission, list(task.uses)) == ("m", ["db"])
    assert task.key is not None
    assert task.key.startswith("schedule:nightly:")
    assert task.key.endswith(times.rfc3339(due).replace(".000Z", "Z"))
    assert shown["last_at"] == times.rfc3339(due)
    assert moment(shown["next_at"]) == due + HOUR
    [added] = yard.events(task=task.id, event="added")
    assert added["by"] == "schedule:nightly"
    taken(yard.claim(task.id)).done()
    assert yard.audit()["verdict"] == "clean"


def test_a_delayed_tick_waits(yard: Yard) -> None:
    far_off(yard, "@hourly", delay=3600)
    assert sweep_at(yard, next_of(yard)) == 1
    assert yard.counts()["waiting"] == 1


def test_a_tick_that_no_worker_starts_in_time_expires(yard: Yard) -> None:
    far_off(yard, "@hourly", expires=0.001)
    assert sweep_at(yard, next_of(yard)) == 1

    def expired() -> bool:
        yard.sweep()
        return yard.counts()["cancelled"] == 1

    wait_until(expired)


def test_missed_ticks_are_one_task_under_the_time_of_the_last(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due = next_of(yard)
    assert sweep_at(yard, due + 7 * HOUR + 1) == 1
    assert ticks_of(yard) == [times.rfc3339(due + 7 * HOUR).replace(".000Z", "Z")]
    assert next_of(yard) == due + 8 * HOUR
    assert sweep_at(yard, due + 7 * HOUR + 2) == 0


def test_a_decade_of_missed_minutes_is_one_task(yard: Yard) -> None:
    far_off(yard, "* * * * *")
    later = next_of(yard) + 3650 * DAY
    assert sweep_at(yard, later) == 1
    assert next_of(yard) == later + MINUTE


def test_a_skipping_schedule_drops_what_is_late_and_adds_what_is_not(yard: Yard) -> None:
    far_off(yard, "@hourly", missed="skip")
    due = next_of(yard)
    assert sweep_at(yard, due + GRACE + 1) == 0
    assert next_of(yard) == due + HOUR
    assert sweep_at(yard, due + 5 * HOUR + GRACE) == 1
    assert next_of(yard) == due + 6 * HOUR
    assert len(ticks_of(yard)) == 1


def test_no_tick_comes_again_after_the_clock_went_back(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due = next_of(yard)
    for now in (due, due - DAY, due, due + HOUR, due - HOUR, due + 1, due + HOUR, due + 2 * HOUR):
        sweep_at(yard, now)
    assert ticks_of(yard) == [times.rfc3339(due + number * HOUR).replace(".000Z", "Z") for number in range(3)]


def test_a_clock_that_jumps_ahead_and_back_loses_none_and_repeats_none(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due = next_of(yard)
    assert sweep_at(yard, due + 30 * DAY) == 1
    ahead = next_of(yard)
    for number in range(5):
        assert sweep_at(yard, due + number * HOUR) == 0  # the jump has had them all
    assert sweep_at(yard, ahead) == 1
    assert len(set(ticks_of(yard))) == 2


def test_a_pause_adds_nothing_and_is_not_made_up_for(yard: Yard) -> None:
    yard.new_schedule("nightly", "* * * * * *", "build")
    assert yard.pause_schedule("nightly")["paused"] is True
    assert yard.pause_schedule("nightly")["next_at"] is None
    before = len(yard.find())
    assert sweep_at(yard, int(time.time() * 1000) + HOUR) == 0
    assert len(yard.find()) == before
    went_on = yard.unpause_schedule("nightly")
    assert went_on["paused"] is False
    assert went_on["next_at"] > went_on["created_at"]
    wait_until(lambda: yard.sweep().ticked)


def test_a_pause_ended_after_the_clock_went_back_repeats_no_tick(yard: Yard) -> None:
    far_off(yard, "@hourly")
    assert sweep_at(yard, next_of(yard) + DAY) == 1
    before = next_of(yard)
    yard.pause_schedule("nightly")
    assert moment(yard.unpause_schedule("nightly")["next_at"]) == before


def test_a_paused_yard_delays_its_ticks_and_loses_none(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due = next_of(yard)
    yard.pause()
    assert sweep_at(yard, due) == 0
    yard.unpause()
    assert sweep_at(yard, due + 2 * HOUR) == 1


@pytest.mark.parametrize("missed", ["one", "skip"])
def test_a_full_yard_delays_a_tick(yard: Yard, missed: str) -> None:
    far_off(yard, "@hourly", missed=missed)
    due, standing = next_of(yard), yard._store.schedules.all()[0].number
    yard.set_settings({"max_todo": 1})
    first = yard.add("other")
    ticks = Ticks()
    assert ticks.add_due(yard._store, now=due) == 0
    assert 0 < (ticks.alarm() or 0) <= 2  # it is tried again soon, and not at once
    assert sweep_at(yard, due + 1) == 0
    assert (next_of(yard), yard._store.schedules.all()[0].number) == (due, standing)
    yard.cancel(first.id)
    wait_until(lambda: sweep_at(yard, due + 2))
    assert len(ticks_of(yard)) == 1
    assert yard.audit()["verdict"] == "clean"


def test_a_schedule_made_again_under_its_name_begins_anew(yard: Yard) -> None:
    far_off(yard, "@hourly", 1)
    due = next_of(yard)
    assert sweep_at(yard, due) == 1
    assert yard.remove_schedule("nightly")["name"] == "nightly"
    assert sweep_at(yard, due + HOUR) == 0
    far_off(yard, "@hourly", 2)
    assert next_of(yard) == due
    assert sweep_at(yard, due) == 1
    assert [yard.get(task.id).data for task in yard.find()] == [1, 2]


def test_a_pruned_tick_does_not_come_again(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due, late = next_of(yard), yard._store.schedules.all()[0]
    assert sweep_at(yard, due) == 1
    taken(yard.claim()).done()
    assert yard.prune(count=0, apply=True)["tasks"] == 1
    assert sweep_at(yard, due) == 0
    # A process that looked before all that, and stood still since then:
    following = late.moved(due=due + HOUR, last_at=due)
    assert yard._store.schedules.tick(late, following, late.draft(due), "late") is None
    assert yard.find() == []
    assert yard.audit()["verdict"] == "clean"


def test_a_task_that_somebody_added_under_the_ticks_key_stands_for_it(yard: Yard) -> None:
    far_off(yard, "@hourly")
    due, found = next_of(yard), yard._store.schedules.all()[0]
    mine = yard.add("build", key=found.draft(due).key)
    assert sweep_at(yard, due) == 0
    assert [task.id for task in yard.find()] == [mine.id]
    assert next_of(yard) == due + HOUR
    yard.add("other", key=found.draft(due + HOUR).key)
    assert sweep_at(yard, due + HOUR) == 0
    assert next_of(yard) == due + 2 * HOUR
    assert yard.audit()["verdict"] == "clean"


@pytest.fixture
def others(near: Yard) -> Iterator[list[Yard]]:
    """More openings of the same yard."""
    opened = [taskyard.open(near.url) for _ in range(4)]
    yield opened
    for each in opened:
        each.close()


def test_of_racing_janitors_one_adds_each_tick(yard: Yard, others: list[Yard]) -> None:
    far_off(yard, "@hourly")
    due, rounds = next_of(yard), 6
    barrier = threading.Barrier(len(others))
    added: list[int] = []
    errors: list[BaseException] = []

    def race(mine: Yard) -> None:
        try:
            for number in range(rounds):
                barrier.wait(60)
                added.append(sweep_at(mine, due + number * HOUR))
        except BaseException as error:
            barrier.abort()
            errors.append(error)

    threads = [threading.Thread(target=race, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    sweep_at(yard, due + (rounds - 1) * HOUR)
    expected = [times.rfc3339(due + number * HOUR).replace(".000Z", "Z") for number in range(rounds)]
    assert ticks_of(yard) == expected
    assert sum(added) == rounds
    assert yard.audit()["verdict"] == "clean"


def test_of_racing_makers_one_makes_the_schedule(yard: Yard, others: list[Yard]) -> None:
    barrier = threading.Barrier(len(others))
    made: list[bool] = []

    def race(mine: Yard) -> None:
        barrier.wait(60)
        made.append(mine.new_schedule("nightly", "@hourly", "build")["created"])

    threads = [threading.Thread(target=race, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]


ZONES = [
    # In Berlin 2040 the clocks go from 2 to 3 on March 25, and from 3 to 2 on October 28.
    ("30 2 * * *", "2040-03-24T12:00:00Z", ["2040-03-25T01:00:00Z", "2040-03-26T00:30:00Z"]),  # no 02:30: at 03:00
    ("30 2 * * *", "2040-10-27T12:00:00Z", ["2040-10-28T00:30:00Z", "2040-10-29T01:30:00Z"]),  # 02:30 twice: the first
    ("0,30 2 * * *", "2040-03-24T12:00:00Z", ["2040-03-25T01:00:00Z", "2040-03-26T00:00:00Z"]),  # both at 03:00: once
    ("*/30 * * * *", "2040-10-28T00:15:00Z", ["2040-10-28T00:30:00Z", "2040-10-28T01:00:00Z", "2040-10-28T01:30:00Z"]),
    ("*/30 * * * *", "2040-03-25T00:15:00Z", ["2040-03-25T00:30:00Z", "2040-03-25T01:00:00Z", "2040-03-25T01:30:00Z"]),
]


@pytest.mark.parametrize(("expression", "begin", "expected"), ZONES)
def test_each_tick_comes_once_when_the_clocks_change(
    yard: Yard, expression: str, begin: str, expected: list[str]
) -> None:
    far_off(yard, expression, tz="Europe/Berlin", begin=begin)
    now, end = moment(begin), moment(expected[-1])
    while now <= end:
        sweep_at(yard, now)
        now += 5 * MINUTE
    assert ticks_of(yard) == expected


def test_a_claim_that_waits_wakes_for_a_tick(yard: Yard) -> None:
    yard.new_schedule("nightly", "* * * * * *", "build")
    claim = taken(yard.claim(wait=20))  # less than the time after which a waiter looks without being woken
    assert (claim.task.key or "").startswith("schedule:nightly:")
    wait_until(lambda: yard.schedule("nightly")["last_at"])


def test_why_names_the_schedule_that_adds_the_next_task(yard: Yard) -> None:
    far_off(yard, "@hourly")
    found = yard.why()
    assert "the schedule 'nightly' adds the next build in" in found["message"]
    assert found["schedules"][0]["next_at"] == yard.schedule("nightly")["next_at"]
    assert "schedules" not in yard.why(kinds=["other"])
    yard.pause_schedule("nightly")
    assert "the schedule 'nightly', which adds build, is paused" in yard.why(kinds=["build"])["message"]


def test_a_sweep_adds_what_is_due_and_says_so(yard: Yard) -> None:
    yard.new_schedule("nightly", "* * * * * *", "build")
    wait_until(lambda: yard.sweep().ticked)
    assert yard.counts()["todo"] >= 1


def test_without_the_library_ticks_are_left_to_others(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    far_off(yard, "@hourly")
    due = next_of(yard)
    with monkeypatch.context() as without:
        without.setattr(cron, "is_installed", lambda: False)
        ticks = Ticks()
        assert ticks.add_due(yard._store, now=due) == 0
        assert ticks.left == 1
        assert ticks.alarm() is None  # it would wake for nothing, again and again
        assert yard.schedule("nightly")["upcoming"] == []
    assert sweep_at(yard, due) == 1
