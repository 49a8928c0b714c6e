"""What all checks share: the yard, the moment, what was counted, and what looked wrong."""

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

KEPT = 200_000  # suspects of one code that are kept; more are counted
_SILLY = ".nfs"  # an NFS client keeps a file that was removed while it is open under such a name
_TOLD_EVERY = 0.2  # seconds between two words of how far the work is


class Scene:
    """One audit of one yard."""

    def __init__(self, context: Context, progress: Callable[[str], object] | None) -> None:
        self.context = context
        self.disk = context.disk
        self.root = context.root
        self.counts: dict[str, int] = {}
        self.suspects: list[Suspect] = []
        self._of_code: dict[str, int] = {}
        self.blind = False
        """Whether something could not be looked into, so that what was not found may be there."""
        self._progress = progress
        self._told = 0.0
        self.device = self.disk.status(f"{self.root}/.").st_dev
        try:
            self.now = context.clock.exact()
        except OSError:
            self.now = time.time_ns() // 1_000_000  # no tmp/ to ask in: what is judged by time is not the trouble here

    def count(self, what: str, number: int = 1) -> None:
        """So many more were looked at."""
        self.counts[what] = self.counts.get(what, 0) + number

    def tell(self, words: str) -> None:
        """Say how far the work is, now and then."""
        if self._progress is not None and time.monotonic() - self._told > _TOLD_EVERY:
            self._told = time.monotonic()
            self._progress(words)

    def suspect(
        self,
        code: str,
        place: tuple[str, str],
        what: str,
        again: Callable[[], object],
        task: str | None = None,
        token: Token | None = None,
    ) -> None:
        """Note that something looks wrong, and how to look again."""
        number = self._of_code[code] = self._of_code.get(code, 0) + 1
        if number <= KEPT:
            self.suspects.append(Suspect(code, place, what, again, task, token))

    @property
    def dropped(self) -> dict[str, int]:
        """Codes of which more was seen than is kept, with how many."""
        return {code: number - KEPT for code, number in self._of_code.items() if number > KEPT}

    # Reader without being led astray

    def names(self, folder: str) -> list[str]:
        """What is in the folder; a link or a mount in its place is a suspect and not entered, what is gone is empty."""
        try:
            # The yard as a whole may be reached through a link, and what is behind that is looked at.
            status = self.disk.status(f"{folder}/." if folder == self.root else folder)
            if stat.S_ISDIR(status.st_mode) and status.st_dev == self.device:
                self.count("folders")
                return [name for name in self.disk.listdir(folder) if not name.startswith(_SILLY)]
        except OSError as error:
            if error.errno not in NO_FOLDER:
                self.unreadable(folder, error)
            return []
        self._odd_folder(folder, status)
        return []

    def _odd_folder(self, folder: str, status: os.stat_result) -> None:
        self.blind = True
        kind = "another mount" if stat.S_ISDIR(status.st_mode) else _called(status.st_mode)
        self.suspect("folder_odd", _split(folder), f"{kind} in the place of a folder", self.stays(folder, status))

    def unreadable(self, path: str, error: OSError, task: str | None = None) -> None:
        """Nothing can be said of this, and that is said."""
        self.blind = True

        def again() -> bool:
            try:
                self.disk.listdir(path) if self.disk.is_folder(path) else self.disk.read(path)
            except OSError as still:
                return still.errno == error.errno
            return False

        self.suspect("unreadable", _split(path), f"cannot be read: {error.strerror or error}", again, task)

    def folders(self, folder: str, fits: Callable[[str], object]) -> Iterator[str]:
        """The names in the folder that fit; every other one is a stray."""
        for name in self.names(folder):
            if fits(name):
                yield name
            else:
                self.stray(folder, name, "no name that can be here")

    def stray(self, folder: str, name: str, what: str, task: str | None = None) -> None:
        """Something that nobody put there by the rules, told as what it is; perhaps a task's file, by its content."""
        path = f"{folder}/{name}"
        try:
            status = self.disk.status(path)
        except OSError:
            return  # on its way, and gone already
        if stat.S_ISLNK(status.st_mode):
            self.suspect("symlink", (folder, name), "a symbolic link", self.stays(path, status))
        else:
            self.suspect("stray", (folder, name), what, self.stays(path, status), task)

    def inspected(
        self, folder: str, name: str, most: int, task: str | None = None
    ) -> tuple[os.stat_result, bytes] | None:
        """The file with its content, or None: gone, or a suspect of its own."""
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
            "not_a_file", (folder, name), f"{_called(status.st_mode)} in the place of a file", self.stays(path), task
        )
        return None

    def is_plain(self, folder: str, name: str, *, is_folder: bool = False) -> bool:
        """Whether this is a file, or a folder, as it must be; else it is a suspect, unless it is gone."""
        path = f"{folder}/{name}"
        try:
            mode = self.disk.status(path).st_mode
        except OSError:
            return False
        if (stat.S_ISDIR if is_folder else stat.S_ISREG)(mode):
            return True
        code = "symlink" if stat.S_ISLNK(mode) else "not_a_file"
        what = f"{_called(mode)} in the place of a {'folder' if is_folder else 'file'}"
        self.suspect(code, (folder, name), what, self.stays(path))
        return False

    def stays(self, path: str, status: os.stat_result | None = None) -> Callable[[], bool]:
        """Whether that very thing is still there."""

        def again() -> bool:
            try:
                now = self.disk.status(path)
            except OSError:
                return False
            return status is None or (now.st_ino, now.st_mode, now.st_dev) == (
                status.st_ino,
                status.st_mode,
                status.st_dev,
            )

        return again

    def lacks(self, *paths: str) -> Callable[[], bool]:
        """Whether none of these is there still."""
        return lambda: not any(map(self.has, paths))

    def find(self, id: str) -> Found | None:
        """The task, after as many looks as it takes to be sure that it is nowhere."""
        try:
            return self.context.locator.find(id)
        except NotFound:
            return None

    def is_nowhere(self, id: str) -> bool:
        """Whether the task is surely in no state; not where some of the yard cannot be looked at."""
        try:
            return not self.blind and self.find(id) is None
        except OSError:
            return False

    def has(self, path: str) -> bool:
        """Whether there is anything of this name; where that cannot be told, nothing is said to be missing."""
        try:
            return self.disk.exists(path)
        except OSError:
            self.blind = True
            return True

    def age(self, path: str) -> int:
        """Milliseconds since anything was done to this name's file; nothing, if it is gone."""
        try:
            return self.now - self.disk.changed_at(path)
        except OSError:
            return 0


def _called(mode: int) -> str:
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
