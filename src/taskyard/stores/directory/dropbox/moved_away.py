"""Finds tasks that another program has moved where no task of the yard belongs; a sweep puts them back."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.dropbox import guest_names
from taskyard.stores.directory.names import SUFFIX, Lane, Token, begins_with_id
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.tasks.locate import Locator

_ENDED = (State.FAILED, State.DONE)


class MovedTasks:
    """Reads the places where a guest's loop and its janitor leave our tasks; it changes nothing."""

    def __init__(self, disk: Disk, locator: Locator, root: str, lease: float) -> None:
        self._disk = disk
        self._names = locator.names
        self._root = root
        self._lease = lease

    def tasks(self, segment: str) -> Iterator[Found]:
        """Return every moved task of this segment, in the order in which guests move files."""
        yield from self._in_lanes("todo", segment)
        yield from self._given_back(segment)
        yield from self._in_lanes("processing", segment)
        yield from self.taken(segment)
        for state in _ENDED:
            yield from self._in_lanes(str(state), segment)
            yield from self.ended(state, segment)

    def lanes(self, place: str, deep: bool, past_closed: bool = False) -> Iterator[str]:
        """Return folders in this place that were lanes in todo/; with `deep` also lanes within lanes.

        A folder that is not readable raises, because its tasks cannot be known; with `past_closed` it is skipped.
        """
        folder = f"{self._root}/{place}"
        for name in self._names(folder):
            at_home = place == "todo" and Lane.of_folder(name) is not None
            if (at_home and not deep) or not guest_names.lanes(name) or not self._disk.is_folder(f"{folder}/{name}"):
                continue
            yield from self.nested(f"{folder}/{name}", past_closed)
            if not at_home:
                yield f"{folder}/{name}"

    def nested(self, folder: str, past_closed: bool = False) -> Iterator[str]:
        """Return lanes in this folder of a lane: a move onto an existing folder leads into it."""
        try:
            listed = self._names(folder)
        except PermissionError:
            if not past_closed:
                raise
            return
        for name in listed:
            if guest_names.lanes(name) and self._disk.is_folder(f"{folder}/{name}"):
                yield from self.nested(f"{folder}/{name}", past_closed)
                yield f"{folder}/{name}"

    def _in_lanes(self, place: str, segment: str) -> Iterator[Found]:
        for folder in self.lanes(place, deep=True):
            *_, lane = guest_names.lanes(folder.rpartition("/")[2]).values()
            for name in self._names(f"{folder}/{segment}"):
                token = Token.parse(name, lane)
                if token is not None:
                    yield Found(State.TODO, (f"{folder}/{segment}", name), token)

    def _given_back(self, segment: str) -> Iterator[Found]:
        """Return claims of ours that a guest's janitor has put into todo/; their workers hold them until the next sweep."""
        for found in self.given_back():
            if found.token.id.startswith(segment):
                yield found

    def given_back(self) -> Iterator[Found]:
        """The same for all segments; those that a guest had taken before are that guest's."""
        folder = f"{self._root}/todo"
        for name in self._names(folder):
            known = guest_names.carried(name) if name.endswith(SUFFIX) else None
            if known is not None:
                agent, own, token = known
                if agent:
                    token = guest_names.taken_by(agent, own, token, self._lease)
                yield Found(State.PROCESSING, (folder, name), token)

    def held(self) -> Iterator[Found]:
        """Return all claimed tasks whose files are where other programs have put them."""
        yield from self.given_back()
        yield from self.taken()

    def taken(self, segment: str = "") -> Iterator[Found]:
        """Return tasks of ours that a guest took out of todo/, where its janitor had put them, and works on."""
        folder = f"{self._root}/processing"
        for name in self._names(folder):
            known = None if begins_with_id(name) else guest_names.carried(name)
            if known is not None and known[2].id.startswith(segment):
                yield Found(State.PROCESSING, (folder, name), guest_names.taken_by(*known, self._lease))

    def ended(self, state: State, segment: str = "") -> Iterator[Found]:
        """Return tasks of ours that a guest has ended in this state."""
        folder = f"{self._root}/{state}"
        for name in self._names(folder):
            known = guest_names.carried(name) if len(name) > ids.SEGMENT else None
            if known is not None and known[2].id.startswith(segment):
                yield Found(state, (folder, name), guest_names.taken_by(*known, self._lease))
