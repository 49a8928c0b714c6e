"""Missions in a database: what was said about them, and their tasks in numbers, out of the table that triggers keep."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.mission import Cancelled, Mission, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.postgres.context import Context

_AT_ONCE = 10_000  # tasks from before there were missions that one statement looks at
_NO_SEGMENT = "0" * ids.SEGMENT


class PostgresMissions:
    """What was said about missions, and their tasks in numbers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known = False

    def put(self, mission: Mission) -> Mission | None:
        """Keep what is said about a mission; if something was said before, return that."""
        values = {"name": mission.name, "brief": mission.brief, "owner": mission.owner}
        made = self._context.run("missions", "put", values)
        if made:
            mission.created_at = made[0][0]
            return None
        return self.get(mission.name)

    def get(self, name: str) -> Mission | None:
        """Return what was said about this mission."""
        return next(iter(self._said(name)), None)

    def all(self) -> list[Mission]:
        """Return what was said about every mission."""
        return self._said(None)

    def cancel(self, name: str, mark: Cancelled) -> None:
        """Mark the mission as cancelled now."""
        values = {"name": name, "reason": mark.reason, "done": mark.done, "failed": mark.failed}
        self._context.run("missions", "cancel", values)

    def tally(self, name: str | None = None) -> dict[str, Tally]:
        """Return the tasks of this mission, or of each, in numbers."""
        self.gather()
        rows = self._context.run("missions", "tally_all" if name is None else "tally", {"name": name})
        tallies: dict[str, Tally] = {}
        for mission, kind, state, number, oldest, ended_at in rows:
            tally = tallies.setdefault(mission, Tally())
            tally.count(kind, state, number, ids.created(_NO_SEGMENT + oldest))
            tally.ended(ended_at)
        return tallies

    def gather(self) -> None:
        """Have the database know every task of a mission: those from before it knew missions are gathered once."""
        if self._known:
            return
        past: str | None = None if self._context.run("missions", "known") == [(True,)] else "o"
        while past is not None:
            [(past,)] = self._context.run("missions", "gather", {"past": past, "most": _AT_ONCE})
        self._known = True

    def _said(self, name: str | None) -> list[Mission]:
        return [_mission(row) for row in self._context.run("missions", "get", {"name": name})]


def _mission(row: tuple[Any, ...]) -> Mission:
    name, brief, owner, created_at, cancelled_at, reason, done, failed = row
    mark = None if cancelled_at is None else Cancelled(cancelled_at, reason, done, failed)
    return Mission(name, brief, owner, created_at, mark)
