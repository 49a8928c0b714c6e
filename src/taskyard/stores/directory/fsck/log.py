"""What the log tells of each task: read before the states are, so that a state is never behind what was read.

A move is made first and logged then. So a log that was read before a name was seen can tell of nothing that the name does
not show, whoever works meanwhile. The other way round an event may come late, or never: see `unlogged` in `meanings`.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from itertools import pairwise

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.log import lines
from taskyard.stores.directory.log.pages import PAGE_NAME
from taskyard.stores.directory.log.writer import page_name, page_number
from taskyard.stores.directory.tasks.add import TAKEN_BACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.stores.directory.fsck.context import Scene

_HOUR = len("2026-01-31T12")
_CHUNK = 1 << 20
_BAD_MOST = 1000  # lines of one page that are no events and are told one by one: a page of others is no log at all
_PACKED = "events-"  # what the name of a page in the archive begins with
_MARK = b'"task":"'
_BEGIN = b'{"at":"'
_OPEN = frozenset((State.TODO, State.WAITING, State.BLOCKED))
# Where each event leads. Those that lead nowhere tell nothing of where a task is.
LEADS: dict[str, frozenset[State]] = {
    "added": _OPEN,
    "claimed": frozenset((State.PROCESSING, State.DONE, State.FAILED)),
    "done": frozenset((State.DONE,)),
    "failed": _OPEN,
    "failed for good": frozenset((State.FAILED,)),
    "released": _OPEN,
    "reaped": _OPEN,
    "reaped for good": frozenset((State.FAILED,)),
    "due": _OPEN,
    "unblocked": _OPEN,
    "retried": _OPEN,
    "edited": _OPEN,
    "cancelled": frozenset((State.CANCELLED,)),
    "taken back": frozenset(),
    "set_aside": frozenset(),
}
SILENT = ("noted", "blocked", "refused")
_ENDINGS = frozenset(("done", "failed for good", "reaped for good", "cancelled"))
_GONE = frozenset(("taken back", "set_aside"))
_WHOLE = rb'^\{"task": \{"id": "([0-9a-hjkmnp-tv-z]{21})"'


class Story:
    """How far the log has followed one task: its last move, and which claims it knows."""

    __slots__ = ("claims", "event", "fence", "seen")

    def __init__(self) -> None:
        self.fence = -1
        self.event = ""
        self.claims = 0
        self.seen = False
        """Whether the task was seen in its place."""

    def tell(self, event: str, fence: int) -> None:
        """One more event; they may come in any order."""
        if event == "claimed":
            self.claims |= 1 << min(fence, 100_000)
        # Within one fence only a claim and its own ending can meet, and the ending is later.
        if fence > self.fence or (fence == self.fence and self.event == "claimed"):
            self.fence, self.event = fence, event

    def knows(self, fence: int) -> bool:
        """Whether the log has the claim of this fence."""
        return bool(self.claims >> min(fence, 100_000) & 1)

    @property
    def ended(self) -> bool:
        """Whether nothing was to happen any more to the task."""
        return self.event in _ENDINGS

    @property
    def gone(self) -> bool:
        """Whether the task was to be no task any more."""
        return self.event in _GONE


class LogAudit:
    """Reads the log for some segments at a time, so that memory is bounded however long it is."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._disk = scene.disk
        self._folder = f"{scene.root}/events"
        self._judged = False
        self._segments: frozenset[bytes] = frozenset()
        self._offsets: dict[str, int] = {}
        self.stories: dict[str, Story] = {}
        self._hours: set[str] = set()
        self._intents: set[str] = set()
        self.told: set[str] = set()
        """Segments that the log tells of."""

    def read(self, segments: list[str]) -> None:
        """All that the log tells of the tasks of these segments."""
        self._segments = frozenset(segment.encode() for segment in segments)
        self._offsets = {}
        self.stories = {}
        self.catch_up()
        self._judged = True

    def catch_up(self) -> None:
        """What was logged since, and what somebody is about to log."""
        self._note_intents()
        names = self._scene.names(self._folder)
        pages = sorted(filter(PAGE_NAME.fullmatch, names), key=page_number)
        for name in pages:
            try:
                self._page(name)
            except OSError as error:
                if not self._judged:
                    self._scene.unreadable(f"{self._folder}/{name}", error)
        for name in () if self._judged else set(names) - set(pages):
            self._scene.stray(self._folder, name, "no page of the log")
        # Listed once more: of an hour from which a page has gone meanwhile, not all was read.
        self._hours = self._whole_hours()

    def _logs(self) -> dict[str, set[int]]:
        """For each log and hour the numbers of its pages."""
        logs: dict[str, set[int]] = {}
        for name in filter(PAGE_NAME.fullmatch, self._scene.names(self._folder)):
            log, number = page_number(name)
            logs.setdefault(log, set()).add(number)
        return logs

    def _whole_hours(self) -> set[str]:
        """Hours of which all pages are there: one that is missing may have told of anything."""
        logs = self._logs()
        torn = {log[:_HOUR] for log, numbers in logs.items() if len(numbers) <= max(numbers)}
        return {log[:_HOUR] for log in logs} - torn

    def _page(self, name: str) -> None:
        offset = self._offsets.get(name, 0)
        path = f"{self._folder}/{name}"
        if lines.is_huge(self._disk, path):
            if not self._judged:
                what = "it is larger than any page of the log, and not read"
                self._scene.suspect(
                    "event_garbage", (self._folder, name), what, lambda: lines.is_huge(self._disk, path)
                )
            return
        bad = 0
        for begin, line, end in lines.whole(self._disk, path, _CHUNK, offset):
            self._scene.tell("reading the log")
            if not self._line(line) and not self._judged:
                bad += 1
                self._bad(name, begin, line, bad)
            if not self._judged:
                self._scene.count("events")
            offset = end
        if not self._judged:
            rest = self._disk.read_at(path, offset, _CHUNK)
            torn = rest.lstrip(b"\n")
            if torn and b"\n" not in torn:
                self._bad(name, offset + len(rest) - len(torn), torn, bad + 1)
        self._offsets[name] = offset

    def _line(self, line: bytes) -> bool:
        """Whether this is an event; one of another round's tasks is taken as it is once it was judged."""
        if len(line) < len(_BEGIN) or len(line) > lines.LINE_MOST:
            return False
        at = line.find(_MARK) + len(_MARK)
        wanted = line[at : at + ids.SEGMENT] in self._segments
        if self._judged and not wanted:
            return True
        try:
            event = json.loads(line)
            name, task, fence = event["event"], event["task"], event["fence"]
            legal = isinstance(event["at"], str) and isinstance(task, str) and type(fence) is int and fence >= 0
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        if not legal or (name not in LEADS and name not in SILENT):
            return False
        if not ids.is_id(task):
            return bool(name == "set_aside")
        self.told.add(task[: ids.SEGMENT])
        if wanted and name not in SILENT:
            story = self.stories.get(task)
            if story is None:
                story = self.stories[task] = Story()
            story.tell(_told(name, event), fence)
        return True

    def _bad(self, name: str, offset: int, line: bytes, number: int) -> None:
        path = f"{self._folder}/{name}"
        torn = line.startswith(_BEGIN[: len(line)])

        def again() -> bool:
            there = self._disk.read_at(path, offset, len(line) + 1)
            return there.startswith(line) if len(line) >= _CHUNK else there.split(b"\n")[0] == line

        if number <= _BAD_MOST:
            rest = "; of the lines after it no more is told" if number == _BAD_MOST else ""
            what = f"at byte {offset}: {line[:60].decode('utf-8', 'replace')!a}{rest}"
            self._scene.suspect("event_torn" if torn else "event_garbage", (self._folder, name), what, again)

    def gaps(self) -> None:
        """Pages that are missing between others; those that were pruned are in the archive."""
        kept: dict[str, set[int]] = {}
        for name in self._scene.names(f"{self._scene.root}/archive"):
            if name.startswith(_PACKED):
                log, number = page_number(name[len(_PACKED) :].removesuffix(".gz"))
                kept.setdefault(log, set()).add(number)
        for log, numbers in self._logs().items():
            there = sorted(number for number in numbers | kept.get(log, set()) if number <= max(numbers))
            for before, after in pairwise((-1, *there)):
                if after > before + 1:
                    self._gap(log, before + 1, after - before - 1)

    def _gap(self, log: str, first: int, missing: int) -> None:
        page = page_name(log, first)
        packed = f"{self._scene.root}/archive/{_PACKED}{page}.gz"
        what = "neither here nor in the archive" + (f", nor are the {missing - 1} after it" if missing > 1 else "")
        again = self._scene.lacks(f"{self._folder}/{page}", packed)
        self._scene.suspect("page_missing", (self._folder, page), what, again)

    # What else tells of moves

    def has_hour(self, moment: int) -> bool:
        """Whether the log has all pages of that hour: what was pruned or moved away is no proof of anything."""
        return time.strftime("%Y-%m-%dT%H", time.gmtime(moment // 1000)) in self._hours

    def intended(self, task: str) -> bool:
        """Whether a process, dead or alive, has noted a move of this task: it is logged by it, or for it."""
        return task in self._intents

    def _note_intents(self) -> None:
        writers = self._scene.context.writers()
        self._intents = set()
        for tag in filter(legal_names.WRITER.fullmatch, self._scene.names(f"{self._scene.root}/writers")):
            try:
                intents = writers.intents(tag)
            except OSError:
                continue  # told of by itself
            for intent in intents:
                self._intents.update(map(str, (intent.get("task"), *intent.get("tasks", ()))))

    def archived(self, wanted: set[str]) -> set[str]:
        """Those of these tasks that are in the archive."""
        found: set[str] = set()
        folder = f"{self._scene.root}/archive"
        for name in self._scene.names(folder) if wanted else ():
            if not name.startswith("tasks-") or found == wanted:
                continue
            try:
                for text in unpacked(self._scene, f"{folder}/{name}"):
                    found.update(wanted & {id.decode() for id in re.findall(_WHOLE, text, re.MULTILINE)})
            except (OSError, zlib.error, EOFError):
                continue  # told of by itself
        return found


def unpacked(scene: Scene, path: str) -> Iterator[bytes]:
    """The lines of an archive, some whole ones at a time; `zlib.error` or `EOFError` if it is broken."""
    unpacker = zlib.decompressobj(wbits=31)
    offset, rest = 0, b""
    while chunk := scene.disk.read_at(path, offset, _CHUNK):
        offset += len(chunk)
        text = rest + unpacker.decompress(chunk)
        whole, newline, rest = text.rpartition(b"\n")
        yield whole + newline
    yield rest
    if not unpacker.eof:
        raise EOFError("cut off")


def _told(name: str, event: dict[str, Any]) -> str:
    """The event by what it leads to."""
    if name in ("failed", "reaped") and event.get("final"):
        return f"{name} for good"
    if name == "cancelled" and event.get("reason") == TAKEN_BACK:
        return "taken back"
    return str(name)
