"""Lists and counts over the whole yard, oldest first, listing only the segments that a page needs."""

from __future__ import annotations

import errno
import os

from taskyard.core import ids
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.stores.directory.names import CLOSED, Lane, begins_with_id, counted_lane, resource_digest, waits_for
from taskyard.stores.directory.tasks.segments import Segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.by_age import Place, Walk

# The order in which tasks move: a task that moves during the listing is seen twice rather than not at all.
_FLOW = (State.BLOCKED, State.TODO, State.WAITING, State.PROCESSING, State.CANCELLED, State.FAILED, State.DONE)
_BY_SEGMENT = (State.BLOCKED, State.DONE, State.FAILED, State.CANCELLED)


class Listing:
    """Walks the yard's directories."""

    def __init__(self, context: Context) -> None:
        self._disk = context.disk
        self._locator = context.locator
        self._closed = context.ready_cache.closed
        self._segments = Segments(context)
        self._root = context.root

    def oldest_first(
        self, query: Query, hidden: frozenset[str], in_use: Callable[[], frozenset[str]] | None = None
    ) -> Walk:
        """Return tasks by age that the names alone let through, without folders of tasks that wait for a resource in use."""
        from taskyard.stores.directory.tasks.by_age import Walk  # a claim looks up a short name here, and does without

        names = self._locator.names if query.taker is None else self._usable
        return Walk(names, self._segments, self._places(query, in_use), query, hidden)

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

    def _places(self, query: Query, in_use: Callable[[], frozenset[str]] | None = None) -> dict[str, list[Place]]:
        """Return for each segment the folders that may hold its tasks, as far as the query can want them."""
        places: dict[str, list[Place]] = {}
        self._disk.listdir(f"{self._root}/processing")  # raises if the yard is gone: that is not an empty yard
        for state in State if query.states is None else query.states:
            if state is State.TODO:
                for text, lane in self._lanes(in_use):
                    if query.wants(lane.kind, lane.assignee):
                        names = self._locator.names if query.taker is None else self._listed
                        self._gather(places, state, f"{self._root}/todo/{text}", lane, names)
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

    def _lanes(self, in_use: Callable[[], frozenset[str]] | None) -> Iterator[tuple[str, Lane]]:
        """Yield the folders of lanes in todo/; with `in_use`, without those of tasks that wait for a resource in use."""
        busy: set[str] | None = None
        for text in self._locator.names(f"{self._root}/todo"):
            lane, digest = Lane.of_folder(text), waits_for(text)
            if lane is None:
                continue
            if digest is not None and in_use is not None:
                busy = set(map(resource_digest, in_use())) if busy is None else busy
                if digest in busy:
                    continue
            yield text, lane

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

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many tasks there are by kind and state, from the names alone."""
        lanes: dict[tuple[State, str], int] = {}
        for text in self._disk.listdir(f"{self._root}/todo"):
            for segment in self._locator.names(f"{self._root}/todo/{text}"):
                names = self._locator.names(f"{self._root}/todo/{text}/{segment}")
                number = sum(counted_lane(name) == "" for name in names)
                lanes[State.TODO, text] = lanes.get((State.TODO, text), 0) + number
        for state, folder in self._named_folders():
            for name in self._locator.names(folder):
                named = counted_lane(name)
                if named:
                    lanes[state, named] = lanes.get((state, named), 0) + 1
        for found in self._locator.moved.held():
            held = (State.PROCESSING, found.token.lane.text)
            lanes[held] = lanes.get(held, 0) + 1
        counts: dict[str, dict[str, int]] = {}
        for (state, text), number in lanes.items():
            lane = Lane.of_folder(text)
            if lane is not None and number:
                row = counts.setdefault(lane.kind, {})
                row[state] = row.get(state, 0) + number
        return counts

    def _named_folders(self) -> Iterator[tuple[State, str]]:
        for bucket in self._locator.names(f"{self._root}/waiting"):
            for segment in self._locator.names(f"{self._root}/waiting/{bucket}"):
                yield State.WAITING, f"{self._root}/waiting/{bucket}/{segment}"
        yield State.PROCESSING, f"{self._root}/processing"
        for state in _BY_SEGMENT:
            for segment in self._locator.names(f"{self._root}/{state}"):
                yield state, f"{self._root}/{state}/{segment}"

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """Return the short name of each id, by listing the ids' own segments."""
        if len(wanted) == 1:
            [id] = wanted
            return ids.shorten(wanted, self._locator.ids_of(id[: ids.SEGMENT], id[-ids.SHORT :]))
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
