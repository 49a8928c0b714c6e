"""Real processes that import one file: killed at any moment, and two at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import wait_until
from tests.importers.samples import bring

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 240


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Issues in a line, a third of which is closed: those before the first open one of each ten."""
    lines = []
    for number in range(COUNT):
        links = [{"depends_on_id": f"bd-{number - 1}", "type": "blocks"}] if number % 10 else []
        status = "closed" if number % 10 < 3 else "open"
        lines.append(
            json.dumps({"id": f"bd-{number}", "title": f"Part {number}", "status": status, "dependencies": links})
        )
    path = tmp_path / "issues.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def started(url: str, file: Path) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", "taskyard", "import", "beads", str(file), "--yard", url]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def assert_imported(url: str) -> None:
    """Everything is there once, and where the file says."""
    with taskyard.open(url) as yard:
        counts = yard.counts()
        assert (counts["done"], counts["todo"], counts["blocked"]) == (72, 24, 144)
        assert sum(counts.values()) == COUNT
        assert yard.audit()["verdict"] == "clean"


@pytest.mark.parametrize("state", ["any", "done"])
@pytest.mark.parametrize("least", [1, 30])
def test_an_import_that_is_killed_at_any_moment_is_finished_by_the_next(
    tmp_path: Path, file: Path, state: str, least: int
) -> None:
    url = str(tmp_path / "yard")
    with taskyard.init(url, durability="fast") as yard:
        process = started(url, file)

        def has_come() -> bool:
            counts = yard.counts()
            return (sum(counts.values()) if state == "any" else counts["done"]) >= least

        wait_until(has_come)
        process.kill()
        process.communicate()
        while (claim := yard.claim(worker="ada")) is not None:
            assert "closed" not in str(claim.task.data["imported"]), "no worker gets what was done elsewhere"
            claim.release(after=0.001)
            if claim.task.title == "Part 3":
                break
        bring(yard, "beads", file)
    assert_imported(url)


def test_two_imports_of_one_file_at_once_end_in_one_import(tmp_path: Path, file: Path) -> None:
    url = str(tmp_path / "yard")
    taskyard.init(url, durability="fast").close()
    both = [started(url, file) for _ in range(2)]
    said = [process.communicate()[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    with taskyard.open(url) as yard:
        bring(yard, "beads", file)  # what one has left to the other is done
    assert_imported(url)
