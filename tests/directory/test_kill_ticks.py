"""A process that dies while it makes, moves or removes a schedule, or adds a tick: after one sweep all of it is done, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.yard.ticks import Ticks
from tests.conftest import taken
from tests.contract.test_recurring import HOUR, far_off, next_of, sweep_at, ticks_of
from tests.directory.test_kill_graphs import killed_everywhere

if TYPE_CHECKING:
    from collections.abc import Callable

DURABILITIES = pytest.mark.parametrize("durability", ["fast", "durable"])


def clean(yard: taskyard.Yard) -> None:
    found = yard.audit()
    assert [finding for finding in found["findings"] if finding["class"] == "damage"] == []


@pytest.mark.proof
@DURABILITIES
def test_a_tick_is_added_once_wherever_its_adder_is_killed(tmp_path: Path, durability: str) -> None:
    def ready(yard: taskyard.Yard) -> int:
        far_off(yard, "@hourly")
        return next_of(yard)

    def tick(yard: taskyard.Yard, due: int) -> None:
        assert sweep_at(yard, due) == 1

    def check(yard: taskyard.Yard, due: int, died: bool) -> None:
        clean(yard)
        for _ in range(2):
            sweep_at(yard, due)
        assert len(ticks_of(yard)) == 1
        assert next_of(yard) == due + HOUR
        assert yard.schedule("nightly")["last_task"] == yard.find()[0].id
        if durability == "durable":
            taken(yard.claim()).done()
            yard.prune(count=0, apply=True)
            assert sweep_at(yard, due) == 0
            assert yard.find() == []
            clean(yard)

    killed_everywhere(tmp_path, durability, ready, tick, check)


@pytest.mark.proof
@DURABILITIES
@pytest.mark.parametrize("verb", ["make", "pause", "remove"])
def test_a_schedule_is_changed_wholly_or_not(tmp_path: Path, durability: str, verb: str) -> None:
    def ready(yard: taskyard.Yard) -> None:
        if verb != "make":
            far_off(yard, "@hourly")

    def change(yard: taskyard.Yard, _: Any) -> None:
        verbs: dict[str, Callable[[], Any]] = {
            "make": lambda: yard.new_schedule("nightly", "@hourly", "build"),
            "pause": lambda: yard.pause_schedule("nightly"),
            "remove": lambda: yard.remove_schedule("nightly"),
        }
        verbs[verb]()

    def check(yard: taskyard.Yard, _: Any, died: bool) -> None:
        clean(yard)
        found = yard.schedules()
        assert len(found) == (verb != "remove") or died
        if verb == "pause":
            assert found[0]["paused"] or died
        if found:
            yard.remove_schedule("nightly")
        assert yard.new_schedule("nightly", "@daily", "test")["created"]
        yard.sweep()
        clean(yard)
        left = [name for name in os.listdir(Path(yard.url, "tmp")) if name != "clock"]
        assert not any(Path(yard.url, "tmp", name).is_dir() for name in left), left

    killed_everywhere(tmp_path, durability, ready, change, check)


@pytest.mark.parametrize("lost", ["read", "link", "rename"])
def test_a_tick_that_its_adder_has_only_selected_is_finished_by_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    with taskyard.init(str(tmp_path / "yard")) as yard, taskyard.open(str(tmp_path / "yard")) as other:
        far_off(yard, "@hourly")
        due, disk = next_of(yard), yard._store._context.disk  # type: ignore[attr-defined]
        real, seen = getattr(disk, lost), []

        def die(*words: Any) -> Any:
            if f"{words[0]}".endswith(".json") and "/schedules/" in f"{words[0]}":
                seen.append(words)
                raise KeyboardInterrupt  # as if it was killed here
            return real(*words)

        with monkeypatch.context() as dying:
            dying.setattr(disk, lost, die, raising=True)
            with pytest.raises(KeyboardInterrupt):
                sweep_at(yard, due)
        assert seen
        assert other.find() == []
        assert sweep_at(other, due) == 0
        assert len(ticks_of(other)) == 1
        assert next_of(other) == due + HOUR
        assert len(list(Path(yard.url, "schedules", "nightly").iterdir())) == 2
        clean(other)


def test_a_schedule_is_paused_while_an_adder_of_its_tick_is_gone_or_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taskyard.init(str(tmp_path / "yard")) as yard, taskyard.open(str(tmp_path / "yard")) as other:
        far_off(yard, "@hourly")
        due, schedules = next_of(yard), yard._store.schedules

        def die(*_: Any) -> None:
            raise KeyboardInterrupt  # the token has selected the task by now

        monkeypatch.setattr(schedules, "_finish", die)
        with pytest.raises(KeyboardInterrupt):
            sweep_at(yard, due)
        assert other.pause_schedule("nightly")["paused"]
        assert len(ticks_of(other)) == 1
        assert sweep_at(other, due + HOUR) == 0
        clean(other)


def test_what_a_slow_adder_wrote_can_no_longer_be_selected_once_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskyard.stores.directory.recovery import segments

    with taskyard.init(str(tmp_path / "yard")) as yard:
        far_off(yard, "@hourly")
        due, [late] = next_of(yard), yard._store.schedules.all()
        folder = Path(yard.url, "schedules", "nightly")
        left = folder / "0000zzzzzzzzzzzzzzzzz.json"
        left.write_text("{}")  # as a process leaves it that was killed before the token selected its task
        assert yard._store.schedules.all()[0].stands(late)
        monkeypatch.setattr(segments, "PATIENCE", -60_000)
        yard._store.schedules.all(mend=True)
        assert not left.exists()
        assert not yard._store.schedules.move(late, late.moved(due=due + HOUR))
        assert sweep_at(yard, due) == 1
        assert len(list(folder.iterdir())) == 2
        clean(yard)


def test_a_broken_schedule_is_found_and_stops_no_other(tmp_path: Path) -> None:
    with taskyard.init(str(tmp_path / "yard")) as yard:
        far_off(yard, "@hourly")
        due = next_of(yard)
        broken = Path(yard.url, "schedules", "broken")
        broken.mkdir()
        (broken / "said.json").write_text("{")
        (broken / "junk").write_text("")
        assert Ticks().add_due(yard._store, now=due) == 1
        assert {finding["code"] for finding in yard.audit()["findings"]} == {"schedule_broken", "stray"}
        assert [each["name"] for each in yard.schedules()] == ["nightly"]
