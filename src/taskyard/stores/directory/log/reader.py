"""Reading the event log: one merged stream out of the files of all kernels and writers."""

from __future__ import annotations

import json
from heapq import merge

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.times import rfc3339
from taskyard.core.transfer import in_order
from taskyard.stores.directory.dropbox import json_text
from taskyard.stores.directory.log import lines
from taskyard.stores.directory.log.intents import is_event
from taskyard.stores.directory.log.writer import SUFFIX, page_name, page_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.store_records import Trail
    from taskyard.stores.directory.filesystem.disk import Disk

_HOUR = len("2026-01-31T12")
_LEAST = len('{"at":"2026-01-31T12:05:00.000Z"}')  # bytes of the shortest line that can be an event
_CHUNK = 1 << 16  # bytes of each page that are read at a time: all pages of an hour are read together
_SEARCHED = 1 << 18  # the same for a search: most pages do not hold the word

Line = tuple[str, str, int, "dict[str, Any]"]


class LogReader:
    """Merges files by time; within a file the order of appending stays."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder

    def read(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """Return the events that match, in order, and the cursor to continue from."""
        offsets = self._offsets(trail.cursor)
        events: list[dict[str, Any]] = []
        there = sorted((name for name in self._disk.listdir(self._folder) if name.endswith(SUFFIX)), key=page_number)
        newest = max(offsets, key=page_number, default="")
        # Pruned pages are gone; the newest of them still shows how far the reader has come.
        offsets = {name: offset for name, offset in offsets.items() if name in {*there, newest}}
        for hour, names in _hours(there, trail, offsets):
            files = [self._lines(name, offsets.get(name, 0), trail.task) for name in names]
            for _, name, end, event in merge(*files, key=lambda line: line[0]):
                if not event:
                    offsets[name] = end
                    continue
                if len(events) == trail.limit:
                    return in_order(events), self._cursor(offsets, hour)
                offsets[name] = end
                if _matches(trail, event):
                    events.append(event)
        return in_order(events), self._cursor(offsets, max((name[:_HOUR] for name in offsets), default=""))

    def all(self) -> Iterator[dict[str, Any]]:
        """Read every event, merged by time."""
        there = sorted((name for name in self._disk.listdir(self._folder) if name.endswith(SUFFIX)), key=page_number)
        hours: dict[str, list[str]] = {}
        for name in there:
            hours.setdefault(name[:_HOUR], []).append(name)
        for some in hours.values():
            for line in merge(*(self._lines(name, 0) for name in some), key=lambda line: line[0]):
                yield line[3]

    def latest(self) -> str:
        """Return the cursor of the log's end: only later events come after it."""
        names = [name for name in self._disk.listdir(self._folder) if name.endswith(SUFFIX)]
        hours = sorted({name[:_HOUR] for name in names})[-2:]
        offsets = {}
        for name in names:
            if name[:_HOUR] in hours:
                try:
                    offsets[name] = self._disk.size(f"{self._folder}/{name}")
                except FileNotFoundError:
                    continue
        return self._cursor(offsets, hours[-1] if hours else "")

    def _name(self) -> str:
        """Return what tells this log from those of other yards: the folder's inode, which every client of a server sees."""
        return format(self._disk.which(self._folder)[1], "x")

    def _cursor(self, offsets: dict[str, int], hour: str) -> str:
        return f"{self._name()}.{_encoded(offsets, hour)}"

    def _offsets(self, cursor: str | None) -> dict[str, int]:
        if not cursor:
            return {}
        name, dot, text = cursor.partition(".")
        offsets = _decoded(text if dot else cursor)
        if dot and name != self._name():
            raise Invalid(
                "a cursor of another yard's log", hint="begin without a cursor, and go on with the one you get"
            )
        return offsets

    def _lines(self, name: str, offset: int, task: str | None = None) -> Iterator[Line]:
        """Read whole lines from `offset` on, each with its end; lines that are no events are skipped.

        With `task`, lines are searched for and all others never decoded: then an empty event marks the end of the page.
        """
        path, last = f"{self._folder}/{name}", ""
        if task is None:
            found = lines.whole(self._disk, path, _CHUNK, offset)
        else:
            found = lines.holding(self._disk, path, _SEARCHED, task.encode(), offset)
        for _, line, end in found:
            event = parse_event(line)
            if event is not None:
                last = max(last, event["at"])
                yield event["at"], name, end, event
            elif not line:
                yield last, name, end, {}


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Parse a line of the log; None if it is no event."""
    if len(line) < _LEAST or len(line) > lines.LINE_MOST:
        return None
    try:
        event = json_text.read(line)
    except (ValueError, RecursionError):
        return parse_event(lines.after_torn(line))  # torn by a kill or a full disk
    return event if is_event(event) else None


def _hours(there: list[str], trail: Trail, offsets: dict[str, int]) -> Iterator[tuple[str, list[str]]]:
    """Return the pages that may hold wanted events, by hour."""
    begin = "" if trail.since is None else rfc3339(trail.since)
    if trail.task is not None:
        begin = max(begin, rfc3339(ids.created(trail.task) - 3_600_000))
    begin = max(begin[:_HOUR], min((name[:_HOUR] for name in offsets), default=""))
    hours: dict[str, list[str]] = {}
    for name in there:
        if name[:_HOUR] >= begin:
            hours.setdefault(name[:_HOUR], []).append(name)
    yield from hours.items()


def _matches(trail: Trail, event: dict[str, Any]) -> bool:
    if trail.task is not None and event.get("task") != trail.task:
        return False
    if trail.worker is not None and trail.worker not in (event.get("worker"), event.get("by")):
        return False
    if trail.kind is not None and event.get("kind") != trail.kind:
        return False
    if trail.events is not None and event.get("event") not in trail.events:
        return False
    return trail.since is None or str(event["at"]) >= rfc3339(trail.since)


def _encoded(offsets: dict[str, int], hour: str) -> str:
    """Encode where reading stopped: for each log of the last two hours, how far each of its pages was read."""
    from base64 import urlsafe_b64encode

    hours = sorted({name[:_HOUR] for name in offsets if name[:_HOUR] <= hour})[-2:]
    logs: dict[str, dict[int, int]] = {}
    for name, offset in offsets.items():
        if name[:_HOUR] in hours:
            log, number = page_number(name)
            logs.setdefault(log, {})[number] = offset
    return urlsafe_b64encode(json.dumps(logs, separators=(",", ":")).encode()).decode()


def _decoded(cursor: str) -> dict[str, int]:
    from base64 import urlsafe_b64decode

    try:
        logs = json.loads(urlsafe_b64decode(cursor.encode()))
        return {
            page_name(str(log), int(number)): max(0, int(offset))
            for log, pages in logs.items()
            for number, offset in pages.items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError, OverflowError):
        raise Invalid("not a cursor of the log", hint="give the 'cursor' of the answer before") from None
