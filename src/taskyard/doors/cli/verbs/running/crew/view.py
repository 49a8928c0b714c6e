"""The crew as text for a screen: makes lines of what is known, for a width and a height."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from taskyard.core import reasons
from taskyard.doors.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.doors.cli.verbs.running.crew.activity import Activity, CrewEvent, Held
    from taskyard.doors.cli.verbs.running.crew.process import CrewProcess

COUNTED = ("todo", "waiting", "blocked", "processing", "done", "failed")
COLOURS = {
    "works": "processing",
    "idle": "noted",
    "hangs": "error",
    "stopped": "failed",
    "pauses": "error",
    "ending": "error",
    "ended": "noted",
    "gave up": "failed",
    # events
    "took": "claimed",
    "lost": "failed",
    "restarted": "error",
    "exited": "failed",
    "gave_up": "failed",
    "started": "noted",
    "continued": "noted",
    "says": "noted",
}
_HEADS = ("WORKER", "STATE", "FOR", "LEASE", "DONE", "FAIL", "/MIN", "TASK")
_WIDTHS = (0, 7, 5, 5, 5, 4, 4, 0)
_RIGHT = frozenset((2, 3, 4, 5, 6))
_DROPPED_FIRST = (6, 3, 5, 4, 2)  # columns that a narrow screen drops, in this order
_TASK_LEAST = 12
_NAME_MOST = 14
_WIDE = 96  # columns that hold a short name, kind and title beside all else; on fewer the title comes first
_FAILURES_MOST = 3  # tasks that failed for good: the last ones stay on the screen
_BELOW = 7  # lines for the latest events, without which no task gets a line of its own
_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def clock(seconds: float) -> str:
    """Format a duration in at most five characters: `45s`, `3m05`, `2h10`, `5d`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}" if whole < 86_400 else f"{whole // 86_400}d"


def state(process: CrewProcess, held: Held | None) -> str:
    """Return what a worker does, in one word."""
    if not process.pid:
        return "pauses" if process.again_at is not None else "gave up" if process.failed else "ended"
    if process.stopped:
        return "stopped"
    if process.stop_requests:
        return "ending"
    return "idle" if held is None else "hangs" if held.hangs else "works"


class View:
    """Everything on the screen."""

    def __init__(
        self, title: str, yard: str, processes: Sequence[CrewProcess], activity: Activity, began: float
    ) -> None:
        self._title = title
        self._yard = yard
        self._processes = processes
        self._activity = activity
        self._began = began
        self._failures: deque[CrewEvent] = deque(maxlen=_FAILURES_MOST)
        self._rows_most = sum(process.member.concurrency for process in processes)
        self._names = max(len(_HEADS[0]), *(min(output.width(process.name), _NAME_MOST) for process in processes))

    def keep(self, crew_event: CrewEvent) -> None:
        """Keep an event that must not scroll away: a task that has failed for good, and why."""
        if crew_event.event == "failed" and crew_event.more.get("final"):
            self._failures.append(crew_event)

    def frame(self, latest: Iterable[CrewEvent], footer: str, size: tuple[int, int], now: float) -> list[str]:
        """Return the whole screen, exactly as many lines as it has, none of them too wide for it."""
        width, height = size[0] - 1, size[1]  # the last column stays empty: writing there may begin a new line
        top = [*self._head(width, now), *self._held_back(width), ""]
        height_left = height - len(top) - 1
        table = self._table(width, height_left, now)
        notes = self._notes(width, now)
        if len(table) > height_left:
            table = [*table[: height_left - 1], output.cut(f"... and {len(table) - height_left + 1} more lines", width)]
        lines = [*top, *table]
        spare = height - len(lines) - 2
        if notes and spare > 0:
            lines += ["", *notes[-spare:]]
        left = height - len(lines) - 1
        if left > 3:
            lines += ["", output.paint(output.cut("LATEST", width), "heading"), *self._latest(latest, left - 2, width)]
        lines += [""] * (height - 1 - len(lines))
        lines = [*lines[: height - 1], output.paint(output.cut(footer, width), "noted")]
        return [fitted(line, width) for line in lines]

    def _head(self, width: int, now: float) -> list[str]:
        up = f"up {clock(now - self._began)}"
        where = output.cut(output.plain(f"{self._title}  {self._yard}"), width - len(up) - 2)
        first = output.paint(where, "heading") + " " * (width - output.width(where) - len(up)) + up
        trouble = self._activity.trouble
        if trouble is not None:
            return [first, output.paint(output.cut(output.plain(f"the yard is away: {trouble}"), width), "failed")]
        counts = self._activity.counts
        rate = f"{sum(record.rate(now) for record in self._activity.records.values())} /min"
        cells = [(name, f"{name} {counts.get(name, 0)}") for name in COUNTED]
        text = output.GAP.join(cell for _, cell in cells)
        if len(text) + len(rate) + 2 > width:
            return [first, output.cut(text, width)]
        painted = output.GAP.join(output.paint(cell, name) if counts.get(name) else cell for name, cell in cells)
        return [first, painted + " " * (width - len(text) - len(rate)) + rate]

    def _held_back(self, width: int) -> list[str]:
        text = self._activity.why or reasons.paused(self._activity.paused)
        return [output.paint(output.cut(output.plain(text), width), "error")] if text else []

    def _table(self, width: int, height_left: int, now: float) -> list[str]:
        """Return a line for each task; on a narrow screen two, the second for the task itself, if all fit."""
        if width < _WIDE and 1 + 2 * self._rows_most + _BELOW <= height_left:
            return self._tall_table(width, now)
        shown = {column: wide for column, wide in enumerate(_WIDTHS) if wide}
        shown[0] = self._names + 1
        for column in (*_DROPPED_FIRST, None):
            shown[7] = width - sum(shown[one] + 1 for one in shown if one != 7) - 1
            if shown[7] >= _TASK_LEAST or column is None:
                break
            del shown[column]
        lines = [output.paint(_row(_HEADS, shown), "heading")]
        for process in self._in_order(height_left, now):
            lines += [_row(cells, shown, word) for word, cells in self._rows(process, now, width >= _WIDE)]
        return lines

    def _in_order(self, height_left: int, now: float) -> list[CrewProcess]:
        """Return the processes as the file has them; if not all fit, those in trouble first."""
        processes = list(self._processes)
        if 1 + sum(max(1, len(self._activity.records[process.name].shown(now))) for process in processes) > height_left:
            processes.sort(key=lambda process: not self._in_trouble(process))
        return processes

    def _in_trouble(self, process: CrewProcess) -> bool:
        held = self._activity.records[process.name].held.values()
        return process.stopped or process.failed or process.again_at is not None or any(one.hangs for one in held)

    def _tall_table(self, width: int, now: float) -> list[str]:
        shown = {0: self._names + 1, **{column: wide for column, wide in enumerate(_WIDTHS) if wide}, 7: 0}
        lines = [output.paint(_row((*_HEADS[:-1], ""), shown), "heading")]
        indent = " " * (self._names + 2)
        for process in self._processes:
            for word, cells in self._rows(process, now):
                task = output.cut(output.plain(cells[-1]).replace("\n", " "), max(width - len(indent), 3))
                lines += [_row((*cells[:-1], ""), shown, word), f"{indent}{task}".rstrip()]
        return lines

    def _rows(self, process: CrewProcess, now: float, wide: bool = False) -> list[tuple[str, tuple[str, ...]]]:
        record = self._activity.records[process.name]
        counts = (str(record.done), str(record.failed), str(record.rate(now)))
        held = record.shown(now) if process.pid else []
        word = state(process, held[0] if held else None)
        if not held:
            since = clock(now - process.stopped_at) if process.stopped else ""
            return [(word, (process.name, word, since, "", *counts, self._status(process, now)))]
        rows: list[tuple[str, tuple[str, ...]]] = []
        for number, one in enumerate(held):
            word = state(process, one)
            first = (process.name, counts) if number == 0 else ("", ("", "", ""))
            lease = "" if one.lease_until is None else one.lease_until - time.time()
            left = lease if isinstance(lease, str) else clock(lease) if lease > 0 else "over"
            rows.append((word, (first[0], word, clock(now - one.since), left, *first[1], _task(one, wide))))
        return rows

    def _status(self, process: CrewProcess, now: float) -> str:
        if process.again_at is not None:
            return f"again in {clock(process.again_at - now + 0.99)}: {process.reason}" if process.reason else "starts"
        return (
            (process.reason or "")
            if not process.pid
            else f"kill -CONT {process.pid} lets it go on"
            if process.stopped
            else ""
        )

    def _notes(self, width: int, now: float) -> list[str]:
        notes = []
        for process in self._processes:
            if process.restarts:
                times = "once" if process.restarts == 1 else f"{process.restarts} times"
                text = f"{process.name} was restarted {times}, last {clock(now - process.restarted)} ago: {process.restart_reason}"
                notes.append(output.paint(output.cut(output.plain(text), width), "error"))
        return notes + [line(crew_event, self._names, width) for crew_event in self._failures]

    def _latest(self, latest: Iterable[CrewEvent], most: int, width: int) -> list[str]:
        return [line(crew_event, self._names, width) for crew_event in list(latest)[-most:]]


def _row(cells: Sequence[str], shown: dict[int, int], word: str | None = None) -> str:
    padded = []
    for column in sorted(shown):
        text = output.cut(output.plain(cells[column]).replace("\n", " "), shown[column])
        space = " " * (shown[column] - output.width(text))
        painted = output.paint(text, COLOURS[word]) if column == 1 and word is not None else text
        padded.append(space + painted if column in _RIGHT else painted + space)
    return f"{' '.join(padded[:-1])}  {padded[-1]}".rstrip()


def fitted(line: str, width: int) -> str:
    """Cut the line if it is too wide for a very small screen."""
    plain = _PAINT.sub("", line)
    return line if output.width(plain) <= width else output.cut(plain, width)


def _task(held: Held, wide: bool) -> str:
    share = None if held.progress is None else f"{held.progress:.0%}"
    if wide or held.title is None:
        return " ".join(filter(None, (held.short, held.kind, share, held.title)))
    return "  ".join(filter(None, (share, held.title, f"{held.kind} {held.short}")))


def line(crew_event: CrewEvent, names: int, width: int | None) -> str:
    """Format an event as one line: `12:03:04  ada  took  0000... build Fix it`."""
    held = crew_event.held
    task = "" if held is None else _task(replace(held, progress=None), width is None or width >= _WIDE)
    reason = f"for good: {crew_event.reason}" if crew_event.more.get("final") else crew_event.reason
    again = f"again in {crew_event.more['again_in']:g} s" if "again_in" in crew_event.more else None
    text = "  ".join(filter(None, (task, reason, again, crew_event.more.get("text"))))
    name = output.cut(output.plain(crew_event.worker), max(names, 1))
    start = f"{_local(crew_event.at)}  {name}{' ' * (names - output.width(name))}  "
    word = crew_event.event.replace("_", " ").ljust(9)
    rest = output.plain(text).replace("\n", " ")
    if width is not None:
        rest = output.cut(rest, max(width - output.width(start) - len(word) - 2, 3))
    return f"{start}{output.paint(word, COLOURS.get(crew_event.event, crew_event.event))}  {rest}".rstrip()


def _local(at: str) -> str:
    """Return the local time of day."""
    from taskyard.doors.cli import ages

    return time.strftime("%H:%M:%S", time.localtime(ages.milliseconds(at) / 1000))
