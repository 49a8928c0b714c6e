"""SIGKILL at any one system call of the directory store: a forked child does the work, and dies before its n-th call."""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING, Any

from taskyard.stores.directory.filesystem import disk

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = frozenset(
    ("open", "read", "write", "fsync", "close", "rename", "link", "unlink", "mkdir", "rmdir", "utime", "stat", "fstat")
) | {"listdir", "lseek", "pread", "ftruncate", "access"}


class Deadly:
    """The os module, but for the n-th system call that is made through it."""

    def __init__(self, fatal: int) -> None:
        self._left = fatal

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self.counted(real) if name in CALLS else real

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call


def killed_at(fatal: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether the child that did this work was killed before its so-manieth call, and what it said if it was not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(fatal, work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, None
    answer = pickle.loads(said)
    if isinstance(answer, BaseException):
        raise answer
    return False, answer


def _be_the_child(fatal: int, work: Callable[[], Any], writing: int) -> None:
    deadly = Deadly(fatal)
    setattr(disk, "os", deadly)  # noqa: B010  its own import of the module, which is nobody else's business
    for name in ("rename", "listdir", "mkdir", "rmdir", "unlink", "write", "close"):
        setattr(disk.Disk, name, staticmethod(deadly.counted(getattr(os, name))))
    try:
        answer = work()
    except BaseException as error:
        answer = error
    os.write(writing, pickle.dumps(answer))
    os._exit(0)
