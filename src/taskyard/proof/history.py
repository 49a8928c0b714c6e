"""Read a history: each request with its time, and its answer."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from taskyard.core.errors import Invalid
from taskyard.proof.recorder import SUFFIX, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# Errors after which nothing was done. After any other (a full disk, a lost store) the request may have been carried out.
REFUSALS = frozenset(("claim_lost", "conflict", "not_found", "ambiguous", "invalid", "timed_out"))

_SHOWN = 300  # characters of a line that a report shows; the line number leads to the rest


class Operation:
    """One request of one process, and the answer if there was one."""

    __slots__ = ("answer", "arguments", "begin", "clock", "end", "error", "file", "lines", "process", "verb", "worker")

    def __init__(self, header: dict[str, Any], file: str, line: int, request: dict[str, Any]) -> None:
        self.process: str = header["process"]
        self.clock: str = header["clock"]
        self.worker: str = request.get("worker") or header["worker"]
        self.file = file
        self.verb: str = request["ask"]
        self.arguments = request
        self.lines: tuple[int, int | None] = (line, None)
        """The line numbers of the request and of the answer."""
        self.begin: int | None = request.get("at")
        self.end: int | None = None
        self.answer: dict[str, Any] | None = None
        """None without an answer, and after an error."""
        self.error: str | None = None
        """The code of the error that was the answer."""

    def complete(self, line: int, entry: dict[str, Any]) -> None:
        """Add the line that has the answer or the error."""
        self.lines = (self.lines[0], line)
        self.end = entry.get("at")
        self.answer = entry.get("told")
        if self.answer is not None and "worker" in self.answer:
            self.worker = self.answer["worker"]  # the yard chose a name for a worker that gave none
        self.error = entry.get("refused")

    @property
    def unknown(self) -> bool:
        """Whether it is unknown if this was carried out: no answer, or an error that leaves it open."""
        return self.answer is None and self.error not in REFUSALS

    @property
    def possible(self) -> bool:
        """Whether this may have been carried out."""
        return self.error not in REFUSALS

    def precedes(self, other: Operation) -> bool:
        """Whether this was answered before the other was requested, by the order in one file or by a common clock."""
        if self.lines[1] is None:
            return False
        if self.process == other.process:
            return self.lines[1] < other.lines[0]
        if self.clock != other.clock or self.end is None or other.begin is None:
            return False
        return self.end < other.begin

    def shown(self) -> list[str]:
        """Return its lines for a report."""
        request = f"{self.file}:{self.lines[0]}: {self.worker} asks: {_brief(self.arguments)}"
        if self.lines[1] is None:
            return [request, f"{self.file}: no answer"]
        answer = f"refused: {self.error}" if self.answer is None else f"told: {_brief(self.answer)}"
        return [request, f"{self.file}:{self.lines[1]}: at {self.end}: {answer}"]


class History:
    """All operations of all processes."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self.operations = list(operations)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> History:
        """Read the history in this folder."""
        found = []
        for name in sorted(os.listdir(folder)):
            if name.endswith(SUFFIX):
                with open(os.path.join(folder, name), "rb") as file:
                    found += read(name, file.read())
        return cls(found)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


def read(name: str, content: bytes) -> list[Operation]:
    """Parse the operations of one file. A last line without its end is ignored: its process died before the request."""
    *lines, _ = content.split(b"\n")
    if not lines:
        return []
    header = _parsed(name, 1, lines[0])
    if header.get("v") != VERSION:
        raise Invalid(f"{name} is no history that this version can read")
    operations: dict[int, Operation] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _parsed(name, number, line)
        if "ask" in entry:
            operations[entry["n"]] = Operation(header, name, number, entry)
        elif entry["n"] in operations:
            operations[entry["n"]].complete(number, entry)
        else:
            raise Invalid(f"line {number} of {name} answers what was never asked")
    return list(operations.values())


def _parsed(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        raise Invalid(f"line {number} of {name} is not JSON") from None
    return entry


def _brief(entry: dict[str, Any]) -> str:
    text = json.dumps({name: value for name, value in entry.items() if name != "n" and value is not None})
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
