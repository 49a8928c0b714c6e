"""Importing from other tools, on every store: one graph, once, with the endings that were published elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from taskyard import Conflict, State
from tests.importers.samples import SAMPLES, bring, states, tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from taskyard import Yard


def write(path: Path, *issues: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(issue) + "\n" for issue in issues), encoding="utf-8")
    return path


@pytest.mark.parametrize("tool", ["beads", "taskmaster"])
def test_the_second_import_of_a_file_adds_nothing(yard: Yard, tool: str) -> None:
    first = bring(yard, tool, SAMPLES[tool])
    stood = states(yard, first)
    again = bring(yard, tool, SAMPLES[tool])
    assert (first.created, again.created) == (len(first.rows), 0)
    assert [row.id for row in again.rows] == [row.id for row in first.rows]
    assert not any(row.differs for row in again.rows)
    assert states(yard, again) == stood
    assert yard.audit()["verdict"] == "clean"


def test_a_later_import_adds_what_is_new_behind_what_is_known(yard: Yard, tmp_path: Path) -> None:
    one = {"id": "bd-1", "title": "First", "status": "open"}
    bring(yard, "beads", write(tmp_path / "a.jsonl", one))
    two = {
        "id": "bd-2",
        "title": "Then",
        "status": "open",
        "dependencies": [{"depends_on_id": "bd-1", "type": "blocks"}],
    }
    imported = bring(yard, "beads", write(tmp_path / "b.jsonl", {**one, "title": "First of all"}, two))
    assert [(row.created, row.differs) for row in imported.rows] == [(False, True), (True, False)]
    found = tasks(yard, imported)
    assert (found["bd-1"].title, found["bd-2"].after) == ("First", [found["bd-1"].id])
    alone = bring(yard, "beads", write(tmp_path / "c.jsonl", {**two, "id": "bd-3"}))
    assert states(yard, alone) == {"bd-3": "blocked"}, "what a file does not have may be in the yard"


def test_endings_come_over_and_what_follows_them_is_free(yard: Yard, tmp_path: Path) -> None:
    queue = {
        "tasks": [
            {"id": "a", "kind": "x", "status": "done"},
            {"id": "b", "kind": "x", "status": "done", "depends_on": ["a"]},
            {"id": "c", "kind": "x", "status": "failed", "depends_on": ["b"]},
            {"id": "d", "kind": "x", "status": "cancelled", "depends_on": ["e"]},
            {"id": "e", "kind": "x", "status": "ready", "depends_on": ["a", "b"]},
            {"id": "f", "kind": "x", "status": "ready", "depends_on": ["c"]},
        ]
    }
    (tmp_path / "queue.json").write_text(json.dumps(queue), encoding="utf-8")
    imported = bring(yard, "lab", tmp_path / "queue.json")
    assert states(yard, imported) == {
        "a": "done", "b": "done", "c": "failed", "d": "cancelled", "e": "todo", "f": "blocked",
    }  # fmt: skip
    found = tasks(yard, imported)
    assert "before it was imported" in str(found["c"].error)
    assert yard.retry(found["c"].id).state is State.TODO  # type: ignore[union-attr]
    claim = yard.claim(found["c"].id)
    assert claim is not None, "a failed task that is retried is anybody's"
    claim.done()
    assert states(yard, imported)["f"] == "todo"
    again = bring(yard, "lab", tmp_path / "queue.json")
    assert (again.created, states(yard, again)["c"]) == (0, "done")


def test_an_import_that_was_killed_before_the_endings_is_finished_by_the_next(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("taskyard.doors.importers.load._end_some", killed)
    with pytest.raises(KeyboardInterrupt):
        bring(yard, "taskmaster", SAMPLES["taskmaster"])
    assert yard.counts()["done"] == 0
    taken = set()
    while (claim := yard.claim()) is not None:
        taken.add(claim.task.title)
    assert taken <= {"Read the contract", "Index the catalogue"}, "what was done elsewhere is handed to no worker"
    monkeypatch.undo()
    imported = bring(yard, "taskmaster", SAMPLES["taskmaster"])
    assert imported.created == 0
    assert (yard.counts()["done"], yard.counts()["cancelled"]) == (2, 1)


def test_a_paused_yard_refuses_an_import_with_endings_before_anything_is_added(yard: Yard) -> None:
    yard.pause()
    with pytest.raises(Conflict, match="paused"):
        bring(yard, "beads", SAMPLES["beads"])
    assert sum(yard.counts().values()) == 0
    imported = bring(yard, "beads", SAMPLES["beads"], open_only=True)
    assert "done" not in states(yard, imported).values()
    assert states(yard, imported)["shop-a1f.2"] == "todo", "what it came after was done"
