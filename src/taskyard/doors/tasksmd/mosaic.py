"""The dialect of Markdown tables: one row a task, columns found by the words of the header."""

from __future__ import annotations

import re
from itertools import pairwise

from taskyard.doors.tasksmd import rows
from taskyard.doors.tasksmd.rows import Document, Row
from taskyard.doors.tasksmd.text import harmless, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.doors.tasksmd.text import Line, Patch

_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_EMPTY = ("", "-", "—", "\u2013")
_COLUMNS = {
    "id": ("id",),
    "status": ("status", "state"),
    "title": ("title", "description", "task", "name"),
    "agent": ("agent", "assignee", "owner"),
    "after": ("depends_on", "depends", "dependencies", "blocked_by", "after"),
}  # for each field the headers that name it, the best first
_NEW = ("id", "status", "description", "agent", "depends_on", "notes")


class Table:
    """One table of tasks: the field of each column, and where a new row goes."""

    __slots__ = ("columns", "dash", "end")

    def __init__(self, columns: list[str], end: int) -> None:
        self.columns = columns
        self.end = end
        self.dash = ""
        """What stands in an empty cell."""


class Mosaic(Document):
    """Tables with the columns id, status and description, and any others."""

    dialect = "mosaic"
    statuses = frozenset(rows.STATUS_OF.values())

    def parse(self) -> None:
        """Find the tables of tasks, and their rows."""
        self.tables: list[Table] = []
        self._of: dict[int, Table] = {}
        for header, rule in pairwise(self.lines):
            columns = _header(header, rule)
            if columns is not None:
                self._read(Table(columns, rule.end), self.lines[rule.number :])

    def _read(self, table: Table, lines: list[Line]) -> None:
        self.tables.append(table)
        for line in lines:
            if not line.visible or "|" not in line.text:
                break
            table.end = line.end
            row = self._row(table, line)
            if row is not None:
                self._of[row.start] = table
                self.rows.append(row)

    def _row(self, table: Table, line: Line) -> Row | None:
        row = Row(line.number, line.start, line.end)
        for name, (first, last) in zip(table.columns, _cells(line), strict=False):
            words = self.text[first:last]
            start = first + (len(words) - len(words.lstrip()) if words.strip() else len(words[:1]))
            end = self._take_words(row, start, last) if name == "title" else last
            words = plain(self.text[start:end].strip().replace("\\|", "|"))
            if words == "—":
                table.dash = words
            if name not in row.fields or name == "id":
                row.fields[name] = "" if words in _EMPTY else words
                row.places[name] = (start, start + len(self.text[start:end].rstrip()))
        status = row.fields.get("status") or rows.NOT_STARTED
        row.fields["status"] = rows.STATUS_OF.get(status.lower().strip("`* "), status)
        row.fields["id"] = row.fields.get("id", "").strip("`* ")
        row.fields.setdefault("title", "")
        return row if row.fields["title"] or row.fields["id"] else None

    def set(self, row: Row, name: str, value: str) -> list[Patch]:
        """Return the patches that put a value into the row's cell; none if the table has no such column."""
        table = self._of[row.start]
        if name not in table.columns:
            return []
        words = _escaped(value) or table.dash
        if name not in row.places:
            return self._lengthened(row, table, name, words)
        start, end = row.places[name]
        stop = next(
            (last for first, last in _cells_of(self.text[row.start : row.end], row.start) if first <= end <= last), end
        )
        return [(start, end, words), *self._padding(end, stop, len(words) - (end - start))]

    def _padding(self, end: int, stop: int, longer: int) -> list[Patch]:
        """Return the patch that keeps the width of a padded cell, as far as its spaces reach."""
        room = len(self.text[end:stop]) - len(self.text[end:stop].rstrip(" "))
        if longer > 0 and room > 1:
            return [(stop - min(room - 1, longer), stop, "")]
        return [(stop, stop, " " * -longer)] if longer < 0 and room > 1 else []

    def _lengthened(self, row: Row, table: Table, name: str, words: str) -> list[Patch]:
        """Return the patch that gives a row with too few cells those that it lacks."""
        cells = len(_cells_of(self.text[row.start : row.end], row.start))
        missing = table.columns[cells : table.columns.index(name) + 1]
        if not missing:
            return []
        closed = self.text[row.start : row.end].rstrip().endswith("|")
        values = [words if one == name else table.dash for one in missing]
        new = "".join(f" {one} |" for one in values) if closed else "".join(f" | {one}" for one in values)
        at = row.start + len(self.text[row.start : row.end].rstrip())
        return [(at, at, new)]

    def remark_at(self, row: Row) -> int:
        """Return the end of the words in the title's cell."""
        return row.places["title"][1] if "title" in row.places else row.end

    def add(self, new: Iterable[Mapping[str, str]]) -> list[Patch]:
        """Return the patch that puts rows in at the end of the last table, or a table at the end of the file."""
        if self.tables:
            table, head = self.tables[-1], ""
            at = self._after(table.end)
        else:
            table, at = Table([_field(name) for name in _NEW], 0), len(self.text)
            gap = "" if not self.text else self.newline if self.text.endswith("\n") else self.newline * 2
            head = f"{gap}| {' | '.join(_NEW)} |{self.newline}|{'---|' * len(_NEW)}{self.newline}"
        lines = [
            "| "
            + " | ".join(_escaped(fields.get(name, "")) or table.dash for name in table.columns)
            + " |"
            + self.newline
            for fields in new
        ]
        if head:
            return [(at, at, head + "".join(lines))]
        return [self._inserted(at, "".join(lines))]


def _header(header: Line, rule: Line) -> list[str] | None:
    """Return the field of each column, if these two lines begin a table of tasks."""
    if not (header.visible and rule.visible and "|" in header.text and "-" in rule.text and _RULE.match(rule.text)):
        return None
    names = [
        "_".join(header.text[s - header.start : e - header.start].strip(" \t`*").lower().split())
        for s, e in _cells(header)
    ]
    columns = list(names)
    for field, words in _COLUMNS.items():
        best = next((word for word in words if word in names), None)
        if best is not None:
            columns[names.index(best)] = field
    return columns if {"id", "status", "title"} <= set(columns) else None


def _field(header: str) -> str:
    return next((field for field, words in _COLUMNS.items() if header in words), header)


def _cells(line: Line) -> list[tuple[int, int]]:
    return _cells_of(line.text, line.start)


def _cells_of(words: str, start: int) -> list[tuple[int, int]]:
    """Return the place of each cell, from one bar to the next; a bar after a backslash is a part of the words."""
    bars = [at for at, letter in enumerate(words) if letter == "|" and words[at - 1 : at] != "\\"]
    if not bars:
        return []
    edges = bars if not words[: bars[0]].strip() else [-1, *bars]
    if words[bars[-1] + 1 :].strip():
        edges = [*edges, len(words)]
    return [(start + one + 1, start + other) for one, other in pairwise(edges)]


def _escaped(value: str) -> str:
    words = harmless(value).replace("|", "\\|")
    return words + " " if words.endswith("\\") else words
