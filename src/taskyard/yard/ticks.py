"""Adding what schedules ask for: a share of every sweep, however many processes sweep at once."""

from __future__ import annotations

import time

from taskyard.core.errors import Conflict, Invalid, TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.schedule import Schedule
    from taskyard.store import Store

_AGAIN = 1.0  # seconds until a tick that a full yard refused is tried again
_MOST = 100  # ticks that one sweep adds


class Ticks:
    """Knows when the next tick is due, so that a sweep before that costs nothing."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._alarm: float | None = None
        self.left = 0
        """How many schedules have a tick due that this process cannot add, because it lacks the library."""

    def alarm(self) -> float | None:
        """Return the seconds until this process can add the next tick, as of the last look; None if none is known."""
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def add_due(self, store: Store, *, now: int | None = None, asked: bool = False) -> int:
        """Add the ticks that are due by the store's time, and return how many.

        Unless it is `asked` for, look only when a known tick is due, or once in the time between two sweeps.
        """
        at = time.monotonic()
        if not asked and now is None and at < self._look_at and (self._alarm is None or at < self._alarm):
            return 0
        self._look_at = at + store.policy.sweep_every
        schedules = [schedule for schedule in store.schedules.all(mend=True) if not schedule.paused]
        self.left = 0
        if not schedules:
            self._alarm = None
            return 0
        moment = store.reasons.now() if now is None else now
        due = sorted((each for each in schedules if each.due <= moment), key=lambda each: each.due)
        nexts = [each.due for each in schedules if each.due > moment]
        added = 0
        if due and self._is_able(len(due)):
            paused = store.settings.paused()[0]
            for schedule in due[:_MOST]:
                following = None if paused else _tick(store, schedule, moment)
                if following is None:
                    nexts.append(moment + round(_AGAIN * 1000))  # a paused or a full yard delays the tick
                else:
                    added += following[0]
                    nexts.append(following[1])
        if len(due) > _MOST:
            nexts.append(moment)
        self._alarm = time.monotonic() + max(0, min(nexts) - moment + 1) / 1000 if nexts else None
        return added

    def _is_able(self, due: int) -> bool:
        from taskyard.yard import cron

        if cron.is_installed():
            return True
        self.left = due
        return False


def _tick(store: Store, schedule: Schedule, now: int) -> tuple[bool, int] | None:
    """Add the task of a due tick and move the schedule on; return whether it added one, and the next tick. None if this process cannot, or the yard is full."""
    from taskyard.core import schedule as rules
    from taskyard.yard import cron

    try:
        after = cron.times_of(schedule.said["cron"], schedule.said["tz"])
        tick, following = rules.passed(schedule, now, after)
        if tick is None:
            store.schedules.move(schedule, schedule.moved(due=following))
            return False, following
        draft, to = schedule.draft(tick), schedule.moved(due=following, last_at=tick)
    except Invalid:  # a newer version, or another database of zones, made it: that process adds its ticks
        return None
    try:
        task = store.schedules.tick(schedule, to, draft, f"schedule:{schedule.name}")
    except Conflict:  # somebody has added another task under the tick's own key: that stands for it
        store.schedules.move(schedule, to)
        return False, following
    except TaskyardError as error:
        if error.code != "full":
            raise
        return None
    return task is not None and task.created, following
