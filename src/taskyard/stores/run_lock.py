"""A folder that a run works in, and whether the run still lives: a lock tells, which the kernel drops with its last process."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SIGN = "running"
_UNSIGNED = ".running"
_MARK_MOST = 4096  # bytes


def keep(folder: str) -> Callable[[], None]:
    """Have the folder say that its run lives, as long as it does; what is given ends that in order, and the folder stays."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    hidden, sign = os.path.join(folder, _UNSIGNED), os.path.join(folder, _SIGN)
    try:
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return lambda: None  # a disk that is full: nobody can tell, so nothing is said
    try:
        os.write(descriptor, _mark(folder))
        flock(descriptor, LOCK_EX | LOCK_NB)
        os.rename(hidden, sign)  # locked before it can be seen: a sign without a lock is a dead run's
    except OSError:
        os.unlink(hidden)  # no room, or no locks here

    def end() -> None:
        if os.path.exists(sign):
            os.unlink(sign)
        os.close(descriptor)

    return end


def dead(folders: Iterable[str]) -> list[str]:
    """Those of the folders whose run was killed: our own, with a sign that nobody has locked."""
    return [folder for folder in folders if _is_dead(folder)]


def clear(folder: str) -> bool:
    """Whether a dead run's folder is gone; the sign goes last, so that one who is killed over it leaves no riddle."""
    import shutil

    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            elif entry.name != _SIGN:
                os.unlink(entry.path)
        shutil.rmtree(folder)
    except OSError:
        return False  # not all of it is ours to remove, or somebody else removes it too
    return True


def _is_dead(folder: str) -> bool:
    from fcntl import LOCK_EX, LOCK_NB, flock
    from stat import S_ISDIR

    try:
        found = os.lstat(folder)
        if not S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        descriptor = os.open(os.path.join(folder, _SIGN), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False  # none of ours, one that ended in order, or one that goes in this moment
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        return os.read(descriptor, _MARK_MOST) == _mark(folder)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _mark(folder: str) -> bytes:
    """What the sign says: a file of that name that somebody else put here says something else."""
    return os.fsencode(f"a trial of taskyard works in {os.path.basename(folder)}\n")
