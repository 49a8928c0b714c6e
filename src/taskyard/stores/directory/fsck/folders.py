"""The yard's folders: those that must be there, and for each segment the places where its tasks can be."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.dropbox import guest_names, not_tasks
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.names import SUFFIX, Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.fsck.context import Scene

_BY_SEGMENT = (State.BLOCKED, State.CANCELLED, State.FAILED, State.DONE)
_BESIDE = ("results", "edits", "attempts", "needs", "followers")
_REASON = ".reason"
_KNOWN = frozenset((*layout.FOLDERS, layout.SETTINGS, ".gitignore"))


class Place:
    """One folder of tasks of one segment."""

    __slots__ = ("bucket", "folder", "lane", "state")

    def __init__(self, state: State, folder: str, lane: Lane | None = None, bucket: str | None = None) -> None:
        self.state = state
        self.folder = folder
        self.lane = lane
        self.bucket = bucket


class Folders:
    """Walks the upper levels of a yard."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._root = scene.root
        self.places: dict[str, list[Place]] = {}
        self.running: dict[str, list[str]] = {}

    def survey(self) -> list[str]:
        """Look at all that is not a segment's folder; gives the segments there are, in order."""
        self._top()
        places: dict[str, list[Place]] = {}
        # In the order in which tasks move: one that moves meanwhile is rather seen twice than not at all.
        self._by_segment(places, State.BLOCKED)
        self._todo(places)
        self._waiting(places)
        odd = []
        for name in self._scene.names(f"{self._root}/processing"):
            if names.begins_with_id(name):
                self.running.setdefault(name[: ids.SEGMENT], []).append(name)
            else:
                odd.append(name)
        for state in _BY_SEGMENT[1:]:
            self._by_segment(places, state)
        self.places = places
        known = {*places, *(name for name in self.running if ids.is_segment(name))}
        for place in _BESIDE:
            known.update(self._scene.folders(f"{self._root}/{place}", ids.is_segment))
        markers = self._scene.folders(f"{self._root}/segments", lambda name: ids.is_segment(name) or Lane.parse(name))
        known.update(filter(ids.is_segment, markers))
        self._odd_running(odd)
        return sorted(known)

    def _top(self) -> None:
        settings_error = self._scene.context.settings_error
        if settings_error is not None:
            place = (self._root, layout.SETTINGS)
            self._scene.suspect(
                "settings_broken", place, settings_error, lambda: layout.load_for_check(self._root)[1] is not None
            )
        for name in layout.FOLDERS:
            path = f"{self._root}/{name}"
            if not self._scene.has(path):
                gone = (self._root, name)
                self._scene.suspect("folder_missing", gone, "not there", self._scene.lacks(path))
        for name in self._scene.names(self._root):
            if name not in _KNOWN:
                path = f"{self._root}/{name}"
                self._scene.suspect("root_stray", (self._root, name), "not the yard's", self._scene.stays(path))

    def _odd_running(self, odd: list[str]) -> None:
        """Names in processing/ that don't even begin like a task's: other programs', or nobody's."""
        folder = f"{self._root}/processing"
        for name in odd:
            if not self._astray(folder, name) and not self._guests(folder, name, bool(guest_names.split(name)[0])):
                self._scene.stray(folder, name, "no task's name")

    def _astray(self, folder: str, name: str) -> bool:
        """Whether this is a lane or a task that another program has moved here."""
        path = f"{folder}/{name}"
        if guest_names.carried(name) is not None:
            self._scene.suspect(
                "task_astray", (folder, name), "a task that another program moved", self._scene.stays(path)
            )
            return True
        if not guest_names.lanes(name) or not self._scene.disk.is_folder(path):
            return False
        self._scene.suspect("lane_astray", (folder, name), "a lane that another program moved", self._scene.stays(path))
        return True

    def _guests(self, folder: str, name: str, may_be: bool) -> bool:
        """Whether this is a file that another program holds or has ended, by the folders alone."""
        try:
            is_file = may_be and self._scene.disk.is_file(f"{folder}/{name}")
        except OSError:
            return False
        self._scene.count("guests", is_file)
        return is_file

    def _by_segment(self, places: dict[str, list[Place]], state: State) -> None:
        top = f"{self._root}/{state}"
        for name in self._scene.names(top):
            if ids.is_segment(name) and self._scene.disk.is_folder(f"{top}/{name}"):
                places.setdefault(name, []).append(Place(state, f"{top}/{name}"))
            elif self._astray(top, name) or (state is State.FAILED and name.endswith((SUFFIX, _REASON))):
                continue
            elif not self._guests(top, name, state in (State.FAILED, State.DONE)):
                self._scene.stray(top, name, "no segment's name")

    def _todo(self, places: dict[str, list[Place]]) -> None:
        top = f"{self._root}/todo"
        for name in self._scene.names(top):
            lane = Lane.of_folder(name)
            path = f"{top}/{name}"
            if not names.is_lane(name) or names.is_dropped(name):
                # The drop box: whatever else people keep here is theirs, unless it holds what looks like tasks.
                if self._astray(top, name):
                    continue
                if self._scene.disk.is_folder(path) and any(map(ids.is_segment, self._scene.names(path))):
                    self._scene.stray(top, name, "no lane's name, with segments in it")
                    continue
                reason = None if name.startswith(".") else not_tasks.why(self._scene.context, name)
                if reason is not None:
                    self._scene.suspect("not_a_task", (top, name), reason, self._scene.stays(path))
                continue
            if lane is None:
                self._scene.stray(top, name, "no lane's name")
                continue
            for segment in self._scene.names(path):
                if not ids.is_segment(segment):
                    if not self._astray(path, segment):
                        self._scene.stray(path, segment, "no name that can be here")
                    continue
                places.setdefault(segment, []).append(Place(State.TODO, f"{path}/{segment}", lane))

    def _waiting(self, places: dict[str, list[Place]]) -> None:
        top = f"{self._root}/waiting"
        for bucket in self._scene.folders(top, legal_names.BUCKET.fullmatch):
            for segment in self._scene.folders(f"{top}/{bucket}", ids.is_segment):
                places.setdefault(segment, []).append(Place(State.WAITING, f"{top}/{bucket}/{segment}", bucket=bucket))
