"""Everything that Taskyard raises on purpose, as one family.

    TaskyardError
    ├── Invalid          input that can never be right: a bad kind, a malformed handle, a task id for a handle
    │   └── NoYard       no yard was named and none was found upward from here
    ├── ClaimLost        the claim behind this handle is over; another worker may hold the task
    ├── TimedOut         the time to wait ended before the awaited change
    ├── NotFound         no task has this id
    │   └── Ambiguous    several tasks fit this short name or beginning of an id
    ├── Conflict         the task is not in a state that allows this move
    └── Unavailable      the store cannot be reached, read or written right now

A class's docstring is its default message, its `code` is what machines see; each door maps the family once.
"""

from __future__ import annotations


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


class NotFound(TaskyardError):
    """No task has this id."""

    code = "not_found"


class Ambiguous(NotFound):
    """More than one task fits this name."""

    code = "ambiguous"


class Conflict(TaskyardError):
    """The task is not in a state that allows this."""

    code = "conflict"


class Unavailable(TaskyardError):
    """The yard cannot be used right now."""

    code = "unavailable"
