"""Every filesystem call of the directory store goes through a Disk, so that a simulated one can take its place.

Calls on the hot path are the `os` functions themselves; what needs a comment is a method. Times are milliseconds since
1970 by the clock of whoever keeps the files: a file server's, where there is one.
"""

from __future__ import annotations

import errno
import os

_NO_HARD_LINKS = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL))
_PAGE = 4096
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Disk:
    """The filesystem as the directory store uses it."""

    rename = staticmethod(os.rename)
    listdir = staticmethod(os.listdir)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    unlink = staticmethod(os.unlink)
    write = staticmethod(os.write)
    close = staticmethod(os.close)

    def read(self, path: str) -> bytes:
        """The file's content."""
        descriptor = os.open(path, _READ)
        try:
            content = os.read(descriptor, _PAGE)
            if len(content) == _PAGE:
                while more := os.read(descriptor, 1 << 20):
                    content += more
        finally:
            os.close(descriptor)
        return content

    def stamp(self, path: str) -> int:
        """When the file was last touched or moved: a rename moves only ctime, a heartbeat both.

        By way of a descriptor, because on NFS a stat by name may be 30 s old.
        """
        descriptor = os.open(path, _READ)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000

    def create(self, path: str, content: bytes, sync: bool) -> None:
        """A new file, whole."""
        descriptor = os.open(path, _CREATE, 0o666)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def publish(self, draft: str, path: str) -> bool:
        """Give a whole file its name unless that name is taken; the draft's own name is gone afterwards."""
        try:
            os.link(draft, path)
        except FileExistsError:
            os.unlink(draft)
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # No hard links here: the look and the rename are two calls, and a twin in between would win silently.
            if os.path.lexists(path):
                os.unlink(draft)
                return False
            os.rename(draft, path)
            return True
        os.unlink(draft)
        return True

    def touch(self, path: str) -> None:
        """Set the file's time to now, by the file server's clock; an explicit time would be this machine's."""
        os.utime(path)

    def now(self, probe: str) -> int:
        """The file server's time in nanoseconds, from a probe file that is touched for it."""
        try:
            os.utime(probe)
        except FileNotFoundError:
            os.close(os.open(probe, _APPEND, 0o666))
            os.utime(probe)
        return os.stat(probe).st_mtime_ns

    def open_append(self, path: str) -> int:
        """A descriptor whose every write lands whole at the end."""
        return os.open(path, _APPEND, 0o666)

    def append(self, path: str, content: bytes, create: bool = True) -> int:
        """Add to the end of a file in one write, and tell where it landed: how much stood before it."""
        descriptor = os.open(path, _APPEND if create else _APPEND & ~os.O_CREAT, 0o666)
        try:
            os.write(descriptor, content)
            return os.lseek(descriptor, 0, os.SEEK_CUR) - len(content)
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        """How many bytes the file has."""
        return os.stat(path).st_size

    def changed(self, path: str) -> int:
        """The directory's own time in nanoseconds; only ever a hint, because a listing may lag behind it."""
        return os.stat(path).st_mtime_ns

    def exists(self, path: str) -> bool:
        """Whether there is anything of this name."""
        return os.path.lexists(path)

    def sync(self, path: str) -> None:
        """Have this file, or the names in this directory, survive a power cut."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, path: str) -> None:
        """Have all that was written on this filesystem survive a power cut: one call for a whole batch."""
        import ctypes  # 3 ms, and only batches come here

        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
            if syncfs is None:
                os.sync()
            elif syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        finally:
            os.close(descriptor)
