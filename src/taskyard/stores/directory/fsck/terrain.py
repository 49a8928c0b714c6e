"""The yard's folders: those that must be there, and for each segment the places where its tasks can be."""

from __future__ import annotations

from taskyard import ids
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.fsck import grammar
from taskyard.stores.directory.names import SUFFIX, Lane
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.fsck.scene import Scene

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


class Terrain:
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
        for name in self._scene.names(f"{self._root}/processing"):
            self.running.setdefault(name[: ids.SEGMENT], []).append(name)
        for state in _BY_SEGMENT[1:]:
            self._by_segment(places, state)
        self.places = places
        known = {*places, *(name for name in self.running if ids.is_segment(name))}
        for place in (*_BESIDE, "segments"):
            known.update(filter(ids.is_segment, self._scene.folders(f"{self._root}/{place}", ids.is_segment)))
        self._odd_running()
        return sorted(known)

    def _top(self) -> None:
        unsettled = self._scene.ground.unsettled
        if unsettled is not None:
            place = (self._root, layout.SETTINGS)
            self._scene.suspect("settings_broken", place, unsettled, lambda: layout.examined(self._root)[1] is not None)
        for name in layout.FOLDERS:
            path = f"{self._root}/{name}"
            if not self._scene.has(path):
                gone = (self._root, name)
                self._scene.suspect("folder_missing", gone, "not there", self._scene.lacks(path))
        for name in self._scene.names(self._root):
            if name not in _KNOWN:
                path = f"{self._root}/{name}"
                self._scene.suspect("root_stray", (self._root, name), "not the yard's", self._scene.stays(path))

    def _odd_running(self) -> None:
        """Names in processing/ that don't even begin like a task's: no segment will come by them."""
        for begin, some in self.running.items():
            if not ids.is_segment(begin):
                for name in some:
                    self._scene.stray(f"{self._root}/processing", name, "no task's name")

    def _by_segment(self, places: dict[str, list[Place]], state: State) -> None:
        top = f"{self._root}/{state}"
        for name in self._scene.names(top):
            if ids.is_segment(name) and self._scene.disk.is_folder(f"{top}/{name}"):
                places.setdefault(name, []).append(Place(state, f"{top}/{name}"))
            elif state is not State.FAILED or not name.endswith((SUFFIX, _REASON)):
                self._scene.stray(top, name, "no segment's name")

    def _todo(self, places: dict[str, list[Place]]) -> None:
        top = f"{self._root}/todo"
        for name in self._scene.names(top):
            lane = Lane.parse(name)
            path = f"{top}/{name}"
            if not names.is_lane(name) or names.is_dropped(name):
                # The drop box: whatever else people keep here is theirs, unless it holds what looks like tasks.
                if self._scene.disk.is_folder(path) and any(map(ids.is_segment, self._scene.names(path))):
                    self._scene.stray(top, name, "no lane's name, with segments in it")
                continue
            if lane is None:
                self._scene.stray(top, name, "no lane's name")
                continue
            for segment in self._scene.folders(path, ids.is_segment):
                places.setdefault(segment, []).append(Place(State.TODO, f"{path}/{segment}", lane))

    def _waiting(self, places: dict[str, list[Place]]) -> None:
        top = f"{self._root}/waiting"
        for bucket in self._scene.folders(top, grammar.BUCKET.fullmatch):
            for segment in self._scene.folders(f"{top}/{bucket}", ids.is_segment):
                places.setdefault(segment, []).append(Place(State.WAITING, f"{top}/{bucket}/{segment}", bucket=bucket))
