"""Deadlines in a directory: what a sweep reads, and what dropped files say."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import State, Unavailable
from taskyard.yard import janitor
from tests.directory.staging import Step, yard_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="ada") as opened:
        opened.tends = False
        yield opened


PAST = "2001-01-01T00:00:00Z"


def entries(yard: Yard) -> list[str]:
    return [name for _, _, names in os.walk(f"{yard.url}/deadlines") for name in names]


def put_back(url: str) -> None:
    """Have all entries look as if their time were over."""
    for entry in Path(url, "deadlines").glob("*/*/*"):
        past = Path(url, "deadlines", "2001-01-01", entry.parent.name, f"{entry.name.partition('.')[0]}.978307200000")
        past.parent.mkdir(parents=True, exist_ok=True)
        entry.rename(past)


@pytest.mark.parametrize("expires", ["2h", 7200, "2100-01-01T00:00:00Z"])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_dropped_file_may_have_a_deadline_and_a_timeout(yard: Yard, expires: object, key: str | None) -> None:
    with open(f"{yard.url}/todo/a.json", "w", encoding="utf-8") as file:
        json.dump({"expires": expires, "timeout": "2m", "taskId": key}, file)
    assert yard.sweep().taken == 1
    [line] = yard.find()
    first = yard.get(line.id)
    assert (first.timeout, first.expires is not None, first.expires) == (120.0, True, yard.get(line.id).expires)
    assert len(entries(yard)) == 1


def test_a_dropped_file_that_is_late_is_cancelled(yard: Yard) -> None:
    with open(f"{yard.url}/todo/a.json", "w", encoding="utf-8") as file:
        json.dump({"expires": PAST}, file)
    swept = yard.sweep()
    assert (swept.taken, swept.expired) == (1, 1)


def test_entries_go_with_their_tasks_and_a_sweep_reads_no_task_that_has_time(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        yard.add("build", expires="90m")
    yard.add("build", expires=PAST)
    disk = yard._store._context.disk  # type: ignore[attr-defined]
    read: list[str] = []
    whole = disk.read

    def noted(path: str) -> bytes:
        read.append(path)
        content: bytes = whole(path)
        return content

    monkeypatch.setattr(disk, "read", noted)
    assert yard.sweep().expired == 1
    assert len(read) == 1
    assert len(entries(yard)) == 20


def test_an_entry_without_a_task_is_forgotten_after_a_while(yard: Yard) -> None:
    folder = f"{yard.url}/deadlines/2001-01-01/0000"
    os.makedirs(folder)
    with open(f"{folder}/00006a1dkn473dtgwegf1.978307200000", "w", encoding="utf-8"):
        pass
    assert yard.sweep().expired == 0
    assert entries(yard) == []


def test_an_edited_deadline_counts_and_the_old_entry_goes(yard: Yard) -> None:
    id = yard.add("build", expires=0.001).id
    yard.edit(id, expires="2100-01-01T00:00:00Z")
    assert yard.sweep().expired == 0
    assert yard.get(id).state is State.TODO
    assert entries(yard) == [f"{id}.4102444800000"]


def test_an_entry_stays_if_its_task_moves_while_a_sweep_reads_it(place: str) -> None:
    with taskyard.open(place, worker="bob") as bob:
        id = bob.add("build", expires=PAST).id

        def move() -> None:
            bob.edit(id, priority=3)

        with yard_on(place, Step("before", "read", f"/{id}.", move)) as yard:
            assert janitor.sweep(yard._store, "ada").expired == 0, "it has moved"
            assert bob.get(id).state is State.TODO
            assert janitor.sweep(yard._store, "ada").expired == 1
        assert bob.get(id).state is State.CANCELLED


def test_an_entry_stays_if_its_task_is_claimed_after_a_sweep_has_listed_the_claims(place: str) -> None:
    with yard_on(place, worker="bob") as bob:
        id = bob.add("build", expires="1h").id
        put_back(place)
        with yard_on(place, Step("after", "listdir", "/processing", lambda: bob.claim(id))) as yard:
            assert yard._store.upkeep.expire("ada", 10) == 0
            assert bob.get(id).state is State.PROCESSING
            assert len(entries(yard)) == 1, "a release would bring the task back"


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_an_entry_stays_if_its_task_cannot_be_read_for_a_moment(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    yard.add("build", expires=PAST)

    def refuse(path: str) -> bytes:
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patched:
        patched.setattr(yard._store._context.disk, "read", refuse)  # type: ignore[attr-defined]
        with pytest.raises(Unavailable):
            yard.sweep()
    assert yard.sweep().expired == 1


def test_a_task_that_may_be_in_another_users_folder_keeps_nobody_from_sweeping(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = yard.add("build", expires=PAST).id
    late = yard.add("build", expires=PAST).id
    yard.edit(late, priority=3)
    disk = yard._store._context.disk  # type: ignore[attr-defined]
    whole = disk.listdir

    def refuse(folder: str) -> list[str]:
        if folder.endswith(f"/5-build/{id[:4]}"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
        found: list[str] = whole(folder)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(disk, "listdir", refuse)
        assert yard.sweep().expired == 1
    assert yard.get(late).state is State.CANCELLED
    assert yard.sweep().expired == 1


def test_a_sweep_looks_for_no_task_that_is_worked_on(tmp_path: Path) -> None:
    def listings(number: int) -> int:
        url, count = str(tmp_path / f"yard-{number}"), 0
        taskyard.init(url, durability="fast").close()

        def cue(name: str, _: str, made: bool) -> None:
            nonlocal count
            count += name == "listdir" and made

        with yard_on(url, worker="bob") as bob:
            bob.add_many({"kind": "build", "expires": "1h"} for _ in range(number))
            assert len(bob.claim_many(number)) == number
        put_back(url)
        with yard_on(url, cue) as yard:
            assert janitor.sweep(yard._store, "ada").expired == 0
            assert len(entries(yard)) == number, "a release would bring the tasks back"
        return count

    assert listings(20) == listings(2)
