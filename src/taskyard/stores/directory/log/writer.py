"""The event log: one line for every move, appended in one write.

Each kernel and hour has files of its own: on one kernel appends never tear or overlap. On a network filesystem each
writer has its own, because appends from two clients overwrite one another without an error. A busy hour has several
pages, so that old ones can be pruned while the hour lasts: `<hour>.<log>.jsonl`, then `<hour>.<log>.1.jsonl` and so on.

The first and the last page of an hour stay until it is over, so no name ever comes twice. A writer notes a new page
first, and then checks that it still is the last one. A janitor reads these notes after it has seen a later page, and
leaves noted pages alone.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident

from taskyard.core.ids import created
from taskyard.core.json_codec import compact, encode
from taskyard.core.times import rfc3339
from taskyard.stores.directory.log.intents import ROOM
from taskyard.stores.directory.names import NO_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.log.intents import Writer

PAGE = 1 << 20  # bytes, about 8,000 events
PAGE_DIGITS = 6  # of a page's number: a terabyte an hour
_PERIOD = 10_000  # milliseconds after which another process may have filled the page
_TRIES = 100  # pages that are tried if something else has their names
_HOUR = len("2026-01-31T12")
_AHEAD = 7 * 86_400_000  # milliseconds: a page further ahead comes from no clock, and must not hold the log for years
_LEAST = 1 << 14  # bytes between two looks at how full the page is
SUFFIX = ".jsonl"


def page_number(name: str) -> tuple[str, int]:
    """Return the hour and log that a file belongs to, and which of its pages it is."""
    stem = name.removesuffix(SUFFIX)
    log, _, number = stem.rpartition(".")
    legal = number.isascii() and number.isdigit() and len(number) <= PAGE_DIGITS and number[0] != "0"
    return (log, int(number)) if legal and log.count(".") == 1 else (stem, 0)


def page_name(log: str, number: int) -> str:
    """Return the file name of this page."""
    return f"{log}.{number}{SUFFIX}" if number else f"{log}{SUFFIX}"


def _hour_of(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H", time.gmtime(at // 1000))


class LogWriter:
    """Appends events; a line that cannot be written does not undo its move."""

    def __init__(self, disk: Disk, root: str, name: Callable[[], str], writer: Writer) -> None:
        """`name` is called at the first line: it may make a writer's file, and reading a yard must write nothing."""
        self._disk = disk
        self._folder = f"{root}/events"
        self._name = name
        self._writer = writer
        self._descriptor = -1
        self._torn = False
        self.renew()
        self._encoded: dict[tuple[str, str | None, str], str] = {}

    def renew(self) -> None:
        """Choose a page before the next line; a forked child holds none yet."""
        self._page_lock = allocate_lock()
        self._page = ""
        self._period = -1
        self._left = 0  # bytes that may be written before the next look at how full the page is
        self._moment = (-1, "")

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
        """Return the event of a move that is about to be made, noted so that it survives this process."""
        stamp = self._moment
        if stamp[0] != at:
            stamp = self._advance(at)
        words = self._encoded.get((kind, worker, by)) or self._encode(kind, worker, by)
        if more:
            words = f"{words},{encode(more)[1:-1]}"
        line = f'{stamp[1]}{event}","task":"{task}","fence":{fence},{words}}}\n'.encode()
        # `Writer.intend` without the call: this is the hottest line of the store. A forked child has no slot and no memory.
        writer = self._writer
        memory, slot, size = writer.memory, writer.slots.get(get_ident()), len(line)
        if memory is None or slot is None or size > ROOM:
            writer.intend(line)
        else:
            memory[slot : slot + size] = line
        return line

    def forget(self) -> None:
        """Withdraw this thread's last note: its move was not made."""
        self._writer.intend(b"\n")

    def append(self, line: bytes) -> None:
        """Log the move, now that it is made."""
        try:
            if self._torn:
                line = b"\n" + line
            size = len(line)
            self._torn = self._disk.write(self._descriptor, line) != size
            self._left -= size
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

    def end_line(self, now: int) -> None:
        """End the last line of the page, if a process was killed in the middle of it."""
        self._advance(now)
        path = f"{self._folder}/{self._page}"
        if self._disk.read_at(path, max(0, self._disk.size(path) - 1), 1) not in (b"", b"\n"):
            self.append(b"\n")

    def log_again(self, event: dict[str, Any], now: int) -> None:
        """Log an event for a process that died before it could: with its own time, in the page that followers read."""
        text = {
            "at": event.get("at") or rfc3339(created(event["task"])),
            **{name: event[name] for name in event if name != "at"},
        }
        self._advance(now)
        ordered = {name: text[name] for name in ("at", "event", "task", "fence", "kind", "worker", "by")}
        rest = {name: value for name, value in text.items() if name not in ordered}
        self.append(compact({**ordered, **rest}).encode() + b"\n")

    def lines_added(self, tasks: list[tuple[str, str]], by: str, blocked: dict[str, set[str]] | None = None) -> bytes:
        """Return the events of new tasks, each an id and a kind; the note of several has their ids alone, so that it fits."""
        if len(tasks) == 1 and not blocked:
            [(task, kind)] = tasks
            if self._left < 0:
                self._advance(created(task))  # many tasks are added in a millisecond
            return self.line(created(task), "added", task, kind, 0, None, by)
        lines: list[str] = []
        first_at = created(tasks[0][0]) if tasks else 0
        for task, kind in tasks:
            words = self._encoded.get((kind, None, by)) or self._encode(kind, None, by)
            at = rfc3339(created(task) if lines else first_at)
            lines.append(f'{{"at":"{at}","event":"added","task":"{task}","fence":0,{words}}}\n')
            if blocked and blocked.get(task):
                after = compact(sorted(blocked[task]))
                lines.append(f'{{"at":"{at}","event":"blocked","task":"{task}","fence":0,{words},"after":{after}}}\n')
        if tasks:
            first = tasks[0][0]
            if self._moment[0] != first_at or self._left < 0:
                self._advance(first_at)
            added = '","'.join([task for task, _ in tasks])
            note = f'{{"event":"added","task":"{first}","tasks":["{added}"],"by":{compact(by)}}}\n'
            self._writer.intend(note.encode())
        return "".join(lines).encode()

    def _encode(self, kind: str, worker: str | None, by: str) -> str:
        """Return these three fields as JSON; cached, because the same few come in every line."""
        if len(self._encoded) > 1000:
            self._encoded.clear()
        words = compact({"kind": kind, "worker": worker, "by": by})[1:-1]
        self._encoded[kind, worker, by] = words
        return words

    def _advance(self, at: int) -> tuple[int, str]:
        """Return the begin of a line of this time, made once a millisecond; now and then, check whether a new page is due."""
        if at // _PERIOD != self._period or self._left < 0:
            with self._page_lock:
                try:
                    self._writer.remake(self._page)
                    self._find_page(at)
                except OSError:
                    self._left = _LEAST  # the current page will do
        self._moment = (at, f'{{"at":"{rfc3339(at)}","event":"')
        return self._moment

    def _find_page(self, at: int) -> None:
        """Continue in a page of this hour that has space."""
        log = f"{self._hour(at)}.{self._name()}"
        number = page_number(self._page)[1] if page_number(self._page)[0] == log else 0
        for _ in range(_TRIES):
            size = self._enter(page_name(log, number))
            if size < PAGE:
                self._left = max((PAGE - size) // 2, _LEAST)
                self._period = at // _PERIOD
                return
            last = self._last(log)
            if last == number or self._fullness(page_name(log, last)) >= PAGE:
                last += 1
            self._writer.note_pages(self._page, page_name(log, last))
            if self._last(log) <= last:
                number = last
        raise OSError("no page of the log can be written to")

    def _hour(self, at: int) -> str:
        """Return the hour to write in: that of the event, or of the newest page if the clock was set back.

        A follower has read up to there, and would never return to an earlier hour.
        """
        hour, held = _hour_of(at), self._page[:_HOUR]
        if held < hour:
            pages = (name[:_HOUR] for name in self._disk.listdir(self._folder) if name.endswith(SUFFIX))
            held = max((other for other in pages if hour <= other <= _hour_of(at + _AHEAD)), default=hour)
        return held

    def _enter(self, page: str) -> int:
        """Switch to this page and return its size; one that cannot be written counts as full."""
        if page != self._page:
            try:
                self._switch(page)
            except OSError as error:
                if error.errno not in NO_FILE:
                    raise
                return PAGE
        return self._disk.length(self._descriptor)

    def _fullness(self, page: str) -> int:
        path = f"{self._folder}/{page}"
        return self._disk.size(path) if self._disk.is_file(path) else PAGE

    def _switch(self, page: str) -> None:
        # Noted together with the page before: another thread may still be writing to that.
        self._writer.note_pages(self._page, page)
        self._descriptor = self._disk.open_append(f"{self._folder}/{page}", self._descriptor)
        self._page = page

    def _last(self, log: str) -> int:
        numbers = [
            number for name in self._disk.listdir(self._folder) for of, number in (page_number(name),) if of == log
        ]
        return max(numbers, default=0)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        self.renew()
        if descriptor >= 0:
            self._disk.close(descriptor)
