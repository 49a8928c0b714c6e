"""Values that come from the command line, a file or stdin: JSON, and JSON Lines."""

from __future__ import annotations

import sys

from taskyard.core.draft import PAYLOAD_MOST
from taskyard.core.errors import Invalid
from taskyard.core.json_codec import scanner, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from taskyard.core.errors import TaskyardError
    from taskyard.doors.cli.parser import Given

TEXT_MOST = 16 * PAYLOAD_MOST  # bytes read for one value: blanks are no payload, but a device may be endless
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def json_option(given: Given, name: str) -> Any:
    """Return the value of `--name JSON|@file|-`; None if it was not given."""
    text = given.text(name)
    if text is None:
        return None
    if text in ("-", "@-"):
        return parsed(_whole("-"), "stdin")
    if text.startswith("@"):
        return parsed(_whole(text[1:]), text[1:])
    return parsed(text.encode(), f"--{name}")


def text_option(given: Given, name: str) -> str | None:
    """Return the text of `--name TEXT|@file|-`, without a line end at its end; None if it was not given."""
    text = given.text(name)
    if text is None or not (text in ("-", "@-") or text.startswith("@")):
        return text
    file = "-" if text in ("-", "@-") else text[1:]
    try:
        return _whole(file).removeprefix(_BYTE_ORDER_MARK).decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is not UTF-8: byte {error.start} is wrong", hint="save it in UTF-8") from None


def parsed(content: bytes, source: str) -> Any:
    """Parse these bytes as JSON; raise `Invalid` with the cause and its place in `source`."""
    try:
        return whole(content.removeprefix(_BYTE_ORDER_MARK).decode(), _scan)
    except (StopIteration, ValueError, RecursionError):
        return _explained(content, source)


def _explained(content: bytes, source: str) -> Any:
    """The same by the json package, which knows the place of an error."""
    import json

    try:
        return json.loads(content.removeprefix(_BYTE_ORDER_MARK).decode(), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno} column {error.colno}"
        raise Invalid(f"{source} is not valid JSON: {error.msg} {where}", hint=_hint(content, source)) from None
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{source} is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}", hint="save it in UTF-8"
        ) from None
    except RecursionError:
        raise Invalid(f"{source} is nested too deeply") from None
    except ValueError as error:  # a number with more digits than Python converts
        raise Invalid(f"{source} is not valid JSON: {error}") from None


class Lines:
    """Yields the values of a JSON Lines file, or of stdin (`-`); keeps the line number for later errors."""

    def __init__(self, file: str) -> None:
        self.source = "stdin" if file == "-" else file
        self.number = 0
        self.numbers: list[int] = []
        self.at_end = False
        self._file = file

    def __iter__(self) -> Iterator[Any]:
        try:
            if self._file == "-":
                yield from self._values(_stdin())
            else:
                with open(self._file, "rb") as stream:
                    yield from self._values(stream)
        except OSError as error:
            raise _unreadable(self._file, error) from None
        self.at_end = True

    def _values(self, stream: BinaryIO) -> Iterator[Any]:
        while line := stream.readline(TEXT_MOST + 1):
            self.number += 1
            _refuse_endless(line, f"{self.source}, line {self.number}:")
            if line.strip().removeprefix(_BYTE_ORDER_MARK):
                self.numbers.append(self.number)
                yield parsed(line, f"{self.source}, line {self.number}:")

    def blamed(self, error: TaskyardError) -> TaskyardError:
        """Return the error with the number of its line in place of the yard's count of tasks."""
        if not self.number or error.message.startswith(f"{self.source}, line"):
            return error
        begin, colon, message = error.message.partition(": ")
        count = begin.removeprefix("task ")
        if colon and begin != count and count.isdecimal() and 0 < int(count) <= len(self.numbers):
            return type(error)(f"{self.source}, line {self.numbers[int(count) - 1]}: {message}", hint=error.hint)
        if self.at_end:
            return error
        return type(error)(f"{self.source}, line {self.number}: {error.message}", hint=error.hint)


def _whole(file: str) -> bytes:
    try:
        if file == "-":
            content = _stdin().read(TEXT_MOST + 1)
        else:
            with open(file, "rb") as stream:
                content = stream.read(TEXT_MOST + 1)
    except OSError as error:
        raise _unreadable(file, error) from None
    _refuse_endless(content, "stdin" if file == "-" else file)
    return content


def _refuse_endless(content: bytes, source: str) -> None:
    if len(content) > TEXT_MOST:
        raise Invalid(
            f"{source} is longer than {TEXT_MOST} bytes, and a task's data or result has at most {PAYLOAD_MOST}",
            hint="keep the bulk in a file and put its path into the task",
        )


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise Invalid("stdin is closed", hint="pipe something in, or name a file")
    return sys.stdin.buffer


def _unreadable(file: str, error: OSError) -> Invalid:
    return Invalid(
        f"cannot read {ascii(file)[1:-1]}: {error.strerror or error}",
        hint="name a file that can be read, or - for stdin",
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_scan = scanner(parse_constant=_no_constant)


def _hint(content: bytes, source: str) -> str | None:
    word = content.decode("utf-8", "replace").strip()
    if source.startswith("--") and word and word[0] not in '{["':
        return f"a text needs its quotes: {source} '\"{word[:40]}\"'; @file reads a file, - reads stdin"
    return None
