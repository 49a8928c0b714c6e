"""A claimed task in its handler's hands."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import ClaimLost, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.task import Task
    from taskyard.yard.claim import Claim


class Job:
    """What a handler is given: the task, and what it may need while it works on it. Heartbeats go on beside it."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.task: Task = claim.task
        self.handle: str = claim.handle
        self.fence: int = claim.fence
        self.lost = False
        """Whether the claim is gone: whatever the handler gives now is not published."""
        self.released = False
        """Whether the worker stops, and has taken the task out of the handler's hands."""
        self.is_guarded = False
        """Whether a command runs for it now, behind a guard."""
        self.check: list[str] | None = None
        """The command of the check that the task asks for."""
        self.noticed = False
        """Whether the handler was told to stop: what it returns after that is no result."""
        self.began = 0.0
        """When a slot took it, by the monotonic clock."""
        self._lock = threading.Lock()
        self._stopper: Callable[[float], None] | None = None
        self._grace: float | None = None

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def kind(self) -> str:
        """The task's kind."""
        return self.task.kind

    @property
    def title(self) -> str | None:
        """The task's title."""
        return self.task.title

    @property
    def data(self) -> Any:
        """The task's data."""
        return self.task.data

    @property
    def workdir(self) -> str | None:
        """A folder for what this attempt leaves behind, kept with it; None where the yard has no files."""
        return self.claim.workdir

    @property
    def history(self) -> list[dict[str, Any]]:
        """How earlier attempts ended, oldest first, with the notes and the folder that each left."""
        return self.claim.history

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the task was cancelled or is somebody else's now, or the worker is going."""
        self.noticed = self.noticed or self.lost or self.released
        return self.noticed

    def progress(self, share: float) -> None:
        """Tell how much is done, from 0 to 1."""
        try:
            self._held(lambda: self.claim.heartbeat(progress=share))
        except Unavailable:
            return  # it is only told; the work goes on

    def note(self, text: str) -> None:
        """Leave a word for whoever works on this task next."""
        self._held(lambda: self.claim.note(text))

    def _held(self, verb: Callable[[], object]) -> None:
        try:
            verb()
        except ClaimLost:
            self.lost = True
            raise

    # For the worker

    def stopped_by(self, stopper: Callable[[float], None] | None) -> None:
        """How to stop the work from another thread, once there is a way; it may be due already."""
        with self._lock:
            self._stopper = stopper
            if stopper is not None and self._grace is not None:
                stopper(self._grace)

    def stop(self, grace: float, *, lost: bool) -> None:
        """Have the work stopped within so many seconds: the claim is lost, or the worker goes."""
        with self._lock:  # until it is told: a moment later the same way would stop somebody else's work
            self.lost = self.lost or lost
            self.released = self.released or not lost
            self._grace = grace
            if self._stopper is not None:
                self._stopper(grace)

    def __repr__(self) -> str:
        return f"<Job {self.handle} {self.kind}>"
