"""Check the yard's folders: those that must exist, and for each segment the folders where its tasks can be."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.dropbox import guest_names, not_tasks
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.names import SUFFIX, Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.fsck.context import AuditContext

_BY_SEGMENT = (State.BLOCKED, State.CANCELLED, State.FAILED, State.DONE)
_OTHER_FOLDERS = ("results", "edits", "attempts", "needs", "followers", layout.SHEETS, layout.CHILDREN)
_REASON = ".reason"
_KNOWN = frozenset((*layout.FOLDERS, layout.SETTINGS, ".gitignore"))


class TaskFolder:
    """One folder with tasks of one segment."""

    __slots__ = ("bucket", "folder", "lane", "state")

    def __init__(self, state: State, folder: str, lane: Lane | None = None, bucket: str | None = None) -> None:
        self.state = state
        self.folder = folder
        self.lane = lane
        self.bucket = bucket


class FolderAudit:
    """Checks the upper levels of a yard."""

    def __init__(self, audit: AuditContext) -> None:
        self._audit = audit
        self._root = audit.root
        self.task_folders: dict[str, list[TaskFolder]] = {}
        self.running: dict[str, list[str]] = {}

    def survey(self) -> list[str]:
        """Check everything above the segments' folders, and return the segments in order."""
        self._top()
        task_folders: dict[str, list[TaskFolder]] = {}
        # In the order in which tasks move, so that one that moves meanwhile may be seen twice, but is never missed.
        self._by_segment(task_folders, State.BLOCKED)
        self._todo(task_folders)
        self._waiting(task_folders)
        odd = []
        for name in self._audit.names(f"{self._root}/processing"):
            if names.begins_with_id(name):
                self.running.setdefault(name[: ids.SEGMENT], []).append(name)
            else:
                odd.append(name)
        for state in _BY_SEGMENT[1:]:
            self._by_segment(task_folders, state)
        self.task_folders = task_folders
        known = {*task_folders, *(name for name in self.running if ids.is_segment(name))}
        for folder in _OTHER_FOLDERS:
            known.update(self._audit.folders(f"{self._root}/{folder}", ids.is_segment))
        markers = self._audit.folders(f"{self._root}/segments", lambda name: ids.is_segment(name) or Lane.parse(name))
        known.update(filter(ids.is_segment, markers))
        self._odd_running(odd)
        return sorted(known)

    def _top(self) -> None:
        unsettled = self._audit.context.settings_error
        if unsettled is not None:
            place = (self._root, layout.SETTINGS)
            self._audit.suspect(
                "settings_broken", place, unsettled, lambda: layout.load_for_check(self._root)[1] is not None
            )
        for name in layout.FOLDERS:
            path = f"{self._root}/{name}"
            if name not in layout.LATER and not self._audit.has(path):
                gone = (self._root, name)
                self._audit.suspect("folder_missing", gone, "not there", self._audit.lacks(path))
        for name in self._audit.names(self._root):
            if name not in _KNOWN:
                path = f"{self._root}/{name}"
                self._audit.suspect("root_stray", (self._root, name), "not the yard's", self._audit.stays(path))

    def _odd_running(self, odd: list[str]) -> None:
        """Check names in processing/ that do not begin with an id: files of other programs, or strays."""
        folder = f"{self._root}/processing"
        for name in odd:
            if not self._moved_by_guest(folder, name) and not self._guests(
                folder, name, bool(guest_names.split(name)[0])
            ):
                self._audit.stray(folder, name, "no task's name")

    def _moved_by_guest(self, folder: str, name: str) -> bool:
        """Return whether another program has moved a lane or a task here, and add a suspect then."""
        path = f"{folder}/{name}"
        if guest_names.carried(name) is not None:
            self._audit.suspect(
                "task_astray", (folder, name), "a task that another program moved", self._audit.stays(path)
            )
            return True
        if not guest_names.lanes(name) or not self._audit.disk.is_folder(path):
            return False
        self._audit.suspect("lane_astray", (folder, name), "a lane that another program moved", self._audit.stays(path))
        return True

    def _guests(self, folder: str, name: str, may_be: bool) -> bool:
        """Return whether this is a file that another program has claimed or ended by moving it, and count it."""
        try:
            is_file = may_be and self._audit.disk.is_file(f"{folder}/{name}")
        except OSError:
            return False
        self._audit.count("guests", is_file)
        return is_file

    def _by_segment(self, task_folders: dict[str, list[TaskFolder]], state: State) -> None:
        top = f"{self._root}/{state}"
        for name in self._audit.names(top):
            if ids.is_segment(name) and self._audit.disk.is_folder(f"{top}/{name}"):
                task_folders.setdefault(name, []).append(TaskFolder(state, f"{top}/{name}"))
            elif self._moved_by_guest(top, name) or (state is State.FAILED and name.endswith((SUFFIX, _REASON))):
                continue
            elif not self._guests(top, name, state in (State.FAILED, State.DONE)):
                self._audit.stray(top, name, "no segment's name")

    def _todo(self, task_folders: dict[str, list[TaskFolder]]) -> None:
        top = f"{self._root}/todo"
        for name in self._audit.names(top):
            lane = Lane.of_folder(name)
            path = f"{top}/{name}"
            if not names.is_lane(name) or names.is_dropped(name):
                # The drop box: other files here are the users' own, unless they look like tasks.
                if self._moved_by_guest(top, name):
                    continue
                if self._audit.disk.is_folder(path) and any(map(ids.is_segment, self._audit.names(path))):
                    self._audit.stray(top, name, "no lane's name, with segments in it")
                    continue
                reason = None if name.startswith(".") else not_tasks.why(self._audit.context, name)
                if reason is not None:
                    self._audit.suspect("not_a_task", (top, name), reason, self._audit.stays(path))
                continue
            if lane is None:
                self._audit.stray(top, name, "no lane's name")
                continue
            self._audit.closed(path)
            for segment in self._audit.names(path):
                if not ids.is_segment(segment):
                    if not self._moved_by_guest(path, segment):
                        self._audit.stray(path, segment, "no name that can be here")
                    continue
                self._audit.closed(f"{path}/{segment}")
                task_folders.setdefault(segment, []).append(TaskFolder(State.TODO, f"{path}/{segment}", lane))

    def _waiting(self, task_folders: dict[str, list[TaskFolder]]) -> None:
        top = f"{self._root}/waiting"
        for bucket in self._audit.folders(top, legal_names.BUCKET.fullmatch):
            for segment in self._audit.folders(f"{top}/{bucket}", ids.is_segment):
                task_folders.setdefault(segment, []).append(
                    TaskFolder(State.WAITING, f"{top}/{bucket}/{segment}", bucket=bucket)
                )
