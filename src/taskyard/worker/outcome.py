"""How one run of a task ended, as a value: what its handler returned, and what the worker made of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Ending(StrEnum):
    """How a run ended."""

    DONE = "done"
    ERROR = "error"
    """Counted as an attempt, and tried again."""
    FATAL = "failed"
    """Failed for good: the handler decided so, or its attempts are used up."""
    LATER = "later"
    """Tried again after a delay; not counted as an attempt."""
    RELEASED = "released"
    """Released unfinished, because the worker stops."""
    CRASHED = "crashed"
    """The process that ran it was killed."""
    SETTLED = "settled"
    """The command has ended its claim by itself."""
    LOST = "lost"
    """The claim was lost: nothing is published."""


class Outcome:
    """An ending with its result, reason and delay."""

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
    """Make the outcome of a task that is done."""
    return Outcome(Ending.DONE, result)


def error(reason: str) -> Outcome:
    """Make the outcome of a run that failed, and may be tried again."""
    return Outcome(Ending.ERROR, reason=reason)


def fatal(reason: str) -> Outcome:
    """Make the outcome of a task that failed for good."""
    return Outcome(Ending.FATAL, reason=reason)


def later(after: float | None = None, reason: str | None = None) -> Outcome:
    """Make the outcome of a task that is to be tried again after `after` seconds."""
    return Outcome(Ending.LATER, after=after, reason=reason)


def crashed(reason: str) -> Outcome:
    """Make the outcome of a run whose process was killed."""
    return Outcome(Ending.CRASHED, reason=reason)


RELEASED = Outcome(Ending.RELEASED)
SETTLED = Outcome(Ending.SETTLED)
SETTLED_AS_FAILED = Outcome(Ending.FATAL, reason="its command has said so")
LOST = Outcome(Ending.LOST)


class Retry(Exception):
    """Raised by a handler: try the task again after `after` seconds; this is not counted as an attempt."""

    def __init__(self, reason: str | None = None, *, after: float | None = None) -> None:
        super().__init__(reason or "to be tried again later")
        self.after = after
        self.reason = _words(reason)


class Fail(Exception):
    """Raised by a handler: the task has failed, and must not be tried again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = _words(reason) or "no reason was given"


def _words(reason: object) -> str | None:
    """Return a handler's reason as text, or None: no value of a handler may crash the worker."""
    words = "" if reason is None else str(reason)
    return words if words.strip() else None


def timed_out(seconds: float) -> str:
    """Return the reason of an attempt that took too long."""
    return f"timed out after {seconds:.10g} s"
