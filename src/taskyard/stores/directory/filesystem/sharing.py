"""A yard that a group shares: the group can read and write whatever is made in it, whatever a user's umask is.

As with git's `core.sharedRepository`: the folders are setgid, so that all below them belongs to the group. New files
get the group's bits before they are visible under their names. What other users may do is left to the umask.
"""

from __future__ import annotations

import os
import stat

from taskyard.core.errors import Invalid
from taskyard.core.ids import base32, chance
from taskyard.stores.directory.filesystem.disk import APPEND, CREATE, Disk

_FILE, _FOLDER = 0o060, 0o2070  # permission bits that a group needs


def place_is_shared(path: str) -> bool:
    """Whether this folder, or the nearest existing one above it, is shared by a group: setgid, and group-writable."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return os.stat(path).st_mode & (stat.S_ISGID | stat.S_IWGRP) == stat.S_ISGID | stat.S_IWGRP


def group_number(name: str) -> int:
    """Return the number of the group of this name."""
    from grp import getgrnam

    try:
        return int(name) if name.isascii() and name.isdigit() else getgrnam(name).gr_gid
    except (KeyError, ValueError):
        raise Invalid(f"there is no group {name!a} here", hint="'getent group' shows the groups there are") from None


def group_name(number: int) -> str:
    """Return the name of this group, or its number where it has none."""
    from grp import getgrgid

    try:
        return getgrgid(number).gr_name
    except KeyError:
        return str(number)


def give(folder: str, group: int | None = None) -> None:
    """Share a folder with a group: with this one, or with the one that it belongs to already.

    What is right already stays: the folder may be another user's, as the mount point of a volume often is.
    """
    if group is not None and group != os.stat(folder).st_gid:
        os.chown(folder, -1, group)
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if mode & _FOLDER != _FOLDER:
        os.chmod(folder, mode | _FOLDER)


class SharedDisk(Disk):
    """The filesystem as a shared yard uses it."""

    def __init__(self, root: str) -> None:
        self._tmp = f"{root}/tmp"
        self._group = os.stat(root).st_gid

    def grant(self, descriptor: int) -> None:
        """Let the group read and write a new file."""
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & _FILE != _FILE:
            os.fchmod(descriptor, mode | _FILE)

    def adopt(self, path: str) -> bool:
        """Let the group write this file; return False if it is another user's, and private."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if status.st_gid != self._group:
                os.fchown(descriptor, -1, self._group)  # moved here from elsewhere, it kept its own group
            self.grant(descriptor)
        except PermissionError:
            return False
        finally:
            os.close(descriptor)
        return True

    def mkdir(self, folder: str) -> None:  # type: ignore[override]
        """Make a folder under a temporary name and move it here, so that the group never finds it closed."""
        draft = self._draft()
        os.mkdir(draft)
        try:
            give(draft)
            os.rename(draft, folder)  # replaces an empty folder: two processes that make it at once have one
        except OSError as error:
            os.rmdir(draft)
            if os.path.lexists(folder):
                raise FileExistsError(error.errno, error.strerror, folder) from None
            raise

    def appending(self, path: str, create: bool = True) -> int:
        """Open a file to append to; a new one has its permission bits before it has its name."""
        try:
            return os.open(path, APPEND & ~os.O_CREAT)
        except FileNotFoundError:
            if not create:
                raise
        draft = self._draft()
        descriptor = os.open(draft, CREATE, 0o666)
        try:
            self.grant(descriptor)
            self.link(draft, path)
        finally:
            os.close(descriptor)
            os.unlink(draft)
        return os.open(path, APPEND & ~os.O_CREAT)

    def _draft(self) -> str:
        return f"{self._tmp}/made-{base32(chance(40), 8)}"
