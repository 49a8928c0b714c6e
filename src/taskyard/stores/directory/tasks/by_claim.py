"""The tasks in todo/ in the order of claims: the lanes of one priority after the other, or with ageing all of them merged."""

from __future__ import annotations

import heapq

from taskyard.core import ids, order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.stores.directory.tasks.by_age import Walk
    from taskyard.stores.directory.tasks.locate import Found

_BEGINNING = "0" * ids.LENGTH  # an id that sorts before all tasks


class ClaimOrder:
    """Iterates over tasks in the order of claims. A lane is listed when its turn has come, so a page costs what it shows."""

    def __init__(
        self,
        walk: Callable[[int, str | None], Walk],
        priorities: list[int],
        cursor: str | None,
        ageing: float | None,
    ) -> None:
        """`walk` returns the tasks of one priority by age, from a cursor of `Walk` on."""
        self._walk = walk
        self._priorities = priorities
        self._cursor = cursor
        self._ageing = ageing
        self._current: Walk | None = None

    def __iter__(self) -> Iterator[Found]:
        """Yield tasks in the order of claims, after the cursor."""
        return self._strict() if self._ageing is None else self._merged(self._ageing)

    def _strict(self) -> Iterator[Found]:
        last = order.position(self._cursor)
        for priority in self._priorities:
            if last is None or priority > last[1]:
                self._current = self._walk(priority, None)
            elif priority == last[1]:
                id, _, *rest = (self._cursor or "").split(".")
                self._current = self._walk(priority, ".".join((id, *rest)))
            else:
                continue
            yield from self._current

    def _merged(self, ageing: float) -> Iterator[Found]:
        last = order.position(self._cursor)
        passed = None if last is None else order.rank(last[1], last[0], ageing)

        def rank(found: Found) -> order.Rank:
            return order.rank(found.token.lane.priority, found.token.id, ageing)

        walks = []
        for priority in self._priorities:
            # Of the lowest age key with that time, so that none that is to come is left out; the rank decides.
            first = None if passed is None else order.first_age(passed[0], priority, ageing)
            cursor = None if first is None else _BEGINNING[: ids.SEGMENT] + first.ljust(ids.LENGTH - ids.SEGMENT, "0")
            walks.append(self._walk(priority, cursor))
        for found in heapq.merge(*walks, key=rank):
            if passed is None or rank(found) > passed:
                yield found

    def cursor(self, last: Found, following: Found) -> str:
        """Return where to go on after the last task of a page; `following` is the next one, which was read already."""
        priority = last.token.lane.priority
        if self._ageing is not None or self._current is None:
            return order.cursor(last.token.id, priority)
        if following.token.lane.priority != priority:
            return order.cursor(_BEGINNING, following.token.lane.priority)
        id, *rest = self._current.cursor(last.token.id, following.token.id).split(".")
        return ".".join((order.cursor(id, priority), *rest))
