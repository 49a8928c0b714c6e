"""SIGKILL at any one system call of the directory store that matters: a forked child does the work, and dies there.

A kill before a call that only reads leaves the same disk as a kill before the next change. So the child dies before each
change, and before the call that follows one: between two changes it may have noted an intent in shared memory.

What a kill leaves is the disk, without the locks of the dead. So `kills` has a child do the work once, and stand still at each of
these calls while the disk is copied. Kills that leave equal disks are one, and at one call the child is killed for good.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import stat
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from taskyard.stores.directory.filesystem import disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHANGES = frozenset(
    ("write", "rename", "link", "unlink", "mkdir", "rmdir", "utime", "ftruncate", "truncate", "pwrite", "symlink")
)
CALLS = CHANGES | {"open", "read", "fsync", "close", "stat", "fstat", "listdir", "lseek", "pread", "access"}


class Kill(NamedTuple):
    """A yard as a kill has left it, or as it was without one."""

    number: int
    """Of the call before which the process died."""
    url: str
    died: bool
    answer: Any
    """Of the process that did not die."""


class Watched:
    """The os module, with a word before each call that is made through it before or after a change."""

    def __init__(self, reached: Callable[[], object]) -> None:
        self._reached = reached
        self._changed = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self.counted(real) if name in CALLS else real

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            changes = real.__name__ in CHANGES or (real is os.open and bool(args[1] & os.O_CREAT))
            if changes or self._changed:
                self._reached()
            self._changed = changes
            return real(*args, **kwargs)

        return call


def killed_at(fatal: int, work: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether the child that did this work was killed before its n-th call beside a change, and what it answered if it was not."""
    left = fatal

    def reached() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(work, reached, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, None
    return False, _answered(said)


def kills(template: str, folder: Path, work: Callable[[str], Any], rest: float = 0) -> Iterator[Kill]:
    """A copy of the template for each kill at a call of the work on it that leaves another disk, and one that nobody has killed.

    `rest` is how many seconds it takes until what was copied just now counts as old.
    """
    whole, killed = str(folder / "whole"), str(folder / "killed")
    for url in (whole, killed):
        copied(template, url)
    time.sleep(rest)
    disks: dict[bytes, tuple[int, str]] = {}
    calls = 0

    def reached() -> None:
        nonlocal calls
        calls += 1
        url = str(folder / str(calls))
        if disks.setdefault(copied(whole, url), (calls, url))[1] != url:
            shutil.rmtree(url)

    answer = _stood_still(lambda: work(whole), reached)
    assert calls, "nothing was killed"
    middle = calls // 2 + 1
    assert killed_at(middle, lambda: work(killed))[0], "the same work makes as many calls"
    time.sleep(rest)
    yield from (Kill(number, url, True, None) for number, url in disks.values())
    yield Kill(middle, killed, True, None)
    yield Kill(calls + 1, whole, False, answer)


def copied(folder: str, target: str) -> bytes:
    """Copy a yard with its times and hard links; return what is equal for equal ones."""
    names: dict[int, str] = {}
    seen = blake2b()

    def copy(source: str, target: str, within: str) -> None:
        os.mkdir(target)
        for name in sorted(os.listdir(source)):
            path, twin, known = f"{source}/{name}", f"{target}/{name}", f"{within}/{name}"
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                copy(path, twin, known)
            elif status.st_ino in names:
                os.link(names[status.st_ino], twin)
            else:
                assert stat.S_ISREG(status.st_mode), path
                names[status.st_ino] = twin
                with open(path, "rb") as file, open(twin, "xb") as other:
                    content = file.read()
                    other.write(content)
                seen.update(b"%d %d " % (len(content), status.st_mtime_ns))
                seen.update(content)
                os.utime(twin, ns=(status.st_atime_ns, status.st_mtime_ns))
                os.chmod(twin, stat.S_IMODE(status.st_mode))
            first = names.get(status.st_ino, "")[len(whole) :]
            seen.update(f"{known} {first} {status.st_mode}\n".encode())
        status = os.stat(source)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.chmod(target, stat.S_IMODE(status.st_mode))

    whole = target
    copy(folder, target, "")
    return seen.digest()


def _stood_still(work: Callable[[], Any], reached: Callable[[], object]) -> Any:
    """The answer of a child that did this work, and stood still at each call beside a change until `reached` was called."""
    reading, writing = os.pipe()
    waiting, going = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(work, lambda: (os.write(writing, b"."), os.read(waiting, 1)), writing)
    os.close(writing)
    os.close(waiting)
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while (said := pipe.read(1)) == b".":  # no pickle begins with that
                reached()
                os.write(going, b".")
            said += pipe.read()
    finally:
        os.close(going)
    assert os.waitpid(child, 0)[1] == 0
    return _answered(said)


def _answered(said: bytes) -> Any:
    """The answer of a child, or its error."""
    answer = pickle.loads(said)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _be_the_child(work: Callable[[], Any], reached: Callable[[], object], writing: int) -> None:
    watched = Watched(reached)
    setattr(disk, "os", watched)  # noqa: B010  its own import of the module, which is nobody else's business
    for name in ("rename", "listdir", "mkdir", "rmdir", "unlink", "write", "close"):
        setattr(disk.Disk, name, staticmethod(watched.counted(getattr(os, name))))
    try:
        answer = work()
    except BaseException as error:
        answer = error
    os.write(writing, pickle.dumps(answer))
    os._exit(0)
