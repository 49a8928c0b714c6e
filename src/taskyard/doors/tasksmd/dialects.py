"""Which dialect a file is written in."""

from __future__ import annotations

from itertools import pairwise

from taskyard.core.errors import Invalid
from taskyard.doors.tasksmd import text as markdown
from taskyard.doors.tasksmd.board import Board, section
from taskyard.doors.tasksmd.checklist import ITEM, PRIORITY, Checklist, TasksMd
from taskyard.doors.tasksmd.mosaic import Mosaic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.tasksmd.rows import Document
    from taskyard.doors.tasksmd.text import Line

DIALECTS: dict[str, type[Document]] = {one.dialect: one for one in (Mosaic, TasksMd, Checklist, Board)}
USUAL = Mosaic.dialect


def parsed(text: str, usual: str | None = None) -> Document:
    """Return the file in the dialect that it is written in; one without any task is in the `usual` one."""
    if usual is not None and usual not in DIALECTS:
        raise Invalid(f"there is no dialect {ascii(usual)[:40]}", hint=f"dialects are {', '.join(DIALECTS)}")
    lines = markdown.lines(text)
    tables = Mosaic(text, lines)
    if tables.tables:
        return tables
    return DIALECTS[_detected(lines) or usual or USUAL](text, lines)


def _detected(lines: list[Line]) -> str | None:
    """Return the dialect of a file without tables of tasks."""
    headings = [heading for line in lines if (heading := line.heading()) is not None]
    items = any(ITEM.match(line.text) for line in lines if line.visible)
    if any(PRIORITY.match(words) for _, words in headings) or (items and any(_has_id_line(line) for line in lines)):
        return TasksMd.dialect
    if _is_board(headings):
        return Board.dialect
    return Checklist.dialect if items else None


def _has_id_line(line: Line) -> bool:
    return line.visible and line.indent > 0 and line.text.strip(" \t-*+").upper().startswith(("ID**:", "ID:**"))


def _is_board(headings: list[tuple[int, str]]) -> bool:
    """Whether a section that is named for a status has a title below it."""
    return any(
        level == 2 and section(words) and following[0] == 3 for (level, words), following in pairwise(headings)
    ) or {section(words) for level, words in headings if level == 2} >= {"not-started", "in-progress", "done"}
