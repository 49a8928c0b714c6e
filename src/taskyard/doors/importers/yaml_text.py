"""Texts of YAML: what a word without quotes means, where quotes end, and how lines become one."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BLANKS = " \t"  # other spaces belong to a text
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def scalar(text: str) -> Any:
    """Return what a text without quotes means: nothing, true or false, a whole number, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.match(text) else text


def end_of_quote(text: str, start: int = 0) -> int | None:
    """Return where the quote that begins here ends."""
    mark, at = text[start], start + 1
    while at < len(text):
        if text[at] == "\\" and mark == '"':
            at += 1
        elif text[at] == mark:
            if mark == '"' or text[at + 1 : at + 2] != "'":
                return at
            at += 1
        at += 1
    return None


def is_closed(lines: list[str]) -> bool:
    """Return whether a value in quotes or brackets is over; a plain one goes on as long as lines are indented."""
    first = lines[0][0]
    if first in "\"'":
        return end_of_quote(joined(lines)) is not None
    if first in "[{":
        return is_balanced(joined(lines))
    return without_comment(lines[-1]) != lines[-1].rstrip(BLANKS)


def is_balanced(text: str) -> bool:
    """Return whether every bracket is closed; those in quotes do not count."""
    depth, at, before = 0, 0, "["
    while at < len(text):
        letter = text[at]
        if letter in "\"'" and before in "[{,:":
            end = end_of_quote(text, at)
            if end is None:
                return False
            at = end
        depth += (letter in "[{") - (letter in "]}")
        before = before if letter in " \t\n" else letter
        at += 1
    return depth <= 0


def joined(lines: list[str]) -> str:
    """Return the lines of a value in quotes or brackets as one; a backslash at the end of a line joins it to the next."""
    parts: list[str] = []
    for number, line in enumerate(lines):
        stripped = line.lstrip(BLANKS) if number else line
        stripped = stripped if number == len(lines) - 1 else stripped.rstrip(BLANKS)
        if parts and (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
            parts[-1] = parts[-1][:-1] + stripped
        else:
            parts.append(stripped)
    return folded(parts)


def without_comment(line: str) -> str:
    """Return the line without the comment at its end."""
    found = re.search(r"(?:^|[ \t])#", line)
    return (line[: found.start()] if found else line).rstrip(BLANKS)


def folded(lines: list[str]) -> str:
    """Join lines by spaces, and by line ends where there are empty ones or where a line is indented more."""
    text, breaks = "", 0
    for number, line in enumerate(lines):
        if not line:
            breaks += 1
            continue
        if number:
            kept = line[0] in " \t" or (text.rpartition("\n")[2][:1] in (" ", "\t") and text != "")
            text += "\n" * (breaks + kept) if breaks or kept else " " if text else ""
        text, breaks = text + line, 0
    return text
