"""The yard as a file sees it: its tasks as rows of texts, and the verbs that edits of a file stand for."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Conflict, NotFound, TaskyardError
from taskyard.core.json_codec import compact
from taskyard.core.task import State
from taskyard.doors.tasksmd import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.doors.tasksmd.base import Entry
    from taskyard.port import YardPort

OPEN = tuple(state for state in State if not state.ended)
_STATUSES = {
    State.TODO: rows.NOT_STARTED,
    State.WAITING: rows.NOT_STARTED,
    State.BLOCKED: rows.BLOCKED,
    State.PROCESSING: rows.IN_PROGRESS,
    State.DONE: rows.DONE,
    State.FAILED: rows.FAILED,
    State.CANCELLED: rows.CANCELLED,
}
_PAGE = 10_000
_MANY = 2_000  # tasks of one request
_FEW = 20  # names that are looked up one by one
_LEASE = 60.0  # seconds: a sync that is killed between its claim and its done gives the task back soon
STEERING = ("id", "status", "title", "agent", "after", "priority")
"""The fields that are a task's own; all others are in its data."""


class Seen:
    """A task as the file may show it: its fields as texts, and where it stood."""

    __slots__ = ("data", "fence", "fields", "id", "kind", "short", "state", "worker")

    def __init__(self, id: str, state: str, fence: int, fields: dict[str, str]) -> None:
        self.id = id
        self.state = State(state)
        self.fence = fence
        self.fields = fields
        self.short = ids.short(id)
        self.kind = ""
        self.data: Any = None
        self.worker: str | None = None

    @property
    def status(self) -> str:
        """Its status in the words of a file."""
        return self.fields["status"]


def seen(task: Task) -> Seen:
    """Return a whole task as a file may show it."""
    fields = {
        "title": task.title or "",
        "agent": (task.worker if task.state is not State.TODO else None) or task.assignee or "",
        "after": ",".join(task.after),
        "priority": str(task.priority),
        "status": rows.NEEDS_QA if task.review == "pending" else _STATUSES[task.state],
    }
    if isinstance(task.data, dict):
        fields |= {
            name: value if isinstance(value, str) else compact(value)
            for name, value in task.data.items()
            if name not in STEERING
        }
    found = Seen(task.id, task.state, task.fence, fields)
    found.short, found.kind, found.data, found.worker = task.short, task.kind, task.data, task.worker
    return found


class Tasks:
    """The tasks that belong to a file: those of its mission, or those without one."""

    def __init__(self, yard: YardPort, mission: str | None, person: str) -> None:
        self._yard = yard
        self._mission = mission
        self.person = person
        """The name under which a person's edits are made."""
        self.all: dict[str, Seen] = {}
        """By id."""
        self.listed: list[str] = []
        """The open tasks of the mission, oldest first."""

    def load(self, entries: Mapping[str, Entry]) -> None:
        """Read what is open, and what the file showed; only what has moved since then is read as a whole."""
        wanted = []
        listed = dict(self._listed())
        self.listed = list(listed)
        for id, (state, fence) in listed.items():
            entry = entries.get(id)
            known = None if entry is None else entry.known(state, fence)
            if known is not None:
                self.all[id] = Seen(id, state, fence, known)
            else:
                wanted.append(id)
        ended = [id for id in entries if id not in listed]
        self.refresh([*wanted, *ended])

    def _listed(self) -> Iterable[tuple[str, tuple[str, int]]]:
        """Yield id, state and fence of every open task of the mission."""
        for task in self._pages(OPEN):
            if task.mission == self._mission:
                yield task.id, (str(task.state), task.fence)

    def _pages(self, states: Iterable[State] | None) -> Iterable[Task]:
        cursor = None
        while True:
            page = self._yard.find(
                state=None if states is None else map(str, states), mission=self._mission, limit=_PAGE, cursor=cursor
            )
            yield from page
            cursor = page.next
            if cursor is None:
                return

    def refresh(self, some: Iterable[str]) -> None:
        """Read these tasks anew; one that is gone is no longer there."""
        wanted = list(some)
        for at in range(0, len(wanted), _MANY):
            part = wanted[at : at + _MANY]
            for id in part:
                self.all.pop(id, None)
            for task in self._yard.get_many(part):
                self.all[task.id] = seen(task)

    def keyed(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the id of the task that was added under each of these keys, as far as there is one."""
        wanted, found = list(keys), {}
        for at in range(0, len(wanted), _MANY):
            for task in self._yard.get_many(keys=wanted[at : at + _MANY]):
                self.all.setdefault(task.id, seen(task))
                if task.key is not None:
                    found[task.key] = task.id
        return found

    def named(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the tasks that these short names or ids stand for, as far as they are tasks."""
        wanted = [name for name in names if ids.pattern(name) is not None]
        if len(wanted) > _FEW:  # as in a fresh clone: one list costs less than many requests
            shorts = {task.short: task.id for task in self._pages(None)}
            found = {name: shorts[name] for name in wanted if name in shorts}
            self.refresh(id for id in found.values() if id not in self.all)
            return found
        return {name: id for name in wanted if (id := self._named(name)) is not None}

    def _named(self, name: str) -> str | None:
        try:
            task = self._yard.get(name)
        except NotFound:
            return None
        self.all.setdefault(task.id, seen(task))
        return task.id

    # What edits stand for

    def whole(self, id: str) -> Seen:
        """Return the task with its data, which is not read if it has not moved."""
        if not self.all[id].kind:
            self.refresh([id])
        return self.all[id]

    def edit(self, id: str, changes: Mapping[str, Any]) -> None:
        """Change a task that no worker holds."""
        self._yard.edit(id, **dict(changes))

    def add(self, drafts: list[dict[str, Any]]) -> list[str]:
        """Add new tasks, each with its key."""
        return list(self._yard.add_many(drafts))

    def claim(self, id: str, worker: str) -> str:
        """Claim a task for a person, and return the handle."""
        claim = self._yard.claim(id, worker=worker, lease=_LEASE)
        if claim is None:
            raise Conflict("the yard is paused, or the task is held back by a limit")
        return claim.handle

    def done_many(self, handles: list[str]) -> list[bool]:
        """End claims as done, those without a check at once."""
        return self._yard.done_many([(handle, None) for handle in handles])

    def done(self, handle: str) -> None:
        """End one claim as done; if its check does not pass, give the task back and raise why."""
        try:
            self._yard.done(handle)
        except TaskyardError:
            self._yard.release(handle, reason="its check did not pass")
            raise

    def fail(self, handle: str) -> None:
        """End one claim as failed for good."""
        self._yard.fail(handle, "marked as failed in the file", retry=False)

    def cancel(self, id: str, reason: str) -> None:
        """Cancel a task."""
        self._yard.cancel(id, reason)

    def retry(self, id: str) -> None:
        """Have a task tried anew."""
        self._yard.retry(id)

    def review(self, id: str, accept: bool) -> None:
        """Accept or reject what was submitted."""
        self._yard.accept(id) if accept else self._yard.reject(id, "sent back in the file")

    def shorten(self, some: list[str]) -> list[str]:
        """Return the short names of these ids."""
        return self._yard.shorten(some) if some else []
