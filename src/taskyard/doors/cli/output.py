"""Text for a screen: colours, aligned columns, and control characters as escapes."""

from __future__ import annotations

import os
import sys

from taskyard.core.json_codec import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

GAP = "  "
_LEAST = 8  # columns of the screen that a shrunk column keeps at least
_READABLE = 24  # columns of the screen for a title; other columns are left out until it has them
_SHORT = 72  # characters of JSON that stay on one line
_COLOURS = {
    "todo": "34",
    "waiting": "33",
    "blocked": "35",
    "processing": "36",
    "done": "32",
    "failed": "31",
    "cancelled": "2",
    "heading": "1",
    # verdicts of the doctor
    "green": "32",
    "warn": "33",
    "refuse": "31",
    # outcomes of a run that have no state's name
    "error": "33",
    "later": "33",
    "crashed": "31",
    "lost": "31",
    # events that have no state's name
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
    "paused": "33",
    "unpaused": "34",
}


def coloured() -> bool:
    """Return whether stdout is a terminal that gets colours."""
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def on_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def paint(text: str, name: str) -> str:
    """Return the text in the colour of a state or event; unchanged if stdout gets no colours."""
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if name in _COLOURS and coloured() else text


def columns() -> int | None:
    """Return the width of the terminal; None if stdout is no terminal, so that nothing is cut."""
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
    """Return the text with control characters as escapes, so that a terminal does not obey them."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" or _is_joiner(letter) else ascii(letter)[1:-1]
        for letter in text
    )


def _is_joiner(letter: str) -> bool:
    return (
        letter in "\u200c\u200d\u3000\xa0"
    )  # they occur within words of some scripts and within emoji, or are spaces beyond ASCII


def width(text: str) -> int:
    """Return how many columns the text takes on a screen."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    taken = 0
    for letter in text:
        if category(letter) not in ("Mn", "Me", "Cf"):
            taken += 2 if east_asian_width(letter) in "WF" else 1
    return taken


def cut(text: str, most: int) -> str:
    """Return the text in at most `most` columns; three dots stand for what is left out."""
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
    """Return aligned columns; column `states` is coloured by its words, column `shrink` is cut on a narrow terminal.

    If `first_to_go` has columns and `shrink` does not fit, `shrink` becomes the first column. Then columns of
    `first_to_go` are left out, in their order, until `shrink` has `_READABLE` columns of the screen.
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
    """Return the columns to show, in order, and the width that is left for column `shrink`."""

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
    """Return one line `name  value` for each pair, with aligned values; a pair with None is left out."""
    given = [(name, value) for name, value in pairs if value is not None]
    most = max(len(name) for name, _ in given)
    return "\n".join(
        f"{paint(name.ljust(most), 'heading')}{GAP}{indented(plain(value), most + len(GAP))}" for name, value in given
    )


def json_text(value: Any) -> str | None:
    """Return the value as JSON for people: on one line if that is short, else indented; None for null."""
    if value is None:
        return None
    line = encode(value)
    if len(line) <= _SHORT:
        return line
    import json

    return json.dumps(value, ensure_ascii=False, indent=2)


def indented(text: str, by: int) -> str:
    """Return the text with every line but the first indented by `by` spaces."""
    return text.replace("\n", "\n" + " " * by)
