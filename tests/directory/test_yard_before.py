"""A yard that the version before has made, with a task in every state, goes on as it is."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import taskyard
from tests.conftest import taken

KEPT = Path(__file__).parent / "yard_before"


@pytest.fixture
def before(tmp_path: Path) -> str:
    with tarfile.open(KEPT / "yard.tar.xz") as packed:
        if hasattr(tarfile, "data_filter"):  # since 3.11.4
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(tmp_path / "yard")
    return str(tmp_path / "yard")


@pytest.fixture
def tasks() -> dict[str, str]:
    known: dict[str, str] = json.loads((KEPT / "tasks.json").read_text())
    return known


def test_every_task_is_where_it_was(before: str, tasks: dict[str, str]) -> None:
    with taskyard.open(before, worker="bob") as yard:
        states = {name: yard.get(id).state for name, id in tasks.items() if name != "handle"}
        assert states == {
            "todo": "todo",
            "done": "done",
            "failed": "failed",
            "cancelled": "cancelled",
            "waiting": "waiting",
            "blocked": "blocked",
            "held": "processing",
            "keyed": "todo",
            "edited": "todo",
            "released": "todo",
        }
        assert yard.get(tasks["done"]).result == {"ok": True}
        assert [note["text"] for note in yard.report(tasks["done"]).notes] == ["half way"]
        assert yard.get(tasks["failed"]).error == "it broke"
        assert yard.get(tasks["edited"]).title == "Edited"
        assert not yard.add("build", {"n": 8}, key="order-8").created
        assert {event["event"] for event in yard.events(task=tasks["released"])} == {"added", "claimed", "released"}


def test_an_old_handle_still_ends_its_task(before: str, tasks: dict[str, str]) -> None:
    with taskyard.open(before, worker="ada") as yard:
        yard.held(tasks["handle"]).done("printed")
        assert yard.get(tasks["held"]).result == "printed"


def test_all_that_is_open_can_be_worked_off_and_the_yard_is_clean(before: str, tasks: dict[str, str]) -> None:
    with taskyard.open(before, worker="ada") as yard:
        [again] = yard.resume()
        assert (again.task.id, again.fence) == (tasks["held"], 2)
        again.done()
        yard.retry(tasks["failed"])
        yard.retry(tasks["cancelled"])
        yard.retry(tasks["waiting"])
        done = []
        while (claim := yard.claim()) is not None:
            done.append(taken(claim).task.id)
            claim.done()
        assert done[0] == tasks["todo"], "the most urgent"
        assert tasks["blocked"] in done
        assert yard.counts()["done"] == 11, "with what lay in the drop box"
        assert yard.audit()["findings"] == []


def test_a_folder_that_came_later_is_made_when_it_is_first_needed(before: str) -> None:
    with taskyard.open(before, worker="bob") as yard:
        assert not (Path(before) / "asked").exists()
        assert "folder_missing" not in yard.audit()["counts"]
        assert yard.why()["ready"]
        taken(yard.claim()).release()
        assert [path.name for path in (Path(before) / "asked").iterdir()] == ["@"]
        assert yard.audit()["findings"] == []
