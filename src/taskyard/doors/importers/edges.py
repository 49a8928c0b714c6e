"""Which imported task comes after which: what the file says, and what it means to be a part of another task.

A task that has parts comes after them, and each part comes after what the whole comes after. So no worker begins a part too
early, and the whole is handed out last, to be finished. What the file says goes before that.
"""

from __future__ import annotations

from itertools import pairwise

from taskyard.core.draft import AFTER_MOST
from taskyard.core.plan import cycle
from taskyard.doors.importers.item import CANCELLED, DONE, ENDED, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.core.task import Task
    from taskyard.doors.importers.item import Found, Item

    After = dict[str, list[str]]

_EDGES_MOST = 500_000  # that are added for parts: beyond it a file is a trap, not a plan
_DROPPED_MOST = 100  # edges for parts that are taken back one by one to break cycles


def explicit(items: Mapping[str, Item], found: Found, outside: Mapping[str, Task], gone: Mapping[str, str]) -> After:
    """Return what each task comes after by the file's own words; note those that cannot be kept.

    `outside` are tasks of the yard by the file's words for them; `gone` are items that are not imported, with their states.
    """
    after: After = {}
    for one in items.values():
        kept = []
        for other in dict.fromkeys(one.after):
            if other in items or other in outside:
                kept.append(other)
            elif gone.get(other) != DONE:
                why = "which is not imported" if other in gone else "which is not in the file"
                if one.id not in outside:  # of what is known already, this was said before
                    found.note(one.place, f"{one.id} comes after {_said(other)}, {why}: left out")
                _keep_as_data(one, other)
        after[one.id] = kept
    _refuse_cycle(after, items)
    for one in items.values():
        if one.state in (DONE, FAILED):
            kept = [other for other in after[one.id] if other in items and items[other].state == DONE]
            for other in after[one.id]:
                if other not in kept:
                    _leave_out(one, other, None if one.id in outside else found)
            after[one.id] = kept
    return after


def _leave_out(one: Item, other: str, found: Found | None) -> None:
    """Leave out an edge of an ended task: it can only end here after what it comes after."""
    if found is not None:
        found.note(one.place, f"{one.id} is {one.state}, but comes after {_said(other)}, which is not done: left out")
    _keep_as_data(one, other)


def _keep_as_data(one: Item, other: str) -> None:
    one.rest.setdefault("depends_on", [])
    if isinstance(one.rest["depends_on"], list):
        one.rest["depends_on"].append(other)


def _refuse_cycle(after: After, items: Mapping[str, Item]) -> None:
    path = find_cycle(after)
    if path is not None:
        error = cycle([_said(id) for id in path])
        raise items[path[0]].place.refuse(error.message, error.hint)


def add_parts(after: After, items: Mapping[str, Item], found: Found) -> None:
    """Add the edges of parts and wholes to `after`; take back those that would close a cycle."""
    for one in items.values():
        if one.parent is not None and one.parent not in items:
            found.note(one.place, f"{one.id} is a part of {_said(one.parent)}, which is not imported: kept as data")
    added = _edges_of_parts(after, items)
    if len(added) > _EDGES_MOST:
        found.note(None, f"the parts would add more than {_EDGES_MOST} edges: their order is left out")
        return
    combined = {id: list(some) for id, some in after.items()}
    for later, first in added:
        if first not in combined[later] and len(combined[later]) < AFTER_MOST:
            combined[later].append(first)
    for _ in range(_DROPPED_MOST):
        path = find_cycle(combined)
        if path is None:
            break
        later, first = next(pair for pair in pairwise(path) if pair in added)
        combined[later].remove(first)
        found.note(items[later].place, f"{_said(later)} would come after {_said(first)} as a part of it: left out")
    else:
        found.note(None, "the parts come after one another in too many ways: only what the file says is kept")
        return
    after.update(combined)


def _edges_of_parts(after: After, items: Mapping[str, Item]) -> dict[tuple[str, str], None]:
    """Return the pairs (later, first) that parts and wholes mean."""
    added: dict[tuple[str, str], None] = {}
    for one in items.values():
        if len(added) > _EDGES_MOST:
            break
        above = one.parent
        if above is None or above not in items or above == one.id:
            continue
        if items[above].state not in ENDED and one.state not in (DONE, CANCELLED):
            added[above, one.id] = None
        seen = {one.id}
        while above is not None and above in items and above not in seen and one.state not in ENDED:
            seen.add(above)
            for first in after[above]:
                if first not in seen and first != one.id:
                    added[one.id, first] = None
            above = items[above].parent
    return added


def find_cycle(after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return a path of tasks that come after one another, which begins and ends with the same one; None if there is none."""
    state: dict[str, int] = {}  # 1 on the path, 2 known to be in no cycle
    for start in after:
        if start in state:
            continue
        path, rests = [start], [iter(after[start])]
        state[start] = 1
        while path:
            following = next(rests[-1], None)
            if following is None:
                state[path.pop()] = 2
                rests.pop()
            elif state.get(following) == 1:
                return [*path[path.index(following) :], following]
            elif following in after and following not in state:
                state[following] = 1
                path.append(following)
                rests.append(iter(after[following]))
    return None


def _said(id: str) -> str:
    return id if id.isprintable() and len(id) <= 60 else ascii(id)[:60]
