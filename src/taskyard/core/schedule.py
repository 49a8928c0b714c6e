"""Schedules: tasks that are added again and again, at the times of a cron expression. What is due is decided here. No I/O."""

from __future__ import annotations

from taskyard.core import json_codec, times, words
from taskyard.core.draft import Draft, payload
from taskyard.core.errors import Conflict, Invalid, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    After = Callable[[int], int | None]
    """The first tick after a moment, both in milliseconds since 1970; None if there is none for 50 years."""

ONE, SKIP = "one", "skip"
MISSED = (ONE, SKIP)
"""What becomes of ticks that no process added in time: one task for all of them, or none."""
GRACE = 60_000  # milliseconds: later than this, a tick of a schedule that skips is missed
NEVER = 9_999_999_999_999  # the tick of an expression that never matches again
FIELDS = ("cron", "tz", "missed", "task")
_NOT_FOR_TICKS = ("key", "ref", "after", "parent", "discovered_from", "not_before")
_AT_LEAST = 3_600_000  # milliseconds: the first step back for the last tick of many


class Schedule:
    """One schedule: what was said about it, and where it stands. `number` rises with every move of it."""

    __slots__ = ("created_at", "due", "identity", "last_at", "last_task", "name", "number", "paused", "said")

    def __init__(
        self,
        name: str,
        identity: str,
        said: dict[str, Any],
        due: int,
        created_at: int = 0,
        number: int = 0,
        paused: bool = False,
        last_at: int | None = None,
        last_task: str | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        """A word that no other schedule has, also none of the same name before or after it."""
        self.said = said
        """`FIELDS`: the expression, the time zone, what becomes of missed ticks, and the task to add."""
        self.due = due
        """The next tick, in milliseconds since 1970. It only rises."""
        self.created_at = created_at
        self.number = number
        self.paused = paused
        self.last_at = last_at
        """The last tick that was added."""
        self.last_task = last_task
        """The id of its task."""

    def moved(self, **changes: Any) -> Schedule:
        """Return a copy with these changes, and the next number."""
        twin = Schedule(*(getattr(self, name) for name in _ORDER))
        twin.number += 1
        for name, value in changes.items():
            setattr(twin, name, value)
        return twin

    def stands(self, other: Schedule) -> bool:
        """Whether this schedule has not moved since it was seen as the other."""
        return (self.identity, self.number) == (other.identity, other.number)

    def draft(self, tick: int) -> Draft:
        """Return the task of this tick. Its key names the schedule and the tick, and no other schedule has such a key."""
        draft = Draft.of(self.said["task"])
        draft.key = f"schedule:{self.name}:{self.identity}:{times.rfc3339(tick).replace('.000Z', 'Z')}"
        return draft


_ORDER = ("name", "identity", "said", "due", "created_at", "number", "paused", "last_at", "last_task")


def said(cron: str, tz: str, missed: object, task: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a new schedule, checked; `cron` and `tz` are checked where they are read."""
    if missed not in MISSED:
        raise Invalid(
            f"missed is not {words.shown(missed)}", hint="missed ticks are 'one' (one task for all) or 'skip'"
        )
    given = {option: value for option, value in task.items() if value is not None or option == "data"}
    for option in _NOT_FOR_TICKS:
        if option in given:
            raise Invalid(f"a schedule's tasks cannot have {option}", hint="each tick adds a new task; leave it out")
    plain = json_codec.decode(payload(given, "the task").encode())  # as every store gives it back
    if isinstance(Draft.of(plain).expires, int):
        raise Invalid("a schedule's tasks cannot all expire at one moment", hint="say how long each has: 10m, 2h")
    return {"cron": cron, "tz": tz, "missed": missed, "task": plain}


def name(value: object) -> str:
    """Return a legal name of a schedule."""
    return words.worker(value, "schedule")


def passed(schedule: Schedule, now: int, after: After) -> tuple[int | None, int]:
    """Return the tick that is to be added now, if any, and the next one; `schedule.due` must not be later than now.

    Of several ticks that have passed, the last stands for all. A schedule that skips adds it only within `GRACE`.
    """
    last, following = _last(schedule.due, now, after)
    late = schedule.said["missed"] == SKIP and now - last > GRACE
    return (None if late else last), NEVER if following is None else following


def _last(due: int, now: int, after: After) -> tuple[int, int | None]:
    """Return the last tick up to now, which is `due` or later, and the one after it.

    It looks back in growing steps: after a year without a sweep there may be half a million ticks.
    """
    step = _AT_LEAST
    while True:
        begin = max(due - 1, now - step)
        tick = after(begin)
        if tick is not None and tick <= now:
            break
        if begin < due:
            return due, tick  # the expression's own ticks have changed with a new database of time zones
        step *= 24
    while True:
        following = after(tick)
        if following is None or following > now:
            return tick, following
        tick = following


def resumed(schedule: Schedule, now: int, after: After) -> Schedule:
    """Return the schedule without its pause: the ticks of the pause are not made up for, and none comes twice."""
    following = after(max(now, schedule.due - 1))
    return schedule.moved(paused=False, due=NEVER if following is None else following)


def same(kept: Schedule, new: Mapping[str, Any]) -> None:
    """Raise `Conflict` if a schedule of this name is kept with other words."""
    for field in FIELDS:
        if kept.said[field] != new[field]:
            raise Conflict(
                f"there is a schedule {words.shown(kept.name)} already, with another {field}",
                hint="'taskyard schedule show NAME' prints it; choose another name for another schedule",
            )


def unknown(wanted: str) -> NotFound:
    """Return the error for a schedule that does not exist."""
    return NotFound(
        f"there is no schedule {words.shown(wanted)}", hint="'taskyard schedule list' shows the schedules there are"
    )
