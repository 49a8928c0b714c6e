"""The schedules of a memory yard."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.draft import Draft
    from taskyard.core.schedule import Schedule
    from taskyard.core.task import Task
    from taskyard.stores.memory.tasks import MemoryTasks


class MemorySchedules:
    """Which tasks are added again and again, and when. What is kept is never changed, only replaced."""

    def __init__(self, tasks: Callable[[], MemoryTasks], add: Callable[[list[Draft], str], list[Task]]) -> None:
        self._tasks = tasks
        self._add = add

    def put(self, schedule: Schedule) -> Schedule | None:
        """Keep a new schedule; if there is one of this name, return that."""
        with self._tasks() as shelf:
            known = shelf.schedules.setdefault(schedule.name, schedule)
            return None if known is schedule else known

    def get(self, name: str) -> Schedule | None:
        """Return the schedule of this name."""
        with self._tasks() as shelf:
            return shelf.schedules.get(name)

    def all(self, *, mend: bool = False) -> list[Schedule]:  # noqa: ARG002  nothing here is left half done
        """Return every schedule."""
        with self._tasks() as shelf:
            return list(shelf.schedules.values())

    def move(self, at: Schedule, to: Schedule) -> bool:
        """Move the schedule if it still stands there."""
        with self._tasks() as shelf:
            known = shelf.schedules.get(at.name)
            if known is None or not known.stands(at):
                return False
            shelf.schedules[at.name] = to
            return True

    def tick(self, at: Schedule, to: Schedule, draft: Draft, by: str) -> Task | None:
        """Add the task and move the schedule, under one lock."""
        with self._tasks() as shelf:
            known = shelf.schedules.get(at.name)
            if known is None or not known.stands(at):
                return None
            [task] = self._add([draft], by)
            to.last_task = task.id
            shelf.schedules[at.name] = to
            return task

    def remove(self, at: Schedule) -> bool:
        """Remove the schedule if it is still the same one."""
        with self._tasks() as shelf:
            known = shelf.schedules.get(at.name)
            if known is None or known.identity != at.identity:
                return False
            del shelf.schedules[at.name]
            return True
