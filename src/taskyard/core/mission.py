"""Missions: a named goal that groups tasks. Its state and progress follow from the states of its tasks. No I/O."""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Conflict, Invalid, NotFound
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BRIEF_MOST = 65_536  # characters
_OPEN = tuple(state for state in State if not state.ended)


class Mission:
    """What was said about a mission; one that only tasks name has nothing but its name."""

    __slots__ = ("brief", "cancelled", "created_at", "name", "owner")

    def __init__(
        self,
        name: str,
        brief: str | None = None,
        owner: str | None = None,
        created_at: int | None = None,
        cancelled: Cancelled | None = None,
    ) -> None:
        self.name = name
        self.brief = brief
        self.owner = owner
        self.created_at = created_at
        """When `new_mission` made it, in milliseconds since 1970; None if only tasks name it."""
        self.cancelled = cancelled
        """How it was last cancelled; None if it never was."""


class Cancelled:
    """The mark of a cancelled mission: when and why, and how many of its tasks had ended by themselves."""

    __slots__ = ("at", "done", "failed", "reason")

    def __init__(self, at: int, reason: str | None, done: int, failed: int) -> None:
        self.at = at
        self.reason = reason
        self.done = done
        self.failed = failed


class Tally:
    """The tasks of one mission in numbers."""

    __slots__ = ("ended_at", "kinds", "started_at")

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, int]] = {}
        """How many there are, by kind and state."""
        self.started_at: int | None = None
        """When its first task was added."""
        self.ended_at: int | None = None
        """When its last task ended; a store may fill this in only if all have, and only for one mission that is asked for."""

    def count(self, kind: str, state: str, number: int = 1, added: int | None = None) -> None:
        """Count `number` tasks of this kind and state, the oldest of which was added at `added`."""
        row = self.kinds.setdefault(kind, {})
        row[str(state)] = row.get(str(state), 0) + number
        if added is not None:
            self.started_at = added if self.started_at is None else min(self.started_at, added)

    def ended(self, at: int | None) -> None:
        """Take the moment at which one of its tasks ended into `ended_at`, the latest of all."""
        if at is not None:
            self.ended_at = at if self.ended_at is None else max(self.ended_at, at)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        return {str(state): sum(row.get(state, 0) for row in self.kinds.values()) for state in State}


def open_tasks(counts: Mapping[str, int]) -> int:
    """Return how many of the tasks have not ended."""
    return sum(counts.get(state, 0) for state in _OPEN)


def state(counts: Mapping[str, int], cancelled: Cancelled | None = None) -> str:
    """Return the state of a mission whose tasks are counted so: empty, open, running, done, failed or cancelled.

    Tasks that were cancelled do not count against it. A mission that was cancelled lives on if more of its tasks have ended by
    themselves since then.
    """
    done, failed = counts.get(State.DONE, 0), counts.get(State.FAILED, 0)
    if open_tasks(counts):
        return "running" if counts.get(State.PROCESSING) or done or failed else "open"
    if cancelled is not None and done <= cancelled.done and failed <= cancelled.failed:
        return "cancelled"
    if failed:
        return "failed"
    if done:
        return "done"
    return "cancelled" if counts.get(State.CANCELLED) else "empty"


def wanted(counts: Mapping[str, int]) -> int:
    """Return how many tasks the mission asks for: all that were not cancelled."""
    return sum(counts.values()) - counts.get(State.CANCELLED, 0)


def progress(counts: Mapping[str, int]) -> float | None:
    """Return the share of its tasks that are done, between 0 and 1; None if it asks for none."""
    of = wanted(counts)
    return None if of == 0 else round(counts.get(State.DONE, 0) / of, 4)


def name(value: object) -> str:
    """Return a legal name of a mission."""
    return words.text(value, "mission")


def brief(value: object) -> str:
    """Return a legal brief: any text, of several lines if need be."""
    if not isinstance(value, str):
        raise Invalid(f"the brief must be a text, not {type(value).__name__}")
    if not 1 <= len(value) <= BRIEF_MOST:
        raise Invalid(
            f"the brief must have 1 to {BRIEF_MOST} characters, not {len(value)}",
            hint="keep the bulk in a file and name the file in the brief",
        )
    if "\0" in value or any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise Invalid("the brief has a character that is not allowed", hint="save it as plain text in UTF-8")
    return value


def same(kept: Mission, new: Mission) -> None:
    """Raise `Conflict` if a mission of this name is kept with another brief or owner."""
    for field in ("brief", "owner"):
        if getattr(kept, field) != getattr(new, field):
            raise Conflict(
                f"there is a mission {words.shown(new.name)} already, with another {field}",
                hint="'taskyard mission show NAME' prints it; choose another name for another mission",
            )


def unknown(wanted: str) -> NotFound:
    """Return the error for a mission that nothing is known of."""
    return NotFound(
        f"there is no mission {words.shown(wanted)}",
        hint="'taskyard mission list' shows the missions there are; 'taskyard mission new NAME' makes one",
    )
