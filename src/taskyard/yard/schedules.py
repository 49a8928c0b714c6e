"""Schedules: make them, look at them, pause and remove them. The sweep adds their tasks (`ticks`)."""

from __future__ import annotations

from taskyard.core import ids, times
from taskyard.core.errors import Conflict, Invalid
from taskyard.yard.reading import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Unpack

    from taskyard.core.options import TaskOptions
    from taskyard.core.schedule import Schedule

_UPCOMING = 5  # ticks that one answer names
_TRIES = 20  # times that a move is decided anew because the schedule has moved


class ScheduleVerbs(Reading):
    """The verbs of a yard about schedules."""

    def new_schedule(
        self,
        name: str,
        cron: str,
        kind: str,
        data: Any = None,
        *,
        tz: str = "UTC",
        missed: str = "one",
        **options: Unpack[TaskOptions],
    ) -> dict[str, Any]:
        """Have a task added at the times of a cron expression; said again with the same words, it changes nothing.

        `missed` is what becomes of ticks that no process added in time: `one` task for all of them, or `skip`. `created` in the
        answer is whether the schedule is new. Other words about the same name raise `Conflict`.
        """
        from taskyard.core import schedule as rules
        from taskyard.yard import cron as expressions

        named = rules.name(name)
        text, zone = expressions.checked(cron, tz)
        said = rules.said(text, zone, missed, {"kind": kind, "data": data, **options})
        now = self._store.reasons.now()
        first = expressions.times_of(text, zone)(now)
        new = rules.Schedule(
            named, ids.base32(ids.chance(40), 8), said, rules.NEVER if first is None else first, created_at=now
        )
        known = self._store.schedules.put(new)
        if known is None:
            self._tell("schedule_made", new)
        else:
            rules.same(known, said)
        return {**_described(known or new), "created": known is None}

    def schedules(self) -> list[dict[str, Any]]:
        """Return every schedule, by name."""
        self._look()
        return [_described(each) for each in sorted(self._store.schedules.all(), key=lambda each: each.name)]

    def schedule(self, name: str) -> dict[str, Any]:
        """Return one schedule, with its next ticks in `upcoming`, where this process can read cron expressions."""
        self._look()
        found = self._scheduled(name)
        return {**_described(found), "upcoming": list(map(times.rfc3339, _upcoming(found)))}

    def pause_schedule(self, name: str) -> dict[str, Any]:
        """Add no more tasks of this schedule; those that were added stay."""
        return self._move(name, "schedule_paused", lambda at: at if at.paused else at.moved(paused=True))

    def unpause_schedule(self, name: str) -> dict[str, Any]:
        """Go on with the next tick from now on; those of the pause are not made up for."""
        from taskyard.core import schedule as rules
        from taskyard.yard import cron

        now = self._store.reasons.now()

        def decide(at: Schedule) -> Schedule:
            return rules.resumed(at, now, cron.times_of(at.said["cron"], at.said["tz"])) if at.paused else at

        return self._move(name, "schedule_unpaused", decide)

    def remove_schedule(self, name: str) -> dict[str, Any]:
        """Remove a schedule, and return what it was; its tasks stay. One that is made under its name later begins anew."""
        from taskyard.core import schedule as rules

        found = self._scheduled(name)
        if not self._store.schedules.remove(found):
            raise rules.unknown(name)
        self._tell("schedule_removed", found)
        return _described(found)

    def _tell(self, event: str, schedule: Schedule) -> None:
        self._store.log.write(event, self.by, schedule.said["task"]["kind"], {"schedule": schedule.name})

    def _move(self, name: str, event: str, decide: Callable[[Schedule], Schedule]) -> dict[str, Any]:
        for _ in range(_TRIES):
            at = self._scheduled(name)
            to = decide(at)
            if to is at:
                return _described(at)
            if self._store.schedules.move(at, to):
                self._tell(event, to)
                return _described(to)
        raise Conflict(f"the schedule {name} keeps moving under other hands", hint="try again")

    def _scheduled(self, name: str) -> Schedule:
        from taskyard.core import schedule as rules

        found = self._store.schedules.get(rules.name(name))
        if found is None:
            raise rules.unknown(name)
        return found


def _described(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as JSON has it."""
    from taskyard.core.schedule import NEVER

    coming = not schedule.paused and schedule.due != NEVER
    return {
        "name": schedule.name,
        **schedule.said,
        "paused": schedule.paused,
        "next_at": times.rfc3339(schedule.due) if coming else None,
        "last_at": None if schedule.last_at is None else times.rfc3339(schedule.last_at),
        "last_task": schedule.last_task,
        "created_at": times.rfc3339(schedule.created_at),
    }


def _upcoming(schedule: Schedule) -> list[int]:
    from taskyard.core.schedule import NEVER
    from taskyard.yard import cron

    if schedule.paused or schedule.due == NEVER or not cron.is_installed():
        return []
    found = [schedule.due]
    try:
        after = cron.times_of(schedule.said["cron"], schedule.said["tz"])
    except Invalid:  # another machine knows a zone that this one does not
        return found
    while len(found) < _UPCOMING and (tick := after(found[-1])) is not None:
        found.append(tick)
    return found
