"""Reading one task, many, and counts."""

from __future__ import annotations

from taskyard.core import ids, task_names
from taskyard.core.draft import Draft, compact
from taskyard.core.task import State, Task
from taskyard.stores.postgres import rows
from taskyard.stores.postgres.context import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from taskyard.core.store_records import Query, Report
    from taskyard.core.task import Standing
    from taskyard.stores.postgres.context import Context


class Reader:
    """Reads from one store."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def stand(self, id: str) -> Standing:
        """Return where the one task that matches this pattern stands now."""
        context = self._context
        whole = context.named(id)
        found = context.run("read", "stand", place(whole))
        if not found:
            raise task_names.unknown(id)
        standing = rows.standing(found[0], context.policy)
        if standing.state in (State.BLOCKED, State.CANCELLED):
            standing.unmet = tuple(row[0] for row in context.run("moves", "needs", {"id": whole}))
        return standing

    def get(self, id: str) -> Report:
        """Return everything about the one task that matches this pattern."""
        found = self._context.run("read", "get", place(self._context.named(id)))
        if not found:
            raise task_names.unknown(id)
        report = rows.report(found[0], self._context.policy)
        report.draft = lambda: self._draft(report.task)
        return report

    def _draft(self, task: Task) -> Draft | None:
        """Return what was asked for when the task was added or last edited; None if it has moved since."""
        found = self._context.run("read", "stand", place(task.id))
        if not found or (task.state, task.fence) != (found[0][4], found[0][5]):
            return None
        options = {name: getattr(task, name) for name in ("title", "priority", "assignee", "mission", "key", "verify")}
        draft = Draft(task.kind, task.data, {name: value for name, value in options.items() if value is not None})
        draft.after, draft.uses = tuple(task.after), tuple(task.uses)
        draft.max_attempts, draft.lease = found[0][8], found[0][9]
        return draft

    def tasks(self, connection: Connection[Any], wanted: list[str]) -> dict[str, Task]:
        """Return those of these whole ids' tasks that exist, with one statement on this connection."""
        found = self._context.on(connection, "read", "tasks", {"ids": wanted}) if wanted else []
        return {row[0]: rows.task(row, self._context.policy) for row in found}

    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds, oldest task first."""
        found = self._context.run("read", "held", {"worker": worker})
        return [rows.standing(row, self._context.policy) for row in found]

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks, oldest first, and the cursor of the next page."""
        if query.dropped_as is not None:
            return [self.get(id).task for id in self._dropped_as(query.dropped_as)], None
        states = frozenset(State) if query.states is None else query.states
        values = {
            "states": [str(state) for state in states],
            "kinds": None if query.kinds is None else sorted(query.kinds),
            "mission": query.mission,
            "worker": query.worker,
            "taker": query.taker,
            "past": "" if query.cursor is None else ids.age_key(query.cursor),
            "limit": query.limit + 1,
        }
        found = self._context.run("read", "find", values)
        page = [_compact_task(row) for row in found[: query.limit]]
        return page, page[-1].id if len(found) > query.limit else None

    def _dropped_as(self, name: str) -> list[str]:
        """Return the tasks that were dropped under this name.

        If there is none, return those whose name ends in `_` and this name: an agent's own prefix may stand before it.
        """
        wanted = compact(name)
        found = self._context.run("read", "dropped_under", {"name": wanted, "tail": compact(f"_{name}")[1:]})
        exact = [id for id, own in found if own == wanted]
        return exact or [id for id, _ in found]

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """Return each id's short name, by a look at the ids of the same segments."""
        return ids.shorten(wanted, self._context.alike(wanted)) if wanted else []

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of tasks by kind and state."""
        counted: dict[str, dict[str, int]] = {}
        for kind, state, number in self._context.run("read", "counts"):
            counted.setdefault(kind, {})[state] = number
        return counted


def _compact_task(row: tuple[Any, ...]) -> Task:
    id, kind, title, state, priority, worker, mission, assignee, fence = row
    return Task(
        id=id,
        kind=kind,
        title=title,
        state=State(state),
        priority=priority,
        worker=worker,
        mission=mission,
        assignee=assignee,
        fence=fence,
    )
