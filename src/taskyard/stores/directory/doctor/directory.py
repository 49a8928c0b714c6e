"""The examined directory, and the doctor's own folder in it for probes.

The doctor's names are `.doctor%.<tag>`, which are hidden and are no names of tasks, writers or workers. All readers of a yard
skip them, and no janitor removes them.
"""

from __future__ import annotations

import os

from taskyard.core import ids, settings
from taskyard.core.errors import Invalid, TaskyardError, Unavailable
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import mounts, safety
from taskyard.stores.directory.recovery.liveness import BOOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from taskyard.stores.directory.filesystem.mounts import Mount

MARK = layout.DOCTOR_PREFIX
_ALIVE = "alive"
_PROBE = ".probe"
_ABANDONED_AFTER = 86_400.0  # seconds without a change after which a probe folder counts as abandoned


class ExaminedDirectory:
    """A directory, with its mount, its settings and its folders."""

    __slots__ = ("broken", "durability", "folders", "is_yard", "mount", "mounted_within", "root")

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        known = mounts.mounts()
        self.mount: Mount | None = mounts.around(self.root, known)
        self.mounted_within = mounts.within(self.root, known)
        self.is_yard = os.path.lexists(os.path.join(self.root, layout.SETTINGS))
        self.broken: TaskyardError | None = None
        self.durability = settings.DURABILITY
        if self.is_yard:
            try:
                found, wrong = layout.load_for_check(self.root)
                self.durability = found.durability
                self.broken = None if wrong is None else layout.Broken(wrong, hint=layout.BROKEN_HINT)
            except TaskyardError as error:
                self.broken = error
        self.folders = [
            folder
            for folder in layout.FOLDERS
            if os.path.isdir(self.path(folder)) and not os.path.islink(self.path(folder))
        ]

    @property
    def kind(self) -> str:
        """The type of its file system."""
        return "unknown" if self.mount is None else self.mount.kind

    def path(self, *parts: str) -> str:
        """Return a path in the directory."""
        return os.path.join(self.root, *parts)

    def usable(self) -> list[str]:
        """Return the folders of the yard in which this user can make and move files."""
        return [folder for folder in self.folders if may_write(self.path(folder))]


def open_directory(path: str) -> ExaminedDirectory:
    """Open the directory; raise `Unavailable` if it does not exist, `Invalid` if it is no directory."""
    try:
        if not os.path.isdir(path):
            os.stat(path)
            raise Invalid(f"{path} is not a directory", hint="name a yard, or the directory that it shall be made in")
        return ExaminedDirectory(path)
    except FileNotFoundError:
        raise Unavailable(
            f"there is no directory {path}", hint="name a yard, or the directory that it shall be made in"
        ) from None
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be looked at: {error.strerror or error}",
            hint="check its permissions and that its disk is mounted",
        ) from None


def may_write(folder: str) -> bool:
    """Return whether permissions let this user make and move files in the folder."""
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


class ProbeFolder:
    """The doctor's own folder for probes, in a yard's tmp/ or in the directory itself; it is removed at the end."""

    def __init__(self, directory: ExaminedDirectory) -> None:
        self.directory = directory
        self.base = directory.path("tmp") if "tmp" in directory.folders else directory.root
        self.tag = ids.base32(ids.chance(60), 12)
        self.name = f"{MARK}{self.tag}"
        self.probe = f"{self.name}{_PROBE}"
        """The name of the probe file that is renamed through the yard's own folders."""
        self.root = os.path.join(self.base, self.name)
        self._lock = -1

    def __enter__(self) -> ProbeFolder:
        os.mkdir(self.root)
        try:
            # Locked before it gets its name, so that no other doctor finds it unlocked while this process lives.
            self._lock = os.open(self.path("new"), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            locked(self._lock)
            os.write(self._lock, _identity(self._lock))
            os.rename(self.path("new"), self.path(_ALIVE))
            self._remove_leftovers()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._remove()
        except (KeyboardInterrupt, SystemExit):
            self._remove()  # a signal interrupted the first try
            raise

    def path(self, *parts: str) -> str:
        """Return a path in the folder."""
        return os.path.join(self.root, *parts)

    def folder(self, *parts: str) -> str:
        """Make a folder in it."""
        path = self.path(*parts)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, *parts: str, content: bytes = b"") -> str:
        """Make a file in it."""
        path = self.path(*parts)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
        return path

    def _remove(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        remove(self.directory, self.base, self.name)

    def _remove_leftovers(self) -> None:
        """Remove the probe folders of doctors that were killed."""
        now = os.stat(self.path(_ALIVE)).st_ctime
        for base in {self.base, self.directory.root}:  # the yard may have been made after they ran
            for name in os.listdir(base):
                if name.startswith(MARK) and name != self.name and is_abandoned(os.path.join(base, name), now):
                    remove(self.directory, base, name)


def remove(directory: ExaminedDirectory, base: str, name: str) -> None:
    """Remove a probe folder, and the probe file of the same doctor, in whichever folder of the yard it is."""
    from shutil import rmtree

    for folder in directory.folders:
        path = directory.path(folder, f"{name}{_PROBE}")
        if os.path.lexists(path):
            os.unlink(path)
    rmtree(os.path.join(base, name), ignore_errors=True)


def locked(descriptor: int) -> bool:
    """Lock the open file; return whether that succeeded."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError:
        return False
    return True


def is_abandoned(probes: str, now: float | None = None) -> bool:
    """Return whether the doctor of this probe folder is dead: its lock is free, or it was not changed for a day."""
    try:
        status = os.stat(probes)
        if now is not None and now - max(status.st_ctime, status.st_mtime) > _ABANDONED_AFTER:
            return True
        descriptor = os.open(os.path.join(probes, _ALIVE), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Over a network, or through another mount, a held lock may look free. It counts only if both see the same file.
        same = os.read(descriptor, 4096) == _identity(descriptor)
        return same and safety.is_local(probes) and locked(descriptor)
    finally:
        os.close(descriptor)


def _identity(descriptor: int) -> bytes:
    """Return kernel, device and inode of the open file, as this process sees them."""
    status = os.fstat(descriptor)
    return f"{kernel()} {status.st_dev} {status.st_ino}\n".encode()


def kernel() -> str:
    """Return the id of this boot of the machine, which is equal in all its containers."""
    try:
        with open(BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename
