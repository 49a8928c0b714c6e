"""Write a history: one file of JSON Lines for each process, and one write for each line, so that a kill loses no line.

The first line has the process, the worker and the clock. Each request has two lines. The first is written before the
request is sent: `{"n": 1, "at": ..., "ask": "claim", ...}`. The second is written when the answer has come:
`{"n": 1, "at": ..., "told": {...}}`, or `"refused"` with the error's code.

A request without an answer may have been carried out or not. `at` is in nanoseconds and may be missing; then only the order
within the file is known. An answer may have the name of the `worker`, if it was not known before.
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
_LONGEST = 120  # characters of a value that is written in full


class HistoryWriter:
    """Writes one process's file of a history."""

    def __init__(self, folder: str | os.PathLike[str], worker: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self.process = f"{os.getpid()}-{ids.base32(ids.chance(40), 8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(os.path.join(folder, self.process + SUFFIX), flags, 0o644)
        self._numbers = itertools.count(1)
        self._write({"v": VERSION, "process": self.process, "worker": worker, "clock": clock() or self.process})

    def request(self, verb: str, **arguments: Any) -> int:
        """Write a request before it is sent, and return its number."""
        number = next(self._numbers)
        self._write({"n": number, "at": time.monotonic_ns(), "ask": verb, **arguments})
        return number

    def answered(self, number: int, **answer: Any) -> None:
        """Write the answer to the request of this number."""
        self._write({"n": number, "at": time.monotonic_ns(), "told": answer})

    def failed(self, number: int, code: str) -> None:
        """Write that the request of this number was answered by an error with this code."""
        self._write({"n": number, "at": time.monotonic_ns(), "refused": code})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def clock() -> str | None:
    """Return a name that is equal in all processes with the same monotonic clock; None where it is unknown.

    The processes of one kernel share that clock, except those in a time namespace of their own.
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


def fingerprint(value: object) -> str:
    """Return the value as JSON, or the digest of its JSON if that is long."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text if len(text) <= _LONGEST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
