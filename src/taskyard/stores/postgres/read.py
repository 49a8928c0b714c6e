"""Reading one task, many, and counts."""

from __future__ import annotations

from taskyard.core import ids, order, task_names, times
from taskyard.core.draft import Draft, compact
from taskyard.core.store_records import Query
from taskyard.core.task import State, Task
from taskyard.stores.postgres import rows
from taskyard.stores.postgres.context import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Standing
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.missions import PostgresMissions
    from taskyard.stores.postgres.pool import Rows

_COUNTED_PAGES = 25_000  # 200 MB: beyond that, so many pages of the tables stand for all


class Reader:
    """Reads from one store."""

    def __init__(self, context: Context, missions: PostgresMissions) -> None:
        self._context = context
        self._missions = missions

    def stand(self, id: str) -> Standing:
        """Return where the one task that matches this pattern stands now."""
        context = self._context
        whole = context.named(id)
        found = context.run("read", "stand", place(whole))
        if not found:
            raise task_names.unknown(id)
        standing = rows.standing(found[0], context.policy)
        standing.expires = found[0][15]
        if standing.state in (State.BLOCKED, State.CANCELLED):
            standing.unmet = tuple(row[0] for row in context.run("moves", "needs", {"id": whole}))
        return standing

    def get(self, id: str) -> Report:
        """Return everything about the one task that matches this pattern."""
        found = self._context.run("read", "get", place(self._context.named(id)))
        if not found:
            raise task_names.unknown(id)
        report = rows.report(found[0], self._context.policy)
        report.draft = lambda: self._draft(report.task, found[0][rows.NOT_BEFORE])
        report.followers = lambda most: self._around("followers", report.task.id, most)
        report.children = lambda most: self._around("children", report.task.id, most)
        return report

    def _around(self, name: str, id: str, most: int) -> list[str]:
        return [row[0] for row in self._context.run("read", name, {"id": id, "most": most})]

    def _draft(self, task: Task, not_before: int | None) -> Draft | None:
        """Return what was asked for when the task was added or last edited; None if it has moved since."""
        found = self._context.run("read", "stand", place(task.id))
        if not found or (task.state, task.fence) != (found[0][4], found[0][5]):
            return None
        options = {name: getattr(task, name) for name in ("title", "priority", "assignee", "mission", "key", "verify")}
        options["review"] = task.needs_review
        draft = Draft(task.kind, task.data, {name: value for name, value in options.items() if value is not None})
        draft.not_before, draft.after, draft.uses = not_before, tuple(task.after), tuple(task.uses)
        draft.parent, draft.discovered_from = task.parent, task.discovered_from
        draft.max_attempts, draft.lease = found[0][8], found[0][9]
        draft.expires, draft.timeout = (
            None if task.expires is None else times.moment(task.expires, "expires"),
            task.timeout,
        )
        return draft

    def tasks(self, connection: Statements, wanted: list[str]) -> dict[str, Task]:
        """Return those of these whole ids' tasks that exist, with one statement on this connection."""
        found = self._context.on(connection, "read", "tasks", {"ids": wanted}) if wanted else []
        return {row[0]: rows.task(row, self._context.policy) for row in found}

    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds, oldest task first."""
        found = self._context.run("read", "held", {"worker": worker})
        return [rows.standing(row, self._context.policy) for row in found]

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks, oldest first or in the order of claims, and the cursor of the next page."""
        if query.dropped_as is not None:
            return [self.get(id).task for id in self._dropped_as(query.dropped_as)], None
        if query.ids is not None or query.keys is not None:
            return self._named(query), None
        if query.taker is not None:
            return self._ready(query)
        states = frozenset(State) if query.states is None else query.states
        values = {
            "states": [str(state) for state in states],
            "kinds": None if query.kinds is None else sorted(query.kinds),
            "mission": query.mission,
            "worker": query.worker,
            "taker": None,
            "past": "" if query.cursor is None else ids.age_key(query.cursor),
            "limit": query.limit + 1,
        }
        if query.mission is not None:
            self._missions.gather()
        statement = "find" if query.mission is None else "find_of_mission"
        if query.worker is not None and states == {State.PROCESSING}:
            statement = "find_held"
        found = self._context.run("read", statement, values)
        page = self._page(found[: query.limit])
        cursor = page[-1].id if len(found) > query.limit else None
        if query.whole and page:
            named = Query(query.states, query.kinds, ids=[task.id for task in page], whole=True)
            return self._named(named), cursor  # one that has moved on since is not what was asked for
        return page, cursor

    def _ready(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of what the taker could claim, in the order of claims, and the cursor of the next page."""
        last = order.position(query.cursor)
        values = {
            "taker": query.taker,
            "kinds": None if query.kinds is None else sorted(query.kinds),
            "mission": query.mission,
            "past": None if last is None else ids.age_key(last[0]),
            "past_priority": None if last is None else last[1],
            "ageing": self._context.policy.ageing,
            "limit": query.limit + 1,
        }
        if query.mission is not None:
            self._missions.gather()
        found = self._context.run("read", "ready" if query.mission is None else "ready_of_mission", values)
        page = self._page(found[: query.limit])
        return page, order.cursor(page[-1].id, page[-1].priority) if len(found) > query.limit else None

    def _page(self, found: Rows) -> list[Task]:
        """Return the tasks of a list, with what tells evidence and review apart."""
        page = [_compact_task(row) for row in found]
        by_id = {task.id: task for task in page}
        for id, verify, due in self._context.run("read", "to_verify", {"ids": [*by_id]}) if page else ():
            by_id[id].__dict__.update(verify=verify, not_before=None if due is None else times.rfc3339(due))
        return page

    def _named(self, query: Query) -> list[Task]:
        """Return the tasks that the query names by id or key and that fit its other filters, oldest first."""
        values = {"ids": list(map(str, query.ids or ())), "keys": list(query.keys or ())}
        if query.whole:
            found = [rows.task(row, self._context.policy) for row in self._context.run("read", "by_ids", values)]
        else:
            lines = self._context.run("read", "lines", values)
            found = self._page([row[:-1] for row in lines])
            for task, row in zip(found, lines, strict=True):
                task.key = row[-1]
        fitting = [
            task
            for task in found
            if query.wants(task.kind, task.assignee)
            and (query.states is None or task.state in query.states)
            and query.mission in (None, task.mission)
            and query.worker in (None, task.worker)
        ]
        return sorted(fitting, key=lambda task: ids.age_key(task.id))

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

    def counts(self, *, exact: bool) -> tuple[dict[str, dict[str, int]], frozenset[State]]:
        """Return the number of tasks by kind and state, and the states whose numbers are estimated from a sample."""
        [(pages,)] = [(0,)] if exact else self._context.run("read", "pages")
        if pages <= _COUNTED_PAGES:
            found, estimated = self._context.run("read", "counts"), frozenset[State]()
        else:
            percent = 100 * _COUNTED_PAGES / pages
            found = self._context.run("read", "counts_sampled", {"percent": percent})
            estimated = frozenset(State) - {State.PROCESSING}
        counted: dict[str, dict[str, int]] = {}
        for kind, state, number in found:
            counted.setdefault(kind, {})[state] = number
        return counted, estimated

    def oldest(self) -> dict[State, str]:
        """Return the oldest task in todo, in processing and in blocked, where there is one."""
        return {State(state): id for state, id in self._context.run("read", "oldest")}


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
