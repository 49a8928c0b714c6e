"""What all checks of an audit share: the yard, the time, the counts, and the suspects."""

from __future__ import annotations

import errno
import stat
import time

from taskyard.core.errors import NotFound
from taskyard.stores.directory.fsck.findings import Suspect
from taskyard.stores.directory.tasks.locate import NO_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.names import Token
    from taskyard.stores.directory.tasks.locate import Found

KEPT = 200_000  # suspects of one code that are kept; more are only counted
_NFS_REMOVED = ".nfs"  # an NFS client renames a file so that is removed while it is open
_GROUP, _OTHERS = stat.S_IRWXG, stat.S_IRWXO
_PROGRESS_EVERY = 0.2  # seconds between two reports of progress


class AuditContext:
    """Counts, suspects and safe reads of one audit."""

    def __init__(self, context: Context, progress: Callable[[str], object] | None) -> None:
        self.context = context
        self.disk = context.disk
        self.root = context.root
        self.counts: dict[str, int] = {}
        self.suspects: list[Suspect] = []
        self._of_code: dict[str, int] = {}
        self.incomplete = False
        """Whether something could not be read: then a file that was not found may still exist."""
        self._progress = progress
        self._reported_at = 0.0
        top = self.disk.status(f"{self.root}/.")
        self.device, self._owner = top.st_dev, top.st_uid
        try:
            self.now = context.clock.exact()
        except OSError:
            self.now = time.time_ns() // 1_000_000  # without tmp/ the file system's time is unknown

    def count(self, what: str, number: int = 1) -> None:
        """Add `number` to the count of what was checked."""
        self.counts[what] = self.counts.get(what, 0) + number

    def report_progress(self, text: str) -> None:
        """Call the progress function, at most every `_PROGRESS_EVERY` seconds."""
        if self._progress is not None and time.monotonic() - self._reported_at > _PROGRESS_EVERY:
            self._reported_at = time.monotonic()
            self._progress(text)

    def suspect(
        self,
        code: str,
        place: tuple[str, str],
        what: str,
        still_holds: Callable[[], object],
        task: str | None = None,
        token: Token | None = None,
    ) -> None:
        """Add a suspect; `still_holds` checks it again."""
        number = self._of_code[code] = self._of_code.get(code, 0) + 1
        if number <= KEPT:
            self.suspects.append(Suspect(code, place, what, still_holds, task, token))

    @property
    def dropped(self) -> dict[str, int]:
        """The number of suspects that were not kept, by code."""
        return {code: number - KEPT for code, number in self._of_code.items() if number > KEPT}

    # Reads that follow no link

    def names(self, folder: str) -> list[str]:
        """List the folder. A link or a mount in its place is a suspect and is not entered; a missing folder is empty."""
        try:
            # The path of the yard itself may be a link.
            status = self.disk.status(f"{folder}/." if folder == self.root else folder)
            if stat.S_ISDIR(status.st_mode) and status.st_dev == self.device:
                self.count("folders")
                return [name for name in self.disk.listdir(folder) if not name.startswith(_NFS_REMOVED)]
        except OSError as error:
            if error.errno not in NO_FOLDER:
                self.unreadable(folder, error)
            return []
        self._odd_folder(folder, status)
        return []

    def _odd_folder(self, folder: str, status: os.stat_result) -> None:
        self.incomplete = True
        kind = "another mount" if stat.S_ISDIR(status.st_mode) else _file_type(status.st_mode)
        self.suspect("folder_odd", _split(folder), f"{kind} in the place of a folder", self.stays(folder, status))

    def unreadable(self, path: str, error: OSError, task: str | None = None) -> None:
        """Add a suspect for a path that cannot be read."""
        self.incomplete = True

        def still_holds() -> bool:
            try:
                self.disk.listdir(path) if self.disk.is_folder(path) else self.disk.read(path)
            except OSError as still:
                return still.errno == error.errno
            return False

        self.suspect("unreadable", _split(path), f"cannot be read: {error.strerror or error}", still_holds, task)

    def closed(self, folder: str) -> None:
        """Add a suspect if the folder's mode keeps the yard's users out: claims skip such a folder.

        Owner and mode decide, and not a trial: root often runs an audit, and can read every folder.
        """
        reason = self._refused(folder)
        if reason is not None:
            self.suspect("folder_closed", _split(folder), reason, lambda: self._refused(folder) == reason)

    def _refused(self, folder: str) -> str | None:
        """Return why the yard's users cannot take a task out of this folder; None if they can, or may be able to."""
        try:
            status = self.disk.status(folder)
        except OSError:
            return None  # gone, or reported as unreadable
        mode = status.st_mode
        if not stat.S_ISDIR(mode):
            return None
        said = f"of mode {stat.S_IMODE(mode):04o}"
        if self.context.shared:
            return None if mode & _GROUP == _GROUP else f"{said}, and the yard's group needs all of {_GROUP:04o}"
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            return f"{said}, and its owner needs all of {stat.S_IRWXU:04o}"
        # The yard's owner may be in the folder's group, and root can use every folder.
        if self._owner in (status.st_uid, 0) or mode & _GROUP == _GROUP or mode & _OTHERS == _OTHERS:
            return None
        return f"{said} and of user {status.st_uid}, and the yard is of user {self._owner}"

    def folders(self, folder: str, fits: Callable[[str], object]) -> Iterator[str]:
        """List the names in the folder for which `fits` is true; every other one is a stray."""
        for name in self.names(folder):
            if fits(name):
                yield name
            else:
                self.stray(folder, name, "no name that can be here")

    def stray(self, folder: str, name: str, what: str, task: str | None = None) -> None:
        """Add a suspect for a name that may not be here; `task` is the id that its content has, if any."""
        path = f"{folder}/{name}"
        try:
            status = self.disk.status(path)
        except OSError:
            return  # moved since it was listed
        if stat.S_ISLNK(status.st_mode):
            self.suspect("symlink", (folder, name), "a symbolic link", self.stays(path, status))
        else:
            self.suspect("stray", (folder, name), what, self.stays(path, status), task)

    def inspected(
        self, folder: str, name: str, most: int, task: str | None = None
    ) -> tuple[os.stat_result, bytes] | None:
        """Return the file's status and content; None if it is gone, or if it cannot be read, which adds a suspect."""
        path = f"{folder}/{name}"
        try:
            status, content = self.disk.inspect(path, most)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                self.suspect("symlink", (folder, name), "a symbolic link", self.stays(path), task)
            else:
                self.unreadable(path, error, task)
            return None
        if stat.S_ISREG(status.st_mode):
            return status, content
        self.suspect(
            "not_a_file", (folder, name), f"{_file_type(status.st_mode)} in the place of a file", self.stays(path), task
        )
        return None

    def is_plain(self, folder: str, name: str, *, is_folder: bool = False) -> bool:
        """Return whether this is a regular file, or a folder; add a suspect if it is something else."""
        path = f"{folder}/{name}"
        try:
            mode = self.disk.status(path).st_mode
        except OSError:
            return False
        if (stat.S_ISDIR if is_folder else stat.S_ISREG)(mode):
            return True
        code = "symlink" if stat.S_ISLNK(mode) else "not_a_file"
        what = f"{_file_type(mode)} in the place of a {'folder' if is_folder else 'file'}"
        self.suspect(code, (folder, name), what, self.stays(path))
        return False

    def stays(self, path: str, status: os.stat_result | None = None) -> Callable[[], bool]:
        """Return a function that checks whether the path still exists, and is the file of `status` if that is given."""

        def still_holds() -> bool:
            try:
                now = self.disk.status(path)
            except OSError:
                return False
            return status is None or (now.st_ino, now.st_mode, now.st_dev) == (
                status.st_ino,
                status.st_mode,
                status.st_dev,
            )

        return still_holds

    def lacks(self, *paths: str) -> Callable[[], bool]:
        """Return a function that checks whether none of these paths exists."""
        return lambda: not any(map(self.has, paths))

    def find(self, id: str) -> Found | None:
        """Find the task, with as many searches as it takes to be certain that it is nowhere."""
        try:
            return self.context.locator.find(id)
        except NotFound:
            return None

    def is_nowhere(self, id: str) -> bool:
        """Return whether the task is certainly in no state; False if parts of the yard cannot be read."""
        try:
            return not self.incomplete and self.find(id) is None
        except OSError:
            return False

    def has(self, path: str) -> bool:
        """Return whether the path exists; True if that cannot be read, so that nothing is reported as missing."""
        try:
            return self.disk.exists(path)
        except OSError:
            self.incomplete = True
            return True

    def age(self, path: str) -> int:
        """Return the milliseconds since the file's last change; 0 if it is gone."""
        try:
            return self.now - self.disk.changed_at(path)
        except OSError:
            return 0


def _file_type(mode: int) -> str:
    names = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISREG, "a file"),
        (stat.S_ISFIFO, "a pipe"),
    )
    return next((name for test, name in names if test(mode)), "a device or socket")


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
