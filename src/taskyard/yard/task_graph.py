"""Reads the graph of tasks: which come after which, level by level, and never task by task."""

from __future__ import annotations

from taskyard.core import graph, needs
from taskyard.core.errors import Invalid
from taskyard.core.ids import age_key
from taskyard.core.store_records import Query
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.store import Store

LIMIT = 10_000  # tasks of one graph
PAGE = 1000  # tasks of one read
_READ_MOST = 100_000  # open tasks that are looked through for those that come after another, and as many ended ones
OPEN = frozenset(state for state in State if not state.ended)


class Gathered:
    """The tasks of a graph so far, without their data."""

    def __init__(self, store: Store, limit: int) -> None:
        self._store = store
        self._limit = limit
        self.tasks: dict[str, Task] = {}
        self.left_out = 0
        """Tasks that belong to the graph and are not in it, because it would be too large."""

    def matching(self, query: Query) -> None:
        """Take in the tasks of this list up to the limit; those beyond it are counted."""
        for task in _walk(self._store, query, self._limit):
            self._take(task)
        if query.cursor is not None:
            self.left_out += self._count(query) - len(self.tasks)

    def _count(self, query: Query) -> int:
        """Return how many tasks the list has; with a mission only the store's list itself knows."""
        if query.mission is not None:
            rest = Query(query.states, query.kinds, query.mission, limit=PAGE, cursor=query.cursor)
            return len(self.tasks) + sum(1 for _ in _walk(self._store, rest, _READ_MOST))
        kinds = self._store.counts().kinds
        return sum(
            number
            for kind, row in kinds.items()
            if query.kinds is None or kind in query.kinds
            for state, number in row.items()
            if query.states is None or state in query.states
        )

    def named(self, ids: Iterable[str]) -> None:
        """Take in these tasks; those that are gone are left out."""
        wanted = [id for id in dict.fromkeys(ids) if id not in self.tasks]
        for start in range(0, len(wanted), PAGE):
            for task in self._store.find(Query(ids=wanted[start : start + PAGE], whole=True))[0]:
                self._take(task)

    def upward(self, ids: Iterable[str]) -> None:
        """Take in all that these tasks come after, and what that comes after, and so on."""
        level = list(ids)
        while level:
            before = len(self.tasks)
            self.named(other for id in level if id in self.tasks for other in self.tasks[id].after)
            level = list(self.tasks)[before:]

    def downward(self, ids: Sequence[str]) -> None:
        """Take in all that comes after these tasks, and so on.

        All tasks that have not ended are looked through, and those that have among the ones that were added later.
        """
        followers: dict[str, list[Task]] = {}
        ended = Query(frozenset(State) - OPEN, limit=PAGE, cursor=min(ids, key=age_key), whole=True)
        for query in (Query(OPEN, limit=PAGE, whole=True), ended):
            for task in _walk(self._store, query, _READ_MOST):
                for other in task.after:
                    followers.setdefault(other, []).append(task)
        level = list(ids)
        while level:
            found = [task for id in level for task in followers.pop(id, ())]
            level = [task.id for task in found if self._take(task)]

    def _take(self, task: Task) -> bool:
        """Keep the task, without its data and result; return whether it is new."""
        if task.id in self.tasks:
            return False
        if len(self.tasks) == self._limit:
            self.left_out += 1
            return False
        task.data = task.result = None
        self.tasks[task.id] = task
        return True


def gathered(store: Store, ids: Sequence[str], query: Query, limit: int) -> Gathered:
    """Return the graph of the tasks `ids` with all that they are connected with; without ids, of the tasks that the query lists."""
    found = Gathered(store, limit)
    if ids:
        found.named(ids)
        for id in ids:
            if id not in found.tasks:
                store.stand(id)  # raises `NotFound`
        found.upward(list(found.tasks))
        found.downward(ids)
    else:
        found.matching(query)
    found.named([other for task in list(found.tasks.values()) for other in task.after])
    return found


def _walk(store: Store, query: Query, most: int) -> Iterator[Task]:
    """Yield the tasks of a list, page by page, at most `most`; afterwards the query's cursor is None if that was all."""
    read = 0
    while True:
        page, query.cursor = store.find(query)
        yield from page
        read += len(page)
        if query.cursor is None or read >= most:
            return


def described(found: Gathered, fold: str | None, name: Callable[[list[Task]], None]) -> dict[str, Any]:
    """Return the graph as plain data: nodes, edges, the critical path, and how it is folded."""
    tasks = sorted(found.tasks.values(), key=lambda task: age_key(task.id))
    nodes = [{**task.as_line(), "state": str(task.state), "parent": task.parent} for task in tasks]
    edges = [
        {"from": str(other), "to": task.id, "on_failure": needs.on_failure(other)}
        for task in tasks
        for other in task.after
        if other in found.tasks
    ]
    path = graph.critical_path(nodes, edges)
    by = graph.fold_by(nodes, fold)
    if by is not None:
        return {**graph.folded(nodes, edges, by, path), "left_out": found.left_out}
    name(tasks)
    for node, task in zip(nodes, tasks, strict=True):
        node["short"] = task.short
    return {"nodes": nodes, "edges": edges, "critical_path": path, "folded": None, "left_out": found.left_out}


def fold(value: str | None) -> str | None:
    """Return a legal way to fold a graph."""
    if value is not None and value not in graph.FOLDS:
        raise Invalid(f"not a way to fold a graph: {value!a}", hint=f"fold is {', '.join(graph.FOLDS)}")
    return value
