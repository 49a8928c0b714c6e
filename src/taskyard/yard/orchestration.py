"""What an orchestrator asks of a yard: the leadership, and to change the assignee of a task that nothing has happened to."""

from __future__ import annotations

from taskyard.core import moves, words
from taskyard.core.task import State
from taskyard.yard import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.store import Store


class OrchestrationVerbs:
    """The part of a yard that its orchestrators use."""

    _store: Store
    _incarnation: str
    worker: str
    by: str

    def lead(self, seconds: float) -> dict[str, Any]:
        """Lead the yard's orchestrators, if no other has renewed that for `seconds`; return who `leads`."""
        lead = self._store.leadership.lead(self.worker, self._incarnation, seconds)
        return {"leads": lead.leads, "leader": lead.leader, "term": lead.term}

    def resign(self) -> bool:
        """Whether this yard led, and does so no more."""
        return self._store.leadership.resign(self._incarnation)

    def refill(self) -> int:
        """Put what is ready into the hand-out lists of a server beside the store; return how many tasks, 0 where there is none."""
        hints = self._store.hints
        return 0 if hints is None else hints.refill()

    def reassign(self, id: str, assignee: str | None, fence: int) -> int | None:
        """Change the assignee of a task that is in todo under this fence; return its new fence, None if it has moved on."""
        whole = arguments.task_id(id)
        standing = self._store.stand(whole)
        if standing.state is not State.TODO or standing.fence != fence:
            return None
        old = self._store.get(whole).draft()
        if old is None:
            return None
        new = old.changed({"assignee": None if assignee is None else words.worker(assignee, "assignee")})
        move = moves.edited(standing, new, False)
        return move.fence if self._store.shift([(standing, move)], self.by)[0] else None
