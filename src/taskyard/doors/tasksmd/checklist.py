"""Check-lists: `- [ ] Title`. Plain ones keep their ids in hidden comments, those of tasks.md in lines below the title."""

from __future__ import annotations

import re

from taskyard.doors.tasksmd import rows
from taskyard.doors.tasksmd.rows import Document, Row
from taskyard.doors.tasksmd.text import harmless, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.doors.tasksmd.text import Line, Patch

ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?:[ \t]+|$)")
_AGENT = re.compile(r"(?<!^)[ \t]*\(@([^()\s]+)\)$")
_FIELD = re.compile(r"[ \t]+[-*+][ \t]+\*\*([^*]+?)(?::\*\*|\*\*[ \t]*:)[ \t]*")
PRIORITY = re.compile(r"P([0-9])\b", re.IGNORECASE)
_TOP = 1  # column: what is indented further belongs to the task above it
_LAST = 3  # the last priority that has a section of its own
_AFTER = "Blocked by"
_SECTION = "priority"
_OWN = ("status", "title", "agent", _SECTION)  # what the first line and the section say


class Checklist(Document):
    """A plain check-list: the box is the status, and a hidden comment behind the title is the id."""

    dialect = "checklist"
    statuses = frozenset((rows.DONE,))
    keeps = frozenset((rows.DONE, rows.FAILED))

    def parse(self) -> None:
        """Find the items, however deep they are."""
        for line in self.lines:
            found = ITEM.match(line.text) if line.visible else None
            if found:
                row = self._item(line, found)
                if row.title:
                    self.rows.append(row)

    def _item(self, line: Line, found: re.Match[str]) -> Row:
        """Return the row of one line: box, title, agent, and what its comments say."""
        row = Row(line.number, line.start, line.end)
        box = line.start + found.start(2)
        row.fields["status"] = rows.NOT_STARTED if found[2] == " " else rows.DONE
        row.places["status"] = (box, box + 1)
        start = line.start + found.end()
        end = self._take_words(row, start, line.end)
        agent = _AGENT.search(self.text[start:end])
        row.fields["agent"] = agent[1] if agent else ""
        title_end = start + agent.start() if agent else end
        row.places["agent"] = (title_end, end)
        row.fields["title"], row.places["title"] = plain(self.text[start:title_end]), (start, title_end)
        return row

    def set(self, row: Row, name: str, value: str) -> list[Patch]:
        """Return the patches that give a field of the row another value."""
        if name == "status":
            return [(*row.places["status"], "x" if value == rows.DONE else " ")]
        if name == "title":
            return [(*row.places["title"], _words(value))]
        if name == "agent":
            return [(*row.places["agent"], _agent(value))]
        return self._set_id(row, value) if name == "id" else []

    def _set_id(self, row: Row, value: str) -> list[Patch]:
        if "id" in row.places:
            return [(*row.places["id"], value)]
        end = row.start + len(self.text[row.start : row.end].rstrip())
        return [(end, end, f" <!-- id: {value} -->")]

    def remark_at(self, row: Row) -> int:
        """Return the place behind title and agent."""
        return row.places["agent"][1]

    def add(self, new: Iterable[Mapping[str, str]]) -> list[Patch]:
        """Return the patch that puts items in after the last one, or at the end of the file."""
        block = "".join(self._line(fields) for fields in new)
        if not self.rows:
            gap = self.newline if self.text and not self.text.endswith(self.newline * 2) else ""
            return [self._inserted(len(self.text), gap + block)]
        return [self._inserted(self._after(self.rows[-1].end), block)]

    def _line(self, fields: Mapping[str, str]) -> str:
        return f"{_item(fields)} <!-- id: {fields['id']} -->{self.newline}"


class TasksMd(Checklist):
    """The dialect of tasks.md: sections P0 to P3, fields in nested lines, and completed tasks are deleted."""

    dialect = "tasks.md"
    deleted = rows.DONE
    keeps = frozenset((rows.FAILED,))

    def parse(self) -> None:
        """Find the items of the first level, with the lines that belong to each."""
        self._sections: dict[str, tuple[int, int]] = {}  # where the heading of each begins, and where its words end
        section, level, row = "", 0, None
        for line in self.lines:
            heading = line.heading()
            if heading is not None:
                row = None
                named = PRIORITY.match(heading[1])
                if named:
                    section, level = named[1], heading[0]
                    self._sections.setdefault(section, (line.start, line.end))
                elif heading[0] <= level:
                    section = ""
            found = ITEM.match(line.text) if line.visible and line.indent <= _TOP else None
            if found:
                row = self._item(line, found)
                row.fields[_SECTION] = section
                self.rows.append(row)
            elif row is not None and not line.blank:
                row = self._belongs(row, line)
            if section and not line.blank:
                self._sections[section] = (self._sections[section][0], line.end)
        self.rows = [row for row in self.rows if row.title]

    def _belongs(self, row: Row, line: Line) -> Row | None:
        """Add a line to the row above it, if it is indented; None if the row ended before it."""
        if line.indent == 0:
            return None
        found = _FIELD.match(line.text) if line.visible else None
        name = found[1].strip().lower() if found else ""
        name = "after" if name == _AFTER.lower() else name
        if found and name not in row.places and name not in _OWN:
            start = line.start + found.end()
            row.places[name] = (start, start + len(self.text[start : line.end].rstrip()))
            row.fields[name] = plain(self.text[start : line.end])
            if name == "id":
                row.fields["id"] = row.fields["id"].strip("`")
        else:
            self._continue(row, line)
        row.end = line.end
        return row

    def _continue(self, row: Row, line: Line) -> None:
        """Add a line to the value of the field above it; lines above all fields are the task's notes."""
        above = [name for name in row.places if name not in (*_OWN, "id")]
        name = above[-1] if above else "notes"
        row.fields[name] = "\n".join(filter(None, (row.fields.get(name, ""), line.text.strip())))
        row.places[name] = (row.places.get(name, (line.start, 0))[0], line.end)

    def set(self, row: Row, name: str, value: str) -> list[Patch]:
        """Return the patches that give a field of the row another value; a field that is not there gets a line."""
        if name in ("status", "title", "agent"):
            return super().set(row, name, value)
        if name == _SECTION:
            return []
        if name not in row.places:
            return [] if not value else [self._new_field(row, name, value)]
        start, end = row.places[name]
        if "\n" in self.text[start:end] or "\n" in value:
            return []
        if value:
            return [(start, end, harmless(value))]
        first = self.text.rfind("\n", 0, start) + 1
        return [(first, self._after(end), "")]

    def _set_id(self, row: Row, value: str) -> list[Patch]:
        return [self._new_field(row, "id", value)]

    def _new_field(self, row: Row, name: str, value: str) -> Patch:
        """Return the patch that puts a nested line in below the title."""
        first = self.text[row.start : row.end].split("\n", 1)[0].rstrip("\r")
        deeper = first[: len(first) - len(first.lstrip())] + "  "
        at = self._after(row.start)
        return self._inserted(at, f"{deeper}- **{_label(name)}**: {harmless(value)}{self.newline}")

    def moves(self, row: Row, name: str, value: str) -> bool:
        """Whether the priority is another section's."""
        return name == _SECTION and row.fields[_SECTION] != self._section(value)

    def same_priority(self, said: str, known: str) -> bool:
        """Whether a task of this priority belongs to the section."""
        return said == self._section(known)

    def _section(self, priority: str) -> str:
        """Return the section of a priority: the last one has all that are less urgent, unless the file has more sections."""
        return priority if priority in self._sections else str(min(int(priority or "9"), _LAST))

    def move(self, moved: Iterable[tuple[Row, str]]) -> list[Patch]:
        """Return the patches that take rows to the ends of their priorities' sections."""
        blocks: dict[str, str] = {}
        patches: list[Patch] = []
        for row, value in moved:
            patches.append(self.remove(row))
            block = self.text[row.start : self._after(row.end)]
            section = self._section(value)
            blocks[section] = blocks.get(section, "") + (block if block.endswith("\n") else block + self.newline)
        return patches + [self._into(section, block) for section, block in sorted(blocks.items())]

    def add(self, new: Iterable[Mapping[str, str]]) -> list[Patch]:
        """Return the patches that put tasks in at the end of their sections."""
        blocks: dict[str, str] = {}
        for fields in new:
            section = self._section(fields.get(_SECTION, ""))
            blocks[section] = blocks.get(section, "") + self._block(fields)
        return [self._into(section, block) for section, block in sorted(blocks.items())]

    def _block(self, fields: Mapping[str, str]) -> str:
        nested = {name: value for name, value in fields.items() if name not in _OWN}
        lines = [_item(fields)]
        lines += [
            f"  - **{_label(name)}**: {harmless(value)}"
            for name, value in nested.items()
            if value and "\n" not in value
        ]
        return "".join(line + self.newline for line in lines)

    def _into(self, section: str, block: str) -> Patch:
        """Return the patch that puts a block in at the end of a section, which is made if there is none."""
        if section in self._sections:
            return self._inserted(self._after(self._sections[section][1]), block)
        heading = f"## P{section}{self.newline}{self.newline}"
        later = [start for name, (start, _) in self._sections.items() if name > section]
        if later:
            return self._inserted(min(later), heading + block + self.newline)
        gap = self.newline if self.text and not self.text.endswith(self.newline * 2) else ""
        return self._inserted(len(self.text), gap + heading + block)


def _item(fields: Mapping[str, str]) -> str:
    box = "x" if fields.get("status") == rows.DONE else " "
    return f"- [{box}] {_words(fields['title'])}{_agent(fields.get('agent', ''))}"


def _words(title: str) -> str:
    return harmless(title) or "(no title)"


def _agent(name: str) -> str:
    """Return the mark of who works on the task; a name that would break the mark is left out."""
    return f" (@{name})" if name and not re.search(r"[()\s]|<!--", name) else ""


def _label(name: str) -> str:
    return {"id": "ID", "after": _AFTER}.get(name, name[:1].upper() + name[1:])
