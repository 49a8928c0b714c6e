"""One verb for many tasks: chosen by name or by filter, each moved by a compare-and-swap of its own."""

from __future__ import annotations

from taskyard.core import abandonment, moves, words
from taskyard.core.errors import Conflict, Invalid, NotFound
from taskyard.core.ids import age_key
from taskyard.core.store_records import Query
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.task import Standing, Task
    from taskyard.store import Store

    Decide = Callable[[Standing], Move]

OPEN = frozenset(state for state in State if not state.ended)
STATES = {
    "cancel": OPEN,
    "retry": frozenset((State.FAILED, State.CANCELLED, State.WAITING)),
    "release": frozenset((State.PROCESSING,)),
}  # which tasks a filter chooses for each verb, if it names no state
SHOWN = 5  # tasks that an answer describes
_PAGE = 1000  # tasks of one read
_SHARE = 100  # tasks that are moved together, and reported as progress
_TRIES = 20  # times that a decision is made anew because the task moved in between


def verb(name: str) -> str:
    """Return a legal verb."""
    if name not in STATES:
        raise Invalid(f"not a verb for many tasks: {words.shown(name)}", hint=f"verbs are {', '.join(STATES)}")
    return name


def decide(name: str, reason: str | None, retried: Decide) -> Decide:
    """Return the function that decides the move of each task; `retried` is that of a retry."""
    if name == "cancel":
        return lambda standing: moves.cancelled(standing, reason)
    if name == "release":
        return lambda standing: moves.released(standing, reason=reason)
    return retried


class Choice:
    """The tasks that a verb is for: their ids, oldest first, and the states and the holder that they must still have."""

    def __init__(self, ids: list[str], first: list[Task], states: frozenset[State] | None, worker: str | None) -> None:
        self.ids = ids
        self.first = first
        self.states = states
        self.worker = worker
        self.together = False
        """Whether the moves do not depend on one another."""

    def strayed(self, standing: Standing) -> str | None:
        """Return why a task is no longer meant, though it was when it was chosen; else None."""
        if self.states is not None and standing.state not in self.states:
            return f"task {standing.short} is {standing.state} now"
        if self.worker is not None and standing.worker != self.worker:
            return f"task {standing.short} is no longer with {self.worker}"
        return None


def named(store: Store, ids: Sequence[str]) -> Choice:
    """Return the choice of these whole ids; raise `NotFound` if one of them is no task."""
    unique = list(dict.fromkeys(ids))
    tasks = {task.id: task for task in store.find(Query(ids=unique))[0]}
    for id in unique:
        if id not in tasks:
            store.stand(id)
    return Choice(unique, [tasks[id] for id in unique[:SHOWN] if id in tasks], None, None)


def matching(store: Store, query: Query, most: int | None) -> Choice:
    """Return the choice of all tasks of this list, or of the oldest `most` of them."""
    ids: list[str] = []
    first: list[Task] = []
    query.limit = _PAGE
    while most is None or len(ids) < most:
        page, query.cursor = store.find(query)
        first += page[: SHOWN - len(first)]
        ids += [task.id for task in page]
        if query.cursor is None:
            break
    return Choice(ids[:most], first, query.states, query.worker)


class Outcome:
    """What became of the tasks."""

    def __init__(self) -> None:
        self.changed = 0
        self.refused: dict[str, str] = {}


def apply(
    store: Store, choice: Choice, decided: Decide, by: str, progress: Callable[[int, int], object] | None
) -> Outcome:
    """Move each task that still is as it was chosen; one that has moved on, or cannot be moved so, is refused.

    Cancels are made many at a time. Retries are not: one may be possible only because the task before was retried.
    """
    outcome = Outcome()
    for start in range(0, len(choice.ids), _SHARE):
        abandonment.check_between_moves()
        share = choice.ids[start : start + _SHARE]
        moved = _together(store, share, choice, decided, by) if choice.together else set()
        for id in share:
            why = None if id in moved else _refusal(store, id, choice, decided, by)
            if why is None:
                outcome.changed += 1
            else:
                outcome.refused[id] = why
        if progress is not None:
            progress(start + len(share), len(choice.ids))
    return outcome


def _together(store: Store, share: Sequence[str], choice: Choice, decided: Decide, by: str) -> set[str]:
    """Move as many of these tasks as possible by one call of the store, and return the ids of those that moved."""
    shifts = []
    for standing in store.upkeep.stand_all(share).values():
        if choice.strayed(standing) is None:
            try:
                shifts.append((standing, decided(standing)))
            except Conflict:
                continue
    made = store.shift(shifts, by) if shifts else []
    return {standing.id for (standing, _), was in zip(shifts, made, strict=True) if was}


def _refusal(store: Store, id: str, choice: Choice, decided: Decide, by: str) -> str | None:
    """Move the task, and return None; or return why it was left as it is."""
    for _ in range(_TRIES):
        try:
            standing = store.stand(id)
            strayed = choice.strayed(standing)
            if strayed is not None:
                return strayed
            if store.shift([(standing, decided(standing))], by)[0]:
                return None
        except (Conflict, NotFound) as error:
            return error.message
    return "the task keeps moving under other hands; try again"


def order(choice: Choice, name: str) -> Choice:
    """Return the choice in the order to move it: a cancel begins with the followers, so that no cancel cascades."""
    if name == "cancel":
        choice.ids.reverse()
        choice.together = True
    return choice


def _age(refused: tuple[str, str]) -> str:
    return age_key(refused[0])


def answer(choice: Choice, outcome: Outcome | None) -> dict[str, Any]:
    """Return what was chosen and what was done, as plain data."""
    done = outcome or Outcome()
    return {
        "count": len(choice.ids),
        "changed": done.changed,
        "refused": [{"id": id, "reason": reason} for id, reason in sorted(done.refused.items(), key=_age)],
        "tasks": [task.as_line() for task in choice.first],
        "applied": outcome is not None,
    }
