"""Real syncs, killed for good while they work: the next one makes it whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.doors.tasksmd import dialects
from taskyard.doors.tasksmd.sync import Options, sync
from tests.conftest import wait_until

if TYPE_CHECKING:
    from pathlib import Path

LINES = 400


@pytest.mark.parametrize("sign", [".TASKS.md.taskyard.lock", ".TASKS.md.taskyard", "tasks", ".TASKS.md.taskyard.text"])
def test_a_sync_that_is_killed_leaves_one_task_for_each_line(place: str, tmp_path: Path, sign: str) -> None:
    file = tmp_path / "TASKS.md"
    file.write_text("".join(f"- [{' x'[number % 4 == 0]}] Task {number}\n" for number in range(LINES)))
    command = [sys.executable, "-m", "taskyard", "--yard", place, "--worker", "ada", "sync", str(file)]
    with taskyard.open(place, worker="bob") as yard:

        def has_come() -> bool:
            """Whether the sync is as far as that, or over."""
            seen = bool(yard.find(limit=1)) if sign == "tasks" else os.path.exists(tmp_path / sign)
            return seen or process.poll() is not None

        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(has_come)
            process.send_signal(signal.SIGKILL)
            process.wait()
        wait_until(lambda: not _held(yard, file))
        tasks = list(yard.find(limit=10_000))
        assert len(tasks) == LINES
        assert len({task.title for task in tasks}) == LINES
        assert sum(task.state == "done" for task in tasks) == LINES // 4
        rows = dialects.parsed(file.read_text()).rows
        assert len({row.id for row in rows}) == LINES
        assert not sync(yard, str(file), Options("ada")).changed


def test_a_first_sync_that_is_killed_keeps_its_mission(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "TASKS.md"
    file.write_text("- [ ] One\n")
    with taskyard.open(place, worker="ada") as yard:
        with monkeypatch.context() as patch:
            patch.setattr(yard, "add_many", _killed)
            with pytest.raises(KeyboardInterrupt):
                sync(yard, str(file), Options("ada", "launch"))
        sync(yard, str(file), Options("ada"))
        assert [(task.title, task.mission) for task in yard.find()] == [("One", "launch")]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def _held(yard: taskyard.Yard, file: Path) -> bool:
    """Sync, and return whether tasks were still held by the sync that was killed; its lease is not waited for."""
    sync(yard, str(file), Options("ada"))
    held = list(yard.find(state="processing", limit=1000))
    for task in held:
        yard.cancel(task.id)
        yard.retry(task.id)
    return bool(held)
