"""The event log: one line for every move, appended in one write.

One file for each kernel and hour: on one kernel appends never tear or overlap. On a network filesystem each writer has
its own, because appends from two clients overwrite one another without an error.
"""

from __future__ import annotations

import json
import time

from taskyard.ids import created
from taskyard.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.disk import Disk

_HOUR = 3_600_000


class Journal:
    """Appends events; a line that cannot be written does not undo the move that it tells of."""

    def __init__(self, disk: Disk, folder: str, writer: str) -> None:
        self._disk = disk
        self._folder = folder
        self._writer = writer
        self._hour = -1
        self._descriptor = self._previous = -1
        self._torn = False
        self._moment = (-1, "")
        self._words: dict[tuple[str, str | None, str], str] = {}

    def write(
        self,
        at: int,
        event: str,
        task: str,
        kind: str,
        fence: int,
        worker: str | None,
        by: str,
        more: dict[str, Any] | None = None,
    ) -> None:
        """Append one event."""
        moment = self._moment
        if moment[0] != at:
            moment = self._advance(at)
        words = self._words.get((kind, worker, by)) or self._learn(kind, worker, by)
        rest = "," + json.dumps(more, ensure_ascii=False)[1:-1] if more else ""
        self._append(
            f'{{"at":"{moment[1]}","event":"{event}","task":"{task}","fence":{fence},{words}{rest}}}\n'.encode()
        )

    def write_added(self, tasks: list[tuple[str, str]], by: str) -> None:
        """Append the events of many new tasks, each an id and a kind, in few writes."""
        for start in range(0, len(tasks), 500):
            lines = []
            for task, kind in tasks[start : start + 500]:
                words = self._words.get((kind, None, by)) or self._learn(kind, None, by)
                lines.append(f'{{"at":"{rfc3339(created(task))}","event":"added","task":"{task}","fence":0,{words}}}\n')
            self._advance(created(tasks[start][0]))
            self._append("".join(lines).encode())

    def _learn(self, kind: str, worker: str | None, by: str) -> str:
        """The words of a line in their JSON form, kept because the same few come in every line."""
        if len(self._words) > 1000:
            self._words.clear()
        words = json.dumps({"kind": kind, "worker": worker, "by": by}, ensure_ascii=False, separators=(",", ":"))[1:-1]
        self._words[kind, worker, by] = words
        return words

    def _advance(self, at: int) -> tuple[int, str]:
        """The time as text, once a millisecond; and once an hour another file."""
        if at // _HOUR != self._hour:
            self._turn_page(at)
        self._moment = (at, rfc3339(at))
        return self._moment

    def _append(self, line: bytes) -> None:
        try:
            if self._torn:
                line = b"\n" + line
            self._torn = self._disk.write(self._descriptor, line) != len(line)
        except OSError:
            self._torn = True

    def _turn_page(self, at: int) -> None:
        # Another thread may be about to write to the old file: it is let go of an hour later.
        name = f"{time.strftime('%Y-%m-%dT%H', time.gmtime(at // 1000))}.{self._writer}.jsonl"
        try:
            descriptor = self._disk.open_append(f"{self._folder}/{name}")
        except OSError:
            return
        if self._previous >= 0:
            self._disk.close(self._previous)
        self._previous, self._descriptor, self._hour = self._descriptor, descriptor, at // _HOUR

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in (self._previous, self._descriptor):
            if descriptor >= 0:
                self._disk.close(descriptor)
        self._previous = self._descriptor = self._hour = -1
        self._moment = (-1, "")
