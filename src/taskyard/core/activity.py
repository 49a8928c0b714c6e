"""What happened of late: how often each event was logged, and rates from it. No I/O."""

from __future__ import annotations

from taskyard.core import times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS = ("added", "claimed", "done", "failed", "reaped", "refused")
"""The events that `stats` has rates of."""


class Activity:
    """How often each event happened in the last minute and hour, as far back as the log was read."""

    MINUTE = 60_000
    HOUR = 3_600_000

    __slots__ = ("_begins", "_hour", "_minute", "_oldest", "complete", "now", "share")

    def __init__(self, now: int) -> None:
        self.now = now
        self.complete = False
        """Whether the whole hour was read."""
        self.share: float | None = None
        """If not: which part of what the hour's log holds was read, where the store knows."""
        self._begins = times.rfc3339(now - self.MINUTE), times.rfc3339(now - self.HOUR)
        self._minute: dict[str, int] = {}
        self._hour: dict[str, int] = {}
        self._oldest = times.rfc3339(now)

    def count(self, event: str, at: str, number: int = 1) -> None:
        """Count an event that was logged at this moment, if that is within the hour."""
        if at < self._begins[1]:
            return
        self._hour[event] = self._hour.get(event, 0) + number
        if at >= self._begins[0]:
            self._minute[event] = self._minute.get(event, 0) + number
        self._oldest = min(self._oldest, at)

    def rates(self, events: Sequence[str]) -> tuple[dict[str, dict[str, int]], list[str]]:
        """Return the numbers of these events for the `minute` and the `hour`, and which of the two are extrapolated."""
        read = self.HOUR if self.complete else max(1, self.now - times.moment(self._oldest, "at"))
        whole = 1 if self.complete else self.HOUR / read if self.share is None else 1 / self.share
        hour = {event: round(self._hour.get(event, 0) * max(1, whole)) for event in events}
        scale = max(1, self.MINUTE / read)
        # No minute has more than the hour that it is a part of: what was read may have come in one burst.
        minute = {event: min(round(self._minute.get(event, 0) * scale), hour[event]) for event in events}
        return {"minute": minute, "hour": hour}, [
            span for span, factor in (("minute", scale), ("hour", whole)) if factor > 1
        ]
