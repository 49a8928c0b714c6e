"""Explains an OSError: what is wrong with the yard's place, and what to do about it."""

from __future__ import annotations

import errno
import functools
import os
from stat import S_ISGID

from taskyard.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    class Placed(Protocol):
        """Anything that has a yard's path."""

        url: str

    P = ParamSpec("P")
    R = TypeVar("R")
    S = TypeVar("S", bound=Placed)

_HINTS = {
    errno.ENOSPC: "make room on the disk (df -h, df -i), then try again",
    errno.EDQUOT: "make room within your quota, then try again",
    errno.EROFS: "the filesystem is read-only; mount it for writing",
    errno.ELOOP: "somebody has put a link where the yard has a folder or a file; put that itself there, because no link is followed",
    errno.EACCES: "check who owns the yard and its permissions",
    errno.EPERM: "check who owns the yard and its permissions",
    errno.EMFILE: "this process has too many files open; close some, or raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open",
    errno.ENOENT: "the yard, or a part of it, is gone; check that its disk is mounted",
    errno.ESTALE: "the file server has moved on; try again",
    errno.EIO: "the disk or file server reports an error; look at the system's log",
}
_NAMED = 20  # ids that one message names

_UNWRITABLE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM))


def hint(error: OSError) -> str:
    """Return what to do about it."""
    return _HINTS.get(error.errno or 0, "look at the system's log, and try again")


def unavailable(error: OSError, root: str, kept: list[str] | None = None) -> Unavailable:
    """Make the error for what the filesystem refused; for a batch, with the tasks that could not be removed again."""
    what = "cannot be written" if error.errno in _UNWRITABLE else "cannot be used right now"
    where = f" ({error.filename})" if error.filename else ""
    rest = f"; {_staying(kept)}" if kept else ""
    who = _permissions(root) if error.errno in (errno.EACCES, errno.EPERM) else None
    return Unavailable(
        f"the yard {root} {what}: {error.strerror or error}{where}{rest}",
        hint=who or hint(error),
    )


def interrupted(kept: list[str]) -> KeyboardInterrupt:
    """Make the error for a Ctrl-C in the middle of a batch, with the tasks that could not be removed again."""
    return KeyboardInterrupt(_staying(kept) if kept else "nothing of the batch was added")


def _staying(kept: list[str]) -> str:
    more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
    return f"of the batch these stay, claimed already or under a key: {', '.join(kept[:_NAMED])}{more}"


def _permissions(root: str) -> str | None:
    """Return who may work in this yard, for a user who may not."""
    try:
        status = os.stat(root)
        if status.st_uid == os.geteuid():
            return None  # its owner's own permissions are the cause
        if status.st_mode & S_ISGID:
            from taskyard.stores.directory.filesystem.sharing import group_name

            return f"this yard is for the group {group_name(status.st_gid)}: work as one of its members"
        from taskyard.stores.directory.filesystem.disk import Disk

        return (
            f"this yard is {Disk().owner(root)}'s alone; one that is made with 'taskyard init --shared' is for a group"
        )
    except OSError:
        return None


def explains_errors(verb: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a verb raise `Unavailable` with an explanation where the filesystem refuses."""

    @functools.wraps(verb)
    def wrapped(store: S, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return verb(store, *args, **kwargs)
        except OSError as error:
            raise unavailable(error, store.url) from error

    return wrapped  # type: ignore[return-value]
