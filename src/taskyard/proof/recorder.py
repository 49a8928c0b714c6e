"""Writing a history: one file of JSON Lines for each process, one write for each line, so that a kill loses nothing said before.

The first line says who writes, and by which clock. Then two lines for each thing that is asked for: before it is asked
(`{"n": 1, "at": ..., "ask": "claim", ...}`), and when the answer is there (`{"n": 1, "at": ..., "told": {...}}`, or
`"refused"` with the error's code). A question without an answer may have been done or not. `at` is in nanoseconds, and may
be missing: then only the order within the file is known. An answer may tell the `worker` whose name was not known before.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from typing import TYPE_CHECKING

from taskyard.core import ids

if TYPE_CHECKING:
    from typing import Any

VERSION = 1
SUFFIX = ".jsonl"
_WORD_MOST = 120


class HistoryWriter:
    """One process's part of a history."""

    def __init__(self, folder: str | os.PathLike[str], worker: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self.process = f"{os.getpid()}-{ids.base32(ids.chance(40), 8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(os.path.join(folder, self.process + SUFFIX), flags, 0o644)
        self._numbers = itertools.count(1)
        self._write({"v": VERSION, "process": self.process, "worker": worker, "clock": clock() or self.process})

    def ask(self, verb: str, **given: Any) -> int:
        """Write down what is about to be asked for; its number is for the answer."""
        number = next(self._numbers)
        self._write({"n": number, "at": time.monotonic_ns(), "ask": verb, **given})
        return number

    def told(self, number: int, **answer: Any) -> None:
        """Write down the answer."""
        self._write({"n": number, "at": time.monotonic_ns(), "told": answer})

    def refused(self, number: int, code: str) -> None:
        """Write down that the answer was an error of this code."""
        self._write({"n": number, "at": time.monotonic_ns(), "refused": code})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Nothing more comes from this process."""
        os.close(self._file)


def clock() -> str | None:
    """What all processes have in common whose monotonic clocks tell the same time; None where nobody can tell.

    Processes of one kernel share that clock, except those in a time namespace of their own.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:
        return None
    try:
        return f"{boot} {os.readlink('/proc/self/ns/time')}"
    except OSError:
        return boot  # a kernel without time namespaces


def word(value: object) -> str:
    """A value as a history speaks of it: its JSON, or the digest of a long one."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text if len(text) <= _WORD_MOST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
