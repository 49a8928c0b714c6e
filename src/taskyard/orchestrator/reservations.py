"""Tasks that an orchestrator has assigned to agents: each is kept for its agent for a while, and then goes back to the pool.

An assignment is an edit of the task's assignee, made in the name `orchestrator`. The log shows which assignees are its own: those whose
last edit has that name. So a new leader finds the assignments of the one before, and never touches an assignee that a person has set.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from taskyard.core import times
from taskyard.core.errors import Conflict, NotFound
from taskyard.core.task import State

if TYPE_CHECKING:
    from collections.abc import Collection

    from taskyard.core.task import Task
    from taskyard.port import YardPort

BY = "orchestrator"
_BEFORE = 86_400_000  # milliseconds that a new leader reads back for assignments of the one before
_PAGE = 1000


class Reservations:
    """The assignments of one orchestrator."""

    def __init__(self, yard: YardPort, accept: float) -> None:
        self._yard = yard.acting_for(BY, by=BY)
        self._accept = accept
        self._since: dict[str, tuple[int, float]] = {}
        """For each assigned task its fence, and since when it has been in todo under it."""
        self._recovered = False

    def recover(self) -> None:
        """Find what was assigned before, by this process or by another one; once."""
        if self._recovered:
            return
        cursor, since = None, times.rfc3339(time.time_ns() // 1_000_000 - _BEFORE)
        while True:
            events = self._yard.events(event="edited", since=since, cursor=cursor, limit=_PAGE)
            cursor = events.cursor
            for event in events:
                if event["by"] == BY:
                    self._since.setdefault(event["task"], (0, time.monotonic()))
            if len(events) < _PAGE:
                break
        self._recovered = True

    def forget(self) -> None:
        """Forget all: another process leads now, and may change what is assigned."""
        self._since.clear()
        self._recovered = False

    def assign(self, task: Task, agent: str) -> bool:
        """Whether this task, which has no assignee, is the agent's now; not if anything has happened to it meanwhile."""
        changed = self._reassigned(task, agent)
        if changed is None:
            return False
        self._since[task.id] = (changed, time.monotonic())
        return True

    def _reassigned(self, task: Task, agent: str | None) -> int | None:
        """Change the assignee of a task that nothing has happened to since; return its new fence, else None."""
        try:
            return self._yard.reassign(task.id, agent, task.fence)
        except (Conflict, NotFound):
            return None

    def take_back(self, live: Collection[str]) -> tuple[list[tuple[str, str]], dict[str, int]]:
        """Give back to the pool what was not accepted in time, or is assigned to an agent that is gone.

        Return task and agent of each, and how many tasks are still reserved for each agent.
        """
        returned: list[tuple[str, str]] = []
        reserved: dict[str, int] = {}
        for id, (fence, since) in list(self._since.items()):
            try:
                task = self._yard.get(id)
            except NotFound:
                del self._since[id]
                continue
            if task.state.ended or task.assignee is None:
                del self._since[id]
            elif task.state is not State.TODO:
                self._since[id] = (task.fence, time.monotonic())  # accepted; it may come back, with its assignee
            elif task.fence != fence:
                self._since[id] = (task.fence, time.monotonic())
                reserved[task.assignee] = reserved.get(task.assignee, 0) + 1
            elif task.assignee in live and time.monotonic() - since < self._accept:
                reserved[task.assignee] = reserved.get(task.assignee, 0) + 1
            elif not self._is_ours(task):
                del self._since[id]
            elif self._reassigned(task, None) is not None:
                del self._since[id]
                returned.append((id, task.assignee))
        return returned, reserved

    def _is_ours(self, task: Task) -> bool:
        """Whether the last edit of this task was an orchestrator's: the log must account for every fence since."""
        events = [event for event in self._yard.events(task=task.id, newest=True) if event["fence"] is not None]
        edits = [place for place, event in enumerate(events) if event["event"] == "edited"]
        if not edits or events[edits[-1]]["by"] != BY:
            return False
        accounted = {event["fence"] for event in events[edits[-1] :]}
        return accounted >= set(range(events[edits[-1]]["fence"], task.fence + 1))
