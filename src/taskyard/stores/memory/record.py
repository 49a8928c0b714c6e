"""One task of a memory yard."""

from __future__ import annotations

import json

from taskyard.core import moves, times
from taskyard.core.task import Standing, State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.retry import Policy
OPEN = frozenset((State.TODO, State.WAITING, State.BLOCKED))


class Record:
    """One task: its standing, and its records. Data and results are kept as JSON, so that no caller can change them."""

    __slots__ = (
        "bound", "cancel_reason", "counted", "draft", "history", "lease", "needs", "not_before", "notes", "progress", "result", "stale", "standing", "until",
    )  # fmt: skip

    def __init__(self, id: str, draft: Draft, policy: Policy, now: int, unmet: dict[str, str]) -> None:
        due = draft.due(now)
        draft.set_deadline(now)
        self.draft = draft
        self.counted = False
        """Whether the task is counted in the backlog."""
        self.bound = draft.expires is not None
        """Whether the draft's deadline applies."""
        self.needs = unmet
        """The tasks that must end before this one starts, each with what its failure means (`needs.POLICIES`)."""
        self.lease = policy.lease if draft.lease is None else draft.lease
        self.not_before = due if draft.not_before is None else draft.not_before
        self.until = due or 0
        """When a waiting task is due, or a held one's lease ends."""
        self.progress: float | None = None
        self.result: str | None = None
        self.cancel_reason: str | None = None
        self.history: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.stale: list[dict[str, Any]] = []
        state = State.BLOCKED if unmet else State.TODO if due is None else State.WAITING
        attempts = policy.max_attempts if draft.max_attempts is None else draft.max_attempts
        self.standing = Standing(id, draft.kind, draft.priority, draft.assignee, state, 0, 0, 0, attempts, self.lease)
        self.standing.verified = draft.verify is not None

    def stands(self, there: Standing) -> bool:
        """Whether the task has not moved since this standing was seen."""
        at = self.standing
        return (at.state, at.fence, at.nonce) == (there.state, there.fence, there.nonce)

    @property
    def deadline(self) -> int | None:
        """When the task is cancelled unless a worker starts it; None if no deadline applies."""
        return int(self.draft.expires) if self.bound and self.draft.expires is not None else None

    def is_expired(self, now: int) -> bool:
        """Whether no worker has started the task by its deadline."""
        return self.standing.state in OPEN and self.deadline is not None and self.deadline <= now

    def claim(self, move: Move | None = None) -> dict[str, Any]:
        """Return the fields about the claim that holds the task, or that this move ends, with which every entry begins."""
        at = self.standing if move is None else moves.reviewed(self.standing, move)
        return {"claim": f"{at.id}.{at.fence}.{at.nonce}", "fence": at.fence, "worker": at.worker}

    def error(self) -> str | None:
        """Return why the task was cancelled, or the reason of its newest failed attempt; None once it is done."""
        if self.standing.state is State.DONE:
            return None
        if self.standing.state is State.CANCELLED and self.cancel_reason is not None:
            return self.cancel_reason
        return next(
            (entry["reason"] for entry in reversed(self.history) if entry["outcome"] in ("error", "crash")), None
        )

    def task(self) -> Task:
        """Return the whole task, as a copy."""
        at = self.standing
        held = at.state is State.PROCESSING
        return self.draft.task(
            at.id,
            at.state,
            self.until if at.state is State.WAITING else self.not_before,
            at.max_attempts,
            priority=at.priority,
            assignee=at.assignee,
            attempts=at.errors + at.crashes,
            fence=at.fence,
            worker=at.worker,
            lease_ends=self.until if held else None,
            progress=self.progress if held else None,
            result=None if self.result is None else json.loads(self.result),
            error=self.error(),
        )

    def line(self) -> Task:
        """Return the few fields that a list shows."""
        at, draft = self.standing, self.draft
        return Task(
            id=at.id,
            kind=at.kind,
            title=draft.title,
            state=at.state,
            priority=at.priority,
            worker=at.worker,
            mission=draft.mission,
            assignee=at.assignee,
            fence=at.fence,
            key=draft.key,
            verify=draft.verify,
            not_before=times.rfc3339(self.until) if at.state is State.WAITING else None,
        )
