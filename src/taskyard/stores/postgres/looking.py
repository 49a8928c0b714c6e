"""Reading: one task, many, and how many."""

from __future__ import annotations

from taskyard import ids
from taskyard.stores.postgres import queries, rows
from taskyard.stores.postgres.ground import place, unknown
from taskyard.task import State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from taskyard.store import Query, Report
    from taskyard.stores.postgres.ground import Ground
    from taskyard.task import Standing


class Looking:
    """Looks at one store."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def stand(self, id: str) -> Standing:
        """Where the task of this id, or of this unique prefix, stands now."""
        ground = self._ground
        whole = ground.named(id)
        found = ground.run("looking", "stand", place(whole))
        if not found:
            raise unknown(id)
        standing = rows.standing(found[0], ground.policy)
        if standing.state in (State.BLOCKED, State.CANCELLED):
            standing.unmet = tuple(row[0] for row in ground.run("moves", "needs", {"id": whole}))
        return standing

    def get(self, id: str) -> Report:
        """All about the task of this id or unique prefix."""
        found = self._ground.run("looking", "get", place(self._ground.named(id)))
        if not found:
            raise unknown(id)
        return rows.report(found[0], self._ground.policy)

    def read(self, connection: Connection[Any], id: str) -> Report:
        """The same of a whole id, on this connection."""
        found = self._ground.on(connection, "looking", "get", place(id))
        if not found:
            raise unknown(id)
        return rows.report(found[0], self._ground.policy)

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds, oldest task first."""
        found = self._ground.run("looking", "held", {"worker": worker})
        return [rows.standing(row, self._ground.policy) for row in found]

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks, oldest first, and the cursor of the next."""
        open_, over, values = _conditions(query)
        statement = queries.load("looking")["find"].format(open=open_, over=over)
        found = self._ground.pool.run(
            statement, {"project": self._ground.project, "limit": query.limit + 1, **values}, prepare=False
        )
        page = [_line(row) for row in found[: query.limit]]
        return page, page[-1].id if len(found) > query.limit else None

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""
        if not wanted:
            return []
        whole = [self._ground.named(id) for id in wanted]
        short = {}
        for id, there, before, after in self._ground.run("looking", "neighbours", {"ids": whole}):
            if not there:
                raise unknown(id)
            length = ids.SEGMENT
            for other in (before, after):
                while other is not None and id[:length] == other[:length]:
                    length += 1
            short[id] = id[:length]
        return [short[id] for id in whole]

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        counted: dict[str, dict[str, int]] = {}
        for kind, state, number in self._ground.run("looking", "counts"):
            counted.setdefault(kind, {})[state] = number
        return counted


_PAUSED = "(SELECT NOT paused AND kind <> ALL (paused_kinds) FROM taskyard.project WHERE project.id = %(project)s)"
_FREE = "(uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = %(project)s AND resource = ANY (uses)))"


def _conditions(query: Query) -> tuple[str, str, dict[str, Any]]:
    """What is asked for, as conditions on open tasks and on ended ones."""
    both = ["true"]
    values: dict[str, Any] = {}
    if query.kinds is not None:
        both.append("kind = ANY (%(kinds)s::text[])")
        values["kinds"] = sorted(query.kinds)
    for name in ("mission", "worker"):
        if getattr(query, name) is not None:
            both.append(f"{name} = %({name})s")
            values[name] = getattr(query, name)
    if query.cursor is not None:
        both.append("age > %(cursor)s")
        values["cursor"] = ids.age_key(query.cursor)
    states = frozenset(State) if query.states is None else query.states
    sides = []
    for side in ([state for state in states if not state.ended], [state for state in states if state.ended]):
        # Each state by itself, so that its partial index can serve.
        named = " OR ".join(f"state = '{state}'" for state in sorted(side)) or "false"
        sides.append([*both] if len(side) == (3 if side and side[0].ended else 4) else [*both, f"({named})"])
    if query.taker is not None:
        sides[0] += ["(assignee IS NULL OR assignee = %(taker)s)", _PAUSED, _FREE]
        values["taker"] = query.taker
    return " AND ".join(sides[0]), " AND ".join(sides[1]), values


def _line(row: tuple[Any, ...]) -> Task:
    id, kind, title, state, priority, worker, mission, assignee, fence, _ = row
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
