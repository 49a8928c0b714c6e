"""The place under examination, and a corner of it in which the doctor may do as it likes.

The doctor's names are `.doctor%.<tag>`: hidden, no word, no writer's, no task's. Whatever reads a folder of a yard passes
them over, and no janitor takes them away.
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
_LONG_AGO = 86_400.0  # seconds after which a corner is left behind, where no lock can tell


class Place:
    """A directory, with what can be told of it without touching it."""

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
        """The type of its filesystem."""
        return "unknown" if self.mount is None else self.mount.kind

    def path(self, *parts: str) -> str:
        """Something in it."""
        return os.path.join(self.root, *parts)

    def usable(self) -> list[str]:
        """The folders of the yard in which this user can make and move files."""
        return [folder for folder in self.folders if may_write(self.path(folder))]


def look(path: str) -> Place:
    """The place of this name; `Unavailable` if there is none, `Invalid` if it is no directory."""
    try:
        if not os.path.isdir(path):
            os.stat(path)
            raise Invalid(f"{path} is not a directory", hint="name a yard, or the directory that it shall be made in")
        return Place(path)
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
    """Whether this user can make and move files in the folder, as far as permissions tell."""
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


class Corner:
    """A folder of the doctor's own on the same mount: in a yard's tmp/, else in the directory itself; gone at the end."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.base = place.path("tmp") if "tmp" in place.folders else place.root
        self.tag = ids.base32(ids.chance(60), 12)
        self.name = f"{MARK}{self.tag}"
        self.probe = f"{self.name}{_PROBE}"
        """What a file is called that is sent through the yard's own folders."""
        self.root = os.path.join(self.base, self.name)
        self._lock = -1

    def __enter__(self) -> Corner:
        os.mkdir(self.root)
        try:
            # Locked before it has its name: nobody ever finds it unlocked while this process lives.
            self._lock = os.open(self.path("new"), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            locked(self._lock)
            os.write(self._lock, _identity(self._lock))
            os.rename(self.path("new"), self.path(_ALIVE))
            self._clear_up_after_the_dead()
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
            self._remove()  # whoever is in a hurry still wants a clean yard
            raise

    def path(self, *parts: str) -> str:
        """Something in it."""
        return os.path.join(self.root, *parts)

    def folder(self, *parts: str) -> str:
        """A new folder in it."""
        path = self.path(*parts)
        os.makedirs(path, exist_ok=True)
        return path

    def file(self, *parts: str, content: bytes = b"") -> str:
        """A new file in it."""
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
        remove(self.place, self.base, self.name)

    def _clear_up_after_the_dead(self) -> None:
        """Take away what doctors have left that were killed."""
        now = os.stat(self.path(_ALIVE)).st_ctime
        for base in {self.base, self.place.root}:  # there may have been no yard when they came
            for name in os.listdir(base):
                if name.startswith(MARK) and name != self.name and is_left(os.path.join(base, name), now):
                    remove(self.place, base, name)


def remove(place: Place, base: str, name: str) -> None:
    """Take away a corner and the probe of the same doctor, wherever in the yard that was last."""
    from shutil import rmtree

    for folder in place.folders:
        path = place.path(folder, f"{name}{_PROBE}")
        if os.path.lexists(path):
            os.unlink(path)
    rmtree(os.path.join(base, name), ignore_errors=True)


def locked(descriptor: int) -> bool:
    """Whether the open file is locked now, by this process alone."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError:
        return False
    return True


def is_left(corner: str, now: float | None = None) -> bool:
    """Whether the doctor that made this corner is dead: its lock is free; or nothing has been done there for a day."""
    try:
        status = os.stat(corner)
        if now is not None and now - max(status.st_ctime, status.st_mtime) > _LONG_AGO:
            return True
        descriptor = os.open(os.path.join(corner, _ALIVE), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A lock that looks free may be held, over a network or by way of another mount: only who sees the same file can tell.
        same = os.read(descriptor, 4096) == _identity(descriptor)
        return same and safety.is_local(corner) and locked(descriptor)
    finally:
        os.close(descriptor)


def _identity(descriptor: int) -> bytes:
    """Which file this is, and on which kernel, as whoever has it open sees it."""
    status = os.fstat(descriptor)
    return f"{kernel()} {status.st_dev} {status.st_ino}\n".encode()


def kernel() -> str:
    """The name of this boot of this machine, the same in all its containers."""
    try:
        with open(BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename
