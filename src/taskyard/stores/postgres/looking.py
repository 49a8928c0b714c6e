"""Reading: one task, many, and how many."""

from __future__ import annotations

from taskyard import ids, naming
from taskyard.draft import compact
from taskyard.stores.postgres import rows
from taskyard.stores.postgres.ground import place
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
        """Where the one task that fits this pattern stands now."""
        ground = self._ground
        whole = ground.named(id)
        found = ground.run("looking", "stand", place(whole))
        if not found:
            raise naming.unknown(id)
        standing = rows.standing(found[0], ground.policy)
        if standing.state in (State.BLOCKED, State.CANCELLED):
            standing.unmet = tuple(row[0] for row in ground.run("moves", "needs", {"id": whole}))
        return standing

    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern."""
        found = self._ground.run("looking", "get", place(self._ground.named(id)))
        if not found:
            raise naming.unknown(id)
        return rows.report(found[0], self._ground.policy)

    def tasks(self, connection: Connection[Any], wanted: list[str]) -> dict[str, Task]:
        """The tasks of these whole ids that are there, on this connection, with one statement."""
        found = self._ground.on(connection, "looking", "tasks", {"ids": wanted}) if wanted else []
        return {row[0]: rows.task(row, self._ground.policy) for row in found}

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds, oldest task first."""
        found = self._ground.run("looking", "held", {"worker": worker})
        return [rows.standing(row, self._ground.policy) for row in found]

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks, oldest first, and the cursor of the next."""
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
        found = self._ground.run("looking", "find", values)
        page = [_line(row) for row in found[: query.limit]]
        return page, page[-1].id if len(found) > query.limit else None

    def dropped_under(self, name: str) -> list[str]:
        """The tasks that were dropped under this name; else those under one that ends so after an agent's own word and `_`."""
        said = compact(name)
        found = self._ground.run("looking", "dropped_under", {"name": said, "tail": compact(f"_{name}")[1:]})
        exact = [id for id, own in found if own == said]
        return exact or [id for id, _ in found]

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """For each id its short name, by a look into the ids' own segments."""
        return ids.shorten(wanted, self._ground.alike(wanted)) if wanted else []

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        counted: dict[str, dict[str, int]] = {}
        for kind, state, number in self._ground.run("looking", "counts"):
            counted.setdefault(kind, {})[state] = number
        return counted


def _line(row: tuple[Any, ...]) -> Task:
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
