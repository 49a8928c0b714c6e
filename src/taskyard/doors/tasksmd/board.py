"""Boards: `## Todo`, `## In Progress`, `## Done`, with a `### Title` and a hidden id for each task."""

from __future__ import annotations

from taskyard.doors.tasksmd import rows
from taskyard.doors.tasksmd.rows import ID_COMMENT, Document, Row
from taskyard.doors.tasksmd.text import harmless, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.doors.tasksmd.text import Line, Patch

_SECTION, _TASK = 2, 3  # levels of headings
_NAMES = {
    rows.NOT_STARTED: "Todo",
    rows.IN_PROGRESS: "In Progress",
    rows.BLOCKED: "Blocked",
    rows.NEEDS_QA: "Review",
    rows.DONE: "Done",
    rows.FAILED: "Failed",
}
_BASIC = frozenset((rows.NOT_STARTED, rows.IN_PROGRESS, rows.DONE))


class Board(Document):
    """Sections are statuses; what stands below a title is the task's details."""

    dialect = "board"
    keeps = frozenset((rows.DONE, rows.FAILED))

    def parse(self) -> None:
        """Find the sections, and the tasks in each."""
        self._sections: dict[str, int] = {}  # where the words of each end
        status, row = "", None
        for line in self.lines:
            heading = line.heading()
            if heading is not None and heading[0] <= _TASK:
                row = None
                if heading[0] <= _SECTION:
                    status = section(heading[1]) if heading[0] == _SECTION else ""
                elif status:
                    row = self._task(line, status)
            elif row is not None and not line.blank:
                self._detail(row, line)
            if status and not line.blank:
                self._sections[status] = max(self._sections.get(status, 0), line.end)
        self.statuses = frozenset(self._sections) | _BASIC

    def _task(self, line: Line, status: str) -> Row:
        row = Row(line.number, line.start, line.end)
        start = line.start + len(line.text) - len(line.text.lstrip(" #\t"))
        end = self._take_words(row, start, line.end)
        row.fields |= {"status": status, "title": plain(self.text[start:end])}
        row.places["title"] = (start, end)
        self.rows.append(row)
        return row

    def _detail(self, row: Row, line: Line) -> None:
        """Take one line below a title: the hidden id, or some of the details."""
        known = ID_COMMENT.search(line.text) if line.visible else None
        if known and "id" not in row.fields:
            row.fields["id"] = known[1]
            row.places["id"] = (line.start + known.start(1), line.start + known.end(1))
        else:
            row.fields["details"] = "\n".join(filter(None, (row.fields.get("details", ""), line.text.rstrip())))
        row.end = line.end

    def set(self, row: Row, name: str, value: str) -> list[Patch]:
        """Return the patches that give title or id another value."""
        if name == "title":
            return [(*row.places["title"], harmless(value))]
        if name != "id":
            return []
        if "id" in row.places:
            return [(*row.places["id"], value)]
        return [self._inserted(self._after(row.start), f"<!-- id: {value} -->{self.newline}")]

    def remove(self, row: Row) -> Patch:
        """Return the patch that takes the task out, with the blank lines between it and the next task."""
        stop = self._after(row.end)
        following = self.text[stop:].lstrip("\r\n \t") if self.text[stop : stop + 1] in ("\r", "\n") else ""
        if following.startswith("### "):
            stop = len(self.text) - len(following)
        return row.start, stop, ""

    def moves(self, row: Row, name: str, value: str) -> bool:
        """Whether the status is another section's."""
        return name == "status" and row.fields["status"] != self.shown(value)

    def move(self, moved: Iterable[tuple[Row, str]]) -> list[Patch]:
        """Return the patches that take tasks to the ends of their statuses' sections."""
        blocks: dict[str, list[str]] = {}
        patches: list[Patch] = []
        for row, value in moved:
            patches.append(self.remove(row))
            block = self.text[row.start : self._after(row.end)]
            blocks.setdefault(self.shown(value), []).append(block if block.endswith("\n") else block + self.newline)
        return patches + [self._into(status, self.newline.join(some)) for status, some in blocks.items()]

    def add(self, new: Iterable[Mapping[str, str]]) -> list[Patch]:
        """Return the patches that put tasks in at the end of their sections."""
        blocks: dict[str, list[str]] = {}
        for fields in new:
            lines = (f"### {harmless(fields['title'])}", f"<!-- id: {fields['id']} -->")
            blocks.setdefault(self.shown(fields["status"]), []).append("".join(line + self.newline for line in lines))
        return [self._into(status, self.newline.join(some)) for status, some in blocks.items()]

    def _into(self, status: str, block: str) -> Patch:
        """Return the patch that puts a block in at the end of a section, which is made if there is none."""
        if status in self._sections:
            at = self._after(self._sections[status])
            rest = self.text[at:]
            gap = "" if not rest or rest[:1] in "\r\n" else self.newline
            return self._inserted(at, self.newline + block + gap)
        gap = self.newline if self.text and not self.text.endswith(self.newline * 2) else ""
        return self._inserted(len(self.text), f"{gap}## {_NAMES[status]}{self.newline}{self.newline}{block}")


def section(words: str) -> str:
    """Return the status that a section of this name stands for; an empty text if it is none."""
    return rows.STATUS_OF.get(words.strip().lower(), "")
