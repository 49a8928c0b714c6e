"""Lists and counts over the whole yard, oldest first, listing only the segments that a page needs."""

from __future__ import annotations

import errno
import os

from taskyard.core import ids
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.stores.directory.names import (
    CLOSED,
    Lane,
    begins_with_id,
    counted_lane,
    mission_digest,
    resource_digest,
    waits_for,
)
from taskyard.stores.directory.tasks.segments import Segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.by_age import Place, Walk
    from taskyard.stores.directory.tasks.by_claim import ClaimOrder

# The order in which tasks move: a task that moves during the listing is seen twice rather than not at all.
_FLOW = (State.BLOCKED, State.TODO, State.WAITING, State.PROCESSING, State.CANCELLED, State.FAILED, State.DONE)


class Listing:
    """Walks the yard's directories."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._locator = context.locator
        self._closed = context.ready_cache.closed
        self._segments = Segments(context)
        self._root = context.root

    def oldest_first(self, query: Query) -> Walk:
        """Return tasks by age that the names alone let through."""
        from taskyard.stores.directory.tasks.by_age import Walk  # a claim looks up a short name here, and does without

        return Walk(
            self._locator.names,
            self._segments,
            self._places(query),
            query,
            frozenset(),
            self._context.is_before_missions,
            query.cursor,
        )

    def in_claim_order(
        self, query: Query, hidden: frozenset[str], in_use: frozenset[str], ageing: float | None
    ) -> ClaimOrder:
        """Return tasks in todo in the order of claims, without `hidden` kinds and lanes that wait for a resource in use."""
        from taskyard.stores.directory.tasks.by_claim import ClaimOrder

        busy = set(map(resource_digest, in_use))
        mission = None if query.mission is None else mission_digest(query.mission)
        levels: dict[int, list[tuple[str, Lane]]] = {}
        self._disk.listdir(f"{self._root}/processing")  # raises if the yard is gone: that is not an empty yard
        for text in self._locator.names(f"{self._root}/todo"):
            lane, digest = Lane.of_folder(text), waits_for(text)
            if lane is None or digest in busy or not query.wants(lane.kind, lane.assignee):
                continue
            if mission is None or self._may_hold(lane, mission):
                levels.setdefault(lane.priority, []).append((text, lane))

        def walk(priority: int, cursor: str | None) -> Walk:
            from taskyard.stores.directory.tasks.by_age import Walk

            places: dict[str, list[Place]] = {}
            for text, lane in levels[priority]:
                self._gather(places, State.TODO, f"{self._root}/todo/{text}", lane, self._listed)
            return Walk(self._usable, self._segments, places, query, hidden, self._context.is_before_missions, cursor)

        return ClaimOrder(walk, sorted(levels), query.cursor, ageing)

    def _usable(self, folder: str) -> list[str]:
        """List what a claim could take from this folder; return nothing, and note the folder, if the system refuses that."""
        names = self._listed(folder)
        if names and not self._disk.may_change(folder) and self._disk.may_change(f"{self._root}/processing"):
            self._closed[folder] = os.strerror(errno.EACCES)
            return []
        return names

    def _listed(self, folder: str) -> list[str]:
        """List the folder; skip and note one that the system refuses, as claims do."""
        try:
            names = self._locator.names(folder)
        except OSError as error:
            if error.errno not in CLOSED:
                raise
            self._closed[folder] = str(error.strerror)
            return []
        self._closed.pop(folder, None)
        return names

    def _places(self, query: Query) -> dict[str, list[Place]]:
        """Return for each segment the folders that may hold its tasks, as far as the query can want them."""
        places: dict[str, list[Place]] = {}
        digest = None if query.mission is None else mission_digest(query.mission)
        self._disk.listdir(f"{self._root}/processing")  # raises if the yard is gone: that is not an empty yard
        for state in State if query.states is None else query.states:
            if state is State.TODO:
                for text in self._locator.names(f"{self._root}/todo"):
                    lane = Lane.of_folder(text)
                    if lane is None or (digest is not None and not self._may_hold(lane, digest)):
                        continue
                    if query.wants(lane.kind, lane.assignee):
                        self._gather(places, state, f"{self._root}/todo/{text}", lane)
            elif state is State.WAITING:
                for bucket in self._locator.names(f"{self._root}/waiting"):
                    self._gather(places, state, f"{self._root}/waiting/{bucket}", None)
            elif state is State.PROCESSING:
                self._gather_running(places)
            else:
                self._gather(places, state, f"{self._root}/{state}", None)
        for segment in places.values():
            segment.sort(key=lambda place: _FLOW.index(place[0]))
        return places

    def _may_hold(self, lane: Lane, digest: str) -> bool:
        """Whether tasks of the mission can be in this lane."""
        return lane.mission == digest or (lane.mission is None and self._context.has_tasks_before_missions())

    def _gather_running(self, places: dict[str, list[Place]]) -> None:
        folder = f"{self._root}/processing"
        running: dict[str, list[str]] = {}
        for name in self._locator.names(folder):
            running.setdefault(name[: ids.SEGMENT], []).append(name)
        for segment, names in running.items():
            places.setdefault(segment, []).append((State.PROCESSING, folder, None, names))
        for found in self._locator.moved.given_back():
            folder, name = found.place
            if begins_with_id(name):
                places.setdefault(name[: ids.SEGMENT], []).append((State.PROCESSING, folder, None, [name]))

    def _gather(
        self,
        places: dict[str, list[Place]],
        state: State,
        folder: str,
        lane: Lane | None,
        names: Callable[[str], list[str]] | None = None,
    ) -> None:
        for segment in (names or self._locator.names)(folder):
            if ids.is_segment(segment):
                places.setdefault(segment, []).append((state, f"{folder}/{segment}", lane, None))

    def by_lane(self) -> Iterator[tuple[State, str, str, Lane]]:
        """Yield state, folder, name and lane of every task, by the names alone; one that moves meanwhile may come twice."""
        for state, folder, lane in self._folders_in_flow():
            for name in self._locator.names(folder):
                text = counted_lane(name)
                own = lane if text == "" else Lane.parse(text or "")
                if own is not None:
                    yield state, folder, name, own
        for found in self._locator.moved.held():
            yield State.PROCESSING, *found.place, found.token.lane

    def _folders_in_flow(self) -> Iterator[tuple[State, str, Lane | None]]:
        places = self._places(Query())
        for state in _FLOW:
            if state is State.PROCESSING:
                yield state, f"{self._root}/processing", None
            for segment in places.values():
                for own, folder, lane, names in segment:
                    if own is state and names is None:
                        yield state, folder, lane

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """Return the short name of each id, by listing the ids' own segments."""
        segments = {id[: ids.SEGMENT] for id in wanted}
        return ids.shorten(wanted, self._ids_of(segments))

    def _ids_of(self, segments: set[str]) -> Iterator[str]:
        if len(segments) == 1:
            yield from self._locator.ids_of(*segments)
            return
        # One walk over the lanes finds the folders of many segments: a lookup of each in each lane would cost their product.
        places = self._places(Query()) if segments else {}
        for segment in segments:
            for _, folder, _, names in places.get(segment, ()):
                for name in self._locator.names(folder) if names is None else names:
                    yield name[: ids.LENGTH]
