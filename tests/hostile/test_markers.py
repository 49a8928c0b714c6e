"""Whatever lies in segments/, new tasks find a segment: no number that somebody took for himself uses up those below it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import ids
from taskyard.stores.directory.tasks.segments import SIZE, next_number
from tests.conftest import taken, wait_until
from tests.hostile import verbs
from tests.hostile.test_mutations import bind

if TYPE_CHECKING:
    from collections.abc import Callable

LAST = "zzzz"


def plant_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def plant_huge_line(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"1769860800000 5-build")
        file.truncate(10 << 30)


PLANTS: dict[str, Callable[[Path], object]] = {
    "an empty file": Path.touch,
    "a lane's own marker": lambda path: path.write_text("1769860800000 5-build\n"),
    "a full marker": lambda path: path.write_text("1769860800000 5-build\n" + "." * SIZE),
    "a marker of nobody's": lambda path: path.write_text("1769860800000 9-nobody\n"),
    "garbage": lambda path: path.write_bytes(b"\xff\x00" * 500),
    "a number without end": lambda path: path.write_bytes(b"9" * 100_000 + b" 5-build\n"),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": bind,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a huge file": plant_huge,
    "a huge line": plant_huge_line,
}


def segments_of(yard: Path, kind: str) -> list[str]:
    return sorted(path.name for path in (yard / "todo" / f"5-{kind}").iterdir())


# Every plant under the last number, and every number with a plant of each sort: what can be read, what cannot, and what is no file.
@pytest.mark.parametrize(
    ("name", "plant"),
    [(LAST, plant) for plant in PLANTS]
    + [
        (name, plant)
        for name in ("zzzy", "zz00", "y000", "0000")
        for plant in ("a lane's own marker", "a full marker", "garbage", "a folder")
    ],
)
def test_a_planted_marker_stops_no_add(place: str, plant: str, name: str) -> None:
    PLANTS[plant](Path(place, "segments", name))
    for kind in ("build", "lint", "test"):
        with taskyard.open(place) as yard:  # each a process of its own, as far as its memory goes
            yard.add(kind)
            taken(yard.claim(kinds=[kind])).done()
            yard.add_many([{"kind": kind}] * (SIZE + 1))
    verbs.work_goes_on(Path(place))


def test_after_a_planted_last_number_a_lane_goes_on_where_it_was(place: str) -> None:
    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "build", "data": n} for n in range(SIZE)])
        Path(place, "segments", LAST).touch()
        yard.add_many([{"kind": "build", "data": SIZE + n} for n in range(2 * SIZE)])
        yard.add("lint")
    assert segments_of(Path(place), "build") == ["0000", "0001", "0002"]
    assert segments_of(Path(place), "lint") == ["0003"]
    with taskyard.open(place) as yard:
        assert [taken(yard.claim(kinds=["build"])).task.data for _ in range(3 * SIZE)] == list(range(3 * SIZE)), (
            "the oldest come first, from one segment to the next"
        )


def test_an_adder_that_knows_its_segment_needs_no_other_and_one_that_does_not_shares_the_newest(place: str) -> None:
    Path(place, "segments", LAST).touch()
    for _ in range(5):
        with taskyard.open(place) as yard:
            yard.add("build", delay=3600)  # so that the lane has no folder in todo/ to find its segment by
    assert sorted(os.listdir(Path(place, "segments"))) == ["0000", "5-build", LAST]


@pytest.mark.parametrize(
    ("taken", "number"),
    [
        ([], "0000"),
        (["0000"], "0001"),
        (["0007", "00zz"], "0100"),
        (["zyzz"], "zz00"),
        (["zz00"], "0000"),
        (["zzzz"], "0000"),
        (["0003", "zzzz"], "0004"),
        (["0003", "zzz0", "zzzz"], "0004"),
        (["0003", "y000", "zzzz"], "y001"),
        (["0000", "00zz", "zzzz"], "0100"),
        (["0000", "0001", "x000", "zz00"], "x001"),
    ],
)
def test_the_next_number_is_the_highest_that_has_room_above_it(taken: list[str], number: str) -> None:
    _has_room(sorted(taken, reverse=True), number)


def _has_room(taken: list[str], number: str) -> None:
    newest, found = next_number(taken)
    assert found is not None
    assert ids.base32(found, 4) == number
    assert [*taken, ""][newest] < number


def test_only_a_yard_that_has_used_all_numbers_is_full() -> None:
    every = [ids.base32(n, 4) for n in reversed(range(1 << 20))]
    assert next_number(every)[1] is None
    _has_room(every[:-1], "0000")
    _has_room([name for n, name in enumerate(every, 1) if n % 1000 != (1 << 20) % 1000], ids.base32(1_048_000, 4))


@pytest.mark.parametrize("plant", ["an empty file", "a full marker", "a folder", "a pipe"])
def test_a_sweep_passes_over_whatever_stands_for_a_marker(place: str, plant: str) -> None:
    with taskyard.open(place) as yard:
        for n in range(20):
            yard.add(f"kind{n}")
            taken(yard.claim()).done()
        for name in ("0000", "0001", LAST):
            path = Path(place, "segments", name)
            path.unlink(missing_ok=True)
            PLANTS[plant](path)
        wait_until(lambda: yard.prune(age=0, apply=True) and not yard.counts()["done"])
        for _ in range(3):
            yard.sweep()
    verbs.work_goes_on(Path(place))
