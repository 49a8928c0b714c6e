"""The arguments of a yard's verbs, checked; and the lists that verbs return."""

from __future__ import annotations

from taskyard.core import draft, ids, order, task_names, words
from taskyard.core.errors import Invalid
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.core.yard_events import TEAM_EVENTS, YARD_EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.task import Task

LIST_MOST = 10_000
EVENTS_MOST = 100_000
EVENTS = (
    "added", "claimed", "released", "done", "failed", "reaped", "retried", "due", "blocked", "unblocked", "cancelled",
    "edited", "noted", "refused", "set_aside", *YARD_EVENTS, *TEAM_EVENTS,
)  # fmt: skip


task_id = task_names.task_id


def whole_id(value: object) -> str:
    """Return a whole id of a task."""
    if isinstance(value, str) and ids.is_id(value):
        return value
    raise Invalid(
        f"not a whole id: {words.shown(value)}", hint="give ids as lists print them; 'get' also takes short names"
    )


class Page(list["Task"]):
    """Tasks of one list, and the cursor to go on from (`next`, None at the end)."""

    next: str | None = None


class Added(list[str]):
    """The ids of added tasks, and how many of them are new: a known key returns the task that has it."""

    created: int = 0
    spooled: bool = False
    """Whether they are kept in the spool, because the yard's server is away."""


class Inputs(dict[str, "Any"]):
    """The results of the tasks that one comes after and that are done, by id."""

    left_out: int = 0
    """How many of those tasks were not read, because the results before theirs were as much as one task is handed."""


class Events(list[dict[str, "Any"]]):
    """Events in their order, and the cursor to go on from."""

    cursor: str = ""


def kinds(value: Iterable[str] | str) -> frozenset[str]:
    """Return one kind or several as a set."""
    return frozenset(map(words.kind, words.several(value, "kind")))


def state(value: str) -> State:
    """Return a state by its name."""
    try:
        return State(value)
    except ValueError:
        raise Invalid(f"not a state: {words.shown(value)}", hint=f"states are {', '.join(State)}") from None


def _states(value: Iterable[str] | str) -> frozenset[State]:
    """Return one state or several as a set."""
    return frozenset(map(state, words.several(value, "state")))


def query(
    state: Iterable[str] | str | None,
    kind: Iterable[str] | str | None,
    mission: str | None,
    worker: str | None,
    *,
    states: frozenset[State] | None = None,
) -> Query:
    """Return the query of these filters; without a state, the tasks in `states`."""
    return Query(
        states if state is None else _states(state),
        None if kind is None else kinds(kind),
        None if mission is None else words.text(mission, "mission"),
        None if worker is None else words.worker(worker),
    )


def events(value: Iterable[str] | str) -> frozenset[str]:
    """Return one or several names of events as a set."""
    names = words.several(value, "event")
    for name in names:
        if name not in EVENTS:
            raise Invalid(f"not an event: {words.shown(name)}", hint=f"events are {', '.join(EVENTS)}")
    return frozenset(names)


def resumed(named: str | None, worker: str | None) -> str:
    """Return whose claims a `resume` takes again: those of `worker`, else of the name that was given to this process."""
    name = named if worker is None else words.worker(worker)
    if name is None:
        raise Invalid("resume needs a worker's name", hint="say --worker NAME, or set TASKYARD_WORKER")
    return name


def limit(value: int) -> int:
    """Return a legal number of tasks for a list."""
    return draft.integer(value, "limit", 1, LIST_MOST)


def cursor(value: str | None) -> str | None:
    """Return a legal cursor of a list by age."""
    # After the id a store may add what it need not read again.
    id, *rest = (value or "").split(".")
    if value is not None and not (ids.is_id(id) and all(map(ids.is_word, rest))):
        raise Invalid(f"not a cursor: {words.shown(value)}", hint="give the cursor that the page before ended with")
    return value


def ready_cursor(value: str | None) -> str | None:
    """Return a legal cursor of a list in the order of claims, which has the priority after the id."""
    if value is not None and (cursor(value) or "").split(".")[1:2] not in _PRIORITIES:
        raise Invalid(
            f"not a cursor of 'ready': {words.shown(value)}", hint="give the cursor that the page before ended with"
        )
    return value


_PRIORITIES = [[str(priority)] for priority in range(order.PRIORITIES)]
