"""Reading what other tools wrote: text and JSON, each with the file, line and column that an error names."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial
from json import decoder

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

SIZE_MOST = 256 << 20  # bytes of one file; beads of 100,000 issues has some 80 MiB
FILES_MOST = 100_000  # of one folder
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\n\r]*")
_LONG_NUMBER = re.compile(r"[0-9]{4301,}")  # more digits than Python converts


class Place:
    """Where something stands in a file: line and column count from 1."""

    __slots__ = ("column", "file", "line")

    def __init__(self, file: str, line: int, column: int = 1) -> None:
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"{self.file}, line {self.line} column {self.column}"

    def refuse(self, message: str, hint: str | None = None) -> Invalid:
        """Make the error for what stands here."""
        return Invalid(f"{self}: {message}", hint=hint or "put it right, and import it again; nothing was imported")


class Text:
    """The text of one file, with line ends made one sort; a byte order mark is no part of it."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        try:
            text = content.removeprefix(_BYTE_ORDER_MARK).decode()
        except UnicodeDecodeError as error:
            before = content.removeprefix(_BYTE_ORDER_MARK)[: error.start]
            place = Place(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
            bad = content.removeprefix(_BYTE_ORDER_MARK)[error.start]
            raise place.refuse(f"byte 0x{bad:02x} is not UTF-8", "save the file in UTF-8") from None
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")

    def place(self, offset: int) -> Place:
        """Return the place of this character."""
        return Place(self.file, self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number."""
        return enumerate(self.text.split("\n"), 1)

    def json(self) -> Json:
        """Parse the whole text as one JSON value."""
        return Json(self, _parsed(self.text, self.place))

    def json_lines(self) -> Iterator[tuple[Place, Any]]:
        """Yield the value of each line that is not blank."""
        for number, line in self.lines():
            if line.strip():
                value = _parsed(line, partial(self._within, number))
                yield self._within(number, len(line) - len(line.lstrip())), value

    def _within(self, line: int, offset: int) -> Place:
        return Place(self.file, line, offset + 1)


class Json:
    """One JSON value, and where its parts stand in the text."""

    def __init__(self, text: Text, value: Any) -> None:
        self._text = text
        self.value = value
        self._positions: dict[tuple[str | int, ...], int] = {}

    def place(self, *path: str | int) -> Place:
        """Return where the part at this path begins: keys of objects, and positions in lists."""
        return self._text.place(self._offset(path))

    def places(self, *path: str | int) -> list[Place]:
        """Return where each entry of the list at this path begins, in one pass through it."""
        text, line, start, at, found = self._text.text, 1, 0, 0, []
        for offset in _entries(text, self._offset(path)):
            line += text.count("\n", at, offset)
            start = max(start, text.rfind("\n", at, offset) + 1)
            at = offset
            found.append(Place(self._text.file, line, offset - start + 1))
        return found

    def _offset(self, path: tuple[str | int, ...]) -> int:
        if not path:
            return _skip(self._text.text, 0)
        if path not in self._positions:
            start = self._offset(path[:-1])
            find = _member if isinstance(path[-1], str) else _entry
            self._positions[path] = find(self._text.text, start, path[-1])  # type: ignore[arg-type]
        return self._positions[path]


def read(path: str) -> Text:
    """Return the text of a file, or of stdin (`-`)."""
    if path == "-":
        if sys.stdin is None:
            raise Invalid("stdin is closed", hint="pipe something in, or name a file")
        return Text("stdin", _bounded(sys.stdin.buffer.read(SIZE_MOST + 1), "stdin"))
    name = ascii(path)[1:-1]
    try:
        with open(path, "rb") as stream:
            return Text(name, _bounded(stream.read(SIZE_MOST + 1), name))
    except IsADirectoryError:
        raise Invalid(f"{name} is a folder, and a file is wanted here", hint="name the file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unreadable(path, error) from None


def unreadable(path: str, error: OSError | ValueError) -> Invalid:
    """Make the error for a file or folder that cannot be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return Invalid(f"cannot read {ascii(path)[1:-1]}: {reason}", hint="name what the other tool wrote, or - for stdin")


def is_folder(path: str) -> bool:
    """Return whether this is a folder; a missing path raises `Invalid`."""
    if path == "-":
        return False
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return os.path.isdir(path)


def files(folder: str, ending: str) -> list[str]:
    """Return the paths of a folder's own files with this ending, in the order of numbers and names; hidden ones are left out."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    except OSError as error:
        raise unreadable(folder, error) from None
    chosen = [name for name in names if name.endswith(ending) and not name.startswith(".")]
    if len(chosen) > FILES_MOST:
        raise Invalid(f"{ascii(folder)[1:-1]} has more than {FILES_MOST} files", hint="import a part of it at a time")
    return [os.path.join(folder, name) for name in sorted(chosen, key=_by_number)]


def _by_number(name: str) -> tuple[Any, ...]:
    """Sort `2.json` before `10.json`."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]{1,18})", name) if part)


def _bounded(content: bytes, name: str) -> bytes:
    if len(content) > SIZE_MOST:
        raise Invalid(f"{name} has more than {SIZE_MOST >> 20} MiB", hint="import it in parts")
    return content


def _parsed(text: str, place: Callable[[int], Place]) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise place(error.pos).refuse(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise place(0).refuse("the JSON is nested too deeply") from None
    except ValueError as error:
        found = _LONG_NUMBER.search(text)
        said = "a number has too many digits" if found else str(error)
        at = found.start() if found else next((text.find(word) for word in _CONSTANTS if f" {word} " in f" {said} "), 0)
        raise place(max(at, 0)).refuse(f"not JSON: {said}") from None


_CONSTANTS = ("-Infinity", "Infinity", "NaN")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Where a part of a JSON text begins. The text was parsed before, so it is known to be well-formed.

_decoder = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield each key of the object that begins here, with the place of its value."""
    at = _skip(text, at + 1)
    while at < len(text) and text[at] == '"':
        key, at = decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
        at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _skip(text, _decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else len(text)


def _entries(text: str, at: int) -> Iterator[int]:
    """Yield the place of each entry of the list that begins here."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, _decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at


def _member(text: str, at: int, name: str) -> int:
    places: Sequence[int] = [place for key, place in _members(text, at) if key == name]
    return places[-1] if places else at  # of a key that comes twice, the last one counts


def _entry(text: str, at: int, position: int) -> int:
    return next((place for number, place in enumerate(_entries(text, at)) if number == position), at)
