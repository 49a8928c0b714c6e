"""What blocked tasks are behind, followed to the tasks that hold up all the others. This only reads."""

from __future__ import annotations

from taskyard.core import needs
from taskyard.core.store_records import Query
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.core.task import Task
    from taskyard.store import Store

LEVELS_MOST = 64  # of tasks that come after one another
TASKS_MOST = 1000  # that are read for one answer


def by_ids(store: Store, ids: Sequence[str]) -> dict[str, Task]:
    """Return these tasks whole, without those that are gone."""
    return {task.id: task for task in store.find(Query(ids=ids, whole=True))[0]} if ids else {}


def whole(store: Store, query: Query) -> tuple[list[Task], str | None]:
    """Return a page with every field of each task; the query asks for `whole` ones."""
    page, cursor = store.find(query)
    if query.taker is None:
        return page, cursor
    return list(by_ids(store, [task.id for task in page]).values()), cursor  # a list of what is ready is compact


class Chains:
    """The tasks that some blocked tasks come after, and those that these come after, as far as the bounds allow."""

    def __init__(self, store: Store, blocked: Iterable[Task]) -> None:
        self._known = {task.id: task for task in blocked}
        ahead = self._unread(self._known.values())
        for _ in range(LEVELS_MOST):
            found = by_ids(store, ahead[: TASKS_MOST - len(self._known)])
            self._known |= found
            ahead = self._unread(task for task in found.values() if task.state is State.BLOCKED)
            if not ahead or len(self._known) >= TASKS_MOST:
                break

    def _unread(self, tasks: Iterable[Task]) -> list[str]:
        return list(dict.fromkeys(str(need) for task in tasks for need in task.after if need not in self._known))

    def unmet(self, task: Task) -> list[Task]:
        """Return what this task still waits for, itself: those that end in failure first, then by age."""
        found = [self._known[need] for need in task.after if need in self._known and not self._is_met(need)]
        return sorted(found, key=lambda need: (not need.state.ended, need.id))

    def _is_met(self, need: str) -> bool:
        return needs.verdict(needs.on_failure(need), self._known[need].state) is not None

    def path(self, task: Task) -> list[Task]:
        """Return the tasks from this one's own need to the failed or cancelled one that it stays blocked behind; else []."""
        return self._path(task, set())

    def _path(self, task: Task, seen: set[str]) -> list[Task]:
        seen.add(task.id)
        unmet = self.unmet(task)
        for need in unmet:
            if need.state.ended:
                return [need]
        for need in unmet:
            if need.state is State.BLOCKED and need.id not in seen:
                rest = self._path(need, seen)
                if rest:
                    return [need, *rest]
        return []

    def cycle(self, task: Task) -> list[Task]:
        """Return the tasks from this one back to itself, each of which waits for the next; [] if it does not wait for itself."""
        ways = {task.id: [task]}
        ahead = [task]
        while ahead:
            one = ahead.pop()
            for need in self.unmet(one):
                if need.id == task.id:
                    return [*ways[one.id], need]
                if need.state is State.BLOCKED and need.id not in ways:
                    ways[need.id] = [*ways[one.id], need]
                    ahead.append(need)
        return []

    def root(self, task: Task) -> Task | None:
        """Return the failed or cancelled task that this one stays blocked behind; None if it can still go on by itself."""
        path = self.path(task)
        return path[-1] if path else None

    def front(self, task: Task) -> Task | None:
        """Return a task that this one waits for and that is not blocked itself, as far as is known."""
        seen: set[str] = set()
        while task.state is State.BLOCKED and task.id not in seen:
            seen.add(task.id)
            unmet = self.unmet(task)
            if not unmet:
                break
            task = next((need for need in unmet if need.state is not State.BLOCKED), unmet[0])
        return task if seen and task.id not in seen else None
