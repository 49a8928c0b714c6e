"""Ended tasks in the order in which they ended, found without a look at each of them.

No task of a segment has ended before the segment was opened, nor before the oldest task in the folder was made. So folders
are looked into from the oldest on, and only until what is left cannot have ended before what was found.
"""

from __future__ import annotations

from heapq import heappop, heappush

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.names import SUFFIX, Token
from taskyard.stores.directory.tasks.locate import NO_FOLDER, Found
from taskyard.stores.directory.tasks.segments import SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.segments import Segments

ENDED = (State.DONE, State.FAILED, State.CANCELLED)
_SLACK = 1000  # milliseconds by which the time in an id may be ahead of the filesystem's


class Glance:
    """What is known of one folder of ended tasks, for as long as nothing is moved into it or out of it."""

    __slots__ = ("changed", "count", "since")

    def __init__(self, changed: int, count: int, since: int) -> None:
        self.changed = changed
        self.count = count
        self.since = since  # milliseconds: none of its tasks has ended before


class Endings:
    """Counts ended tasks, and gives them one by one, those that ended first at the front."""

    def __init__(self, context: Context, segments: Segments) -> None:
        self._disk = context.disk
        self._root = context.root
        self._locator = context.locator
        self._segments = segments
        self._glances: dict[str, Glance] = {}

    def count(self, beyond: int) -> int:
        """How many tasks have ended; 0 where there cannot be more than `beyond`, which is cheap to tell."""
        folders = [folder for some in self._folders().values() for folder, _ in some]
        if len(folders) * SIZE <= beyond:
            return 0
        self._glances = {folder: self._glances[folder] for folder in folders if folder in self._glances}
        return sum(self._glance(folder).count for folder in folders)

    def oldest_first(self, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Found]]:
        """Tasks and when they ended, as long as one that ended at such a moment is wanted."""
        folders = self._folders()
        segments = iter(sorted(folders))
        # A segment, a folder or a task, each with a moment before which there is nothing in it; what is a task has a name.
        heap: list[tuple[int, str, str, str, str]] = []
        self._push_segment(heap, next(segments, None))
        while heap:
            moment, _, name, folder, state = heappop(heap)
            if not wanted(moment):
                return
            if not state:
                for inner, ended in folders[folder]:
                    heappush(heap, (self._glance(inner).since, "", "", inner, ended))
                self._push_segment(heap, next(segments, None))
            elif not name:
                for entry in self._moments(folder):
                    heappush(heap, (entry[0], ids.age_key(entry[1]), entry[1], folder, state))
            else:
                token = Token.parse(name)
                if token is not None:
                    yield moment, Found(State(state), (folder, name), token)

    def _push_segment(self, heap: list[tuple[int, str, str, str, str]], segment: str | None) -> None:
        """Segments are opened one after the other, so the next one is looked at when this one's time has come."""
        if segment is not None:
            heappush(heap, (self._segments.opened(segment) - _SLACK, "", "", segment, ""))

    def _folders(self) -> dict[str, list[tuple[str, State]]]:
        """The folders of ended tasks, by segment."""
        folders: dict[str, list[tuple[str, State]]] = {}
        for state in ENDED:
            for segment in filter(ids.is_segment, self._locator.names(f"{self._root}/{state}")):
                folders.setdefault(segment, []).append((f"{self._root}/{state}/{segment}", state))
        return folders

    def _glance(self, folder: str) -> Glance:
        """What is known of the folder, after another look if it has changed."""
        try:
            changed = self._disk.changed(folder)
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise
            return Glance(0, 0, 0)
        known = self._glances.get(folder)
        if known is None or known.changed != changed:
            names = self._tasks(folder)
            since = ids.created(min(names)) - _SLACK if names else 0
            known = self._glances[folder] = Glance(changed, len(names), since)
        return known

    def _moments(self, folder: str) -> list[tuple[int, str]]:
        """When each task of this folder ended, by its file's ctime."""
        glance = self._glance(folder)
        moments = []
        for name in self._tasks(folder):
            try:
                moments.append((self._disk.changed_at(f"{folder}/{name}"), name))
            except FileNotFoundError:
                continue  # retried by hand just now
        if moments:
            glance.since = min(moments)[0]
        return moments

    def _tasks(self, folder: str) -> list[str]:
        segment = folder[-ids.SEGMENT :]
        return [
            name
            for name in self._locator.names(folder)
            if name.startswith(segment) and name.endswith(SUFFIX) and ids.is_id(name[: ids.LENGTH])
        ]
