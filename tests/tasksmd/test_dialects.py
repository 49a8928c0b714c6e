"""Parsing and patching the dialects: what is not changed stays byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core.errors import Conflict, Invalid
from taskyard.doors.tasksmd import dialects
from taskyard.doors.tasksmd.text import lines, patched

MOSAIC = """# Plan

Prose | with a bar.

## M1
| id | status | description | issue | agent | depends_on | estimate | notes |
|----|--------|-------------|:-----:|-------|------------|---------:|-------|
| T1 | not-started | Do \\| it      | #1 | — | — | 5K | x  \t|
| T2 | in-progress | Then this  | #1 | bob | T1, T0 |
|    | Done | Old | | | | | |

| name | status |
|---|---|
| no | task |
"""
TASKS_MD = """# Tasks

## P0

- [ ] Fix login (@bob)
  - **ID**: login
  - **Tags**: a, b
  - **Details**: long
    more
  - **Blocked by**: x, y

  * **Estimate:** 5K
## P2
1. [x] Other
   - [ ] a part of it
## Notes
- [ ] Elsewhere
"""
CHECKLIST = """- [ ] a
  * [X] b <!-- id: 0-kf12 -->   \t
```
- [ ] no
```
<!--
- [ ] hidden
-->
`<!--` is no comment.
- [ ] c"""
BOARD = """# Board
## Todo
### One
<!-- id: 0-aa11 -->
words

### Two

## In Progress

## Done
### Three <!-- id: 0-bb22 -->
## About
### not a task
"""
SAMPLES = {"mosaic": MOSAIC, "tasks.md": TASKS_MD, "checklist": CHECKLIST, "board": BOARD}


def rows(text: str) -> list[dict[str, str]]:
    return [row.fields for row in dialects.parsed(text).rows]


@pytest.mark.parametrize("dialect", SAMPLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_dialect_is_detected_and_nothing_changed_is_nothing_written(dialect: str, newline: str) -> None:
    text = SAMPLES[dialect].replace("\n", newline)
    document = dialects.parsed(text)
    assert document.dialect == dialect
    assert patched(text, []) == text
    for row in document.rows:
        for name, place in row.places.items():
            if name in row.fields and "\n" not in row.fields[name]:
                again = patched(text, [(*place, text[slice(*place)])])
                assert again == text


def test_columns_are_found_by_their_headers() -> None:
    first, second, third = rows(MOSAIC)
    assert first["id"] == "T1"
    assert (first["title"], first["status"], first["agent"], first["issue"]) == ("Do | it", "not-started", "", "#1")
    assert (second["after"], second["agent"], second["status"]) == ("T1, T0", "bob", "in-progress")
    assert (third["id"], third["status"], third["title"]) == ("", "done", "Old")


def test_nested_lines_are_fields() -> None:
    first, second, third = rows(TASKS_MD)
    assert first == {
        "status": "not-started", "agent": "bob", "title": "Fix login", "priority": "0", "id": "login", "tags": "a, b",
        "details": "long\nmore", "after": "x, y", "estimate": "5K",
    }  # fmt: skip
    assert (second["title"], second["status"], second["priority"]) == ("Other", "done", "2")
    assert (third["title"], third["priority"]) == ("Elsewhere", "")


def test_boxes_in_code_and_comments_are_no_tasks() -> None:
    assert [(row["title"], row["status"], row.get("id", "")) for row in rows(CHECKLIST)] == [
        ("a", "not-started", ""),
        ("b", "done", "0-kf12"),
        ("c", "not-started", ""),
    ]


def test_sections_of_a_board_are_statuses() -> None:
    assert [(row["title"], row["status"], row.get("id", "")) for row in rows(BOARD)] == [
        ("One", "not-started", "0-aa11"),
        ("Two", "not-started", ""),
        ("Three", "done", "0-bb22"),
    ]


def test_conflict_markers_and_open_fences_are_refused_with_their_lines() -> None:
    for text in ("- [ ] a\n<<<<<<< HEAD\n- [ ] b\n=======\n", "- [ ] a\n>>>>>>> other\n"):
        with pytest.raises(Conflict, match="line 2 is a conflict marker"):
            dialects.parsed(text)
    with pytest.raises(Conflict, match="line 2 opens is never closed"):
        dialects.parsed("- [ ] a\n```sh\n- [ ] b\n")
    with pytest.raises(Invalid, match="there is no dialect"):
        dialects.parsed("", "org")


@pytest.mark.parametrize("dialect", SAMPLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_field_reads_back_as_it_was_written_and_other_lines_stay(dialect: str, newline: str) -> None:
    text = SAMPLES[dialect].replace("\n", newline)
    for at, row in enumerate(dialects.parsed(text).rows):
        for name, value in (("title", "A | new <!-- id: evil --> title"), ("agent", "zed"), ("status", "done")):
            document = dialects.parsed(text)
            if document.moves(row, name, value) or not (patches := document.set(document.rows[at], name, value)):
                continue
            new = patched(text, patches)
            again = dialects.parsed(new).rows
            assert again[at].fields[name] == value
            assert [one.fields for one in again[:at]] == [one.fields for one in document.rows[:at]]
            assert [one.fields for one in again[at + 1 :]] == [one.fields for one in document.rows[at + 1 :]]
            before, after = text.split("\n"), new.split("\n")
            assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1


@pytest.mark.parametrize("dialect", SAMPLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_new_rows_ids_remarks_and_moves_read_back(dialect: str, newline: str, end: str) -> None:
    text = SAMPLES[dialect].rstrip("\n").replace("\n", newline) + end.replace("\n", newline)
    document = dialects.parsed(text)
    patches = []
    for row in document.rows:
        patches += document.set_remark(row, 'the yard has "x | --> y"')
        if not row.id:
            patches += document.set(row, "id", f"0-n{row.line:03}")
    fresh = {"id": "0-zz99", "title": "From | the yard", "status": "not-started", "priority": "1", "agent": "bob"}
    patches += document.add([fresh])
    new = patched(text, patches)
    again = dialects.parsed(new)
    assert len(again.rows) == len(document.rows) + 1
    assert all(row.id and (row.remark is not None or row.id == "0-zz99") for row in again.rows), new
    [added] = [row for row in again.rows if row.id == "0-zz99"]
    assert (added.title, added.fields["status"]) == ("From | the yard", "not-started")
    gone = patched(new, [patch for row in again.rows for patch in again.set_remark(row, "")])
    assert "taskyard:" not in gone
    others = {line.text for line in document.lines if line.number not in {row.line for row in document.rows}}
    assert others <= {line.text for line in lines(gone)}
    assert newline == "\n" or "\n" not in new.replace("\r\n", "")
    row = again.rows[0]
    for name, value in (("priority", "3"), ("status", "done")):
        if again.moves(row, name, value):
            moved = dialects.parsed(patched(new, again.move([(row, value)])))
            assert sorted(one.id for one in moved.rows) == sorted(one.id for one in again.rows)
            [there] = [one for one in moved.rows if one.id == row.id]
            assert there.fields[name] == value
            assert {name: words for name, words in there.fields.items() if name not in ("priority", "status")} == {
                name: words for name, words in row.fields.items() if name not in ("priority", "status")
            }


PIECES = st.sampled_from(
    ["- [ ] a", "- [x] b <!-- id: 0-kf12 -->", "  - **ID**: x", "## P1", "## Todo", "### t", "```", "~~~", "<!--", "-->", "| id | status | title |",
     "|---|---|---|", "| T1 | done | x |", "| | | |", "|a|b", "prose", "", "\t", "  ", "`<!--`", "- [ ]", "\u2028", "﻿# T", "- [ ] é (@x)", "\\|"]
)  # fmt: skip


@given(st.lists(st.tuples(PIECES, st.sampled_from(["\n", "\r\n", " \n", "\r", ""]))))
def test_any_text_is_parsed_or_refused_and_its_lines_make_it_up(pieces: list[tuple[str, str]]) -> None:
    text = "".join(one + end for one, end in pieces)
    try:
        document = dialects.parsed(text)
    except Conflict:
        return
    assert "".join(text[line.start : line.next] for line in lines(text)) == text.removeprefix("\ufeff")
    assert patched(text, []) == text
    ends = 0
    for row in document.rows:
        assert ends <= row.start <= row.end <= len(text)
        ends = row.end
        assert all(row.start <= start <= end <= row.end for start, end in row.places.values())
    kept = patched(text, [document.remove(row) for row in document.rows])
    assert len(kept) <= len(text)
