"""Everything that Taskyard raises on purpose, as one family.

    TaskyardError
    ├── Invalid          input that can never be right: a bad kind, a malformed handle, a task id for a handle
    │   ├── NoYard       no yard was named and none was found upward from here
    │   └── Denied       a gateway wants a token, or the token does not allow this
    ├── ClaimLost        the claim behind this handle is over; another worker may hold the task
    ├── TimedOut         the time to wait ended before the awaited change
    ├── Stuck            an awaited task can never end by itself: it is blocked behind one that failed or was cancelled
    ├── NotFound         no task has this id
    │   └── Ambiguous    several tasks fit this short name or beginning of an id
    ├── Conflict         the task is not in a state that allows this move
    ├── Full             the yard, or the kind, has as many tasks waiting as its settings allow (max_todo)
    └── Unavailable      the store cannot be reached, read or written right now
        └── Away         the server does not answer: what is said to it may be kept in the spool until it does

A class's docstring is its default message, its `code` is what machines see; each door maps the family once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class TaskyardError(Exception):
    """Something went wrong inside Taskyard."""

    code = "internal"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or type(self).__doc__ or type(self).__name__
        self.hint = hint
        super().__init__(self.message)


class Invalid(TaskyardError):
    """The input is not valid."""

    code = "invalid"


class NoYard(Invalid):
    """No yard was named, and there is no .taskyard directory here or above."""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(
            message, hint=hint or "run 'taskyard init' where the work is, or name a yard with --yard or $TASKYARD"
        )


class Denied(Invalid):
    """The gateway does not allow this."""

    code = "denied"


class ClaimLost(TaskyardError):
    """The claim is over: the task was reaped, cancelled, or ended under another claim."""

    code = "claim_lost"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(
            message, hint=hint or "stop this work and claim again; 'taskyard show' tells what became of the task"
        )


class TimedOut(TaskyardError):
    """The time to wait is over."""

    code = "timed_out"

    def __init__(self, message: str | None = None, *, hint: str | None = None, ids: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.ids = list(ids)
        """All tasks that were waited for, to go on with."""


class Stuck(TaskyardError):
    """A task that was waited for can never end by itself."""

    code = "stuck"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        why: dict[str, Any] | None = None,
        tasks: Sequence[Any] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.why = why
        """The facts: which task, and behind which one it is blocked."""
        self.tasks = list(tasks)
        """All tasks that were waited for, as they stand now."""


class NotFound(TaskyardError):
    """No task has this id."""

    code = "not_found"


class Ambiguous(NotFound):
    """More than one task fits this name."""

    code = "ambiguous"


class Conflict(TaskyardError):
    """The task is not in a state that allows this."""

    code = "conflict"


class Full(TaskyardError):
    """The yard has no room for more tasks."""

    code = "full"

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        kind: str | None = None,
        team: str | None = None,
        count: int = 0,
        most: int = 0,
        wanted: int = 1,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        """The kind that is full; None for the whole yard."""
        self.team = team
        """The team that is full, with all its projects; None if it is the yard or the kind."""
        self.count = count
        """How many of its tasks wait for a worker."""
        self.most = most
        """How many may: `max_todo`."""
        self.wanted = wanted
        """How many were to be added; more than `most` can never be, at once."""


class Unavailable(TaskyardError):
    """The yard cannot be used right now."""

    code = "unavailable"


class Away(Unavailable):
    """The yard's server cannot be reached right now."""

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, sent: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent
        """What the store needs to know later if the server may have done what was asked, and only the answer was lost."""
