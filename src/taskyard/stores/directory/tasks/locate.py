"""From an id to its file. The id names its segment, so only a few directories are listed, and never the whole yard."""

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
    from collections.abc import Iterable, Iterator

    from taskyard.core.task import Handle
    from taskyard.stores.directory.dropbox.moved_away import MovedTasks
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links

# One pass may miss a task in motion (todo is listed, then it is reaped, then processing is listed): only a task
# that several whole passes have missed is not there. That is good enough for an answer, and proves nothing: code that
# would remove something, or unblock a task, because a task is not found, calls `missing` first.
_PASSES = 5
_FEW = 4  # ids of one segment that are looked up one by one
_CLOSE = 2  # after this many passes, processing/ is listed beside every lane and bucket
NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_ENDED = (State.CANCELLED, State.FAILED, State.DONE)


class Found:
    """A task's file: its state, its folder and name, and the parsed name."""

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
        """The tasks that other programs have moved; loaded when a task is not in its place."""
        from taskyard.stores.directory.dropbox.moved_away import MovedTasks

        return MovedTasks(self._disk, self, self._root, self._lease)

    def find(self, pattern: str) -> Found:
        """Return the one task that fits this pattern (`ids.pattern`)."""
        for attempt in range(_PASSES):
            if attempt >= _CLOSE:
                time.sleep(
                    0.001
                )  # an id without a task is rare; a task that many processes move at once may be missed twice
            found = self.matching(pattern, closely=attempt >= _CLOSE) or self._moved_away(pattern)
            if len(found) > 1:
                raise task_names.ambiguous(pattern, found)
            if found:
                return next(iter(found.values()))
        self._disk.listdir(f"{self._root}/processing")  # raises if the yard itself is gone
        raise task_names.unknown(pattern)

    def held(self, handle: Handle) -> Found | None:
        """Return the task that this claim holds, by one look into one folder; None if it does not hold it."""
        begin, folder = f"{handle.id}.{handle.fence}.", f"{self._root}/processing"
        for name in self.names(folder):
            if name.startswith(begin):
                token = Token.parse(name)
                if token is not None and token.nonce == handle.nonce:
                    return Found(State.PROCESSING, (folder, name), token)
        return None

    def _moved_away(self, pattern: str) -> dict[str, Found]:
        """Return the tasks that fit among those that other programs have moved out of their places."""
        tasks = self.moved.tasks(pattern[: ids.SEGMENT])
        return {found.token.id: found for found in tasks if ids.fits(pattern, found.token.id)}

    def knows(self, id: str) -> bool:
        """Whether there is a task with this id."""
        try:
            self.find(id)
        except NotFound:
            return False
        return True

    def matching(self, pattern: str, *, closely: bool = False) -> dict[str, Found]:
        """Return, in one pass, every task that fits this pattern; raise an error if none does and a folder cannot be read."""
        tasks: dict[str, Found] = {}
        unread: PermissionError | None = None
        begin, end = ids.ends(pattern)
        at = ids.LENGTH - len(end)
        for state, folder, lane in self._places(begin[: ids.SEGMENT], closely):
            try:
                names = self.names(folder)
            except PermissionError as error:
                unread = error  # another user's folder: the task may be there, or anywhere else
                continue
            for name in names:
                if not (name.startswith(begin) and name.startswith(end, at)):
                    continue
                token = Token.parse(name, lane)
                if token is None:
                    continue
                known = tasks.get(token.id)
                # A task that is seen twice moved between two listings. Only an ending keeps the fence, and it is listed later.
                if known is None or known.token.fence <= token.fence:
                    tasks[token.id] = Found(state, (folder, name), token)
        if unread is not None and not tasks:
            raise unread
        return tasks

    def several(self, wanted: Iterable[str]) -> dict[str, Found]:
        """Return those of these tasks that exist, by id; many of one segment are found in one pass over it."""
        segments: dict[str, list[str]] = {}
        for id in wanted:
            segments.setdefault(id[: ids.SEGMENT], []).append(id)
        found: dict[str, Found] = {}
        for segment, some in segments.items():
            there = self.matching(segment) if len(some) > _FEW else {}
            for id in some:
                try:
                    found[id] = there.get(id) or self.find(id)
                except NotFound:
                    continue
        return found

    def ids_of(self, segment: str, end: str = "") -> set[str]:
        """Return, in one pass, the id of every task of this segment, or of those whose id ends with `end`."""
        at = ids.LENGTH - len(end)
        return {
            name[: ids.LENGTH]
            for _, folder, _ in self._places(segment)
            for name in self.names(folder)
            if name.startswith(end, at) and name.startswith(segment) and ids.is_id(name[: ids.LENGTH])
        }

    def shorten(self, id: str) -> str:
        """Return the short name of this id, by listing its own segment."""
        return ids.shorten([id], self.ids_of(id[: ids.SEGMENT], id[-ids.SHORT :]))[0]

    def _places(self, segment: str, closely: bool = False) -> Iterator[tuple[State, str, Lane | None]]:
        """Yield where tasks of this segment can be, in the order in which tasks move.

        The more lanes there are, the more time passes between the listings of a task's lane and of processing/. So a task
        that is claimed and released all the time is missed more often. With `closely`, processing/ is listed right before
        and after each lane.
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
        """List the folder; one that does not exist, or is not the yard's own, is empty."""
        try:
            return self._disk.listdir(folder) if self._links.holds(folder.rpartition("/")[0]) else []
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise
            return []
