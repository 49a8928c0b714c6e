"""From an id to its file. The id names its segment, so a few directories are listed and nothing is ever scanned."""

from __future__ import annotations

import errno
import time

from taskyard import ids
from taskyard.errors import Ambiguous, NotFound
from taskyard.stores.directory.names import Lane, Token
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.bounds import Bounds
    from taskyard.stores.directory.disk import Disk

# A task in motion may slip past one pass (todo is listed, then it is reaped, then processing is listed): only a task
# that several whole passes have missed is not there.
_PASSES = 5
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


class Lookup:
    """Finds files by id."""

    def __init__(self, disk: Disk, bounds: Bounds, root: str) -> None:
        self._disk = disk
        self._bounds = bounds
        self._root = root

    def find(self, prefix: str) -> Found:
        """The one task whose id begins so."""
        for attempt in range(_PASSES):
            if attempt >= 2:
                time.sleep(
                    0.001
                )  # an id that is nobody's is rare; a task that many hands move at once may slip by twice
            found = self.matching(prefix)
            if len(found) > 1:
                some = ", ".join(sorted(found)[:3])
                raise Ambiguous(
                    f"{len(found)} tasks begin with {prefix}: {some}{', ...' if len(found) > 3 else ''}",
                    hint="give more characters of the id",
                )
            if found:
                return next(iter(found.values()))
        self._disk.listdir(f"{self._root}/processing")  # a yard that is gone is not a yard without the task
        raise NotFound(f"no task has the id {prefix}", hint="'taskyard list' shows the tasks there are")

    def knows(self, id: str) -> bool:
        """Whether there is a task of this id."""
        try:
            self.find(id)
        except NotFound:
            return False
        return True

    def matching(self, prefix: str) -> dict[str, Found]:
        """One pass: every task whose id begins so."""
        tasks: dict[str, Found] = {}
        for state, folder, lane in self._places(prefix[: ids.SEGMENT]):
            for name in self.names(folder):
                if not name.startswith(prefix):
                    continue
                token = Token.parse(name, lane)
                if token is None:
                    continue
                known = tasks.get(token.id)
                # Seen twice, it moved between two listings. Only an ending keeps the number, and it is listed later.
                if known is None or known.token.fence <= token.fence:
                    tasks[token.id] = Found(state, (folder, name), token)
        return tasks

    def _places(self, segment: str) -> Iterator[tuple[State, str, Lane | None]]:
        """Where tasks of this segment can be, in the order in which tasks move."""
        yield State.BLOCKED, f"{self._root}/blocked/{segment}", None
        for text in self.names(f"{self._root}/todo"):
            lane = Lane.parse(text)
            if lane is not None:
                yield State.TODO, f"{self._root}/todo/{text}/{segment}", lane
        for bucket in self.names(f"{self._root}/waiting"):
            yield State.WAITING, f"{self._root}/waiting/{bucket}/{segment}", None
        yield State.PROCESSING, f"{self._root}/processing", None
        for state in _ENDED:
            yield state, f"{self._root}/{state}/{segment}", None

    def names(self, folder: str) -> list[str]:
        """What is in the folder; a folder that is not there, or not the yard's own, is empty."""
        try:
            return self._disk.listdir(folder) if self._bounds.holds(folder.rpartition("/")[0]) else []
        except OSError as error:
            if error.errno not in NO_FOLDER:
                raise
            return []
