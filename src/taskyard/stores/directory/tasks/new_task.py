"""A task that is being added: its draft, and the id and place that it gets."""

from __future__ import annotations

from taskyard.core.task import State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.stores.directory.names import Lane


class New:
    """A task that is being added."""

    __slots__ = ("draft", "due", "folder", "id", "lane", "logged", "moved", "name", "needs", "written")

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
        self.moved: State | None = None
        """Where its needs have led the task since it was published in blocked/."""

    def task(self, policy: Policy) -> Task:
        """Return the task as it stands right after it was added."""
        blocked = self.needs and self.moved is None
        state = State.BLOCKED if blocked else State.TODO if self.due is None else State.WAITING
        begins = self.due if self.draft.not_before is None else self.draft.not_before
        return self.draft.task(self.id, state, begins, policy.max_attempts, fence=int(self.moved is not None))
