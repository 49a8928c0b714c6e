"""A yard, a file beside it, and hands for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.tasksmd import sync as syncing

if TYPE_CHECKING:
    from pathlib import Path

    from taskyard import Task, Yard
    from taskyard.doors.tasksmd.report import Report


class Plan:
    """A TASKS.md and its yard."""

    def __init__(self, yard: Yard, path: Path) -> None:
        self.yard = yard
        self.path = path
        self.mission: str | None = None

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode()

    def write(self, text: str) -> None:
        self.path.write_bytes(text.encode())

    def replace(self, old: str, new: str) -> None:
        """Edit the file as a person does, who sees the words that are to be there."""
        text = self.text
        assert old in text, text
        self.write(text.replace(old, new, 1))

    def delete(self, *words: str) -> None:
        """Delete every line that has one of these words."""
        self.write("".join(line for line in self.text.splitlines(True) if not any(word in line for word in words)))

    def sync(self, **options: Any) -> Report:
        return syncing.sync(self.yard, str(self.path), syncing.Options("ada", self.mission, **options))

    def status(self) -> Report:
        return syncing.status(self.yard, str(self.path), syncing.Options("ada", self.mission))

    def tasks(self) -> dict[str, Task]:
        """All tasks by title."""
        found = [self.yard.get(task.id) for task in self.yard.find(limit=1000)]
        return {str(task.title): task for task in found}

    def states(self) -> dict[str, str]:
        return {title: str(task.state) for title, task in self.tasks().items()}


@pytest.fixture
def plan(yard: Yard, tmp_path: Path) -> Plan:
    return Plan(yard, tmp_path / "TASKS.md")


def codes(report: Report) -> list[str]:
    """What the notices of a report are about."""
    return [notice["code"] for notice in report.notices]
