"""The janitor's side: what is overdue, whose turn it is, partitions, and letting ended tasks go."""

from __future__ import annotations

import time

from taskyard import ids
from taskyard.errors import Unavailable
from taskyard.stores.postgres import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.ground import Ground
    from taskyard.task import Standing

_WINDOWS_EVERY = 3600.0  # seconds between two looks at the partitions: each is good for twelve days
_NEVER = 10**15  # milliseconds, or tasks: more than there are


class Tending:
    """Housekeeping of one store."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._alarm: float | None = None
        self._windows_at = 0.0

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        found = self._ground.run("tending", "overdue", {"limit": limit})
        if found[0][0]:
            self._ground.took_over()
            found = self._ground.run("tending", "overdue", {"limit": limit})
        left = found[0][1]
        self._alarm = None if left is None else time.monotonic() + max(0, left + 1) / 1000
        return [rows.standing(row[2:], self._ground.policy) for row in found if row[2] is not None]

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as the last `overdue` saw."""
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep."""
        return bool(self._ground.run("tending", "turn", {"every": round(every * 1000)}))

    def mend(self) -> int:
        """Let go what the settings say is kept no longer, and keep partitions ahead and none that is empty: now and then."""
        now = time.monotonic()
        if now < self._windows_at:
            return 0
        self._windows_at = now + _WINDOWS_EVERY
        kept = self._ground.retention
        changed = 0
        if kept.age is not None or kept.count is not None:
            changed = self.prune(kept.age, kept.count, apply=True)["tasks"]
        for name in ("make_windows", "drop_windows"):
            try:
                changed += self._ground.run("tending", name)[0][0]
            except Unavailable:
                continue  # locked for the moment, and not needed in this one
        return changed

    def prune(self, age: float | None, count: int | None, *, apply: bool) -> dict[str, Any]:
        """Let ended tasks go that are too old or too many, or tell how many that would be."""
        ground = self._ground
        limits = {
            "age": _NEVER if age is None else round(age * 1000),
            "count": _NEVER if count is None else count,
        }

        def once(connection: Connection[Any]) -> dict[str, Any]:
            with connection.transaction():
                ground.on(connection, "tending", "choose_doomed", limits)
                while ground.on(connection, "tending", "spare_needed"):
                    pass
                tasks, oldest, events = ground.on(connection, "tending", "count_doomed", limits)[0]
                if apply:
                    for name in ("prune_ended", "prune_records", "prune_keys", "prune_needs"):
                        ground.on(connection, "tending", name)
                    if age is not None:
                        ground.on(connection, "tending", "prune_events", limits)
                made = None if oldest is None else ids.created("0000" + oldest)
                return {"tasks": tasks, "events": events, "oldest": made, "archives": [], "applied": apply}

        told: dict[str, Any] = ground.pool.attempt(once)
        return told
