"""The index of what tasks use: it spares claims the files of tasks that others hold, and decides nothing where it is missing or torn."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.core import resources
from taskyard.stores.directory.layout import load
from tests.conftest import taken
from tests.directory.staging import yard_on

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("a", "b", "a/", "a/b", "a/b/", "a/b/c", "a/bc", "./a//b", "/a", "/a/", "/a/b", "ab/")


@pytest.fixture
def url(tmp_path: Path) -> str:
    taskyard.init(str(tmp_path / "yard"), durability="fast").close()
    return str(tmp_path / "yard")


def lines(url: str) -> Path:
    [segment] = os.listdir(f"{url}/uses")
    return Path(url, "uses", segment)


def reads_of_a_claim(url: str, held: int) -> int:
    """How many files a worker reads to claim the second of two tasks, while others hold so many."""
    reads = 0

    def cue(call: str, path: str, _: bool) -> None:
        nonlocal reads
        reads += call == "read" and "/processing/" in path

    with yard_on(url, worker="other") as other, yard_on(url, cue, worker="ada") as ada:
        other.add_many([{"kind": "build", "uses": [f"src/{number}/"]} for number in range(held + 2)])
        for _ in range(held):
            taken(other.claim())
        taken(ada.claim())
        reads = 0
        taken(ada.claim())
    return reads


def test_marks_meet_exactly_where_names_conflict() -> None:
    for one, other in itertools.product(NAMES, NAMES):
        meet = not resources.sought([one]).isdisjoint(resources.marks([other]))
        assert meet == resources.conflict(one, other), (one, other)


def test_a_claim_reads_no_files_of_tasks_that_others_hold(url: str) -> None:
    assert reads_of_a_claim(url, held=20) < 5


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[: len(text) // 3],
        lambda text: text.replace("src/a", "src/b").replace("\n", ""),
        lambda text: "".join(line[: len(line) // 2] + "\n" for line in text.splitlines()),
        lambda text: text.replace("src/a", "\0" * 5),
    ],
    ids=["empty", "cut off", "without ends of lines", "half lines", "never written to the disk"],
)
def test_a_torn_line_frees_nothing(url: str, spoil: Callable[[str], str]) -> None:
    with yard_on(url, worker="other") as other, yard_on(url) as ada, yard_on(url, worker="bob") as bob:
        other.add("build", uses=["src/a"])
        taken(other.claim())
        other.add("build", uses=["src/"])
        path = lines(url)
        path.write_text(spoil(path.read_text()))
        assert ada.claim() is None
        other.add("build", uses=["lib"])
        assert [taken(bob.claim()).task.uses, bob.claim()] == [["lib"], None]


def test_what_was_added_without_a_line_is_read(url: str) -> None:
    with yard_on(url, worker="other") as other, yard_on(url) as ada:
        other.add_many([{"kind": "build", "uses": ["src/"]}, {"kind": "build", "uses": ["src/a"]}])
        lines(url).unlink()
        os.rmdir(f"{url}/uses")
        assert taken(ada.claim()).task.uses == ["src/"]
        assert ada.claim() is None
        other.add("build", uses=["lib"])
        assert "lib" in lines(url).read_text()


def test_a_task_that_another_worker_has_got_is_a_lost_race_and_no_conflict(url: str) -> None:
    with yard_on(url, worker="other") as other, yard_on(url) as ada:
        other.add_many([{"kind": "build", "uses": [f"src/{number}/"]} for number in range(40)])
        for _ in range(20):
            taken(ada.claim()).done()  # its list of what is ready has the task that the other takes next
            taken(other.claim())
        assert not [name for name in os.listdir(f"{url}/todo") if "+" in name]


def test_the_yard_says_nothing_of_its_index(url: str) -> None:
    """The index is a hint, so that clients without it go on: no feature of the yard."""
    with yard_on(url) as ada:
        ada.add("build", uses=["lib"])
    assert not load(url).features
