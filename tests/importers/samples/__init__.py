"""Samples of what other tools write, and how the tests import them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskyard.doors import importers
from taskyard.doors.importers import load
from taskyard.doors.importers.item import Options

if TYPE_CHECKING:
    from taskyard import Task, Yard
    from taskyard.doors.importers.load import Imported

FOLDER = Path(__file__).parent
SAMPLES = {
    "beads": FOLDER / "beads.jsonl",
    "taskmaster": FOLDER / "tasks.json",
    "claude": FOLDER / "claude" / "web-crew",
    "lab": FOLDER / "lab" / "queue.json",
    "backlog": FOLDER / "backlog",
    "mosaic": FOLDER / "mosaic",
    "checklist": FOLDER / "checklist.md",
}


def bring(yard: Yard, tool: str, path: Path | str, **options: Any) -> Imported:
    """Import a file into the yard."""
    given = Options(**options)
    return load.run(importers.read(tool, str(path), given), given, yard)


def tasks(yard: Yard, imported: Imported) -> dict[str, Task]:
    """The tasks as the yard has them, by the other tool's ids."""
    return {row.item.id: yard.get(str(row.id)) for row in imported.rows}


def states(yard: Yard, imported: Imported) -> dict[str, str]:
    """Where each task stands, by the other tool's ids."""
    return {id: str(task.state) for id, task in tasks(yard, imported).items()}


def after(yard: Yard, imported: Imported, id: str) -> list[str]:
    """What a task comes after, by the other tool's ids."""
    names = {row.id: row.item.id for row in imported.rows}
    return [str(names[str(need)]) for need in tasks(yard, imported)[id].after]
