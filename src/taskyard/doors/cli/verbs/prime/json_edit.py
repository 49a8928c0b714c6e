"""Putting one entry into a JSON text, and taking it out again byte for byte: no other character of the text is touched.

Comments are skipped, because some clients allow them. An entry goes to the beginning of its object or list. How it is
spelled says which of the objects around it were missing: so what was not made here is never removed.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# By the number of containers that were there before.
_SPELLINGS = ((", ", ": "), (",", ":"), (", ", ":"))
_DECODER = json.JSONDecoder()


class Unreadable(Exception):
    """The text is not JSON, or an entry's place is taken by another sort of value."""


class Entry:
    """A value at the end of a path: a member named `key`, or without a key an element of a list."""

    def __init__(self, path: Sequence[str], key: str | None, value: Any) -> None:
        self.path = path
        self.key = key
        self.value = value

    def nested(self, depth: int = 0) -> Any:
        """Return the value within the containers of the path from `depth` on."""
        value = [self.value] if self.key is None else {self.key: self.value}
        for name in reversed(self.path[depth:]):
            value = {name: value}
        return value

    def piece(self, depth: int) -> str:
        """Return the text that goes into the container at `depth`."""
        inner = json.dumps(self.nested(depth), separators=_SPELLINGS[depth])
        return inner[1:-1]


def inserted(text: str, entry: Entry) -> str:
    """Return the text with the entry; the same text if it is there."""
    containers = _containers(text, entry)
    at, depth = containers[-1], len(containers) - 1
    if depth == len(entry.path) and _span(text, at, entry) is not None:
        return text
    piece, after = entry.piece(depth), at + 1
    space = text[after : _skip(text, after)]
    blank = text[after : after + len(space) - len(space.lstrip())] if space.strip() else space
    empty = text[_skip(text, after)] in "}]"
    if "\n" in blank:
        newline, indent = ("\r\n" if "\r\n" in blank else "\n"), blank[blank.rindex("\n") + 1 :]
        added = f"{newline}{indent}{'  ' if empty else ''}{piece}{'' if empty else ','}"
    else:
        added = piece if empty else f"{piece}, "
    return text[:after] + added + text[after:]


def removed(text: str, entry: Entry) -> str:
    """Return the text without the entry, and without the containers that were made for it."""
    containers = _containers(text, entry)
    for depth, container in enumerate(containers):
        piece = entry.piece(depth)
        for _, begin, _, end in _members(text, container):
            if text[begin:end] == piece:
                return _cut(text, begin, end)
    whole = len(containers) > len(entry.path)
    for key, begin, value, end in _members(text, containers[-1]) if whole else ():
        if key == entry.key and _loaded(text[value:end]) == entry.value:  # spelled in another way by a formatter
            return _cut(text, begin, end)
    return text  # not there, or changed by a person, whose own it is now


def _cut(text: str, begin: int, end: int) -> str:
    before, after = text[:begin], text[end:]
    bare = before.rstrip()
    if after.startswith(","):
        if bare != before and bare.endswith(("{", "[")):
            return bare + after[1:]
        return before + after[1:].removeprefix(" ")
    if bare.endswith(","):
        return bare[:-1] + after
    return (bare if bare.endswith(("{", "[")) else before) + after


def _containers(text: str, entry: Entry) -> list[int]:
    """Return where the containers of the path begin, from the outermost: as many as there are."""
    begin = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if text[begin] == "{" and _skip(f"{text}\n$", _end(text, begin)) < len(text):
        raise Unreadable("it is not JSON: something comes after its end")
    at: int | None = begin
    found: list[int] = []
    for depth in range(len(entry.path) + 1):
        if at is None:
            break
        wanted = "[" if entry.key is None and depth == len(entry.path) else "{"
        if text[at : at + 1] != wanted:
            name = "/".join(entry.path[:depth]) or "the file"
            raise Unreadable(f"{name} is not {'a list' if wanted == '[' else 'an object'}")
        found.append(at)
        members = _members(text, at)
        at = next((value for key, _, value, _ in members if [key] == list(entry.path[depth : depth + 1])), None)
    return found


def _span(text: str, at: int, entry: Entry) -> tuple[int, int] | None:
    """Return where the entry stands in its container: a member by its key, an element by its value."""
    for key, begin, value, end in _members(text, at):
        if entry.key is not None and key == entry.key:
            return begin, end
        if entry.key is None and _loaded(text[value:end]) == entry.value:
            return begin, end
    return None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _members(text: str, at: int) -> list[tuple[str | None, int, int, int]]:
    """Return key, begin, begin of the value, and end of each member or element of the container at `at`."""
    found: list[tuple[str | None, int, int, int]] = []
    is_object = text[at] == "{"
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        begin, key = at, None
        if is_object:
            end = _end(text, at)
            key = str(_loaded(text[at:end]))
            at = _skip(text, end)
            if text[begin] != '"' or text[at] != ":":
                raise Unreadable("it is not JSON")
            at = _skip(text, at + 1)
        end = _end(text, at)
        found.append((key, begin, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] not in "}]":
            raise Unreadable("it is not JSON")
    if (text[at] == "}") != is_object:
        raise Unreadable("it is not JSON")
    return found


def _end(text: str, at: int) -> int:
    """Return where the value that begins here ends."""
    if text[at] in "{[":
        members = _members(text, at)
        at = _skip(text, members[-1][3] if members else at + 1)
        at = _skip(text, at + 1) if text[at] == "," else at
        return at + 1
    try:
        return _DECODER.raw_decode(text, at)[1]
    except ValueError:
        raise Unreadable("it is not JSON") from None


def _skip(text: str, at: int) -> int:
    """Return the next place that is neither space nor comment."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("//", at):
            at = (text.find("\n", at) + 1) or len(text)
        elif text.startswith("/*", at):
            at = (text.find("*/", at) + 2) if "*/" in text[at:] else len(text)
        else:
            return at
    raise Unreadable("it is not JSON, or has no end")
