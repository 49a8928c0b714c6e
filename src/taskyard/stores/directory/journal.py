"""The event log: one line for every move, appended in one write.

One file for each kernel and hour: on one kernel appends never tear or overlap. On a network filesystem each writer has
its own, because appends from two clients overwrite one another without an error.
"""

from __future__ import annotations

import json
import time

from taskyard import forks
from taskyard.ids import created
from taskyard.stores.directory.writers import SIZE
from taskyard.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.disk import Disk
    from taskyard.stores.directory.writers import Writer

_HOUR = 3_600_000


class Journal:
    """Appends events; a line that cannot be written does not undo the move that it tells of."""

    def __init__(self, disk: Disk, root: str, name: str, writer: Writer) -> None:
        self._disk = disk
        self._folder = f"{root}/events"
        self._name = name
        self._writer = writer
        self._hour = -1
        self._descriptor = self._previous = -1
        self._torn = False
        self._moment = (-1, "")
        self._words: dict[tuple[str, str | None, str], str] = {}

    def line(
        self,
        at: int,
        event: str,
        task: str,
        kind: str,
        fence: int,
        worker: str | None,
        by: str,
        more: dict[str, Any] | None = None,
    ) -> bytes:
        """The event of a move that is about to be made; noted, so that it is not lost with this process."""
        stamp = self._moment
        if stamp[0] != at:
            stamp = self._advance(at)
        words = self._words.get((kind, worker, by)) or self._learn(kind, worker, by)
        rest = "," + json.dumps(more, ensure_ascii=False)[1:-1] if more else ""
        line = f'{{"at":"{stamp[1]}","event":"{event}","task":"{task}","fence":{fence},{words}{rest}}}\n'.encode()
        # What `Writer.intend` does, without the call: this is the hottest line of the store.
        writer = self._writer
        if writer.forks == forks.count and writer.memory is not None and len(line) <= SIZE:
            writer.memory[: len(line)] = line
        else:
            writer.intend(line)
        return line

    def forget(self) -> None:
        """The move that was noted last was not made."""
        self._writer.intend(b"\n")

    def append(self, line: bytes) -> None:
        """Log the move, now that it is made."""
        try:
            if self._torn:
                line = b"\n" + line
            self._torn = self._disk.write(self._descriptor, line) != len(line)
        except OSError:
            self._torn = True

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
        """Log something that is no move."""
        self.append(self.line(at, event, task, kind, fence, worker, by, more))

    def log_again(self, event: dict[str, Any], now: int) -> None:
        """Log an event for a process that died before it could: at its own time, but where those who follow are reading."""
        text = {
            "at": event.get("at") or rfc3339(created(event["task"])),
            **{name: event[name] for name in event if name != "at"},
        }
        self._advance(now)
        ordered = {name: text[name] for name in ("at", "event", "task", "fence", "kind", "worker", "by")}
        rest = {name: value for name, value in text.items() if name not in ordered}
        self.append(json.dumps({**ordered, **rest}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def lines_added(self, tasks: list[tuple[str, str]], by: str) -> bytes:
        """The events of a batch of new tasks, each an id and a kind; noted by their ids alone, to fit in."""
        lines = []
        for task, kind in tasks:
            words = self._words.get((kind, None, by)) or self._learn(kind, None, by)
            lines.append(f'{{"at":"{rfc3339(created(task))}","event":"added","task":"{task}","fence":0,{words}}}\n')
        if tasks:
            self._advance(created(tasks[0][0]))
            note = {"event": "added", "task": tasks[0][0], "tasks": [task for task, _ in tasks], "by": by}
            self._writer.intend(json.dumps(note, separators=(",", ":")).encode() + b"\n")
        return "".join(lines).encode()

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

    def _turn_page(self, at: int) -> None:
        # Another thread may be about to write to the old file: it is let go of an hour later.
        name = f"{time.strftime('%Y-%m-%dT%H', time.gmtime(at // 1000))}.{self._name}.jsonl"
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
