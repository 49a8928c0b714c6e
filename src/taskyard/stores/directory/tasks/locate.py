"""From an id to its file. The id names its segment, so a few directories are listed and nothing is ever scanned."""

from __future__ import annotations

import errno
import functools
import time

from taskyard.core import ids, task_names
from taskyard.core.errors import NotFound
from taskyard.core.task import State
from taskyard.stores.directory.names import Lane, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.dropbox.moved_away import MovedTasks
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links

# A task in motion may slip past one pass (todo is listed, then it is reaped, then processing is listed): only a task
# that several whole passes have missed is not there. That is good enough for an answer, and proves nothing: whoever would
# remove something, or let somebody go, because a task is not found, asks `missing` whether that holds.
_PASSES = 5
_CLOSE = 2  # passes after which those follow that look into processing/ beside every lane and bucket
NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_ENDED = (State.CANCELLED, State.FAILED, State.DONE)


class Found:
    """A task's file: its state, its folder and name, and what the name says."""

    __slots__ = ("place", "state", "token")

    def __init__(self, state: State, place: tuple[str, str], token: Token) -> None:
        self.state = state
        self.place = place
        self.token = token

    @property
    def path(self) -> str:
        """The file's path."""
        return f"{self.place[0]}/{self.place[1]}"


class Locator:
    """Finds files by id."""

    def __init__(self, disk: Disk, bounds: Links, root: str, lease: float) -> None:
        self._disk = disk
        self._links = bounds
        self._root = root
        self._lease = lease

    @functools.cached_property
    def moved(self) -> MovedTasks:
        """What other programs have moved; loaded where a task is not in its place."""
        from taskyard.stores.directory.dropbox.moved_away import MovedTasks

        return MovedTasks(self._disk, self, self._root, self._lease)

    def find(self, pattern: str) -> Found:
        """The one task that fits this pattern (`ids.pattern`)."""
        for attempt in range(_PASSES):
            if attempt >= _CLOSE:
                time.sleep(
                    0.001
                )  # an id that is nobody's is rare; a task that many hands move at once may slip by twice
            found = self.matching(pattern, closely=attempt >= _CLOSE) or self._moved_away(pattern)
            if len(found) > 1:
                raise task_names.ambiguous(pattern, found)
            if found:
                return next(iter(found.values()))
        self._disk.listdir(f"{self._root}/processing")  # a yard that is gone is not a yard without the task
        raise task_names.unknown(pattern)

    def _moved_away(self, pattern: str) -> dict[str, Found]:
        """The same among the tasks that other programs have moved out of their places."""
        tasks = self.moved.tasks(pattern[: ids.SEGMENT])
        return {found.token.id: found for found in tasks if ids.fits(pattern, found.token.id)}

    def knows(self, id: str) -> bool:
        """Whether there is a task of this id."""
        try:
            self.find(id)
        except NotFound:
            return False
        return True

    def matching(self, pattern: str, *, closely: bool = False) -> dict[str, Found]:
        """One pass: every task that fits this pattern; an error if there is none and a folder cannot be read."""
        tasks: dict[str, Found] = {}
        unread: PermissionError | None = None
        begin, end = ids.ends(pattern)
        at = ids.LENGTH - len(end)
        for state, folder, lane in self._places(begin[: ids.SEGMENT], closely):
            try:
                names = self.names(folder)
            except PermissionError as error:
                unread = error  # another user's: the task may be there, or anywhere else
                continue
            for name in names:
                if not (name.startswith(begin) and name.startswith(end, at)):
                    continue
                token = Token.parse(name, lane)
                if token is None:
                    continue
                known = tasks.get(token.id)
                # Seen twice, it moved between two listings. Only an ending keeps the number, and it is listed later.
                if known is None or known.token.fence <= token.fence:
                    tasks[token.id] = Found(state, (folder, name), token)
        if unread is not None and not tasks:
            raise unread
        return tasks

    def ids_of(self, segment: str, end: str = "") -> set[str]:
        """One pass: the id of every task of this segment, or of those whose id has this end."""
        at = ids.LENGTH - len(end)
        return {
            name[: ids.LENGTH]
            for _, folder, _ in self._places(segment)
            for name in self.names(folder)
            if name.startswith(end, at) and name.startswith(segment) and ids.is_id(name[: ids.LENGTH])
        }

    def _places(self, segment: str, closely: bool = False) -> Iterator[tuple[State, str, Lane | None]]:
        """Where tasks of this segment can be, in the order in which tasks move.

        The more lanes there are, the longer it is from a task's lane to processing/, and the sooner one that is claimed and
        handed back all the time slips by. Looked for closely, processing/ is listed right before and after its lane.
        """
        processing = State.PROCESSING, f"{self._root}/processing", None
        yield State.BLOCKED, f"{self._root}/blocked/{segment}", None
        for text in self.names(f"{self._root}/todo"):
            lane = Lane.of_folder(text)
            if lane is not None:
                if closely:
                    yield processing
                yield State.TODO, f"{self._root}/todo/{text}/{segment}", lane
        for bucket in self.names(f"{self._root}/waiting"):
            if closely:
                yield processing
            yield State.WAITING, f"{self._root}/waiting/{bucket}/{segment}", None
        yield processing
        for state in _ENDED:
            yield state, f"{self._root}/{state}/{segment}", None

    def names(self, folder: str) -> list[str]:
        """What is in the folder; a folder that is not there, or not the yard's own, is empty."""
        try:
            return self._disk.listdir(folder) if self._links.holds(folder.rpartition("/")[0]) else []
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise
            return []
