"""From an OSError to words: what is wrong with the place, and what to do about it."""

from __future__ import annotations

import errno
import functools

from taskyard.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_HINTS = {
    errno.ENOSPC: "make room on the disk (df -h, df -i); nothing was half done, so just say it again afterwards",
    errno.EDQUOT: "make room within your quota; nothing was half done, so just say it again afterwards",
    errno.EROFS: "the filesystem is read-only; mount it for writing",
    errno.EACCES: "check who owns the yard and its permissions",
    errno.EPERM: "check who owns the yard and its permissions",
    errno.EMFILE: "this process has too many files open; close some, or raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open",
    errno.ENOENT: "the yard, or a part of it, is gone; check that its disk is mounted",
    errno.ESTALE: "the file server has moved on; try again",
    errno.EIO: "the disk or file server reports an error; look at the system's log",
}


def unavailable(error: OSError) -> Unavailable:
    """What to raise for what the filesystem refused."""
    where = f": {error.filename}" if error.filename else ""
    return Unavailable(
        f"the yard cannot be used right now: {error.strerror or error}{where}", hint=_HINTS.get(error.errno or 0)
    )


def told(verb: Callable[P, R]) -> Callable[P, R]:
    """Let what the filesystem refuses come out as `Unavailable`."""

    @functools.wraps(verb)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return verb(*args, **kwargs)
        except OSError as error:
            raise unavailable(error) from error

    return wrapped
