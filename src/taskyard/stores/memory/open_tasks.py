"""What a store in memory has open: the tasks of its yard, until it is closed."""

from __future__ import annotations

from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.memory.tasks import MemoryTasks


class OpenTasks:
    """Returns the tasks that the parts of one store share; raises `Unavailable` once the store is closed."""

    def __init__(self, tasks: MemoryTasks, url: str) -> None:
        self._tasks: MemoryTasks | None = tasks
        self.url = url

    def __call__(self) -> MemoryTasks:
        """Return the tasks."""
        if self._tasks is None:
            raise Unavailable(
                f"the yard {self.url} was closed here",
                hint="open it again; what was in it lives while somebody else has it open",
            )
        return self._tasks

    def close(self) -> None:
        """Release the tasks."""
        self._tasks = None
