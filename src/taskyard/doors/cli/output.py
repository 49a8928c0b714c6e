"""Putting text on a screen: colour where it is wanted, columns that line up, nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

GAP = "  "
_LEAST = 8  # a shrunk column keeps at least this much
_READABLE = 24  # columns of a title that others give way to
_SHORT = 72  # characters of JSON that are still read at a glance
_COLOURS = {
    "todo": "34",
    "waiting": "33",
    "blocked": "35",
    "processing": "36",
    "done": "32",
    "failed": "31",
    "cancelled": "2",
    "heading": "1",
    # how good a place is
    "green": "32",
    "warn": "33",
    "refuse": "31",
    # how a worker's run of a task ended, where it is not named like a state
    "error": "33",
    "later": "33",
    "crashed": "31",
    "lost": "31",
    # events that are not named like a state
    "added": "34",
    "claimed": "36",
    "released": "34",
    "unblocked": "34",
    "due": "33",
    "retried": "33",
    "edited": "35",
    "noted": "2",
    "reaped": "31",
    "refused": "31",
    "set_aside": "31",
}


def coloured() -> bool:
    """Whether stdout is a terminal that is shown colours."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def on_terminal() -> bool:
    """Whether people read stdout right now."""
    return sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, name: str) -> str:
    """The text in the colour of a state or event, where colour is wanted."""
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if name in _COLOURS and coloured() else text


def columns() -> int | None:
    """How wide the terminal is, or None where stdout is none and nothing needs to be cut."""
    if not on_terminal():
        return None
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def plain(text: str) -> str:
    """The text without anything that a terminal would obey: control characters are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" or _is_joiner(letter) else ascii(letter)[1:-1]
        for letter in text
    )


def _is_joiner(letter: str) -> bool:
    return (
        letter in "\u200c\u200d\u3000\xa0"
    )  # within words of some scripts, within emoji, and spaces that are not ASCII's


def width(text: str) -> int:
    """How many columns the text takes on a screen."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    taken = 0
    for letter in text:
        if category(letter) not in ("Mn", "Me", "Cf"):
            taken += 2 if east_asian_width(letter) in "WF" else 1
    return taken


def cut(text: str, most: int) -> str:
    """The text in at most so many columns, with three dots where something is left out."""
    if width(text) <= most:
        return text
    while text and width(text) > most - 3:
        text = text[:-1]
    return text + "..."


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    states: int | None = None,
    shrink: int | None = None,
    right: frozenset[int] = frozenset(),
    first_to_go: Sequence[int] = (),
) -> str:
    """Aligned columns; column `states` is coloured by its words, column `shrink` gives way on a narrow terminal.

    Where some may go, that one leads as soon as it has to be cut, and they go until it can be read.
    """
    cells = [[plain(cell).replace("\n", " ") for cell in row] for row in (heads, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(heads))]
    room = columns()
    shown = list(range(len(heads)))
    if room is not None and shrink is not None:
        shown, left = _fitting(widths, shrink, room, first_to_go)
        widths[shrink] = max(min(widths[shrink], left), _LEAST)
        for row in cells:
            row[shrink] = cut(row[shrink], widths[shrink])
    lines = []
    for number, row in enumerate(cells):
        padded = [_padded(cell, widths[column], column in right) for column, cell in enumerate(row)]
        if number == 0:
            padded = [paint(cell, "heading") for cell in padded]
        elif states is not None:
            padded[states] = paint(row[states], row[states]) + padded[states][len(row[states]) :]
        lines.append(GAP.join(padded[column] for column in shown).rstrip())
    return "\n".join(lines)


def _fitting(widths: Sequence[int], shrink: int, room: int, first_to_go: Sequence[int]) -> tuple[list[int], int]:
    """The columns that are shown, in their order, and how much of the room the shrunk one has."""

    def left(shown: list[int]) -> int:
        return room - sum(widths[column] + len(GAP) for column in shown if column != shrink)

    shown = list(range(len(widths)))
    if not first_to_go or widths[shrink] <= left(shown):
        return shown, left(shown)
    shown.insert(0, shown.pop(shrink))
    for column in first_to_go:
        if left(shown) >= min(widths[shrink], _READABLE):
            break
        shown.remove(column)
    return shown, left(shown)


def _padded(cell: str, to: int, right: bool) -> str:
    space = " " * (to - width(cell))
    return space + cell if right else cell + space


def fields(pairs: Sequence[tuple[str, str | None]]) -> str:
    """`name  value` on lines of their own, values aligned; what is None is left out."""
    given = [(name, value) for name, value in pairs if value is not None]
    most = max(len(name) for name, _ in given)
    return "\n".join(
        f"{paint(name.ljust(most), 'heading')}{GAP}{indented(plain(value), most + len(GAP))}" for name, value in given
    )


def json_text(value: Any) -> str | None:
    """The value as JSON for people: on one line if that is short, else indented; nothing for null."""
    if value is None:
        return None
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _SHORT else json.dumps(value, ensure_ascii=False, indent=2)


def indented(text: str, by: int) -> str:
    """The text with every line but the first moved to the right."""
    return text.replace("\n", "\n" + " " * by)
