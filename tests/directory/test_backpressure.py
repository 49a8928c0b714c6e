"""A full directory: dropped files stay where they are, and no add reads the backlog."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Full
from taskyard.core import backlog
from taskyard.stores.directory.tasks import counting
from taskyard.yard.ticks import Ticks
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="ada") as opened:
        opened.tends = False
        yield opened


def drop(yard: Yard, *names: str, text: str = "{}") -> None:
    for name in names:
        with open(f"{yard.url}/todo/{name}.json", "w", encoding="utf-8") as file:
            file.write(text)


def test_a_full_yard_leaves_dropped_files_where_they_are_and_takes_them_in_order(yard: Yard) -> None:
    yard.set_settings({"max_todo": 2})
    drop(yard, "a", "b", "c")
    assert yard.sweep().taken == 2
    assert [name for name in os.listdir(f"{yard.url}/todo") if name.endswith(".json")] == ["c.json"]
    assert (yard.stats()["dropped"], yard.full()) == (1, [{"kind": None, "count": 2, "max_todo": 2}])
    why = yard.why()
    assert why["full"] == yard.full()
    assert "1 dropped file is not taken in yet, because the yard is full (2 of 2)" in why["message"]
    taken(yard.claim()).done()
    assert yard.sweep().taken == 1
    assert [yard.get(line.id).dropped_as for line in yard.find()] == ["a", "b", "c"]


def test_a_full_kind_keeps_only_its_own_files_out(yard: Yard) -> None:
    yard.set_settings({"kinds": {"build": {"max_todo": 1}}})
    drop(yard, "a", "b", text='{"kind": "build"}')
    drop(yard, "c", text='{"kind": "build", "taskId": "k"}')
    drop(yard, "d", text='{"kind": "test", "taskId": "l"}')
    assert yard.sweep().taken == 2
    assert yard.counts()["todo"] == 2
    assert yard.stats()["dropped"] == 2
    assert yard.set_aside() == []


def test_adds_below_the_bound_count_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.set_settings({"max_todo": 50, "kinds": {"build": {"max_todo": 40}}})
    yard.add("build")
    counts: list[int] = []
    count = counting.count
    monkeypatch.setattr(counting, "count", lambda *about: (counts.append(1), count(*about))[1])  # type: ignore[func-returns-value]
    for _ in range(38):
        yard.add("build")
    assert counts == []
    yard.add("build")
    with pytest.raises(Full):
        yard.add("build")
    assert counts


def test_a_costly_count_is_not_repeated_for_every_add(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.set_settings({"max_todo": 3})
    monkeypatch.setattr(backlog, "COSTLY", 0)
    monkeypatch.setattr(backlog, "REST", 10**9)
    yard.add_many([{"kind": "build"}] * 3)
    path = f"{yard.url}/backlog/@.counted"
    with pytest.raises(Full):
        yard.add("build")
    with open(path, encoding="utf-8") as file:
        counted, since, at, _ = file.read().split()
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{counted} {since} {at} 1000")
    taken(yard.claim())
    with open(f"{yard.url}/backlog/@", "ab") as file:
        file.write(b"+")  # another adder at the same moment
    with pytest.raises(Full, match="3 of 3") as full:
        yard.add("build")
    assert full.value.count == 3
    monkeypatch.setattr(backlog, "REST", 0)
    yard.add("build")


def test_a_broken_note_of_the_count_is_counted_anew(yard: Yard) -> None:
    yard.set_settings({"max_todo": 2})
    yard.add("build")
    for broken in ("", "nonsense", "1 2 3", "-1 0 0 0"):
        with open(f"{yard.url}/backlog/@.counted", "w", encoding="utf-8") as file:
            file.write(broken)
        claim = taken(yard.claim())
        yard.add("build")
        claim.done()
    yard.add("build")
    with pytest.raises(Full):
        yard.add("build")


def test_a_tick_takes_one_place(yard: Yard) -> None:
    yard.set_settings({"max_todo": 5})
    yard.new_schedule("nightly", "@hourly", "build")
    [schedule] = yard._store.schedules.all()
    assert schedule.due is not None
    assert Ticks().add_due(yard._store, now=schedule.due) == 1
    assert os.path.getsize(f"{yard.url}/backlog/@") == 1
