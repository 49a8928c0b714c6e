"""Find ended tasks in the order in which they ended, without reading each of them.

No task of a segment has ended before the segment was opened, nor before the oldest task in its folder was added. So folders
are read from the oldest on, until no task in the rest can have ended before those that were found.
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


class FolderSummary:
    """The count and age of one folder's ended tasks; valid until the folder changes."""

    __slots__ = ("changed", "count", "since")

    def __init__(self, changed: int, count: int, since: int) -> None:
        self.changed = changed
        self.count = count
        self.since = since
        """Milliseconds since 1970; none of its tasks has ended before."""


class EndedTasks:
    """Counts ended tasks, and yields them in the order in which they ended."""

    def __init__(self, context: Context, segments: Segments) -> None:
        self._disk = context.disk
        self._root = context.root
        self._locator = context.locator
        self._segments = segments
        self._summaries: dict[str, FolderSummary] = {}

    def count(self, beyond: int) -> int:
        """Return how many tasks have ended; 0 if the number of folders shows that there are at most `beyond`."""
        folders = [folder for some in self._folders().values() for folder, _ in some]
        if len(folders) * SIZE <= beyond:
            return 0
        self._summaries = {folder: self._summaries[folder] for folder in folders if folder in self._summaries}
        return sum(self._summary(folder).count for folder in folders)

    def oldest_first(self, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Found]]:
        """Yield the time of the ending and the task, until `wanted` returns False for a time."""
        folders = self._folders()
        segments = iter(sorted(folders))
        # Segments, folders and tasks, each with the earliest time of an ending in it; a segment has no state, a task a name.
        heap: list[tuple[int, str, str, str, str]] = []
        self._push_segment(heap, next(segments, None))
        while heap:
            moment, _, name, folder, state = heappop(heap)
            if not wanted(moment):
                return
            if not state:
                for inner, ended in folders[folder]:
                    heappush(heap, (self._summary(inner).since, "", "", inner, ended))
                self._push_segment(heap, next(segments, None))
            elif not name:
                for entry in self._moments(folder):
                    heappush(heap, (entry[0], ids.age_key(entry[1]), entry[1], folder, state))
            else:
                token = Token.parse(name)
                if token is not None:
                    yield moment, Found(State(state), (folder, name), token)

    def _push_segment(self, heap: list[tuple[int, str, str, str, str]], segment: str | None) -> None:
        """Add the next segment. Segments are opened in order, so the next is needed only when this one is taken."""
        if segment is not None:
            heappush(heap, (self._segments.opened(segment) - _SLACK, "", "", segment, ""))

    def _folders(self) -> dict[str, list[tuple[str, State]]]:
        """Return the folders of ended tasks, by segment."""
        folders: dict[str, list[tuple[str, State]]] = {}
        for state in ENDED:
            for segment in filter(ids.is_segment, self._locator.names(f"{self._root}/{state}")):
                folders.setdefault(segment, []).append((f"{self._root}/{state}/{segment}", state))
        return folders

    def _summary(self, folder: str) -> FolderSummary:
        """Return the folder's summary, and read the folder again if it has changed."""
        try:
            changed = self._disk.changed(folder)
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise
            return FolderSummary(0, 0, 0)
        known = self._summaries.get(folder)
        if known is None or known.changed != changed:
            names = self._tasks(folder)
            since = ids.created(min(names)) - _SLACK if names else 0
            known = self._summaries[folder] = FolderSummary(changed, len(names), since)
        return known

    def _moments(self, folder: str) -> list[tuple[int, str]]:
        """Return when each task of this folder ended, by its file's ctime."""
        summary = self._summary(folder)
        moments = []
        for name in self._tasks(folder):
            try:
                moments.append((self._disk.changed_at(f"{folder}/{name}"), name))
            except FileNotFoundError:
                continue  # retried by hand just now
        if moments:
            summary.since = min(moments)[0]
        return moments

    def _tasks(self, folder: str) -> list[str]:
        segment = folder[-ids.SEGMENT :]
        return [
            name
            for name in self._locator.names(folder)
            if name.startswith(segment) and name.endswith(SUFFIX) and ids.is_id(name[: ids.LENGTH])
        ]
