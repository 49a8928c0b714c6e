"""The tasks of each state that match a filter: some of them as cards, and how many there are."""

from __future__ import annotations

from taskyard.core import ids, words
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.yard import arguments, cards, chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.store import Store
    from taskyard.yard.cards import Name

_SCANNED = 1000  # tasks that one answer looks through for a text or an assignee
_PAGE = 500  # tasks of one such read


class Choice:
    """What a lane chooses by beside a store's own filters."""

    def __init__(self, assignee: str | None, text: str | None, limit: int) -> None:
        self.assignee = assignee
        self.text = text
        self.limit = limit

    @property
    def narrows(self) -> bool:
        """Whether this leaves out any task."""
        return self.assignee is not None or self.text is not None

    def fits(self, task: Task) -> bool:
        """Whether the task has the assignee and the text."""
        if self.assignee is not None and task.assignee != self.assignee:
            return False
        if self.text is None:
            return True
        return (
            self.text in (task.title or "").casefold()
            or task.id.startswith(self.text)
            or _has_short_name(task.id, self.text)
        )


def choice(assignee: str | None, text: str | None, limit: int) -> Choice:
    """Return a choice, checked; an empty text is none."""
    return Choice(
        None if assignee is None else words.worker(assignee, "assignee"),
        words.text(text, "text").casefold() if text else None,
        arguments.limit(limit),
    )


def _has_short_name(id: str, text: str) -> bool:
    """Whether this is the beginning of the task's short name, or the whole of a longer one."""
    segment, dash, tail = text.partition("-")
    own = id[: ids.SEGMENT].lstrip("0") or "0"
    return bool(dash) and segment == own and (id.endswith(tail) or ids.short(id).startswith(text))


class Lanes:
    """Reads the lanes of one query: open tasks oldest first, ended ones with the last first."""

    def __init__(self, store: Store, name: Name, query: Query, choice: Choice) -> None:
        self._store = store
        self._name = name
        self._query = query
        self._choice = choice
        self._newest = [] if query.cursor else cards.newest_events(store)

    def gathered(self) -> dict[str, dict[str, Any]]:
        """Return for each state that is asked for its `count`, its `tasks` and the cursor `next`."""
        states = [state for state in State if self._query.states is None or state in self._query.states]
        counts = None if self._choice.narrows or self._query.worker is not None else self._counts()
        return {str(state): self._lane(state, None if counts is None else counts[state]) for state in states}

    def _counts(self) -> dict[State, int]:
        """Return how many tasks match in each state."""
        mission = self._query.mission
        if mission is None:
            kinds = self._store.counts().kinds
        else:
            tally = self._store.missions.tally(mission).get(mission)
            kinds = {} if tally is None else tally.kinds
        rows = [row for kind, row in kinds.items() if self._query.kinds is None or kind in self._query.kinds]
        return {state: sum(row.get(state, 0) for row in rows) for state in State}

    def _lane(self, state: State, count: int | None) -> dict[str, Any]:
        if count == 0:
            return {"count": 0, "tasks": [], "next": None}
        tasks, after = self._matching(state)
        if state.ended and self._query.cursor is None and after is not None:
            last = cards.ended_last(self._store, state, self._newest, self._choice.limit)
            tasks = [task for task in last if self._fits(task)] or tasks
        self._name(tasks)
        known = count if count is not None else None if after is not None else len(tasks)
        return {"count": known, "tasks": cards.cards(self._store, tasks, self._newest), "next": after}

    def _fits(self, task: Task) -> bool:
        query = self._query
        return (
            (query.kinds is None or task.kind in query.kinds)
            and query.mission in (None, task.mission)
            and query.worker in (None, task.worker)
            and self._choice.fits(task)
        )

    def _matching(self, state: State) -> tuple[list[Task], str | None]:
        """Return the oldest tasks that match, whole, and the cursor to go on from; a bounded number is looked through."""
        query, choice = self._query, self._choice
        wanted = Query(frozenset((state,)), query.kinds, query.mission, query.worker, cursor=query.cursor)
        wanted.limit = _PAGE if choice.narrows else choice.limit
        found: list[str] = []
        for _ in range(_SCANNED // _PAGE):
            page, wanted.cursor = self._store.find(wanted)
            for place, task in enumerate(page, 1):
                if choice.fits(task):
                    found.append(task.id)
                if len(found) == choice.limit and place < len(page):
                    wanted.cursor = task.id
                    break
            if wanted.cursor is None or len(found) == choice.limit:
                break
        tasks = chains.by_ids(self._store, found)
        return [tasks[id] for id in found if id in tasks and tasks[id].state is state], wanted.cursor
