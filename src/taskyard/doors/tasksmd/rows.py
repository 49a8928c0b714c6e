"""What every dialect offers: a document with rows, the fields of each, and patches that change them."""

from __future__ import annotations

import re

from taskyard.doors.tasksmd import text as markdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.doors.tasksmd.text import Line, Patch

NOT_STARTED, IN_PROGRESS, BLOCKED, DONE = "not-started", "in-progress", "blocked", "done"
FAILED, NEEDS_QA, CANCELLED = "failed", "needs-qa", "cancelled"
_STATUSES = {
    NOT_STARTED: "not started|not-started|todo|to do|to-do|open|pending|backlog|ready|waiting|planned|new",
    IN_PROGRESS: "in progress|in-progress|doing|started|wip|active|processing|running",
    BLOCKED: "blocked",
    DONE: "done|complete|completed|closed|finished",
    FAILED: "failed",
    NEEDS_QA: "needs-qa|needs qa|qa|review|in review|in-review|needs-review|needs review",
    CANCELLED: "cancelled|canceled|dropped|wontfix|won't do",
}
STATUS_OF = {word: status for status, words in _STATUSES.items() for word in words.split("|")}

REMARK = re.compile(r"[ \t]*<!-- taskyard: (.*?) -->")
ID_COMMENT = re.compile(r"<!--\s*id:\s*(.*?)\s*-->", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*<!--.*?-->")


class Row:
    """One task of a file: its fields as texts, and the place of each; `end` is where the row's last line ends."""

    __slots__ = ("end", "fields", "line", "places", "remark", "start")

    def __init__(self, line: int, start: int, end: int) -> None:
        self.line = line
        self.start = start
        self.end = end
        self.fields: dict[str, str] = {}
        """By name: `id`, `status`, `title`, `agent`, `after`, `priority`; any other name is a column or a line of people's own."""
        self.places: dict[str, tuple[int, int]] = {}
        self.remark: tuple[int, int] | None = None
        """Where the remark about a conflict stands, if there is one."""

    @property
    def id(self) -> str:
        """The id in the file, or an empty text."""
        return self.fields.get("id", "")

    @property
    def title(self) -> str:
        """The words of the task."""
        return self.fields.get("title", "")


class Document:
    """A file in one dialect. It knows nothing of yards."""

    dialect = ""
    statuses: frozenset[str] = frozenset()
    """The statuses that a row of this dialect can show."""
    deleted = CANCELLED
    """What a person means who deletes the row of an open task."""
    keeps = frozenset((DONE, FAILED, CANCELLED))
    """The endings with which a row stays in the file."""

    def __init__(self, text: str, lines: list[Line]) -> None:
        self.text = text
        self.lines = lines
        self.newline = markdown.newline_of(text)
        self.rows: list[Row] = []
        self.parse()

    def parse(self) -> None:
        """Fill in the rows."""
        raise NotImplementedError

    def shown(self, status: str) -> str:
        """Return the status that a row shows for this one."""
        return status if status in self.statuses else NOT_STARTED

    def set(self, row: Row, name: str, value: str) -> list[Patch]:
        """Return the patches that give a field of the row another value; none if the dialect has no place for it."""
        raise NotImplementedError

    def remove(self, row: Row) -> Patch:
        """Return the patch that takes the row out."""
        return row.start, self._after(row.end), ""

    def add(self, rows: Iterable[Mapping[str, str]]) -> list[Patch]:
        """Return the patches that put new rows in, where such rows belong."""
        raise NotImplementedError

    def moves(self, row: Row, name: str, value: str) -> bool:
        """Whether this value belongs to another section: then `move` sets it, after all other patches."""
        del row, name, value
        return False

    def same_priority(self, said: str, known: str) -> bool:
        """Whether the file's priority stands for the yard's."""
        return said == known

    def move(self, moved: Iterable[tuple[Row, str]]) -> list[Patch]:
        """Return the patches that take rows to the sections of these values."""
        raise NotImplementedError

    def set_remark(self, row: Row, words: str) -> list[Patch]:
        """Return the patches that put a remark about a conflict behind the title, or take it away."""
        old = row.remark
        new = f" <!-- taskyard: {_quiet(words)} -->" if words else ""
        if old is not None:
            return [(*old, new)] if self.text[slice(*old)] != new else []
        return [(self.remark_at(row), self.remark_at(row), new)] if new else []

    def remark_at(self, row: Row) -> int:
        """Return where a remark is put in: behind the title."""
        return row.places["title"][1]

    def _after(self, end: int) -> int:
        """Return where the line after this line's end begins."""
        newline = self.text.find("\n", end)
        return len(self.text) if newline < 0 else newline + 1

    def _inserted(self, at: int, block: str) -> Patch:
        """Return the patch that puts whole lines in at this place, the last of which has a line ending."""
        if at and self.text[at - 1] != "\n":
            return at, at, self.newline + block.removesuffix(self.newline)
        return at, at, block

    def _take_words(self, row: Row, start: int, end: int) -> int:
        """Note id and remark in the comments of this place; return where the words before the comments end."""
        words = self.text[start:end]
        remark, known = REMARK.search(words), ID_COMMENT.search(words)
        if remark:
            row.remark = (start + remark.start(), start + remark.end())
        if known and "id" not in row.fields:
            row.fields["id"], row.places["id"] = known[1], (start + known.start(1), start + known.end(1))
        first = _COMMENT.search(words)
        return start + len((words[: first.start()] if first else words).rstrip())


def _quiet(words: str) -> str:
    """Return words that cannot end the comment, or the cell, that they stand in."""
    return " ".join(words.replace("--", "-\u200b-").replace("|", "/").split())


def listed(value: str) -> list[str]:
    """Return the names in a list with commas."""
    return [
        name for name in (part.strip(" \t`") for part in value.split(",")) if name and name not in ("-", "—", "none")
    ]
