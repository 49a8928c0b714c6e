"""Finds what is overdue."""

from __future__ import annotations

import time

from taskyard.core.task import State
from taskyard.stores.directory import names
from taskyard.stores.directory.layout import DEADLINES
from taskyard.stores.directory.names import Token
from taskyard.stores.directory.tasks.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.task import Standing
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.shifts import Shifts

# seconds without reaping after this machine was suspended: its workers need a heartbeat to wake up too
_AFTER_SLEEP = 20.0
_TRUSTED = 60.0  # seconds for which an observed lease end is trusted
_AHEAD = (
    60_000  # milliseconds by which a heartbeat may be ahead of the clock: beyond that, the clock was set back since
)
_SOON = 0.1  # seconds until the next look, if this one found something overdue


class Overdue:
    """Finds lapsed claims and due tasks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._waiting = Waiting(context.locator, context.mover, context.root)
        self._swept: tuple[int, float] | None = None
        self._no_reaping_before = 0.0
        self._ends: dict[str, int] = {}
        self._ends_since = 0.0
        self._alarm: float | None = None
        self._deadlines = f"{context.root}/{DEADLINES}"
        self._expiring: list[int] = []

    def expire(self, shifts: Shifts, by: str, limit: int) -> int:
        """Cancel tasks whose deadline has passed; a yard without any pays for one look."""
        if not self._context.locator.names(self._deadlines):
            self._expiring = []
            return 0
        number = shifts.deadlines.expire(by, limit)
        self._expiring = shifts.deadlines.ahead
        return number

    def overdue(self, limit: int) -> list[Standing]:
        """Return claims whose lease is over or whose worker is dead, and waiting tasks that are due."""
        context = self._context
        now = context.clock.exact()
        late = self._abandoned(now, limit) + self._given_back(now)
        for found in self._waiting.due(now):
            if len(late) >= limit:
                break
            late.append(found.token.standing(found.state, found.place, context.policy))
        self._set_alarm(
            now, min((*self._ends.values(), *self._waiting.ahead, *self._expiring), default=None), bool(late)
        )
        return late

    def _abandoned(self, now: int, limit: int) -> list[Standing]:
        context = self._context
        late: list[Standing] = []
        known, ends = self._known_ends(), {}
        dead, may_reap = context.liveness.cached_is_dead(), self._may_reap(now)
        for name in self._disk.listdir(context.processing):
            # A heartbeat only ever postpones the end: until the observed end, only the lock has to be checked.
            end = known.get(name)
            if end is not None and end < now:
                end = None
            if end is not None and names.VOUCHED_MARK not in name:
                ends[name] = end
                continue
            token = Token.parse(name)
            if token is None or token.lease is None or len(late) >= limit:
                continue
            try:
                end = end or self._beaten_at(f"{context.processing}/{name}", now) + token.lease
            except FileNotFoundError:
                continue
            standing = token.standing(State.PROCESSING, (context.processing, name), context.policy)
            standing.dead = token.vouched and dead(token.worker, token.nonce)
            if standing.dead or (may_reap and end < now):
                late.append(standing)
            elif end >= now:
                ends[name] = end
        self._ends = ends
        return late

    def _beaten_at(self, path: str, now: int) -> int:
        """Return when the claim was last renewed; a moment that has yet to come becomes now.

        Else the claim of a dead worker would be held until a clock that was set back has caught up, and its lease is over.
        """
        at = self._disk.stamp(path)
        if at - now > _AHEAD:
            try:
                self._disk.touch(path)
            except PermissionError:
                return at  # another user's: one who may write it comes by
            return now
        return at

    def _given_back(self, now: int) -> list[Standing]:
        """Return claims that other programs have put into todo/, and those that they hold and left for a lease."""
        context, late = self._context, []
        for found in context.locator.moved.given_back() if self._has_guests() else ():
            standing = found.token.standing(found.state, found.place, context.policy)
            standing.dead = found.token.vouched and context.liveness.is_dead(standing.worker, standing.nonce)
            standing.returned = not standing.dead and self._was_early(found, now)
            late.append(standing)
        for found in context.locator.moved.taken() if self._has_guests() else ():
            end = self._end(found)
            if end is not None and end < now:
                late.append(found.token.standing(found.state, found.place, context.policy))
            elif end is not None:
                self._ends[found.place[1]] = end
        return late

    def _has_guests(self) -> bool:
        """Whether a name in todo/ or processing/ was made by another program: few yards have any."""
        todo, processing = (
            self._disk.listdir(f"{self._context.root}/todo"),
            self._disk.listdir(self._context.processing),
        )
        return any(map(names.is_dropped, todo)) or not all(map(names.begins_with_id, processing))

    def _was_early(self, found: Found, now: int) -> bool:
        """Whether the claim's last heartbeat, which a rename does not change, is less than a lease ago."""
        try:
            return now - self._disk.status(found.path).st_mtime_ns // 1_000_000 < (found.token.lease or 0)
        except FileNotFoundError:
            return False

    def _end(self, found: Found) -> int | None:
        try:
            return self._disk.stamp(found.path) + (found.token.lease or 0)
        except FileNotFoundError:
            return None

    def _known_ends(self) -> dict[str, int]:
        """Return the lease ends that were observed; dropped now and then, because a server's clock may be set back."""
        ticks = time.monotonic()
        if ticks - self._ends_since < _TRUSTED:
            return self._ends
        self._ends_since = ticks
        return {}

    def _set_alarm(self, now: int, soonest: int | None, again: bool) -> None:
        """Compute when the next look is due; soon, if this one found something that others may not have moved yet."""
        ticks = time.monotonic()
        moments = [] if soonest is None else [ticks + (max(soonest, now) - now + 1) / 1000]
        if again:
            moments.append(ticks + _SOON)
        if ticks < self._no_reaping_before:
            moments.append(self._no_reaping_before)
        self._alarm = min(moments, default=None)

    def alarm(self) -> float | None:
        """Return the seconds until the next lease ends or the next task is due, as of the last look."""
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def _may_reap(self, now: int) -> bool:
        """Return False right after this machine slept: its claims look dead, but their workers are just waking up.

        Only a process that ran before can notice; one that has just started judges by the leases alone.
        """
        ticks = time.monotonic()
        if self._swept is not None:
            slept = (now - self._swept[0]) / 1000 - (ticks - self._swept[1])
            if slept > _AFTER_SLEEP / 2:
                self._no_reaping_before = ticks + _AFTER_SLEEP
        self._swept = (now, ticks)
        return ticks >= self._no_reaping_before
