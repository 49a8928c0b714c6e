"""The YAML at the head of a Markdown file, read by hand: mappings, lists and texts, as tools write them.

A library would be a dependency for one command. What is not read here (anchors, tags, documents) is refused with its place,
and never guessed.
"""

from __future__ import annotations

import re

from taskyard.doors.importers.source import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.source import Text

_DEPTH_MOST = 20
_BLANKS = " \t"  # other spaces belong to a text
_LINES_MOST = 2000  # of front matter: values of many lines are read anew with each of them
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"[ \t]*|'(?:[^']|'')*'[ \t]*|[^ \t\-?:,\[\]{}#&*!|>'"%`][^:#]*|-[^ \t:#][^:#]*):(?=[ \t]|$)"""
)
_BLOCK = re.compile(r"([|>])([+-]?[1-9]?[+-]?)[ \t]*(?:#.*)?$")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX = {"x": 2, "u": 4, "U": 8}
_NOT_READ = {"&": "an anchor", "*": "an alias", "!": "a tag", "%": "a directive", "`": "a reserved character"}


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
    if lines[0].rstrip(_BLANKS) != "---":
        return None
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip(_BLANKS) in ("---", "...")), None)
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
            if rest.strip(_BLANKS) and not rest.startswith("#"):
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
        if self._depth > _DEPTH_MOST:
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
            key = self._key(match[1].rstrip(_BLANKS), indent)
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
            if line.strip(_BLANKS) and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self._at += 1
        digit = next((int(mark) for mark in marks if mark.isdigit()), None)
        widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip(_BLANKS)]
        width = max(indent, 0) + digit if digit else min(widths[:1], default=0)
        lines = [line[width:] for line in lines]
        ends = 0
        while lines and not lines[-1]:
            lines.pop()
            ends += 1
        text = "\n".join(lines) if style == "|" else _folded(lines)
        return text + ("" if "-" in marks or not text else "\n" * (1 + ends if "+" in marks else 1))

    def _inline(self, column: int, indent: int) -> Any:
        """Return a value that begins in this line, and may go on in lines that are indented more."""
        first = self._lines[self._at][column:]
        if first[0] in _NOT_READ:
            raise self._refuse(column, f"{_NOT_READ[first[0]]} is YAML that is not read here; put the text in quotes")
        begin = self._at
        self._at += 1
        lines = [first]
        while self._at < len(self._lines) and not _is_closed(lines) and self._goes_on(indent, first[0] in "\"'[{"):
            lines.append(self._lines[self._at].strip(_BLANKS))
            self._at += 1
        end, self._at = self._at, begin
        if first[0] in "\"'":
            value = self._quoted(_joined(lines), column)
        elif first[0] in "[{":
            value = _Flow(self, _joined(lines), column).whole()
        else:
            while lines and not lines[-1]:
                lines.pop()
            value = self._plain(_folded([_without_comment(line) for line in lines]), column)
        self._at = end
        return value

    def _goes_on(self, indent: int, enclosed: bool) -> bool:
        line = self._lines[self._at]
        if not line.strip(_BLANKS):
            return enclosed or self._blank_within(indent)
        deeper = len(line) - len(line.lstrip(" ")) > indent
        return deeper and (enclosed or not line.lstrip(_BLANKS).startswith("#"))

    def _blank_within(self, indent: int) -> bool:
        rest = next((line for line in self._lines[self._at :] if line.strip(_BLANKS)), "")
        return bool(rest) and len(rest) - len(rest.lstrip(" ")) > indent

    def _plain(self, text: str, column: int) -> Any:
        if ": " in text or text.endswith(":"):
            raise self._refuse(column, "a text with a colon and a space needs quotes")
        return scalar(text)

    def _quoted(self, text: str, column: int) -> str:
        mark = text[0]
        end = _end_of_quote(text)
        if end is None:
            raise self._refuse(column, "the quotes have no end")
        tail = text[end + 1 :].strip(_BLANKS)
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

    def refuse_flow(self, column: int, message: str) -> Exception:
        """Make the error for a value in brackets."""
        return self._refuse(column, message)

    def unquoted(self, text: str, column: int) -> str:
        """Return the text in these quotes."""
        return self._quoted(text, column)


class _Flow:
    """A list or mapping in brackets, which has become one line."""

    def __init__(self, yaml: _Yaml, text: str, column: int) -> None:
        self._yaml = yaml
        self._text = text
        self._column = column
        self._at = 0

    def whole(self) -> Any:
        """Return the value; nothing but a comment may follow it."""
        value = self._value(0)
        rest = self._text[self._at :].strip(_BLANKS)
        if rest and not rest.startswith("#"):
            raise self._refuse("there is more behind the bracket")
        return value

    def _refuse(self, message: str) -> Exception:
        return self._yaml.refuse_flow(self._column + self._at, message)

    def _peek(self) -> str:
        while self._text[self._at : self._at + 1] in (" ", "\t", "\n"):
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        if depth > _DEPTH_MOST:
            raise self._refuse("the YAML is nested too deeply")
        first = self._peek()
        if first == "[":
            return self._list(depth)
        if first == "{":
            return self._mapping(depth)
        return self._scalar(",]}")

    def _list(self, depth: int) -> list[Any]:
        found = []
        self._at += 1
        while self._peek() != "]":
            found.append(self._value(depth + 1))
            self._separated("]")
        self._at += 1
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        while self._peek() != "}":
            key = str(self._scalar(":,}"))
            if self._peek() != ":":
                raise self._refuse("a colon is missing")
            self._at += 1
            found[key] = self._value(depth + 1)
            self._separated("}")
        self._at += 1
        return found

    def _separated(self, end: str) -> None:
        mark = self._peek()
        if mark == ",":
            self._at += 1
        elif mark != end:
            raise self._refuse(f"a comma or {end} is missing")

    def _scalar(self, ends: str) -> Any:
        first = self._peek()
        if first in ("", ",", "]", "}"):
            raise self._refuse("a value is missing")
        if first in _NOT_READ:
            raise self._refuse(f"{_NOT_READ[first]} is YAML that is not read here; put the text in quotes")
        start = self._at
        if first in "\"'":
            end = _end_of_quote(self._text, start)
            if end is None:
                raise self._refuse("the quotes have no end")
            self._at = end + 1
            return self._yaml.unquoted(self._text[start : self._at], self._column + start)
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        return scalar(self._text[start : self._at].strip(_BLANKS))


def scalar(text: str) -> Any:
    """Return what a text without quotes means: nothing, true or false, a whole number, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.match(text) else text


def _end_of_quote(text: str, start: int = 0) -> int | None:
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


def _is_closed(lines: list[str]) -> bool:
    """Return whether a value in quotes or brackets is over; a plain one goes on as long as lines are indented."""
    first = lines[0][0]
    if first in "\"'":
        return _end_of_quote(_joined(lines)) is not None
    if first in "[{":
        return _is_balanced(_joined(lines))
    return _without_comment(lines[-1]) != lines[-1].rstrip(_BLANKS)


def _is_balanced(text: str) -> bool:
    """Return whether every bracket is closed; those in quotes do not count."""
    depth, at, before = 0, 0, "["
    while at < len(text):
        letter = text[at]
        if letter in "\"'" and before in "[{,:":
            end = _end_of_quote(text, at)
            if end is None:
                return False
            at = end
        depth += (letter in "[{") - (letter in "]}")
        before = before if letter in " \t\n" else letter
        at += 1
    return depth <= 0


def _joined(lines: list[str]) -> str:
    """Return the lines of a value in quotes or brackets as one; a backslash at the end of a line joins it to the next."""
    parts: list[str] = []
    for number, line in enumerate(lines):
        stripped = line.lstrip(_BLANKS) if number else line
        stripped = stripped if number == len(lines) - 1 else stripped.rstrip(_BLANKS)
        if parts and (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
            parts[-1] = parts[-1][:-1] + stripped
        else:
            parts.append(stripped)
    return _folded(parts)


def _without_comment(line: str) -> str:
    found = re.search(r"(?:^|[ \t])#", line)
    return (line[: found.start()] if found else line).rstrip(_BLANKS)


def _folded(lines: list[str]) -> str:
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
