"""What a crew's supervisor knows of its workers' tasks: from the yard's events, and an occasional look at what they hold."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taskyard.core import ids, times
from taskyard.core.errors import NotFound, TaskyardError
from taskyard.core.task import State
from taskyard.doors.cli import ages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.port import YardPort

MINUTE = 60.0
ENDED_SHOWN = 0.5  # seconds that an ended task stays on the screen: between two tasks a worker is not idle
LOOK_LEAST, LOOK_MOST = 1.0, 5.0  # seconds between two looks at a task that is held
COUNT_LEAST = 1.0  # seconds between two counts of the yard while it changes,
COUNT_MOST = 5.0  # and while it does not: the yard may be unreachable without an event
COUNT_SHARE = 50  # and this many times the duration of the last count: 2 % of a core however large the yard is
# The log's event names, and the words that are shown; all but the first end a claim.
EVENT_WORDS = {
    "claimed": "took",
    "done": "done",
    "failed": "failed",
    "released": "released",
    "reaped": "lost",
    "cancelled": "cancelled",
}


@dataclass(slots=True)
class Held:
    """A task that a worker of the crew holds."""

    task: str
    kind: str
    since: float
    moved: float
    """When it was begun, or last reported progress."""
    short: str
    title: str | None = None
    lease_until: float | None = None
    progress: float | None = None
    look_at: float = 0.0
    hangs: bool = False
    ended: float | None = None


@dataclass(slots=True)
class Record:
    """What one worker has done since the crew began."""

    done: int = 0
    failed: int = 0
    failed_for_good: int = 0
    """The failures after which the task is not tried again."""
    held: dict[str, Held] = field(default_factory=dict)
    ends: deque[float] = field(default_factory=deque)
    places: list[Held] = field(default_factory=list)
    """Which task is on which line of the screen: the next task takes the line of one that has ended."""

    def begin(self, held: Held) -> None:
        """Note that the worker has claimed this task."""
        self.end(held.task, held.since)  # a claim that was taken over is listed once
        self.held[held.task] = held
        for place, other in enumerate(self.places):
            if other.ended is not None:
                self.places[place] = held
                return
        self.places.append(held)

    def end(self, task: str, now: float) -> Held | None:
        """Note that the worker no longer holds this task."""
        held = self.held.pop(task, None)
        if held is not None:
            held.ended = now
        return held

    def shown(self, now: float) -> list[Held]:
        """Return what it works on; and what it has just ended, because the next task is about to come."""
        self.places = [held for held in self.places if held.ended is None or now - held.ended < ENDED_SHOWN]
        return self.places

    def rate(self, now: float) -> int:
        """Return the number of tasks done within the last minute."""
        while self.ends and self.ends[0] <= now - MINUTE:
            self.ends.popleft()
        return len(self.ends)


@dataclass(slots=True)
class CrewEvent:
    """Something that is shown: about a worker, and often about a task."""

    at: str
    event: str
    worker: str
    held: Held | None = None
    reason: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as one line of JSON has it."""
        fields: dict[str, Any] = {"at": self.at, "event": self.event, "worker": self.worker}
        if self.held is not None:
            fields |= {
                "task": self.held.task,
                "short": self.held.short,
                "kind": self.held.kind,
                "title": self.held.title,
            }
        if self.reason is not None:
            fields["reason"] = self.reason
        return fields | self.more


def moment() -> str:
    """Return the time now, as events have it."""
    return times.rfc3339(int(time.time() * 1000))


class Activity:
    """The records of all workers, and the yard's counts."""

    def __init__(self, yard: YardPort, names: list[str], kinds: Mapping[str, list[str]] | None = None) -> None:
        self._yard = yard
        self._kinds = kinds or {}
        self.records = {name: Record() for name in names}
        self.counts: dict[str, int] = {}
        self.paused: dict[str, Any] = {"yard": False, "kinds": []}
        self.why: str | None = None
        """Why a worker is idle while tasks are open; None if none is, or it is about to take one."""
        self.trouble: str | None = None
        """Why the yard cannot be read; None while it can."""
        self._count_at = 0.0
        self._stale = True
        self._why_at = 0.0

    def take(self, event: dict[str, Any], now: float, *, look: bool) -> CrewEvent | None:
        """Record an event; return what to show if it is about the crew."""
        self._stale = True
        record = self.records.get(event["worker"])
        word = EVENT_WORDS.get(event["event"])
        if record is None or word is None:
            return None
        task = event["task"]
        if word == "took":
            held = Held(task, event["kind"], now, now, ids.short(task))
            record.begin(held)
            if look:
                self._look(held, now)
        else:
            known = record.end(task, now)
            held = Held(task, event["kind"], now, now, ids.short(task)) if known is None else known
            self._ended(record, word, now, bool(event.get("final")))
        more: dict[str, Any] = {name: event[name] for name in ("fence", "final") if name in event}
        return CrewEvent(event["at"], word, event["worker"], held, event.get("reason"), more)

    def _ended(self, record: Record, word: str, now: float, final: bool) -> None:
        if word == "done":
            record.done += 1
            record.ends.append(now)
        elif word in ("failed", "lost"):
            record.failed += 1
            record.failed_for_good += final

    def refresh(self, now: float) -> None:
        """Look at the held tasks whose last look is long ago."""
        for name, record in self.records.items():
            for held in list(record.held.values()):
                if now >= held.look_at and self._look(held, now) not in (name, None):
                    record.end(held.task, now)  # the event of its end was lost, or is still to come

    def _look(self, held: Held, now: float) -> str | None:
        """Update the task; return who holds it ("" if no worker does), or None if the yard cannot be read."""
        held.look_at = now + LOOK_MOST
        try:
            task = self._yard.get(held.task)
            self.trouble = None
        except NotFound:
            return ""  # pruned
        except TaskyardError as error:
            self.trouble = error.message
            return None
        held.title, held.short = task.title, task.short
        if task.progress != held.progress:
            held.progress, held.moved, held.hangs = task.progress, now, False
        if task.lease_until is not None:
            held.lease_until = ages.milliseconds(task.lease_until) / 1000
            left = held.lease_until - time.time()
            held.look_at = now + min(max(left / 3, LOOK_LEAST), LOOK_MOST)
        return (task.worker or "") if task.state is State.PROCESSING else ""

    def count(self, now: float) -> None:
        """Count the yard's tasks, if something may have happened and the last count is long enough ago."""
        if now < self._count_at + (0.0 if self._stale else COUNT_MOST):
            return
        began = time.monotonic()
        try:
            self.counts, self.paused = self._yard.counts(), self._yard.paused()
            self._stale, self.trouble = False, None
        except TaskyardError as error:
            self.trouble, self._stale = error.message, True
        self._count_at = now + max(COUNT_LEAST, COUNT_SHARE * (time.monotonic() - began))
        self._explain(now)

    def _explain(self, now: float) -> None:
        """Ask why a worker is idle, if the last answer is long enough ago: this reads more than a count does."""
        if now < self._why_at:
            return
        began = time.monotonic()
        try:
            self.why = self._idle_because()
        except TaskyardError:
            self.why = None  # the next count names the trouble
        self._why_at = now + max(COUNT_LEAST, COUNT_SHARE * (time.monotonic() - began))

    def _idle_because(self) -> str | None:
        """Return the reason why the first idle worker has no task, if tasks are open."""
        idle = next((name for name, record in self.records.items() if not record.held), None)
        if idle is None or not any(self.counts.get(state, 0) for state in (State.TODO, State.WAITING, State.BLOCKED)):
            return None
        facts = self._yard.why(kinds=self._kinds.get(idle) or None, worker=idle)
        return None if "ready" in facts else str(facts["message"])

    def left(self) -> dict[str, Any] | None:
        """Return why tasks are left that no worker of the crew could take; None if none is."""
        served = [kind for kinds in self._kinds.values() for kind in kinds]
        all_kinds = not all(self._kinds.get(name) for name in self.records)
        try:
            facts = self._yard.why(kinds=None if all_kinds else served)
        except TaskyardError:
            return None
        return facts if "done" not in facts and "empty" not in facts else None

    def hanging(self, name: str, after: float, now: float) -> list[Held]:
        """Return tasks of this worker without an end or progress for `after` seconds, each once."""
        found = []
        for held in self.records[name].held.values():
            if not held.hangs and now - held.moved >= after:
                self._look(held, now)  # it may have reported progress since
                held.hangs = now - held.moved >= after
                if held.hangs:
                    found.append(held)
        return found
