"""Every filesystem call of the directory store goes through a Disk, so that a simulated one can take its place.

Calls on the hot path are the `os` functions themselves; what needs a comment is a method. Times are those of the
machine that keeps the files: a file server's, where there is one. Always a file's ctime, because its mtime can be set
to anything.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

from taskyard.core import abandonment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

_NO_HARD_LINKS = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL))
_PAGE = 4096
_MOST = 1 << 26  # bytes that are read at once: many times the largest legal task, result or edit
# Follow no link, and do not wait for the other end of a pipe.
_SAFE = os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | _SAFE
_LIST = _READ | os.O_DIRECTORY
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _SAFE
_ONLY_FOLDERS = 0x01000000 | 0x02000000  # IN_ONLYDIR, IN_DONT_FOLLOW
_NO_PAGE = frozenset(
    (errno.ENOENT, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ESPIPE, errno.EACCES, errno.EOVERFLOW, errno.EINVAL)
)
_NOT_OPENED = frozenset((errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM))  # a link, a socket, another user's file
_MISSING = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))  # nothing of the yard's own has this name
_NOTHING_TO_SYNC = frozenset((errno.ELOOP, errno.ENXIO, errno.EINVAL))  # a link, a socket, a pipe


class Look:
    """What a file from outside turned out to be."""

    __slots__ = ("content", "is_folder", "oddity")

    def __init__(self, content: bytes = b"", is_folder: bool = False, oddity: str | None = None) -> None:
        self.content = content
        self.is_folder = is_folder
        self.oddity = oddity


class Shared:
    """A small file whose content outlives its process, and that is locked while the process lives.

    Written as any file, or mapped. A mapped file needs no system call. But the process is killed (SIGBUS) if another
    program makes the file shorter, or a full disk has no block for it.
    """

    __slots__ = ("_descriptor", "memory")

    def __init__(self, descriptor: int, memory: mmap | None) -> None:
        self._descriptor = descriptor
        self.memory = memory

    def put(self, line: bytes, at: int = 0) -> None:
        """Replace what was there; the line's own end marks where it stops."""
        if self.memory is not None:
            self.memory[at : at + len(line)] = line
        else:
            os.pwrite(self._descriptor, line, at)

    def grow(self, size: int) -> None:
        """Make the file `size` bytes long; a mapped file needs its blocks now."""
        if self.memory is not None and len(self.memory) < size:
            from mmap import mmap

            os.pwrite(self._descriptor, bytes(size - len(self.memory)), len(self.memory))
            # a thread that still writes to the old one writes to the same pages
            self.memory = mmap(self._descriptor, size)

    def close_copy(self) -> None:
        """Close this process's copy; the lock stays with the parent process."""
        os.close(self._descriptor)

    def close(self) -> None:
        """Unmap the memory, and release the lock that shows that this process lives."""
        if self.memory is not None:
            self.memory.close()
        os.close(self._descriptor)


class Disk:
    """The filesystem as the directory store uses it."""

    rename = staticmethod(os.rename)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    unlink = staticmethod(os.unlink)
    write = staticmethod(os.write)
    close = staticmethod(os.close)
    _open = staticmethod(os.open)  # of existing files, and
    _status = staticmethod(os.lstat)  # the type of a name: the two ways to find that there is no such thing

    def listdir(self, folder: str) -> list[str]:
        """Return the names in the folder; a link to a folder is refused."""
        abandonment.check()  # whatever reads much lists many folders
        descriptor = self._open(folder, _LIST)
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        """Return the file's content."""
        descriptor = self._open(path, _READ)
        try:
            content = os.read(descriptor, _PAGE)
            if len(content) == _PAGE:
                _refuse_endless(os.fstat(descriptor), path)
                content += _rest(descriptor)
        finally:
            os.close(descriptor)
        return content

    def stamp(self, path: str) -> int:
        """Return when the file was last touched or moved, by its ctime, which no user can set.

        By a descriptor, because on NFS a stat by name may be 30 s old; by name if it cannot be opened.
        """
        try:
            descriptor = self._open(path, _READ)
        except OSError as error:
            if error.errno not in _NOT_OPENED:
                raise
            return self.changed_at(path)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return status.st_ctime_ns // 1_000_000

    def create(self, path: str, content: bytes, sync: bool) -> None:
        """Make a new file with this content."""
        descriptor = os.open(path, CREATE, 0o666)
        try:
            self.grant(descriptor)
            written = os.write(descriptor, content)
            while written < len(content):
                written += os.write(descriptor, content[written:])
            if sync:
                os.fsync(descriptor)
        except OSError:
            os.unlink(path)  # the disk is full, and half a file would only make it fuller
            raise
        finally:
            os.close(descriptor)

    def link(self, path: str, second: str) -> bool:
        """Give a file a second name, unless that is taken."""
        try:
            os.link(path, second)
        except FileExistsError:
            return False
        return True

    def links(self, path: str) -> int:
        """Return how many names the file has."""
        return self._status(path).st_nlink

    def move_new(self, path: str, target: str) -> bool:
        """Give an ordinary file another name, unless that is taken; a rename would overwrite it."""
        try:
            os.link(path, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # No hard links here: the look and the rename are two calls, and a file made in between would be
            # overwritten.
            if self.exists(target):
                return False
            os.rename(path, target)
            return True
        os.unlink(path)
        return True

    def step_aside(self, path: str, target: str) -> bool:
        """Rename what is no folder, by calls that fail on a folder made there meanwhile; return whether it was renamed."""
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                os.symlink(os.readlink(path), target)  # the same link; another user's link cannot be hard-linked
            else:
                os.link(path, target, follow_symlinks=False)
        except FileExistsError:
            return False
        try:
            os.unlink(path)
        except OSError:
            os.unlink(target)
            raise
        return True

    def publish(self, draft: str, path: str) -> bool:
        """Give a whole file its name unless that name is taken; the draft's own name is gone either way."""
        if self.move_new(draft, path):
            return True
        os.unlink(draft)
        return False

    def touch(self, path: str) -> None:
        """Set the file's time to now, by the file server's clock; an explicit time would be this machine's."""
        os.utime(path, follow_symlinks=False)

    def now(self, probe: str) -> int:
        """Return the file server's time in nanoseconds, by touching a probe file."""
        try:
            os.utime(probe, follow_symlinks=False)
        except FileNotFoundError:
            os.close(self.appending(probe))
            os.utime(probe, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            return time.time_ns()  # nothing can be moved here, so no lease depends on it: good enough for reading
        return self._status(probe).st_ctime_ns

    def read_at(self, path: str, offset: int, most: int = 1 << 20) -> bytes:
        """Read up to `most` bytes from `offset`. Return b"" at the end, or if it is not a regular file."""
        try:
            descriptor = self._open(path, _READ)
        except OSError as error:
            if error.errno not in _NO_PAGE:
                raise
            return b""
        try:
            return os.pread(descriptor, most, offset)
        except OSError as error:
            if error.errno not in _NO_PAGE:
                raise
            return b""
        finally:
            os.close(descriptor)

    def share(self, path: str, size: int, mapped: bool) -> Shared:
        """Make a file that is locked for as long as this process lives; mapped if asked for, and safe here."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        # Locked under a hidden name, then renamed: no process ever sees it unlocked while this one lives.
        hidden = f"{path}.new"
        # Read-only, so that no other program opens a mapped file for writing and makes it shorter; a shared yard's
        # group may.
        mode = 0o444 if mapped else 0o666
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            self.grant(descriptor)
            flock(descriptor, LOCK_EX | LOCK_NB)
            os.write(descriptor, b"\n" + bytes(size - 1))  # written, not just made longer: so its blocks are allocated
            memory = None
            # On a block device (ext4, xfs; neither btrfs nor ZFS nor a network) no write needs another block, nor in memory.
            if mapped and (os.major(os.fstat(descriptor).st_dev) or _is_in_memory(path)):
                from mmap import mmap

                memory = mmap(descriptor, size)
            os.rename(hidden, path)
        except OSError:
            os.close(descriptor)
            os.unlink(hidden)
            raise
        return Shared(descriptor, memory)

    def hold(self, draft: str, path: str, content: Callable[[os.stat_result], bytes]) -> int:
        """Make a file that is locked while its descriptor is open in any process; `content` is given its status."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        # Writable, so that its last close is an event of its own; locked before it is visible.
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            self.grant(descriptor)
            flock(descriptor, LOCK_EX | LOCK_NB)
            os.write(descriptor, content(os.fstat(descriptor)))
            os.rename(draft, path)
        except OSError:
            os.close(descriptor)
            os.unlink(draft)
            raise
        return descriptor

    def held(self, path: str) -> tuple[bool, os.stat_result, bytes]:
        """Return whether a living process on this kernel holds the file, its status, and its content."""
        from fcntl import LOCK_NB, LOCK_SH, flock

        descriptor = self._open(path, _READ)
        try:
            status, content = os.fstat(descriptor), os.read(descriptor, 1 << 16)
            flock(descriptor, LOCK_SH | LOCK_NB)
        except BlockingIOError:
            return True, status, content
        finally:
            os.close(descriptor)
        return False, status, content

    def is_locked(self, path: str) -> bool:
        """Whether a living process on this kernel holds the file."""
        from fcntl import LOCK_NB, LOCK_SH, flock

        descriptor = self._open(path, _READ)
        try:
            flock(descriptor, LOCK_SH | LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def is_written_to(self, path: str) -> bool:
        """Whether any process on this kernel has the file open for writing; True where that is unknown.

        The kernel grants a read lease only while no process has. A process that opens the file at that very moment
        waits until the lease is returned. The signal for a broken lease is set to one that is ignored by default.
        """
        import fcntl
        from signal import SIGURG

        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except (OSError, AttributeError):  # it is open; or not ours, or on a filesystem or a system without leases
            return True
        finally:
            os.close(descriptor)
        return False

    def lock(self, path: str) -> int | None:
        """Return a descriptor that locks the file until it is closed; None if another process holds it, or it lost its name."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        try:
            # NFS gives an exclusive lock only to a descriptor that may write
            descriptor = self._open(path, os.O_RDWR | _SAFE)
        except FileNotFoundError:
            return None
        except (PermissionError, IsADirectoryError):
            descriptor = self._open(path, _READ)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
            own, there = os.fstat(descriptor), self._status(path)
            if (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def remove_tree(self, path: str) -> None:
        """Remove a file, or a folder with all in it, if it exists; links are not followed."""
        try:
            self.unlink(path)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):
            from shutil import rmtree

            rmtree(path, ignore_errors=True)

    def same_file(self, one: str, other: str) -> bool:
        """Whether both names exist and name one file."""
        try:
            first, second = self._status(one), self._status(other)
        except FileNotFoundError:
            return False
        return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino) and first.st_nlink > 1

    def remove(self, path: str) -> None:
        """Remove this name, if it exists."""
        try:
            self.unlink(path)
        except FileNotFoundError:
            return

    def open_append(self, path: str, descriptor: int = -1) -> int:
        """Return a descriptor whose every write lands whole at the end; with `descriptor`, redirect that one.

        So a thread that is about to write always finds it open, and never finds an unrelated file there.
        """
        opened = self.appending(path)
        if descriptor < 0:
            return opened
        os.dup2(opened, descriptor, inheritable=False)
        os.close(opened)
        return descriptor

    def appending(self, path: str, create: bool = True) -> int:
        """Open a file to append to."""
        return os.open(path, APPEND if create else APPEND & ~os.O_CREAT, 0o666)

    def grant(self, descriptor: int) -> None:
        """Let those who share the yard use a new file; here the umask alone decides."""

    def owner(self, path: str) -> str:
        """Return the name of the user who owns the file, or the number of one without a name."""
        from pwd import getpwuid

        number = self._status(path).st_uid
        try:
            return getpwuid(number).pw_name
        except KeyError:
            return f"user {number}"

    def adopt(self, path: str) -> bool:
        """Whether a dropped file can be used as it is: a heartbeat touches it, and only its owner or a writer may do that."""
        if self._status(path).st_uid == os.geteuid():
            return True
        return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)

    def length(self, descriptor: int) -> int:
        """Return the size of an open file; sys.maxsize if it is not a regular file."""
        status = os.fstat(descriptor)
        return status.st_size if stat.S_ISREG(status.st_mode) else sys.maxsize

    def append(self, path: str, content: bytes, create: bool = True) -> int:
        """Append in one write, and return the position where it landed; raise an error if a part of it did not fit."""
        descriptor = self.appending(path, create)
        try:
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return os.lseek(descriptor, 0, os.SEEK_CUR) - len(content)
        finally:
            os.close(descriptor)

    def which(self, path: str) -> tuple[int, int]:
        """Return what identifies a file or folder, by whatever path it was reached."""
        status = os.stat(path)
        return status.st_dev, status.st_ino

    def cut(self, path: str, size: int) -> None:
        """Truncate a file that no other process has open to `size` bytes."""
        os.truncate(path, size)

    def size(self, path: str) -> int:
        """Return the size of the file in bytes."""
        return self._status(path).st_size

    def changed(self, path: str) -> int:
        """Return the directory's own time in nanoseconds; only a hint, because a listing may lag behind it."""
        return self._status(path).st_mtime_ns

    def changed_at(self, path: str) -> int:
        """Return when this name's file last changed, in milliseconds; of a link, not of its target."""
        status = self._status(path)
        return status.st_ctime_ns // 1_000_000

    def is_file(self, path: str) -> bool:
        """Whether this is an ordinary file."""
        return stat.S_ISREG(self._status(path).st_mode)

    def is_folder(self, path: str) -> bool:
        """Whether this is a folder, and no link to one; raise where that is unknown."""
        try:
            return stat.S_ISDIR(self._status(path).st_mode)
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            return False

    def examine(self, path: str, most: int) -> Look:
        """Examine a file from outside, without following links, waiting for pipes or reading what is too large."""
        try:
            descriptor = self._open(path, _READ)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Look(oddity="it is a symbolic link; put the file itself there")
            if error.errno == errno.ENXIO:
                return Look(oddity="it is not an ordinary file")  # a socket
            raise
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                return Look(is_folder=True)
            if not stat.S_ISREG(status.st_mode):
                return Look(oddity="it is not an ordinary file")
            if status.st_size > most:
                return Look(oddity=f"it has {status.st_size} bytes, and a task has at most {most}")
            return Look(_rest(descriptor))
        finally:
            os.close(descriptor)

    def status(self, path: str) -> os.stat_result:
        """Return the status of this name's file; of a link, not of its target."""
        return self._status(path)

    def inspect(self, path: str, most: int) -> tuple[os.stat_result, bytes]:
        """Return the status of this name's file, and up to `most` bytes of it if it is regular; links are not followed."""
        descriptor = self._open(path, _READ)
        try:
            status = os.fstat(descriptor)
            content = b""
            if stat.S_ISREG(status.st_mode):
                content = os.read(descriptor, min(most, _PAGE))
                while _PAGE <= len(content) < most and (more := os.read(descriptor, most - len(content))):
                    content += more
            return status, content
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        """Whether this name exists; raise where that is unknown, as in another user's folder."""
        try:
            self._status(path)
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            return False
        return True

    def may_change(self, folder: str) -> bool:
        """Whether this user may make and remove names in the folder."""
        return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)

    def has(self, path: str) -> bool:
        """Whether this name can be seen, by one call that raises nothing: False proves nothing."""
        return os.access(path, os.F_OK)

    def sync(self, path: str) -> None:
        """Make this file, or the names in this directory, survive a power cut; links, sockets and pipes are skipped."""
        try:
            descriptor = self._open(path, _READ)
        except OSError as error:
            if error.errno not in _NOTHING_TO_SYNC:
                raise
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NOTHING_TO_SYNC:
                raise
        finally:
            os.close(descriptor)

    def sync_all(self, path: str) -> None:
        """Make all that was written on this filesystem survive a power cut: one call for a whole batch."""
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

    def watcher(self) -> int:
        """Return an inotify descriptor, readable when something happens in a watched folder; Linux only."""
        import ctypes  # 3 ms, and only those who wait come here

        begin = getattr(ctypes.CDLL(None, use_errno=True), "inotify_init1", None)
        if begin is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        descriptor: int = begin(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return descriptor

    def watch(self, watcher: int, folder: str, events: int) -> None:
        """Watch for these events in this folder."""
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.inotify_add_watch(watcher, os.fsencode(folder), events | _ONLY_FOLDERS) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)


def _is_in_memory(path: str) -> bool:
    """Whether this is on a tmpfs: there, two calls fewer are 2 of a claim and done's 28 us."""
    from taskyard.stores.directory.filesystem import safety

    return safety.filesystem(os.path.realpath(os.path.dirname(path))) == "tmpfs"


def _rest(descriptor: int) -> bytes:
    """Read to the end."""
    pieces = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _refuse_endless(status: os.stat_result, path: str) -> None:
    """Refuse what would fill the memory: a device, or a file that another program made huge."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "not an ordinary file", path)
    if status.st_size > _MOST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
