"""A task on its way in: what was asked for, and the id and place that it is given."""

from __future__ import annotations

import json

from taskyard.core.task import State, Task
from taskyard.core.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.stores.directory.names import Lane


class New:
    """A task on its way in."""

    __slots__ = ("draft", "due", "folder", "freed", "id", "lane", "logged", "name", "needs", "written")

    def __init__(
        self, id: str, draft: Draft, lane: Lane, due: int | None, folder: str, name: str, written: str, needs: set[str]
    ) -> None:
        self.id = id
        self.draft = draft
        self.lane = lane
        self.due = due
        self.folder = folder
        self.name = name
        self.written = written
        self.logged = False
        self.needs = needs
        self.freed = False

    def task(self, policy: Policy) -> Task:
        """The task as it stands right after it was added."""
        draft = self.draft
        not_before = self.due if draft.not_before is None else draft.not_before
        blocked = self.needs and not self.freed
        return Task(
            id=self.id,
            kind=draft.kind,
            title=draft.title,
            state=State.BLOCKED if blocked else State.TODO if self.due is None else State.WAITING,
            priority=draft.priority,
            data=json.loads(draft.payload),
            not_before=None if not_before is None else rfc3339(not_before),
            after=draft.after,
            key=draft.key,
            verify=draft.verify,
            mission=draft.mission,
            assignee=draft.assignee,
            uses=draft.uses,
            max_attempts=draft.max_attempts or policy.max_attempts,
            fence=int(self.freed),
        )
