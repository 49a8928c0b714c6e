"""How one run of a task ended, as a value: what its handler says, and what was made of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Ending(StrEnum):
    """What became of a run."""

    DONE = "done"
    ERROR = "error"
    """Counted, and tried again."""
    FATAL = "failed"
    """Failed for good: said so, or its attempts are used up."""
    LATER = "later"
    """To be tried again after a while; not counted."""
    RELEASED = "released"
    """Handed back unfinished, because the worker stops."""
    CRASHED = "crashed"
    """What ran it was killed."""
    SETTLED = "settled"
    """The command has ended its claim by itself."""
    LOST = "lost"
    """The claim was gone: nothing is published."""


class Outcome:
    """An ending with what belongs to it."""

    __slots__ = ("after", "ending", "reason", "result")

    def __init__(
        self, ending: Ending, result: Any = None, reason: str | None = None, after: float | None = None
    ) -> None:
        self.ending = ending
        self.result = result
        self.reason = reason
        self.after = after

    def __repr__(self) -> str:
        return f"<Outcome {self.ending}{'' if self.reason is None else ': ' + self.reason[:60]}>"


def done(result: Any = None) -> Outcome:
    """The task is done."""
    return Outcome(Ending.DONE, result)


def error(reason: str) -> Outcome:
    """It went wrong this time."""
    return Outcome(Ending.ERROR, reason=reason)


def fatal(reason: str) -> Outcome:
    """It went wrong for good."""
    return Outcome(Ending.FATAL, reason=reason)


def later(after: float | None = None, reason: str | None = None) -> Outcome:
    """It is not time yet."""
    return Outcome(Ending.LATER, after=after, reason=reason)


def crashed(reason: str) -> Outcome:
    """What ran it was killed."""
    return Outcome(Ending.CRASHED, reason=reason)


RELEASED = Outcome(Ending.RELEASED)
SETTLED = Outcome(Ending.SETTLED)
SETTLED_AS_FAILED = Outcome(Ending.FATAL, reason="its command has said so")
LOST = Outcome(Ending.LOST)


class Retry(Exception):
    """Raised by a handler: try the task again after so many seconds; this is not counted as an attempt."""

    def __init__(self, reason: str | None = None, *, after: float | None = None) -> None:
        super().__init__(reason or "to be tried again later")
        self.after = after
        self.reason = _words(reason)


class Fail(Exception):
    """Raised by a handler: the task has failed, and trying again is of no use."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = _words(reason) or "no reason was given"


def _words(reason: object) -> str | None:
    """What a handler gave as its reason, if it is one: whatever it gave, it must not take the worker down."""
    words = "" if reason is None else str(reason)
    return words if words.strip() else None
