"""A file of 10,000 lines: every line is one task, and all else stays as it is, to the byte."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.doors.tasksmd import dialects
from tests.conftest import taken
from tests.tasksmd.conftest import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Task

pytestmark = pytest.mark.proof
LINES = 10_000
ROWS = "".join(f"| T{number} | not-started | Task {number} \\| part | x{number}  |\r\n" for number in range(LINES))
TABLE = f"# Plan\r\n\r\n| id | status | title | note |\r\n|---|---|---|---|\r\n{ROWS}\r\nProse \t\r\n```\r\n- [ ] no task\r\n```"
LIST = "# Plan\n\n" + "".join(
    f"- [{'x' if number % 1000 == 0 else ' '}] Task {number // 2}  \n" + ("  prose\n" if number % 7 == 0 else "")
    for number in range(LINES)
)


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[Plan]:
    """A file beside a directory: the largest yard for which a person plans by hand."""
    with taskyard.init(str(tmp_path / "yard"), worker="ada", durability="fast") as yard:
        yield Plan(yard, tmp_path / "TASKS.md")


def test_a_table_of_10000_lines_keeps_every_byte_that_nothing_has_changed(plan: Plan) -> None:
    plan.write(TABLE)
    report = plan.sync()
    assert (len(report.added), report.notices, plan.text) == (LINES, [], TABLE)
    assert len({task.id for task in plan.yard.find(limit=LINES)}) == LINES
    assert not plan.sync().changed
    claim = taken(plan.yard.claim(worker="bob"))
    plan.replace(
        f"| T{LINES - 1} | not-started | Task {LINES - 1} \\| part |", f"| T{LINES - 1} | not-started | Edited |"
    )
    plan.yard.edit(titled(plan, "Task 5000 | part").id, title="By | the yard")
    plan.sync()
    wanted = TABLE.replace(
        f"| T{LINES - 1} | not-started | Task {LINES - 1} \\| part |", f"| T{LINES - 1} | not-started | Edited |"
    )
    wanted = wanted.replace("| T0 | not-started |", "| T0 | in-progress |")
    assert plan.text == wanted.replace("| Task 5000 \\| part |", "| By \\| the yard |")
    assert claim.task.title == "Task 0 | part"
    assert titled(plan, "Edited").data == {"note": f"x{LINES - 1}"}
    old = plan.text
    plan.yard.add_many([{"kind": "task", "title": f"New {number}"} for number in range(3)])
    plan.sync()
    newest = plan.text
    plan.write(old)
    plan.sync()
    assert plan.text == newest
    assert plan.yard.counts()["cancelled"] == 0


def titled(plan: Plan, title: str) -> Task:
    """Return the task of this title."""
    [found] = [task for task in plan.yard.find(limit=LINES) if task.title == title]
    return plan.yard.get(found.id)


def test_a_list_of_10000_lines_with_equal_words_becomes_as_many_tasks(plan: Plan) -> None:
    plan.write(LIST)
    report = plan.sync()
    assert len(report.added) == LINES
    counts = plan.yard.counts()
    assert (counts["done"], counts["todo"]) == (LINES // 1000, LINES - LINES // 1000)
    rows = dialects.parsed(plan.text).rows
    assert len({row.id for row in rows}) == LINES
    assert re.sub(r" <!-- id: .*? -->", "", plan.text) == LIST
    assert not plan.sync().changed
