"""Read the log of each task before the states, so that a state is never older than the log that was read.

A move is logged after it is made. So a log that was read before a name has no move that the name does not show, even
while others work. An event may also come late, or never: see `unlogged` in `codes`.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from itertools import pairwise

from taskyard.core import ids
from taskyard.core.task import SUBMITTED, State
from taskyard.core.yard_events import YARD_EVENTS
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.log import lines
from taskyard.stores.directory.log.pages import PAGE_NAME
from taskyard.stores.directory.log.writer import page_name, page_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.stores.directory.fsck.context import AuditContext

_HOUR = len("2026-01-31T12")
_CHUNK = 1 << 20
_BAD_MOST = 1000  # bad lines of one page that are reported one by one
_PACKED = "events-"  # the prefix of an archived page's name
_MARK = b'"task":"'
_OPEN = frozenset((State.TODO, State.WAITING, State.BLOCKED))
# The states that a task can be in after each event; none if the task no longer exists.
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
SILENT = ("noted", "blocked", "refused", *YARD_EVENTS)
_ENDINGS = frozenset(("done", "failed for good", "reaped for good", "cancelled"))
_GONE = frozenset(("taken back", "set_aside"))
_WHOLE = rb'^\{"task": \{"id": "([0-9a-hjkmnp-tv-z]{21})"'


class LoggedTask:
    """One task by the log: its last move, and its claims."""

    __slots__ = ("_edits", "_reviews", "claims", "event", "fence", "seen")

    def __init__(self) -> None:
        self.fence = -1
        self.event = ""
        self.claims = 0
        """A bit for the fence of each claim."""
        self._reviews = 0
        """A bit for each fence with which the task began to wait for review."""
        self._edits = 0
        self.seen = False
        """Whether the audit found the task in a state."""

    def append(self, event: str, fence: int, submits: bool = False) -> None:
        """Add an event, which may bring a result for review; events may come in any order."""
        if event == "claimed":
            self.claims |= _bit(fence)
        elif submits:
            self._reviews |= _bit(fence)
        elif event == "edited":
            self._edits |= _bit(fence)
        # Only a claim and its own ending have the same fence, or what was submitted and its acceptance: the ending is later.
        if fence > self.fence or (fence == self.fence and (self.event == "claimed" or event == "done")):
            self.fence, self.event = fence, event

    def knows(self, fence: int) -> bool:
        """Return whether the log has the claim of this fence; a review is one, under the fence that the task waits with."""
        if self.claims & _bit(fence):
            return True
        while self._edits & _bit(fence) and fence > 0:  # edited while it waited
            fence -= 1
        return bool(self._reviews & _bit(fence))

    @property
    def ended(self) -> bool:
        """Whether the last move ended the task."""
        return self.event in _ENDINGS

    @property
    def gone(self) -> bool:
        """Whether the last event removed the task."""
        return self.event in _GONE


class LogAudit:
    """Reads the log for some segments at a time, so that a long log does not fill the memory."""

    def __init__(self, audit: AuditContext) -> None:
        self._audit = audit
        self._disk = audit.disk
        self._folder = f"{audit.root}/events"
        self._first_pass_done = False
        self._segments: frozenset[bytes] = frozenset()
        self._offsets: dict[str, int] = {}
        self.logged_tasks: dict[str, LoggedTask] = {}
        self._hours: set[str] = set()
        self._intents: set[str] = set()
        self.segments: set[str] = set()
        """All segments of tasks in the log."""

    def read(self, segments: list[str]) -> None:
        """Read all events of the tasks of these segments."""
        self._segments = frozenset(segment.encode() for segment in segments)
        self._offsets = {}
        self.logged_tasks = {}
        self.catch_up()
        self._first_pass_done = True

    def catch_up(self) -> None:
        """Read what was logged since the last call, and the intents of writers."""
        self._note_intents()
        names = self._audit.names(self._folder)
        pages = sorted(filter(PAGE_NAME.fullmatch, names), key=page_number)
        for name in pages:
            try:
                self._page(name)
            except OSError as error:
                if not self._first_pass_done:
                    self._audit.unreadable(f"{self._folder}/{name}", error)
        for name in () if self._first_pass_done else set(names) - set(pages):
            self._audit.stray(self._folder, name, "no page of the log")
        # List the pages again: if one has gone meanwhile, its hour was not read completely.
        self._hours = self._whole_hours()

    def _logs(self) -> dict[str, set[int]]:
        """Return the page numbers of each log and hour."""
        logs: dict[str, set[int]] = {}
        for name in filter(PAGE_NAME.fullmatch, self._audit.names(self._folder)):
            log, number = page_number(name)
            logs.setdefault(log, set()).add(number)
        return logs

    def _whole_hours(self) -> set[str]:
        """Return the hours of which all pages exist; a missing page may have had any event."""
        logs = self._logs()
        torn = {log[:_HOUR] for log, numbers in logs.items() if len(numbers) <= max(numbers)}
        return {log[:_HOUR] for log in logs} - torn

    def _page(self, name: str) -> None:
        offset = self._offsets.get(name, 0)
        path = f"{self._folder}/{name}"
        if lines.is_huge(self._disk, path):
            if not self._first_pass_done:
                what = "it is larger than any page of the log, and not read"
                self._audit.suspect(
                    "event_garbage", (self._folder, name), what, lambda: lines.is_huge(self._disk, path)
                )
            return
        bad = 0
        for begin, line, end in lines.whole(self._disk, path, _CHUNK, offset):
            self._audit.report_progress("reading the log")
            behind = lines.after_torn(line)
            is_whole = self._line(behind or line) and not behind
            if not is_whole and not self._first_pass_done:
                bad += 1
                self._bad(name, begin, line, bad)
            if not self._first_pass_done:
                self._audit.count("events")
            offset = end
        if not self._first_pass_done:
            rest = self._disk.read_at(path, offset, _CHUNK)
            torn = rest.lstrip(b"\n")
            if torn and b"\n" not in torn:
                self._bad(name, offset + len(rest) - len(torn), torn, bad + 1)
        self._offsets[name] = offset

    def _line(self, line: bytes) -> bool:
        """Return whether this is an event; after the first round, lines of other segments are not parsed again."""
        if len(line) < len(lines.BEGIN) or len(line) > lines.LINE_MOST:
            return False
        at = line.find(_MARK) + len(_MARK)
        wanted = line[at : at + ids.SEGMENT] in self._segments
        if self._first_pass_done and not wanted:
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
            return bool(name == "set_aside" or name in YARD_EVENTS)
        self.segments.add(task[: ids.SEGMENT])
        if wanted and name not in SILENT:
            logged = self.logged_tasks.get(task)
            if logged is None:
                logged = self.logged_tasks[task] = LoggedTask()
            logged.append(_move(name, event), fence, name == "released" and event.get("reason") == SUBMITTED)
        return True

    def _bad(self, name: str, offset: int, line: bytes, number: int) -> None:
        path = f"{self._folder}/{name}"
        torn = line.startswith(lines.BEGIN[: len(line)])

        def still_holds() -> bool:
            there = self._disk.read_at(path, offset, len(line) + 1)
            return there.startswith(line) if len(line) >= _CHUNK else there.split(b"\n")[0] == line

        if number <= _BAD_MOST:
            rest = "; of the lines after it no more is reported" if number == _BAD_MOST else ""
            what = f"at byte {offset}: {line[:60].decode('utf-8', 'replace')!a}{rest}"
            self._audit.suspect("event_torn" if torn else "event_garbage", (self._folder, name), what, still_holds)

    def gaps(self) -> None:
        """Find missing pages between others; pruned pages are in the archive."""
        kept: dict[str, set[int]] = {}
        for name in self._audit.names(f"{self._audit.root}/archive"):
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
        packed = f"{self._audit.root}/archive/{_PACKED}{page}.gz"
        what = "neither here nor in the archive" + (f", nor are the {missing - 1} after it" if missing > 1 else "")
        still_holds = self._audit.lacks(f"{self._folder}/{page}", packed)
        self._audit.suspect("page_missing", (self._folder, page), what, still_holds)

    # Intents and archives

    def has_hour(self, moment: int) -> bool:
        """Return whether the log has all pages of that hour; only then a missing event proves anything."""
        return time.strftime("%Y-%m-%dT%H", time.gmtime(moment // 1000)) in self._hours

    def intended(self, task: str) -> bool:
        """Return whether a process, dead or alive, has an intent for this task, which will still be logged."""
        return task in self._intents

    def _note_intents(self) -> None:
        writers = self._audit.context.writers()
        self._intents = set()
        for tag in filter(legal_names.WRITER.fullmatch, self._audit.names(f"{self._audit.root}/writers")):
            try:
                intents = writers.intents(tag)
            except OSError:
                continue  # reported by the check of writers or archives
            for intent in intents:
                self._intents.update(map(str, (intent.get("task"), *intent.get("tasks", ()))))

    def archived(self, wanted: set[str]) -> set[str]:
        """Return those of the wanted tasks that are in the archive."""
        found: set[str] = set()
        folder = f"{self._audit.root}/archive"
        for name in self._audit.names(folder) if wanted else ():
            if not name.startswith("tasks-") or found == wanted:
                continue
            try:
                for text in unpacked(self._audit, f"{folder}/{name}"):
                    found.update(wanted & {id.decode() for id in re.findall(_WHOLE, text, re.MULTILINE)})
            except (OSError, zlib.error, EOFError):
                continue  # reported by the check of writers or archives
        return found


def _bit(fence: int) -> int:
    return 1 << min(fence, 100_000)


def unpacked(audit: AuditContext, path: str) -> Iterator[bytes]:
    """Yield whole lines of an archive, several at a time; raise `zlib.error` or `EOFError` if it is broken."""
    unpacker = zlib.decompressobj(wbits=31)
    offset, rest = 0, b""
    while chunk := audit.disk.read_at(path, offset, _CHUNK):
        offset += len(chunk)
        text = rest + unpacker.decompress(chunk)
        whole, newline, rest = text.rpartition(b"\n")
        yield whole + newline
    yield rest
    if not unpacker.eof:
        raise EOFError("cut off")


def _move(name: str, event: dict[str, Any]) -> str:
    """Return the event's name as a key of `LEADS`."""
    if name in ("failed", "reaped") and event.get("final"):
        return f"{name} for good"
    if name == "cancelled" and event.get("taken_back") is True:
        return "taken back"
    return str(name)
