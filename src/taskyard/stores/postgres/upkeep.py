"""The janitor's part: overdue tasks, the turn to sweep, partitions, and pruning."""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.core.errors import Unavailable
from taskyard.stores.postgres import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from psycopg import Connection

    from taskyard.core.task import Standing
    from taskyard.stores.postgres.context import Context

_MENDED_EVERY = 3600.0  # seconds between two looks at the partitions: each lasts for twelve days
_REFUSED_EVERY = 600.0  # the same after a failed look: other clients queued behind its lock
_NEVER = 10**15  # milliseconds, or tasks: more than there can be


class Upkeep:
    """Upkeep of one store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.before_turn: Callable[[], None] = lambda: None
        """Called before each turn: a moment that comes now and then, for what else is to be done so."""
        self._alarm: float | None = None
        self._mend_at = 0.0

    def overdue(self, limit: int) -> list[Standing]:
        """Return claims whose lease is over and waiting tasks that are due."""
        found = self._context.run("upkeep", "overdue", {"limit": limit})
        if found[0][0]:
            self._context.took_over()
            found = self._context.run("upkeep", "overdue", {"limit": limit})
        left = found[0][1]
        self._alarm = None if left is None else time.monotonic() + max(0, left + 1) / 1000
        return [rows.standing(row[2:], self._context.policy) for row in found if row[2] is not None]

    def alarm(self) -> float | None:
        """Return the seconds until the next lease ends or the next task is due, as of the last `overdue`."""
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep; never while all connections are in use: the caller may send heartbeats."""
        self.before_turn()
        if self._context.pool.is_full:
            return False
        return bool(self._context.run("upkeep", "turn", {"every": round(every * 1000)}))

    def mend(self, by: str) -> int:  # noqa: ARG002  a transaction leaves nothing half done; there are only partitions
        """Once in `_MENDED_EVERY` seconds, make and drop partitions and prune what the settings no longer keep."""
        now = time.monotonic()
        if now < self._mend_at:
            return 0
        self._mend_at = now + _MENDED_EVERY
        changed = 0
        for duty in (self._make_windows, self._drop_windows, self._retain, self._forget):
            try:
                for number in duty():
                    changed += number
            except Unavailable:  # locked for the moment, or not this role's: the other duties go on
                self._mend_at = now + _REFUSED_EVERY
        return changed

    def _make_windows(self) -> Iterator[int]:
        """Make missing partitions, each in a transaction of its own."""
        while made := self._context.run("upkeep", "make_windows")[0][0]:
            yield made

    def _drop_windows(self) -> Iterator[int]:
        """Drop old partitions that are empty."""
        yield self._context.run("upkeep", "drop_windows")[0][0]

    def _retain(self) -> Iterator[int]:
        """Prune what the settings no longer keep."""
        kept = self._context.retention
        if kept.age is not None or kept.count is not None:
            yield self.prune(kept.age, kept.count, "", apply=True)["tasks"]

    def _forget(self) -> Iterator[int]:
        """Delete tokens and heartbeats that no longer count."""
        for name in ("forget_tokens", "forget_heartbeats"):
            self._context.run("upkeep", name)
        yield 0

    def audit(
        self,
        by: str,  # noqa: ARG002  part of the seam
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,  # noqa: ARG002  one statement reports no progress
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state; a sweep is the only repair."""
        from taskyard.stores.postgres import fsck

        if sweep is not None:
            sweep()
        return fsck.audit(self._context)

    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:  # noqa: ARG002
        """Prune ended tasks that are too old or too many, or with `apply=False` count them."""
        context = self._context
        limits = {
            "age": _NEVER if age is None else round(age * 1000),
            "count": _NEVER if count is None else count,
        }

        def once(connection: Connection[Any]) -> dict[str, Any]:
            with connection.transaction():
                context.on(connection, "upkeep", "choose_pruned", limits)
                while context.on(connection, "upkeep", "keep_needed"):
                    pass
                tasks, oldest, events = context.on(connection, "upkeep", "count_pruned", limits)[0]
                if apply:
                    for name in ("prune_ended", "prune_records", "prune_keys", "prune_needs"):
                        context.on(connection, "upkeep", name)
                    if age is not None:
                        context.on(connection, "upkeep", "prune_events", limits)
                made = None if oldest is None else ids.created("0000" + oldest)
                return {"tasks": tasks, "events": events, "oldest": made, "archives": [], "applied": apply}

        summary: dict[str, Any] = context.pool.attempt(once)
        return summary
