"""Lines of Markdown for importers: headings, fences, conflict markers, and the cells of tables."""

from __future__ import annotations

import re

from taskyard.doors.importers.source import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.doors.importers.source import Text

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CONFLICT = re.compile(r"(<{7}|>{7}|\|{7})( |$)|={7}$")
_CELL = re.compile(r"((?:[^|\\]|\\.)*)(?:\||$)")


class Line:
    """One line that is no code, with the headings above it."""

    __slots__ = ("heading", "place", "section", "text")

    def __init__(self, place: Place, text: str, section: tuple[str, ...], heading: str | None) -> None:
        self.place = place
        self.text = text
        self.section = section
        """The headings above, the outermost first."""
        self.heading = heading
        """The words of the heading, if this line is one."""


def lines(text: Text) -> Iterator[Line]:
    """Yield the lines outside of code; raise `Invalid` for the marks of an unfinished merge."""
    fence = ""
    levels: dict[int, str] = {}
    for number, line in text.lines():
        place = Place(text.file, number)
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(mark[1][0])
            fence = "" if closes else fence
            continue
        if mark is not None:
            fence = mark[1]
            continue
        conflict = _CONFLICT.match(line)
        if conflict is not None and conflict[0][0] in "<>|":
            raise place.refuse("this is the mark of a merge that was not finished", "finish the merge first")
        match = _HEADING.match(line)
        if match is not None:
            level = len(match[1])
            words = match[2].strip().rstrip("#").strip()
            levels = {depth: above for depth, above in levels.items() if depth < level} | {level: words}
        yield Line(place, line, tuple(levels.values()), None if match is None else levels[len(match[1])])


def cells(line: str) -> list[str] | None:
    """Return the cells of a table's row; None if the line is none."""
    row = line.strip()
    if not row.startswith("|"):
        return None
    row = row[1:].removesuffix("|") if not row.endswith("\\|") else row[1:]
    found = [match[1] for match in _CELL.finditer(row) if match.start() < len(row) or not row]
    if row.endswith("|") and not row.endswith("\\|"):
        found.append("")
    return [cell.replace("\\|", "|").strip() for cell in found]


def is_rule(row: list[str]) -> bool:
    """Return whether these cells are the line below a table's head."""
    return bool(row) and all(re.fullmatch(r":?-{1,}:?", cell) for cell in row)
