"""The client finds a segment and a page of the log whatever lies there, and always the segment that Python would."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import ids
from taskyard.stores.directory.tasks.segments import SIZE, next_number
from tests.hostile.test_markers import LAST, PLANTS

if TYPE_CHECKING:
    from tests.sh.shells import Shell


@pytest.mark.damages("a marker is planted")
@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_marker_stops_no_add(sh: Shell, place: str, plant: str) -> None:
    for name in (LAST, "0000"):
        PLANTS[plant](Path(place, "segments", name))
    added = [sh.run("add_task", kind).line for kind in ("lint", "test", "lint")]
    own = [id[: ids.SEGMENT] for id in added]
    assert own == ["0001", "0002", "0001"]
    with taskyard.open(place) as yard:
        assert {task.id for task in yard.find(state="todo")} == set(added)
        assert yard.add("test").id.startswith("0002")


@pytest.mark.damages("a marker is planted")
def test_both_fill_a_lane_after_a_planted_last_number(sh: Shell, place: str) -> None:
    Path(place, "segments", LAST).touch()
    assert sh.run("add_task", "build").line.startswith("0000")
    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "build"}] * (SIZE - 1))
    assert sh.run("add_task", "build").line.startswith("0001")
    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "build"}] * SIZE)
    assert sorted(os.listdir(Path(place, "todo", "5-build"))) == ["0000", "0001", "0002"]
    assert sh.run("add_task", "build").line.startswith("0002")


SETS: tuple[list[str], ...] = (
    [], ["0000"], ["0007", "00zz"], ["zyzz"], ["zz00"], ["zzzz"], ["0003", "zzzz"], ["0003", "zzz0", "zzzz"], ["0003", "y000", "zzzz"], ["0000", "00zz", "zzzz"],
    ["0000", "0001", "x000", "zz00"], [ids.base32(n, 4) for n in range(0, 1 << 20, 1000)], ["0000", *(ids.base32(n, 4) for n in range(1023, 1 << 20, 1024))],
)  # fmt: skip


def test_both_go_on_with_the_same_number(sh: Shell) -> None:
    for names in SETS:
        there = sorted(names, reverse=True)
        place, number = next_number(there)
        assert number is not None
        said = sh.script('_ty_next "$@"; printf "%s,%s\\n" "$_ty_text" "$_ty_newest"', *there)
        assert said.line == f"{ids.base32(number, 4)},{' '.join(there[place:])}"


@pytest.mark.parametrize("plant", ["a folder", "a pipe", "a link to nowhere", "a link to a device"])
def test_a_plant_in_the_place_of_its_log_keeps_nobody_waiting(sh: Shell, place: str, plant: str) -> None:
    sh.run("add_task", "build")
    (page,) = Path(place, "events").iterdir()
    page.unlink()
    PLANTS[plant](page)
    id = sh.run("add_task", "build").line
    with taskyard.open(place) as yard:
        assert [event["event"] for event in yard.events(task=id)] == ["added"]


@pytest.mark.damages("its settings are no file")
@pytest.mark.parametrize("plant", ["a folder", "a pipe", "a link to a device"])
def test_settings_that_are_no_file_are_refused_at_once(sh: Shell, place: str, plant: str) -> None:
    settings = Path(place, "yard.json")
    settings.unlink()
    PLANTS[plant](settings)
    said = sh.run("add_task", "build")
    assert said.code == 8
    assert "yard.json" in said.err
