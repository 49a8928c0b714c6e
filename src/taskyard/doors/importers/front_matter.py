"""The YAML at the head of a Markdown file, read by hand: mappings, lists and texts, as tools write them.

A library would be a dependency for one command. What is not read here (anchors, tags, documents) is refused with its place,
and never guessed.
"""

from __future__ import annotations

import re

from taskyard.doors.importers.source import Place
from taskyard.doors.importers.yaml_flow import DEPTH_MOST, NOT_READ, Flow
from taskyard.doors.importers.yaml_text import BLANKS, end_of_quote, folded, is_closed, joined, scalar, without_comment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.source import Text

_LINES_MOST = 2000  # of front matter: values of many lines are read anew with each of them
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"[ \t]*|'(?:[^']|'')*'[ \t]*|[^ \t\-?:,\[\]{}#&*!|>'"%`][^:#]*|-[^ \t:#][^:#]*):(?=[ \t]|$)"""
)
_BLOCK = re.compile(r"([|>])([+-]?[1-9]?[+-]?)[ \t]*(?:#.*)?$")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX = {"x": 2, "u": 4, "U": 8}


class FrontMatter:
    """The fields at the head of a file, and the text below them."""

    def __init__(self, fields: dict[str, Any], body: list[str], place: Place) -> None:
        self.fields = fields
        self.body = body
        """The lines below."""
        self.place = place
        """Where the fields begin."""


def read(text: Text) -> FrontMatter | None:
    """Return the front matter of a file; None if it has none."""
    lines = text.text.split("\n")
    if lines[0].rstrip(BLANKS) != "---":
        return None
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip(BLANKS) in ("---", "...")), None)
    if end is None:
        raise Place(text.file, 1).refuse("the front matter has no end", "put a line with --- below it")
    if end > _LINES_MOST:
        raise Place(text.file, _LINES_MOST).refuse(f"the front matter has more than {_LINES_MOST} lines")
    fields = _Yaml(text.file, lines[1:end]).document()
    return FrontMatter(fields, lines[end + 1 :], Place(text.file, 2))


class _Yaml:
    """The lines of a document, and how far they were read."""

    def __init__(self, file: str, lines: list[str]) -> None:
        self._file = file
        self._lines = lines
        self._at = 0
        self._depth = 0

    def document(self) -> dict[str, Any]:
        """Return the fields of the whole document."""
        indent = self._indent()
        if indent is None:
            return {}
        in_braces = self._lines[self._at].startswith("{", indent)
        found: dict[str, Any] = self._inline(indent, -1) if in_braces else self._mapping(indent)
        if self._indent() is not None:
            raise self._refuse(0, "this is indented less than what it belongs to")
        return found

    def _refuse(self, column: int, message: str) -> Exception:
        # The first line of the file is the opening mark.
        return Place(self._file, self._at + 2, column + 1).refuse(message)

    def _indent(self) -> int | None:
        """Skip blank lines and comments; return the indent of the line that is next, None at the end."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            rest = line.lstrip(" ")
            if rest.strip(BLANKS) and not rest.startswith("#"):
                if rest.startswith("\t"):
                    raise self._refuse(len(line) - len(rest), "a tab cannot indent YAML")
                return len(line) - len(rest)
            self._at += 1
        return None

    def _is_entry(self, indent: int) -> bool:
        line = self._lines[self._at]
        return line[indent : indent + 1] == "-" and line[indent + 1 : indent + 2] in ("", " ", "\t")

    def _value(self, indent: int) -> Any:
        """Return the list or mapping that begins with the next line."""
        self._depth += 1
        if self._depth > DEPTH_MOST:
            raise self._refuse(indent, "the YAML is nested too deeply")
        value: Any
        if self._is_entry(indent):
            value = self._list(indent)
        elif _KEY.match(self._lines[self._at], indent):
            value = self._mapping(indent)
        else:
            value = self._inline(indent, indent - 1)
        self._depth -= 1
        return value

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (here := self._indent()) is not None and here == indent and not self._is_entry(indent):
            match = _KEY.match(self._lines[self._at], indent)
            if match is None:
                raise self._refuse(indent, "neither a field nor a list: a colon and a space are missing, or quotes")
            key = self._key(match[1].rstrip(BLANKS), indent)
            if key in found:
                raise self._refuse(indent, f"the field {ascii(key)[:60]} is there twice")
            found[key] = self._after(match.end(), indent, same_level=True)
        if here is not None and here > indent:
            raise self._refuse(here, "this is indented more than the fields before it")
        return found

    def _key(self, text: str, column: int) -> str:
        if text[0] in "\"'":
            return str(self._quoted(text, column))
        return text

    def _list(self, indent: int) -> list[Any]:
        found = []
        while (here := self._indent()) is not None and here == indent and self._is_entry(indent):
            line = self._lines[self._at]
            rest = line[indent + 1 :].lstrip(" ")
            column = len(line) - len(rest)
            if rest and (_KEY.match(rest) or rest.startswith("- ")):  # a mapping or a list within the list
                self._lines[self._at] = " " * column + rest
                found.append(self._value(column))
            else:
                found.append(self._after(indent + 1, indent, same_level=False))
        return found

    def _after(self, column: int, indent: int, same_level: bool) -> Any:
        """Return the value behind a key or a dash: on the same line, or below it."""
        line = self._lines[self._at]
        rest = line[column:].lstrip(" \t")
        column = len(line) - len(rest)
        if not rest or rest.startswith("#"):
            self._at += 1
            below = self._indent()
            if below is not None and (below > indent or (same_level and below == indent and self._is_entry(below))):
                return self._value(below)
            return None
        block = _BLOCK.match(rest)
        if block is not None:
            return self._block(block[1], block[2], indent)
        return self._inline(column, indent)

    def _block(self, style: str, marks: str, indent: int) -> str:
        """Return a text in lines of its own: as it is (`|`), or folded (`>`)."""
        self._at += 1
        lines = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip(BLANKS) and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self._at += 1
        digit = next((int(mark) for mark in marks if mark.isdigit()), None)
        widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip(BLANKS)]
        width = max(indent, 0) + digit if digit else min(widths[:1], default=0)
        lines = [line[width:] for line in lines]
        ends = 0
        while lines and not lines[-1]:
            lines.pop()
            ends += 1
        text = "\n".join(lines) if style == "|" else folded(lines)
        return text + ("" if "-" in marks or not text else "\n" * (1 + ends if "+" in marks else 1))

    def _inline(self, column: int, indent: int) -> Any:
        """Return a value that begins in this line, and may go on in lines that are indented more."""
        first = self._lines[self._at][column:]
        if first[0] in NOT_READ:
            raise self._refuse(column, f"{NOT_READ[first[0]]} is YAML that is not read here; put the text in quotes")
        begin = self._at
        self._at += 1
        lines = [first]
        while self._at < len(self._lines) and not is_closed(lines) and self._goes_on(indent, first[0] in "\"'[{"):
            lines.append(self._lines[self._at].strip(BLANKS))
            self._at += 1
        end, self._at = self._at, begin
        if first[0] in "\"'":
            value = self._quoted(joined(lines), column)
        elif first[0] in "[{":
            value = Flow(joined(lines), column, self._refuse, self._quoted).whole()
        else:
            while lines and not lines[-1]:
                lines.pop()
            value = self._plain(folded([without_comment(line) for line in lines]), column)
        self._at = end
        return value

    def _goes_on(self, indent: int, enclosed: bool) -> bool:
        line = self._lines[self._at]
        if not line.strip(BLANKS):
            return enclosed or self._blank_within(indent)
        deeper = len(line) - len(line.lstrip(" ")) > indent
        return deeper and (enclosed or not line.lstrip(BLANKS).startswith("#"))

    def _blank_within(self, indent: int) -> bool:
        rest = next((line for line in self._lines[self._at :] if line.strip(BLANKS)), "")
        return bool(rest) and len(rest) - len(rest.lstrip(" ")) > indent

    def _plain(self, text: str, column: int) -> Any:
        if ": " in text or text.endswith(":"):
            raise self._refuse(column, "a text with a colon and a space needs quotes")
        return scalar(text)

    def _quoted(self, text: str, column: int) -> str:
        mark = text[0]
        end = end_of_quote(text)
        if end is None:
            raise self._refuse(column, "the quotes have no end")
        tail = text[end + 1 :].strip(BLANKS)
        if tail and not tail.startswith("#"):
            raise self._refuse(column + end + 1, "there is more behind the quotes")
        return text[1:end].replace("''", "'") if mark == "'" else self._unescaped(text[1:end], column)

    def _unescaped(self, text: str, column: int) -> str:
        parts, at = [], 0
        while (slash := text.find("\\", at)) >= 0:
            parts.append(text[at:slash])
            mark = text[slash + 1 : slash + 2]
            digits = text[slash + 2 : slash + 2 + _HEX.get(mark, 0)]
            if mark in _ESCAPES:
                parts.append(_ESCAPES[mark])
            elif mark in _HEX and re.fullmatch(r"[0-9a-fA-F]+", digits) and len(digits) == _HEX[mark]:
                code = int(digits, 16)
                if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                    raise self._refuse(column, f"\\{mark}{digits} is no character")
                parts.append(chr(code))
            else:
                raise self._refuse(column, f"\\{mark} is no escape of YAML")
            at = slash + 2 + len(digits)
        return "".join([*parts, text[at:]])
