"""Check-lists of Markdown: `- [ ] Title`, nested or not, as in GitHub's issues; and the fields of tasks.md below an entry."""

from __future__ import annotations

import os
import re

from taskyard.core.errors import Invalid
from taskyard.doors.importers import item, markdown, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.markdown import Line

_BOX = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX/~-])\][ \t](.*)$")
_FIELD = re.compile(r"(?:[-*+][ \t]+)?\*\*([^*:]+):?\*\*:?(.*)$")
_ID = re.compile(r"<!--[ \t]*id:([^<>]*)-->")
_HOLDER = re.compile(r"\(@([^()\s]+)\)$")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")  # Markdown's own escape for its marks
_PRIORITY = re.compile(r"(P[0-4])\b", re.IGNORECASE)
_STATES = {
    " ": item.OPEN,
    "/": item.STARTED,
    "x": item.DONE,
    "X": item.DONE,
    "-": item.CANCELLED,
    "~": item.CANCELLED,
}
_STATUS = {item.STARTED: "started", item.CANCELLED: "cancelled", item.DONE: "checked"}


def read(path: str, options: Options) -> Found:  # noqa: ARG001  a check-box has no words
    """Return an item for each check-box of a file that is not in code; those below another are parts of it."""
    found = Found("checklist")
    text = source.read(path)
    name = "stdin" if path == "-" else os.path.basename(path)
    entries = _Entries(found, name)
    for line in markdown.lines(text):
        entries.take(line)
    entries.name_all()
    if not found.items:
        raise Invalid(f"{text.file} has no check-boxes", hint="an entry is a line such as: - [ ] Write the tests")
    return found


class _Entries:
    """The entries so far, and which of them the next line may belong to."""

    def __init__(self, found: Found, file: str) -> None:
        self._found = found
        self._file = file
        self._open: list[tuple[int, Item]] = []
        """The entries that the next line may be below: the indent of each, the innermost last."""
        self._above: dict[int, Item] = {}
        self._named: set[int] = set()
        self._words: dict[int, list[str]] = {}
        """Lines below each entry that are no fields."""

    def take(self, line: Line) -> None:
        """Read one line: a new entry, or something about the one above it."""
        match = _BOX.match(line.text)
        if match is not None:
            self._entry(line, len(match[1].expandtabs(4)), match[2], match[3].strip())
        elif line.heading is not None:
            self._open = []
        elif line.text.strip():
            indent = len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip())
            while self._open and self._open[-1][0] >= indent:
                self._open.pop()
            if self._open:
                self._about(self._open[-1][1], line.text)

    def _entry(self, line: Line, indent: int, box: str, title: str) -> None:
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        one = Item("", line.place)
        said = _ID.search(title)
        title = _ID.sub("", title).strip()
        holder = _HOLDER.search(title)
        one.title = _ESCAPED.sub(r"\1", _HOLDER.sub("", title).strip())
        one.assignee = None if holder is None else holder[1]
        one.state = _STATES[box]
        one.status = _STATUS.get(one.state)
        urgent = next((match for match in map(_PRIORITY.match, reversed(line.section)) if match), None)
        one.priority = None if urgent is None else item.PRIORITIES[urgent[1].lower()]
        if line.section:
            one.rest["section"] = " / ".join(line.section)
        if said is not None and said[1].strip():
            self._name(one, said[1].strip())
        if self._open:
            self._above[id(one)] = self._open[-1][1]
        self._open.append((indent, one))
        self._found.items.append(one)

    def _about(self, one: Item, text: str) -> None:
        """Take a line below an entry for one of its fields, or for more of its words."""
        match = _FIELD.match(text.strip())
        name, value = ("", "") if match is None else (match[1].strip().lower(), match[2].strip())
        several = [part.strip(" `") for part in value.split(",") if part.strip(" `")]
        if not value:
            self._words.setdefault(id(one), []).append(text.strip())
        elif name == "id":
            self._name(one, value.strip("`"))
        elif name in ("blocked by", "depends on"):
            one.after += several
        else:
            one.rest["_".join(name.split())] = several if name == "tags" else value

    def _name(self, one: Item, name: str) -> None:
        one.id = name
        self._named.add(id(one))

    def name_all(self) -> None:
        """Give an id to entries that have none: a digest of their words, so that the same words are the same task again."""
        from hashlib import sha256

        seen: dict[str, int] = {}
        for one in self._found.items:
            if id(one) in self._words:
                one.rest["description"] = "\n".join(self._words[id(one)])
            above = self._above.get(id(one))
            if id(one) not in self._named:
                words = "\n".join((str(one.rest.get("section")), above.id if above else "", str(one.title)))
                seen[words] = seen.get(words, 0) + 1
                digest = sha256(f"{words}\n{seen[words]}".encode()).hexdigest()[:10]
                one.id = f"{self._file}/{digest}"
            one.parent = None if above is None else above.id
