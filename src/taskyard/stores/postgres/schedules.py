"""Schedules in a database: a tick adds its task and moves its row in one transaction."""

from __future__ import annotations

from taskyard.core import json_codec
from taskyard.core.draft import compact
from taskyard.core.schedule import Schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.task import Task
    from taskyard.stores.postgres.add import Adder
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context

_STANDS = ("name", "identity", "number", "due", "paused", "last_at", "last_task")


class PostgresSchedules:
    """Which tasks are added again and again, and when."""

    def __init__(self, context: Context, adder: Adder) -> None:
        self._context = context
        self._adder = adder

    def put(self, schedule: Schedule) -> Schedule | None:
        """Keep a new schedule; if there is one of this name, return that."""
        values = {**_values(schedule), "said": compact(schedule.said), "created_at": schedule.created_at}
        if self._context.run("schedules", "put", values):
            return None
        known = self.get(schedule.name)
        # After a lost answer the row is our own; one that was removed a moment ago is made by the next call.
        return self.put(schedule) if known is None else None if known.stands(schedule) else known

    def get(self, name: str) -> Schedule | None:
        """Return the schedule of this name."""
        return next(iter(self._read(name)), None)

    def all(self, *, mend: bool = False) -> list[Schedule]:  # noqa: ARG002  nothing here is left half done
        """Return every schedule."""
        return self._read(None)

    def move(self, at: Schedule, to: Schedule) -> bool:
        """Move the schedule if it still stands there."""
        return bool(self._context.run("schedules", "move", {**_values(to), "from": at.number}))

    def tick(self, at: Schedule, to: Schedule, draft: Draft, by: str) -> Task | None:
        """Add the task and move the schedule, in one transaction; the process that comes second waits, and finds it moved."""

        def once(connection: Statements) -> Task | None:
            with connection.transaction():
                if not self._context.on(connection, "schedules", "move", {**_values(to), "from": at.number}):
                    return None
                [task] = self._adder.add_on(connection, [draft], by)
                to.last_task = task.id
                self._context.on(connection, "schedules", "note_task", {"name": to.name, "last_task": task.id})
                return task

        task: Task | None = self._context.pool.attempt(once)
        if task is not None:
            self._context.on_unsent()
        return task

    def remove(self, at: Schedule) -> bool:
        """Remove the schedule if it is still the same one."""
        return bool(self._context.run("schedules", "remove", {"name": at.name, "identity": at.identity}))

    def _read(self, name: str | None) -> list[Schedule]:
        rows = self._context.run("schedules", "get", {"name": name})
        return [Schedule(row[0], row[1], json_codec.read(row[2]), *row[3:]) for row in rows]


def _values(schedule: Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in _STANDS}
