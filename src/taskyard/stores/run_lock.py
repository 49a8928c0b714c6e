"""Shows whether the run that works in a folder still lives: by a lock that the kernel drops with its last process."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOCK_FILE = "running"
_HIDDEN = ".running"  # the same before it is locked
_MARK_MOST = 4096  # bytes


def lock(folder: str) -> Callable[[], None]:
    """Lock the folder; return the function that unlocks it, so that the folder stays."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    hidden, visible = os.path.join(folder, _HIDDEN), os.path.join(folder, _LOCK_FILE)
    try:
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return lambda: None  # a full disk: without a lock file, no process takes the run for dead
    try:
        os.write(descriptor, _mark(folder))
        flock(descriptor, LOCK_EX | LOCK_NB)
        os.rename(hidden, visible)  # locked before it is visible: a visible file without a lock belongs to a dead run
    except OSError:
        os.unlink(hidden)  # no room, or no locks here

    def unlock() -> None:
        if os.path.exists(visible):
            os.unlink(visible)
        os.close(descriptor)

    return unlock


def dead(folders: Iterable[str]) -> list[str]:
    """Return the folders whose run was killed: this user's own, with a lock file that is not locked."""
    return [folder for folder in folders if _is_dead(folder)]


def clear(folder: str) -> bool:
    """Remove a dead run's folder, the lock file last: if this process is killed, the rest is still recognised."""
    import shutil

    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != _LOCK_FILE:
                os.unlink(entry.path)
        shutil.rmtree(folder)
    except OSError:
        return False  # not all of it is this user's, or another process removes it too
    return True


def _is_dead(folder: str) -> bool:
    from fcntl import LOCK_EX, LOCK_NB, flock
    from stat import S_ISDIR

    try:
        found = os.lstat(folder)
        if not S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        descriptor = os.open(os.path.join(folder, _LOCK_FILE), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False  # not a run's folder, or unlocked, or just being removed
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        return os.read(descriptor, _MARK_MOST) == _mark(folder)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _mark(folder: str) -> bytes:
    """Return the content of the lock file, which no other program's file of that name has."""
    return os.fsencode(f"a trial of taskyard works in {os.path.basename(folder)}\n")
