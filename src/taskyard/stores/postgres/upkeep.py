"""The janitor's part: overdue tasks, the turn to sweep, partitions, and pruning."""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.core.errors import Unavailable
from taskyard.core.task import State
from taskyard.stores.postgres import driver, rows
from taskyard.stores.postgres.context import milliseconds
from taskyard.stores.postgres.pool import OUTAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from taskyard.core.store_records import Query
    from taskyard.core.task import Standing
    from taskyard.stores.postgres.connection import Statements
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
        self._server_ahead = context.server_ahead
        """Milliseconds by which the server's time is ahead of this process's monotonic clock, or less."""

    def overdue(self, limit: int) -> list[Standing]:
        """Return claims whose lease is over and waiting tasks that are due."""
        found = self._context.run("upkeep", "overdue", {"limit": limit})
        if found[0][0]:
            self._context.took_over()
            found = self._context.run("upkeep", "overdue", {"limit": limit})
        left = found[0][1]
        self._alarm = None if left is None else time.monotonic() + max(0, left + 1) / 1000
        return [rows.standing(row[2:], self._context.policy) for row in found if row[2] is not None]

    def expire(self, by: str, limit: int) -> int:
        """Cancel open tasks whose deadline has passed; return how many."""
        [(number,)] = self._context.run("upkeep", "expire", {"by": by, "limit": limit})
        if number:
            self._context.on_unsent()
        return int(number)

    def stand_all(self, some: Sequence[str]) -> dict[str, Standing]:
        """Return where those of these whole ids that are tasks stand now."""
        context = self._context
        asked = {"ages": driver.words([ids.age_key(id) for id in some]), "ids": driver.words(list(some))}
        found = {row[0]: rows.standing(row, context.policy) for row in context.run("read", "stand_all", asked)}
        waiting = [id for id, task in found.items() if task.state in (State.BLOCKED, State.CANCELLED)]
        for id, other in context.run("read", "needs_all", {"ids": driver.words(waiting)}) if waiting else ():
            found[id].unmet += (other,)
        return found

    def alarm(self) -> float | None:
        """Return the seconds until the next lease ends or the next task is due, as of the last `overdue`."""
        return None if self._alarm is None else max(0.0, self._alarm - time.monotonic())

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep; never while all connections are in use: the caller may send heartbeats."""
        self.before_turn()
        if self._context.pool.is_full:
            return False
        until = self._server_ahead + milliseconds() + round(1000 * OUTAGE)
        [(granted, now, written, team)] = self._context.run(
            "upkeep", "turn", {"every": round(every * 1000), "until": until}
        )
        self._server_ahead = now - milliseconds()  # the answer grew older on its way, so this is never too much
        if written is not None and written != self._context.settings_text:
            try:
                self._context.heed_settings(written)
            except Unavailable:
                pass  # broken ones are for the next opening to refuse
        self._context.heed_team(team)
        return bool(granted)

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

    def prune(
        self,
        age: float | None,
        count: int | None,
        by: str,  # noqa: ARG002  part of the seam
        *,
        apply: bool,
        only: Query | None = None,
    ) -> dict[str, Any]:
        """Prune ended tasks that are too old or too many, or with `apply=False` count them."""
        context = self._context
        kinds, states = (None, None) if only is None else (only.kinds, only.states)
        limits = {
            "age": _NEVER if age is None else round(age * 1000),
            "log_age": _NEVER if age is None or only is not None else round(age * 1000),
            "count": _NEVER if count is None else count,
            "kinds": None if kinds is None else sorted(kinds),
            "states": None if states is None else sorted(map(str, states)),
            "mission": None if only is None else only.mission,
            "worker": None if only is None else only.worker,
            "ids": None if only is None else only.ids,
        }

        def once(connection: Statements) -> dict[str, Any]:
            with connection.transaction():
                context.on(connection, "upkeep", "choose_pruned", limits)
                if apply:
                    context.on(connection, "upkeep", "hold_pruned")
                while context.on(connection, "upkeep", "keep_needed"):
                    pass
                tasks, oldest, events = context.on(connection, "upkeep", "count_pruned", limits)[0]
                if apply:
                    for name in ("prune_ended", "prune_records", "prune_keys", "prune_needs", "prune_relations"):
                        context.on(connection, "upkeep", name)
                    if age is not None and only is None:
                        context.on(connection, "upkeep", "prune_events", limits)
                made = None if oldest is None else ids.created("0000" + oldest)
                return {"tasks": tasks, "events": events, "oldest": made, "archives": [], "applied": apply}

        summary: dict[str, Any] = context.pool.attempt(once)
        return summary
