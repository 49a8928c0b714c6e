"""What cannot be copied is refused with what to do, and nothing is touched."""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard import Conflict, Invalid, TaskyardError, Unavailable, opening
from taskyard.stores.directory import layout
from tests.conftest import taken
from tests.copying.test_same import STORES, tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

both = pytest.mark.parametrize("store", STORES)


def refused(error: type[TaskyardError], source: str, target: str, words: str) -> TaskyardError:
    """The error of a copy that must not be made."""
    with pytest.raises(error, match=words) as caught:
        opening.copy(source, target)
    assert caught.value.hint
    return caught.value


@both
def test_a_yard_that_is_not_paused(store: str, new: Callable[[str], str]) -> None:
    origin = new(store)
    with taskyard.init(origin) as yard:
        yard.add("build")
        yard.pause("build")
        error = refused(Conflict, origin, new("directory"), "not paused")
        assert "taskyard pause --yard" in str(error.hint)


@both
def test_a_yard_in_which_work_goes_on(store: str, paused: Callable[..., str], new: Callable[[str], str]) -> None:
    handles: list[str] = []

    def life(yard: Yard) -> None:
        yard.add("build")
        handles.append(taken(yard.claim()).handle)

    origin = paused(store, life)
    error = refused(Conflict, origin, new("directory"), handles[0].replace(".", "\\."))
    assert "--with-claims" in str(error.hint)


def test_a_drop_box_that_is_not_empty(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    origin = paused("directory", lambda yard: yard.add("build"))
    (Path(origin) / "todo" / "order.json").write_text("{}")
    error = refused(Conflict, origin, new("directory"), "1 files lie in the drop box")
    assert "taskyard janitor" in str(error.hint)
    assert (Path(origin) / "todo" / "order.json").exists()


@both
def test_a_target_that_has_something_else_in_it(
    store: str, paused: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, target = paused("directory", lambda yard: yard.add("build")), new(store)
    with taskyard.init(target) as yard:
        task = yard.add("deploy", {"mine": True})
        refused(Conflict, origin, target, "not empty")
        assert yard.get(task.id).data == {"mine": True}
        assert taken(yard.claim()).task.id == task.id, "it was paused"


@both
def test_an_unfinished_copy_of_another_yard(store: str, paused: Callable[..., str], new: Callable[[str], str]) -> None:
    one, other = (paused("directory", lambda yard: yard.add("build")) for _ in range(2))
    target = new(store)
    half(one, target)
    error = refused(Conflict, other, target, "unfinished copy of another yard")
    assert one in str(error.hint)
    assert opening.copy(one, target).tasks == 1


def half(source: str, target: str) -> None:
    """Begin a copy, and be killed before the first task."""
    origin, other = opening.endpoint(source, target=False), opening.endpoint(target, target=True)
    other.begin(origin.label, origin.facts())
    origin.close()
    other.close()


@both
def test_an_unfinished_copy_is_opened_by_nobody(
    store: str, paused: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, target = paused("directory", lambda yard: yard.add("build")), new(store)
    half(origin, target)
    for way in (taskyard.open, taskyard.init):
        with pytest.raises(Unavailable, match="unfinished copy"):
            way(target)
    refused(Unavailable, target, new("directory"), "unfinished copy")
    opening.copy(origin, target)
    taskyard.open(target).close()


@both
def test_tasks_in_the_copy_that_are_not_in_the_origin_are_never_removed(
    store: str, paused: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, target = paused("directory", lambda yard: yard.add("build")), new(store)
    with taskyard.init(target) as before:  # open before the copy begins, and so not kept out
        half(origin, target)
        task = before.add("deploy")
        refused(Conflict, origin, target, task.id)
        assert before.get(task.id).id == task.id


def test_memory_one_yard_twice_and_no_yard_at_all(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    origin = paused("directory", lambda yard: yard.add("build"))
    refused(Invalid, "memory:x", origin, "memory")
    refused(Invalid, origin, "memory:x", "memory")
    refused(Invalid, origin, f"file://{origin.replace(' ', '%20')}", "one yard")
    refused(Invalid, origin, f"{origin}/inner", "inside of")
    assert not os.path.exists(f"{origin}/inner")
    refused(Unavailable, new("directory"), new("directory"), "no yard")
    refused(Unavailable, new("postgresql"), new("directory"), "no yard")
    database = paused("postgresql", lambda yard: yard.add("build"))
    refused(Invalid, database, f"{database}&connect_timeout=5", "one yard")


@both
def test_two_copies_into_one_yard_at_once_end_well_or_are_told_of_one_another(
    store: str, made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, target = made("directory", 300), new(store)
    told: list[TaskyardError] = []

    def copy() -> None:
        try:
            opening.copy(origin, target)
        except TaskyardError as error:
            told.append(error)

    copies = [threading.Thread(target=copy) for _ in range(3)]
    for one in copies:
        one.start()
    for one in copies:
        one.join()
    assert all(isinstance(error, Conflict) and error.hint for error in told), told
    opening.copy(origin, target)
    assert opening.copy(origin, target).was_complete


def test_a_copy_leaves_the_files_of_a_doctor_alone(made: Callable[..., str], new: Callable[[str], str]) -> None:
    origin, target = made("directory", 100), new("directory")
    taskyard.init(target).close()
    probes = [Path(target) / folder / f"{layout.DOCTOR_PREFIX}0.probe" for folder in layout.FOLDERS]
    for probe in probes:
        probe.touch()
        os.utime(probe, (1, 1))
    half(origin, target)  # so that the next copy also takes away what this one has written
    opening.copy(origin, target)
    assert [probe.stat().st_mtime for probe in probes] == [1] * len(probes)


@pytest.mark.parametrize("trouble", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
def test_a_copy_that_gets_in_the_way_of_another_in_the_database_is_told_so(
    new: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, trouble: type[psycopg.Error]
) -> None:
    with closing(opening.endpoint(new("postgresql"), target=True)) as target:

        def refused(*_: Any) -> Any:
            raise trouble("deadlock detected")

        monkeypatch.setattr(target, "_run", refused)
        with pytest.raises(Conflict, match="at the same time"):
            target.facts()


def test_one_copy_at_a_time_is_made_into_a_directory(new: Callable[[str], str]) -> None:
    target = new("directory")
    with closing(opening.endpoint(target, target=True)), pytest.raises(Conflict, match="at the same time"):
        opening.endpoint(target, target=True)
    opening.endpoint(target, target=True).close()


def test_what_another_copy_has_just_written_is_told_as_that(
    paused: Callable[..., str], new: Callable[[str], str]
) -> None:
    endpoint: Any = opening.endpoint(paused("postgresql", lambda yard: yard.add("build")), target=True)
    with closing(endpoint), pytest.raises(Conflict, match="at the same time") as caught, endpoint._translating_errors():
        endpoint._connection.execute("INSERT INTO taskyard.project (name) SELECT name FROM taskyard.project")
    assert "once more" in str(caught.value.hint)


def test_a_task_that_nobody_can_read(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    origin = paused("directory", lambda yard: yard.add("build", {"n": 1}))
    [file] = (Path(origin) / "todo").rglob("*.e0.c0.json")
    file.write_bytes(b'{"taskyard":1,"id"')
    error = refused(Conflict, origin, new("directory"), "cannot be read")
    assert "taskyard cancel" in str(error.hint)
    with taskyard.open(origin) as yard:
        yard.cancel(file.name.split(".")[0])
    copied = opening.copy(origin, new("postgresql"))
    assert "without data" in copied.warnings[0]


def test_a_task_that_a_killed_process_forgot_to_let_go(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    def life(yard: Yard) -> None:
        yard.add("ship", after=[yard.add("build").id])

    origin = paused("directory", life)
    [need] = [path for path in (Path(origin) / "needs").rglob("*") if path.is_file()]
    need.unlink()
    error = refused(Conflict, origin, new("postgresql"), "blocked although")
    assert "taskyard janitor" in str(error.hint)


def test_checks_of_somebody_else_are_not_made_ones_own(
    paused: Callable[..., str], new: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, target = paused("directory", lambda yard: yard.add("build")), new("directory")
    file = Path(origin) / "yard.json"
    content = json.loads(file.read_text())
    content["settings"]["checks"] = {"tests": ["theirs"]}
    file.write_text(json.dumps(content))
    monkeypatch.setattr(layout, "_trusted", lambda *_: {})
    copied = opening.copy(origin, target)
    assert "checks" in copied.warnings[0]
    assert "theirs" not in (Path(target) / "yard.json").read_text()


def test_a_source_that_is_read_only_can_be_copied(paused: Callable[..., str], new: Callable[[str], str]) -> None:
    origin = paused("directory", lambda yard: yard.add("build"))
    before = tree(origin)
    opening.copy(origin, new("directory"))
    opening.copy(origin, new("postgresql"))
    assert tree(origin) == before
