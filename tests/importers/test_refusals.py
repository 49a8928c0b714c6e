"""Malformed and hostile files: an error with file, line and column, exit 2, and nothing imported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.importers import edges
from tests.cli.conftest import ask, place, run, yard  # noqa: F401  fixtures

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Ask = Callable[..., Any]

ISSUE = '{"id": "bd-1", "title": "One", "status": "open", "priority": 2}\n'
QUEUE = '{\n "tasks": [\n  {"id": "a", "status": "ready"},\n  %s\n ]\n}'

BAD: dict[str, tuple[str, str | bytes, str, str]] = {
    "cut off": ("beads", ISSUE + '{"id": "bd-2", "tit', "line 2 column 16", "not JSON"),
    "a comma too many": ("lab", QUEUE % '{"id": "b",}', "line 4 column 14", "not JSON"),
    "no UTF-8": ("beads", ISSUE.encode() + b'{"id": "b\xffd"}', "line 2 column 10", "0xff"),
    "UTF-16": ("beads", ISSUE.encode("utf-16"), "line 1 column 1", "UTF-8"),
    "no object": ("beads", ISSUE + "[1]\n", "line 2 column 1", "must be a JSON object, not a list"),
    "no object in a list": ("lab", QUEUE % "17", "line 4 column 3", "not a number"),
    "no id": ("beads", ISSUE + '  {"title": "x"}', "line 2 column 3", "no id"),
    "an id of blanks": ("beads", '{"id": "  "}', "line 1 column 1", "no id"),
    "an id that is a list": ("beads", '{"id": []}', "line 1 column 1", "id must be a text"),
    "an id with a control character": ("beads", '{"id": "a\\u0007"}', "line 1 column 1", "U+0007"),
    "an endless id": ("beads", json.dumps({"id": "x" * 300}), "line 1 column 1", "1 to 256"),
    "one id twice": ("beads", ISSUE + ISSUE.replace("One", "Two"), "line 2 column 1", "there twice, first at"),
    "an unknown status": ("beads", '{"id": "a", "status": "wibble"}', "line 1 column 1", "'wibble' is not known"),
    "a status that is a number": ("lab", QUEUE % '{"id": "b", "status": 3}', "line 4 column 3", "'3' is not known"),
    "a priority off the scale": ("beads", '{"id": "a", "priority": 12}', "line 1 column 1", "priority 12 is not known"),
    "a cycle": (
        "lab",
        QUEUE % '{"id": "b", "depends_on": ["c"]}, {"id": "c", "depends_on": ["b"]}',
        "line 4 column 3",
        "come after one another: b after c after b",
    ),
    "itself": ("lab", QUEUE % '{"id": "b", "depends_on": "b"}', "line 4 column 3", "cannot come after itself"),
    "data too deep": ("beads", '{"id": "a", "x": ' + "[" * 300 + "]" * 300 + "}", "line 1 column 1", "levels deep"),
    "JSON too deep": ("beads", "[" * 100_000, "line 1 column 1", "not JSON|nested too deeply"),
    "data too large": ("beads", json.dumps({"id": "a", "x": "y" * 1_100_000}), "line 1 column 1", "the most is"),
    "a number too long": ("beads", ISSUE + '{"id": ' + "9" * 5000 + "}", "line 2 column 8", "too many digits"),
    "no number": ("beads", '{"id": "a", "x": NaN}', "line 1 column 18", "NaN"),
    "a time that is none": ("beads", '{"id": "a", "defer_until": "soon"}', "line 1 column 1", "not a time"),
    "links that are none": ("beads", '{"id": "a", "dependencies": {}}', "line 1 column 1", "must be a list"),
    "no tasks": ("taskmaster", '{"master": []}', "line 1 column 1", "no list of tasks"),
    "a task that is a text": ("taskmaster", '{"tasks": ["x"]}', "line 1 column 12", "not a text"),
    "subtasks that are none": ("taskmaster", '{"tasks": [{"id": 1, "subtasks": 3}]}', "line 1 column 12", "subtasks"),
    "a subtask without an id": (
        "taskmaster",
        '{"tasks": [{"id": 1,\n  "subtasks": [{"title": "x"}]}]}',
        "line 2 column 16",
        "no id",
    ),
    "claims that are none": ("lab", '{"tasks": [],\n "claims": {"a": 1}}', "line 2 column 12", "claims must be a list"),
    "an empty file": ("lab", "", "line 1 column 1", "not JSON"),
    "front matter without an end": ("backlog", "---\nid: a\n", "line 1 column 1", "no end"),
    "front matter without an id": ("backlog", "---\ntitle: a\n---\n", "line 2 column 1", "no id"),
    "a tab": ("backlog", "---\nid: a\nx:\n\t- b\n---\n", "line 4 column 1", "tab"),
    "an anchor": ("backlog", "---\nid: &a b\n---\n", "line 2 column 5", "anchor"),
    "quotes without an end": ("backlog", "---\nid: a\ntitle: 'b\n---\n", "line 3 column 8", "no end"),
    "a bracket without an end": ("backlog", "---\nid: a\nlabels: [b\n---\n", "line 3 column 11", "missing"),
    "a field twice": ("backlog", "---\nid: a\nid: b\n---\n", "line 3 column 1", "there twice"),
    "no field": ("backlog", "---\nid: a\nwords\n---\n", "line 3 column 1", "neither a field nor a list"),
    "a colon without quotes": ("backlog", "---\nid: a\ntitle: b: c\n---\n", "line 3 column 8", "needs quotes"),
    "a custom status": ("backlog", "---\nid: a\nstatus: Shipping\n---\n", "line 2 column 1", "'Shipping'"),
    "an endless head": ("backlog", "---\nid: a\n" + "#\n" * 3000 + "---\n", "line 2000 column 1", "more than 2000"),
    "milestones that are none": ("mosaic", '{"name": "x",\n "milestones": {"a": 1}}', "line 2 column 16", "list"),
    "a queue that is none": ("mosaic", '{"tasks": 3}', "line 1 column 1", "no list of tasks"),
    "attempts that are none": (
        "mosaic",
        '{"tasks": [{"id": "a", "max_attempts": 0}]}',
        "line 1 column 12",
        "max_attempts",
    ),
    "an unfinished merge": ("checklist", "- [ ] a\n<<<<<<< HEAD\n", "line 2 column 1", "merge"),
    "one id twice in a list": (
        "checklist",
        "- [ ] a <!-- id: x -->\n- [ ] b <!-- id: x -->",
        "line 2 column 1",
        "twice",
    ),
    "a list": ("claude", "[1, 2]", "line 1 column 2", "must be a JSON object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_place_and_nothing_is_imported(ask: Ask, place: Path, name: str) -> None:  # noqa: F811
    tool, content, where, why = BAD[name]
    file = place / "input.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for words in ((), ("--dry-run",)):
        error = ask("import", tool, "input.json", *words, code=2)
        assert error["message"].startswith(f"input.json, {where}: "), error["message"]
        assert any(word in error["message"] for word in why.split("|")), error["message"]
    assert sum(ask("stats")["counts"].values()) == 0


def test_a_mark_of_the_byte_order_and_the_line_ends_of_windows_change_nothing(ask: Ask, place: Path) -> None:  # noqa: F811
    content = ISSUE + ISSUE.replace("bd-1", "bd-2")
    (place / "issues.jsonl").write_bytes(b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode())
    assert ask("import", "beads", "issues.jsonl")["created"] == 2


def test_equal_lines_count_once(ask: Ask, place: Path) -> None:  # noqa: F811
    told = ask("import", "beads", "-", stdin=ISSUE + ISSUE)
    assert (told["created"], len(told["notes"])) == (1, 1)


def test_a_missing_file_a_folder_and_an_unknown_tool_are_refused(ask: Ask, place: Path) -> None:  # noqa: F811
    assert "No such file" in ask("import", "beads", "nowhere.jsonl", code=2)["message"]
    (place / "folder").mkdir()
    assert "issues.jsonl" in ask("import", "beads", "folder", code=2)["message"]
    assert "no JSON file" in ask("import", "claude", "folder", code=2)["message"]
    assert "beads" in ask("import", "jira", "x", code=2)["hint"]


def test_an_unknown_status_can_be_given_a_meaning(ask: Ask) -> None:  # noqa: F811
    line = '{"id": "a", "status": "Ready for QA"}'
    hint = ask("import", "beads", "-", stdin=line, code=2)["hint"]
    assert "--status 'Ready for QA'=open" in hint
    [task] = ask("import", "beads", "-", "--status", "ready_for_qa=done", stdin=line)["tasks"]
    assert task["state"] == "done"
    assert "WORD=STATE" in ask("import", "beads", "-", "--status", "x=wibble", code=2)["message"]


def test_a_thousand_parts_in_circles_end_in_an_answer(ask: Ask) -> None:  # noqa: F811
    lines = []
    for number in range(1000):
        links = [
            {"depends_on_id": f"b-{(number + 1) % 1000}", "type": "parent-child"},
            {"depends_on_id": f"b-{number + 1}", "type": "blocks"},
        ]
        lines.append(json.dumps({"id": f"b-{number}", "title": "x", "dependencies": links}))
    told = ask("import", "beads", "-", stdin="\n".join(lines))
    assert told["created"] == 1000
    assert any("left out" in note or "only what the file says" in note for note in told["notes"])


def test_a_table_with_a_row_that_is_too_long_is_refused(ask: Ask, place: Path) -> None:  # noqa: F811
    (place / "TASKS.md").write_text("| id | status |\n|---|---|\n| a | done |\n| b | done | c |\n", encoding="utf-8")
    error = ask("import", "mosaic", "TASKS.md", code=2)
    assert error["message"] == "TASKS.md, line 4 column 1: the row has 3 cells, and its table has 2 columns"


def test_a_file_without_any_task_is_refused(ask: Ask, place: Path) -> None:  # noqa: F811
    (place / "notes.md").write_text("Words only.\n", encoding="utf-8")
    for tool in ("checklist", "mosaic", "backlog"):
        assert ask("import", tool, "notes.md", code=2)["code"] == "invalid"


def test_a_cycle_is_found_wherever_it_is() -> None:
    assert edges.find_cycle({"a": ["b"], "b": ["c", "d"], "c": [], "d": ["b"]}) == ["b", "d", "b"]
    assert edges.find_cycle({"a": ["b", "c"], "b": ["c"], "c": ["elsewhere"]}) is None
