"""The arguments of a yard's verbs, checked; and the lists that verbs return."""

from __future__ import annotations

from taskyard.core import draft, ids, task_names, words
from taskyard.core.errors import Invalid
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.task import Task

LIST_MOST = 10_000
EVENTS_MOST = 100_000
EVENTS = (
    "added", "claimed", "released", "done", "failed", "reaped", "retried", "due", "blocked", "unblocked", "cancelled",
    "edited", "noted", "refused", "set_aside",
)  # fmt: skip


task_id = task_names.task_id


class Page(list["Task"]):
    """Tasks of one list, and the cursor to go on from (`next`, None at the end)."""

    next: str | None = None


class Added(list[str]):
    """The ids of added tasks, and how many of them are new: a known key returns the task that has it."""

    created: int = 0


class Events(list[dict[str, "Any"]]):
    """Events in their order, and the cursor to go on from."""

    cursor: str = ""


def kinds(value: Iterable[str] | str) -> frozenset[str]:
    """Return one kind or several as a set."""
    return frozenset(words.kind(kind) for kind in ([value] if isinstance(value, str) else value))


def state(value: str) -> State:
    """Return a state by its name."""
    try:
        return State(value)
    except ValueError:
        raise Invalid(f"not a state: {words.shown(value)}", hint=f"states are {', '.join(State)}") from None


def events(value: Iterable[str] | str) -> frozenset[str]:
    """Return one or several names of events as a set."""
    names = frozenset([value] if isinstance(value, str) else value)
    for name in names:
        if name not in EVENTS:
            raise Invalid(f"not an event: {words.shown(name)}", hint=f"events are {', '.join(EVENTS)}")
    return names


def limit(value: int) -> int:
    """Return a legal number of tasks for a list."""
    return draft.integer(value, "limit", 1, LIST_MOST)


def cursor(value: str | None) -> str | None:
    """Return a legal cursor of a list."""
    # After the id a store may add what it need not read again.
    id, *rest = (value or "").split(".")
    if value is not None and not (ids.is_id(id) and all(map(ids.is_word, rest))):
        raise Invalid(f"not a cursor: {words.shown(value)}", hint="give the 'next' of the page before")
    return value
