"""A claimed task, as its handler sees it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import ClaimLost, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from taskyard.core.options import TaskOptions
    from taskyard.core.task import Task
    from taskyard.worker.worktree import Worktree
    from taskyard.yard.claim import Claim


class Job:
    """The argument of a handler: the task, and the verbs that its work may need. Heartbeats go on meanwhile."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.task: Task = claim.task
        self.handle: str = claim.handle
        self.fence: int = claim.fence
        self.lost = False
        """Whether the claim is lost: nothing that the handler returns now is published."""
        self.released = False
        """Whether the worker stops, and has released the task."""
        self.timed_out: float | None = None
        """The timeout in seconds, if the handler has taken longer: its attempt is an error then."""
        self.is_guarded = False
        """Whether a command runs for the task now, behind a guard."""
        self.check: list[str] | None = None
        """The command of the check that the task asks for."""
        self.worktree: Worktree | None = None
        """The git worktree that a command works in, if it has one of its own."""
        self.noticed = False
        """Whether the handler saw that it should stop: what it returns after that is no result."""
        self.began = 0.0
        """When a slot took the job, by the monotonic clock."""
        self._lock = threading.Lock()
        self._stopper: Callable[[float], None] | None = None
        self._grace: float | None = None
        self._scratch: str | None = None

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
        """A folder for the files of this attempt, kept with it; None if the yard has no files."""
        return self.claim.workdir

    def folder(self) -> str:
        """Return the attempt's folder; where the yard has no files, one that lasts until the attempt's end."""
        workdir = self.workdir
        if workdir is not None:
            return workdir
        if self._scratch is None:
            import tempfile

            self._scratch = tempfile.mkdtemp(prefix="taskyard-attempt-")
        return self._scratch

    def close(self) -> None:
        """Remove what was only for the time of the attempt."""
        if self._scratch is not None:
            import shutil

            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    @property
    def history(self) -> list[dict[str, Any]]:
        """How earlier attempts ended, oldest first, with the notes and the folder of each."""
        return self.claim.history

    @property
    def inputs(self) -> dict[str, Any]:
        """The results of the tasks that this one comes after and that are done, by id; read at the first access."""
        return self.claim.inputs

    def add(self, kind: str, data: Any = None, **options: Unpack[TaskOptions]) -> Task:
        """Add a task that came up during the work on this one: a part of it (`parent`), and `discovered_from` it."""
        return self.claim.add(kind, data, **options)

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the task was cancelled, another worker holds it now, its time is up, or this worker stops."""
        self.noticed = self.noticed or self.lost or self.released or self.timed_out is not None
        return self.noticed

    def progress(self, share: float) -> None:
        """Report how much is done, from 0 to 1."""
        try:
            self._held(lambda: self.claim.heartbeat(progress=share))
        except Unavailable:
            return  # progress is only information; the work goes on

    def note(self, text: str) -> None:
        """Leave a note for the next worker on this task."""
        self._held(lambda: self.claim.note(text))

    def _held(self, verb: Callable[[], object]) -> None:
        try:
            verb()
        except ClaimLost:
            self.lost = True
            raise

    # For the worker

    def stopped_by(self, stopper: Callable[[float], None] | None) -> None:
        """Set the function that stops the work from another thread, or None; call it at once if a stop is due already."""
        with self._lock:
            self._stopper = stopper
            if stopper is not None and self._grace is not None:
                stopper(self._grace)

    def stop(self, grace: float, *, lost: bool) -> None:
        """Stop the work within `grace` seconds: the claim is lost, or the worker stops."""
        with self._lock:  # held until the call returns: a moment later the same function would stop another job's work
            self.lost = self.lost or lost
            self.released = self.released or not lost
            self._grace = grace
            if self._stopper is not None:
                self._stopper(grace)

    def time_out(self, seconds: float) -> None:
        """Stop the work at once, because it has taken `seconds`."""
        with self._lock:
            self.timed_out = seconds
            if self._stopper is not None:
                self._stopper(0.0)

    def __repr__(self) -> str:
        return f"<Job {self.handle} {self.kind}>"
