"""The tasks of a yard by age: a segment is listed when its turn has come, and a name is parsed when it is needed."""

from __future__ import annotations

import heapq
import itertools
from binascii import crc32
from operator import itemgetter

from taskyard.core import ids
from taskyard.core.words import encoded
from taskyard.stores.directory.names import ASSIGNED, Lane, Token, mission_digest
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.core.store_records import Query
    from taskyard.core.task import State
    from taskyard.stores.directory.tasks.segments import Segments

Place = tuple["State", str, "Lane | None", "list[str] | None"]

_age = itemgetter(slice(ids.SEGMENT, ids.LENGTH))  # `ids.age_key` of a name: the sort key for a large yard's names
_NAMED_MOST = 64  # segments that a cursor names one by one
_DIGEST = 4  # characters of the query's digest


class Walk:
    """Iterates over the tasks that fit a query, as far as their names show."""

    def __init__(
        self,
        names: Callable[[str], list[str]],
        segments: Segments,
        by_segment: dict[str, list[Place]],
        query: Query,
        hidden: frozenset[str],
        is_before_missions: Callable[[str], bool],
        cursor: str | None = None,
    ) -> None:
        """`cursor` is one that an earlier walk returned, or any id."""
        self._names = names
        self._segments = segments
        self._by_segment = by_segment
        self._query = query
        self._hidden = hidden
        self._is_before_missions = is_before_missions
        self._mission = None if query.mission is None else mission_digest(query.mission)
        self._holders = None if query.worker is None else (f".{encoded(query.worker)}-", f".{ASSIGNED}-")
        """What the name of a task may hold that this worker has or had: most others are passed over unparsed."""
        self._after, passed = "", ids.base32(0, ids.SEGMENT)
        self._digest = _digest(query)
        left: set[str] = set()
        if cursor is not None:
            id, *rest = cursor.split(".")
            self._after = ids.age_key(id)
            if len(rest) == 2 and rest[0] == self._digest:
                passed, *named = (rest[1][at : at + ids.SEGMENT] for at in range(0, len(rest[1]), ids.SEGMENT))
                left = set(named)
        self._unlisted = sorted((name for name in by_segment if name >= passed or name in left), reverse=True)
        self._listed: list[str] = []
        self._opened: dict[str, str] = {}
        self._numbers = itertools.count()
        self._ahead: list[tuple[str, int, str, Place, list[str]]] = []
        """For each listed folder the age of its oldest name, and all names, the oldest last."""

    def __iter__(self) -> Iterator[Found]:
        """Yield tasks oldest first. Segments are opened in turn, so a later one holds no task older than its opening."""
        while self._ahead or self._unlisted:
            while self._unlisted and (not self._ahead or self._opened_key(self._unlisted[-1]) <= self._ahead[0][0]):
                self._list(self._unlisted.pop())
            yield from filter(self._is_asked_for, self._oldest())

    def _is_asked_for(self, found: Found) -> bool:
        token, query = found.token, self._query
        if query.worker is not None and token.worker != query.worker:
            return False
        if self._mission not in (None, token.lane.mission) and (
            token.lane.mission is not None or not self._is_before_missions(token.id)
        ):
            return False
        return query.wants(token.lane.kind, token.lane.assignee) and token.lane.kind not in self._hidden

    def _opened_key(self, segment: str) -> str:
        key = self._opened.get(segment)
        if key is None:
            # A second of slack: the clock that stamped the segment and the one that stamped the task may differ by a tick.
            key = self._opened[segment] = ids.age_at(self._segments.opened(segment) - 1000)
        return key

    def _list(self, segment: str) -> None:
        self._listed.append(segment)
        for place in self._by_segment[segment]:
            names = self._names(place[1]) if place[3] is None else place[3]
            if self._holders is not None:
                own, assigned = self._holders
                names = [name for name in names if own in name or assigned in name]
            names = [name for name in names if _age(name) > self._after]
            if names:
                names.sort(key=_age, reverse=True)
                heapq.heappush(self._ahead, (_age(names[-1]), next(self._numbers), segment, place, names))

    def _oldest(self) -> Iterator[Found]:
        """Yield the oldest tasks; one that was seen twice has moved in between, and is where it was seen later."""
        seen: dict[str, Found] = {}
        oldest = self._ahead[0][0] if self._ahead else ""
        while self._ahead and self._ahead[0][0] == oldest:
            _, number, segment, place, names = self._ahead[0]
            name = names.pop()
            if names:
                heapq.heapreplace(self._ahead, (_age(names[-1]), number, segment, place, names))
            else:
                heapq.heappop(self._ahead)
            state, folder, lane, _ = place
            token = Token.parse(name, lane)
            if token is not None and (token.id not in seen or seen[token.id].token.fence <= token.fence):
                seen[token.id] = Found(state, (folder, name), token)
        yield from seen.values()

    def cursor(self, last: str, following: str) -> str:
        """Return where to go on after the last id of a page; `following` is the next id, which was read already.

        Beside the id it has the first segment with tasks left, and the earlier segments that have some as well, or take new
        tasks. So no page begins with listing all that came on the pages before it.
        """
        floor = self._unlisted[-1] if self._unlisted else max(self._listed, default="")
        left = {segment for _, _, segment, _, _ in self._ahead} | {following[: ids.SEGMENT]}
        named = sorted(
            segment
            for segment in self._listed
            if segment < floor and (segment in left or self._segments.takes_more(segment))
        )
        if len(named) > _NAMED_MOST:
            floor = named[_NAMED_MOST]
            del named[_NAMED_MOST:]
        if len(named) == sum(segment < floor for segment in self._by_segment):
            return last
        return f"{last}.{self._digest}.{floor}{''.join(named)}"


def _digest(query: Query) -> str:
    """Return a short digest of the query: a cursor is valid for the same query only."""
    states = sorted(query.states) if query.states is not None else None
    kinds = sorted(query.kinds) if query.kinds is not None else None
    asked = repr((states, kinds, query.mission, query.worker, query.taker)).encode("utf-8", "surrogatepass")
    return ids.base32(crc32(asked) % 32**_DIGEST, _DIGEST)
