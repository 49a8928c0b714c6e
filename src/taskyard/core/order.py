"""The order of claims: the most urgent first, and among equals the oldest. Pure, and the only place with this rule.

With ageing, a level of priority is worth `ageing` seconds of age. After `ageing` seconds a waiting task draws level with a new one that
is one level more urgent; after twice that, with one that is two levels more urgent. Whichever of two tasks is first stays
first, however long both wait. Age counts from the creation of the task, which its id tells.
"""

from __future__ import annotations

from taskyard.core import ids

PRIORITIES = 10  # 0 to 9

Rank = tuple[int, str]


def rank(priority: int, id: str, ageing: float | None) -> Rank:
    """Return the key that sorts tasks in the order of claims."""
    if ageing is None:
        return priority, ids.age_key(id)
    return ids.ticks(id) + priority * level(ageing), ids.age_key(id)


def level(ageing: float) -> int:
    """Return how many ticks of an id's time one level of priority is worth."""
    return round(ageing * 1000 * ids.TICKS)


def first_age(passed: int, priority: int, ageing: float) -> str:
    """Return an age key: of this priority, no task that sorts before it has a rank of `passed` or more."""
    return ids.base32(max(0, passed - priority * level(ageing)), ids.TIME)


def is_old(id: str, now: int, ageing: float | None) -> bool:
    """Whether a task that uses several things has waited for so long that these are kept for it."""
    return ageing is not None and now - ids.created(id) > ageing * 1000


def cursor(id: str, priority: int) -> str:
    """Return the cursor of a list in the order of claims, after this task."""
    return f"{id}.{priority}"


def position(cursor: str | None) -> tuple[str, int] | None:
    """Return the task and the priority that a cursor names, or None for the beginning."""
    if cursor is None:
        return None
    id, priority, *_ = cursor.split(".")
    return id, int(priority)
