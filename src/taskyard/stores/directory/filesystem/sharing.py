"""A yard that a group shares: whatever is made in it can be read and written by the group, whatever anybody's umask is.

As with git's `core.sharedRepository`: the folders are setgid, so that all below them belongs to the group, and what is made
gets the group's bits before anybody else can see it under its name. What others may do is left as the umask says.
"""

from __future__ import annotations

import os
import stat

from taskyard.core.errors import Invalid
from taskyard.core.ids import base32, chance
from taskyard.stores.directory.filesystem.disk import APPEND, CREATE, Disk

_FILE, _FOLDER = 0o060, 0o2070  # what a group needs


def place_is_shared(path: str) -> bool:
    """Whether this folder, or the nearest above it that is there, is one that a group shares: setgid, and writable for it."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return os.stat(path).st_mode & (stat.S_ISGID | stat.S_IWGRP) == stat.S_ISGID | stat.S_IWGRP


def group_number(name: str) -> int:
    """The number of the group of this name."""
    from grp import getgrnam

    try:
        return int(name) if name.isascii() and name.isdigit() else getgrnam(name).gr_gid
    except (KeyError, ValueError):
        raise Invalid(f"there is no group {name!a} here", hint="'getent group' shows the groups there are") from None


def group_name(number: int) -> str:
    """The name of this group, or its number where it has none."""
    from grp import getgrgid

    try:
        return getgrgid(number).gr_name
    except KeyError:
        return str(number)


def give(folder: str, group: int | None = None) -> None:
    """Let a group have a folder that we made: this one, or the one that it belongs to already."""
    if group is not None:
        os.chown(folder, -1, group)
    os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | _FOLDER)


class SharedDisk(Disk):
    """The filesystem as a shared yard uses it."""

    def __init__(self, root: str) -> None:
        self._tmp = f"{root}/tmp"
        self._group = os.stat(root).st_gid

    def grant(self, descriptor: int) -> None:
        """Let the group read and write what was just made."""
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & _FILE != _FILE:
            os.fchmod(descriptor, mode | _FILE)

    def adopt(self, path: str) -> bool:
        """Whether the group can write this file now; not if it is another user's, who keeps it to himself."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if status.st_gid != self._group:
                os.fchown(descriptor, -1, self._group)  # moved here from elsewhere, it brought its own group
            self.grant(descriptor)
        except PermissionError:
            return False
        finally:
            os.close(descriptor)
        return True

    def mkdir(self, folder: str) -> None:  # type: ignore[override]
        """A new folder; made elsewhere and moved here, so that nobody of the group ever finds it shut."""
        draft = self._draft()
        os.mkdir(draft)
        try:
            give(draft)
            os.rename(draft, folder)  # onto an empty folder it goes through: two who make it at once have one
        except OSError as error:
            os.rmdir(draft)
            if os.path.lexists(folder):
                raise FileExistsError(error.errno, error.strerror, folder) from None
            raise

    def appending(self, path: str, create: bool = True) -> int:
        """A descriptor of a file to append to; a new one has its bits before it has its name."""
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
