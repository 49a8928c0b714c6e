"""SIGKILL at any one system call of the directory store that matters: a forked child does the work, and dies there.

A kill before a call that only reads leaves the same disk as a kill before the next change. So the child dies before each
change, and before the call that follows one: between two changes it may have noted an intent in shared memory.
"""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING, Any

from taskyard.stores.directory.filesystem import disk

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = frozenset(
    ("write", "rename", "link", "unlink", "mkdir", "rmdir", "utime", "ftruncate", "truncate", "pwrite", "symlink")
)
CALLS = CHANGES | {"open", "read", "fsync", "close", "stat", "fstat", "listdir", "lseek", "pread", "access"}


class Deadly:
    """The os module, but for the n-th call that is made through it before or after a change."""

    def __init__(self, fatal: int) -> None:
        self._left = fatal
        self._changed = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self.counted(real) if name in CALLS else real

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            changes = real.__name__ in CHANGES or (real is os.open and bool(args[1] & os.O_CREAT))
            if changes or self._changed:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            self._changed = changes
            return real(*args, **kwargs)

        return call


def killed_at(fatal: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether the child that did this work was killed before its n-th call beside a change, and what it answered if it was not."""
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
