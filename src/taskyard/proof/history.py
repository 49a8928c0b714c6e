"""Reading histories: what was asked for, when, and what the answer was."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from taskyard.core.errors import Invalid
from taskyard.proof.recorder import SUFFIX, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# Errors that say that nothing was done. Any other (a full disk, a store that went away) leaves it open.
REFUSALS = frozenset(("claim_lost", "conflict", "not_found", "ambiguous", "invalid", "timed_out"))

_SHOWN = 300  # characters of a line that people are shown; its number leads to the rest


class Operation:
    """One thing that one process asked for, and the answer, if it got one."""

    __slots__ = ("begin", "clock", "end", "file", "given", "lines", "process", "refused", "told", "verb", "worker")

    def __init__(self, header: dict[str, Any], file: str, line: int, asked: dict[str, Any]) -> None:
        self.process: str = header["process"]
        self.clock: str = header["clock"]
        self.worker: str = asked.get("worker") or header["worker"]
        self.file = file
        self.verb: str = asked["ask"]
        self.given = asked
        self.lines: tuple[int, int | None] = (line, None)
        self.begin: int | None = asked.get("at")
        self.end: int | None = None
        self.told: dict[str, Any] | None = None
        self.refused: str | None = None

    def answered(self, line: int, answer: dict[str, Any]) -> None:
        """The answer has come."""
        self.lines = (self.lines[0], line)
        self.end = answer.get("at")
        self.told = answer.get("told")
        if self.told is not None and "worker" in self.told:
            self.worker = self.told["worker"]  # a name that was made up for whoever asked
        self.refused = answer.get("refused")

    @property
    def unknown(self) -> bool:
        """Whether it may have been done and may not: no answer, or an error that leaves it open."""
        return self.told is None and self.refused not in REFUSALS

    @property
    def possible(self) -> bool:
        """Whether it may have been done."""
        return self.refused not in REFUSALS

    def precedes(self, other: Operation) -> bool:
        """Whether it was answered before the other was asked: by the order of one process, or by one clock."""
        if self.lines[1] is None:
            return False
        if self.process == other.process:
            return self.lines[1] < other.lines[0]
        if self.clock != other.clock or self.end is None or other.begin is None:
            return False
        return self.end < other.begin

    def shown(self) -> list[str]:
        """Its lines, for a person to read."""
        asked = f"{self.file}:{self.lines[0]}: {self.worker} asks: {_brief(self.given)}"
        if self.lines[1] is None:
            return [asked, f"{self.file}: no answer"]
        answer = f"refused: {self.refused}" if self.told is None else f"told: {_brief(self.told)}"
        return [asked, f"{self.file}:{self.lines[1]}: at {self.end}: {answer}"]


class History:
    """Everything that everybody asked for."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self.operations = list(operations)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> History:
        """The history in this folder."""
        found = []
        for name in sorted(os.listdir(folder)):
            if name.endswith(SUFFIX):
                with open(os.path.join(folder, name), "rb") as file:
                    found += read(name, file.read())
        return cls(found)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)


def read(name: str, content: bytes) -> list[Operation]:
    """The operations of one file; a last line that is not whole was never said."""
    *lines, _ = content.split(b"\n")
    if not lines:
        return []
    header = _parsed(name, 1, lines[0])
    if header.get("v") != VERSION:
        raise Invalid(f"{name} is no history that this version can read")
    asked: dict[int, Operation] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _parsed(name, number, line)
        if "ask" in entry:
            asked[entry["n"]] = Operation(header, name, number, entry)
        elif entry["n"] in asked:
            asked[entry["n"]].answered(number, entry)
        else:
            raise Invalid(f"line {number} of {name} answers what was never asked")
    return list(asked.values())


def _parsed(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        raise Invalid(f"line {number} of {name} is not JSON") from None
    return entry


def _brief(said: dict[str, Any]) -> str:
    text = json.dumps({name: value for name, value in said.items() if name != "n" and value is not None})
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
