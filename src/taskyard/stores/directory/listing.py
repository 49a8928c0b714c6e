"""Lists and counts over the whole yard, oldest first, listing only the segments that a page needs."""

from __future__ import annotations

import heapq

from taskyard import ids
from taskyard.stores.directory.lookup import Found
from taskyard.stores.directory.names import Lane, Token, counted_lane
from taskyard.stores.directory.segments import Segments
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.store import Query
    from taskyard.stores.directory.ground import Ground

# The order in which tasks move: one that moves while it is listed is rather seen twice than not at all.
_FLOW = (State.BLOCKED, State.TODO, State.WAITING, State.PROCESSING, State.CANCELLED, State.FAILED, State.DONE)
_BY_SEGMENT = (State.BLOCKED, State.DONE, State.FAILED, State.CANCELLED)

Place = tuple[State, str, "Lane | None", "list[str] | None"]


class Listing:
    """Walks the yard's directories."""

    def __init__(self, ground: Ground) -> None:
        self._disk = ground.disk
        self._lookup = ground.lookup
        self._segments = Segments(ground)
        self._root = ground.root

    def oldest_first(self, query: Query, hidden: frozenset[str]) -> Iterator[Found]:
        """Tasks by age that the names alone let through; a segment is listed only when its turn has come.

        Segments are opened one after the other, so a later one holds no task older than its opening.
        """
        by_segment = self._places(query)
        waiting = sorted(by_segment, reverse=True)
        heap: list[tuple[str, int, Found]] = []
        count = 0
        while heap or waiting:
            while waiting and (not heap or self._opened_key(waiting[-1]) <= heap[0][0]):
                for found in self._tasks(by_segment[waiting.pop()]):
                    if _passes(query, found) and found.token.lane.kind not in hidden:
                        heapq.heappush(heap, (ids.age_key(found.token.id), count, found))
                        count += 1
            if heap:
                yield heapq.heappop(heap)[2]

    def _opened_key(self, segment: str) -> str:
        # A second of slack: the clock that stamped the segment and the one that stamped the task may differ by a tick.
        return ids.age_at(self._segments.opened(segment) - 1000)

    def _tasks(self, places: list[Place]) -> Iterator[Found]:
        seen: dict[str, Found] = {}
        for state, folder, lane, names in places:
            for name in self._lookup.names(folder) if names is None else names:
                token = Token.parse(name, lane)
                if token is not None and (token.id not in seen or seen[token.id].token.fence <= token.fence):
                    seen[token.id] = Found(state, (folder, name), token)
        yield from seen.values()

    def _places(self, query: Query) -> dict[str, list[Place]]:
        """For each segment the folders that hold tasks of it, as far as the query can want them."""
        places: dict[str, list[Place]] = {}
        self._disk.listdir(f"{self._root}/processing")  # a yard that is gone is not an empty one
        for state in State if query.states is None else query.states:
            if state is State.TODO:
                for text in self._lookup.names(f"{self._root}/todo"):
                    lane = Lane.parse(text)
                    if lane is not None and _serves(query, lane):
                        self._gather(places, state, f"{self._root}/todo/{text}", lane)
            elif state is State.WAITING:
                for bucket in self._lookup.names(f"{self._root}/waiting"):
                    self._gather(places, state, f"{self._root}/waiting/{bucket}", None)
            elif state is State.PROCESSING:
                self._gather_running(places)
            else:
                self._gather(places, state, f"{self._root}/{state}", None)
        for segment in places.values():
            segment.sort(key=lambda place: _FLOW.index(place[0]))
        return places

    def _gather_running(self, places: dict[str, list[Place]]) -> None:
        folder = f"{self._root}/processing"
        running: dict[str, list[str]] = {}
        for name in self._lookup.names(folder):
            running.setdefault(name[: ids.SEGMENT], []).append(name)
        for segment, names in running.items():
            places.setdefault(segment, []).append((State.PROCESSING, folder, None, names))

    def _gather(self, places: dict[str, list[Place]], state: State, folder: str, lane: Lane | None) -> None:
        for segment in self._lookup.names(folder):
            if ids.is_segment(segment):
                places.setdefault(segment, []).append((state, f"{folder}/{segment}", lane, None))

    def counts(self) -> dict[str, dict[str, int]]:
        """How many tasks there are by kind and state, from the names alone."""
        lanes: dict[tuple[State, str], int] = {}
        for text in self._disk.listdir(f"{self._root}/todo"):
            for segment in self._lookup.names(f"{self._root}/todo/{text}"):
                names = self._lookup.names(f"{self._root}/todo/{text}/{segment}")
                number = sum(counted_lane(name) == "" for name in names)
                lanes[State.TODO, text] = lanes.get((State.TODO, text), 0) + number
        for state, folder in self._named_folders():
            for name in self._lookup.names(folder):
                named = counted_lane(name)
                if named:
                    lanes[state, named] = lanes.get((state, named), 0) + 1
        counts: dict[str, dict[str, int]] = {}
        for (state, text), number in lanes.items():
            lane = Lane.parse(text)
            if lane is not None and number:
                row = counts.setdefault(lane.kind, {})
                row[state] = row.get(state, 0) + number
        return counts

    def _named_folders(self) -> Iterator[tuple[State, str]]:
        for bucket in self._lookup.names(f"{self._root}/waiting"):
            for segment in self._lookup.names(f"{self._root}/waiting/{bucket}"):
                yield State.WAITING, f"{self._root}/waiting/{bucket}/{segment}"
        yield State.PROCESSING, f"{self._root}/processing"
        for state in _BY_SEGMENT:
            for segment in self._lookup.names(f"{self._root}/{state}"):
                yield state, f"{self._root}/{state}/{segment}"

    def shorten(self, wanted: list[str]) -> list[str]:
        """The shortest beginning of each id that no other task shares."""
        neighbours: dict[str, list[str]] = {}
        for segment in {id[: ids.SEGMENT] for id in wanted}:
            neighbours[segment] = sorted(self._lookup.matching(segment))
        return [_shortest(id, neighbours[id[: ids.SEGMENT]]) for id in wanted]


def _shortest(id: str, ordered: list[str]) -> str:
    from bisect import bisect_left

    at = bisect_left(ordered, id)
    beside = [other for other in ordered[max(0, at - 1) : at + 2] if other != id]
    shared = max(
        (next(at for at, pair in enumerate(zip(id, other, strict=True)) if pair[0] != pair[1]) for other in beside),
        default=0,
    )
    return id[: max(ids.SEGMENT, shared + 1)]


def _serves(query: Query, lane: Lane) -> bool:
    if query.kinds is not None and lane.kind not in query.kinds:
        return False
    return query.taker is None or lane.assignee is None or lane.assignee == query.taker


def _passes(query: Query, found: Found) -> bool:
    token = found.token
    if query.cursor is not None and ids.age_key(token.id) <= ids.age_key(query.cursor):
        return False
    if query.worker is not None and token.worker != query.worker:
        return False
    return _serves(query, token.lane)
