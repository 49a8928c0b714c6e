"""The calls that the store makes, on the model: what `os`, `fcntl`, `mmap`, `time` and `open` are to the simulated code.

A call is made by whoever is on (`World.me`). Whether somebody else goes first is the world's business; here is what each
call does, and which names and files it may look at or change.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import stat
import time
from contextlib import nullcontext
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN
from hashlib import blake2b
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .files import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from .actors import Actor, World

ROOT = "/yard"
NETWORK_ROOT = "/net/yard"
BOOT = "5eed5eed-0000-4000-8000-000000000000"
MOUNTS = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:50 / /net rw - nfs4 server:/ rw\n"
LISTING_ENDS = "listdir, its end"
SECOND = 1_000_000_000

# What changes what others may see; a process that dies before one of these leaves something else than after it.
CHANGING = frozenset(("open", "write", "pwrite", "rename", "link", "unlink", "mkdir", "rmdir", "utime", "rmtree"))
CONSTANTS = [name for name in dir(os) if name.startswith(("O_", "SEEK_", "F_OK"))]


CLOCK = "the clock"


def _is_timed(actor: Actor, args: tuple[Any, ...]) -> bool:
    """Whether this is about a file whose time decides something: a claim's, or the probe for the time."""
    path = actor.paths.get(args[0], "") if args and isinstance(args[0], int) else " ".join(map(str, args))
    return "/processing/" in path or path.endswith("/tmp/clock")


class Status(SimpleNamespace):
    """What stat tells."""


class OpenFile:
    """One open file of one process."""

    __slots__ = ("appends", "node", "number", "position")

    def __init__(self, node: Node, number: int, appends: bool) -> None:
        self.node = node
        self.number = number
        self.appends = appends
        self.position = 0


FOLDER = Node(-1, True, 0)  # any folder that is open to be listed


def _free(actor: Actor) -> int:
    return next(number for number in range(3, 10_000) if number not in actor.opened)


class Descriptors(dict[int, OpenFile]):
    """The open files of one process by their numbers."""

    def __missing__(self, number: int) -> OpenFile:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class Kernel:
    """Makes the calls, for the world that is on at the moment."""

    def __init__(self) -> None:
        self.world: World = None  # type: ignore[assignment]  # set before anything runs
        calls = "open read write pread pwrite fsync close rename link unlink mkdir rmdir utime stat fstat listdir access lseek dup2"
        self.os = SimpleNamespace(
            **{name: getattr(os, name) for name in CONSTANTS},
            **{name: self._entry(name) for name in calls.split()},
            lstat=self._entry("stat"),
            scandir=self._scandir,
            geteuid=lambda: 0,
            path=self._paths(),
            stat_result=os.stat_result,
            strerror=os.strerror,
            major=os.major,
            fsencode=os.fsencode,
            fspath=os.fspath,
            getpid=lambda: 100 + self.world.me.number,
            uname=os.uname,
            urandom=self._urandom,
            makedirs=self._makedirs,
            set_blocking=lambda *_: None,
            environ={},
        )
        self.time = SimpleNamespace(
            monotonic=lambda: self._clock() / SECOND,
            clock_gettime_ns=lambda _: self._clock(),
            time_ns=self._clock,
            sleep=lambda _: None,
            strftime=time.strftime,
            gmtime=time.gmtime,
            CLOCK_BOOTTIME=7,
            CLOCK_MONOTONIC=1,
        )
        lock = SimpleNamespace(LOCK_EX=LOCK_EX, LOCK_NB=LOCK_NB, LOCK_SH=LOCK_SH, flock=self._entry("flock"))
        everything = SimpleNamespace(syncfs=lambda _: self._entry("syncfs")() or 0)
        self.modules: dict[str, Any] = {
            "os": self.os,
            "time": self.time,
            "fcntl": lock,
            "mmap": SimpleNamespace(mmap=self._mapped),
            "shutil": SimpleNamespace(rmtree=lambda path, **_: self._entry("rmtree")(path)),
            "random": SimpleNamespace(random=lambda: int.from_bytes(self._urandom(4), "big") / (1 << 32)),
            "ctypes": SimpleNamespace(CDLL=lambda *_, **__: everything, get_errno=lambda: errno.EIO),
        }

    def _entry(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self.world.call(name, args, options)

        return {"open": self._open(call), "close": self._close(call), "listdir": self._listdir(call)}.get(name, call)

    # To open a folder, list it and close it again is one step: whatever happens in between might as well come before it.

    def _open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def open_(path: str, flags: int, *more: Any) -> Any:
            if not flags & os.O_DIRECTORY:
                return call(path, flags, *more)
            actor = self.world.me
            descriptor = _free(actor)
            actor.opened[descriptor] = OpenFile(FOLDER, 0, appends=False)
            actor.paths[descriptor] = path
            return descriptor

        return open_

    def _close(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def close(descriptor: int) -> None:
            opened = self.world.me.opened
            if opened[descriptor].node is FOLDER:
                del opened[descriptor]
            else:
                call(descriptor)

        return close

    def _listdir(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda folder: call(self.world.me.paths[folder] if isinstance(folder, int) else folder)

    def _paths(self) -> SimpleNamespace:
        same = ("dirname", "basename", "join", "abspath", "expanduser", "normpath")
        looked = {"exists": self._entry("exists"), "lexists": self._entry("exists"), "realpath": lambda path: path}
        return SimpleNamespace(**{name: getattr(posixpath, name) for name in same}, **looked)

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        """The builtin, for the few files that are read when a yard is opened."""
        if path == "/proc/self/mountinfo":
            return io.StringIO(MOUNTS)
        if path.startswith("/proc/"):
            return io.StringIO(f"{BOOT}\n")
        return io.BytesIO(self.world.files.find(path).content)

    def _clock(self) -> int:
        self.world.heard(self.world.files.now)
        return self.world.files.now

    def _urandom(self, size: int) -> bytes:
        actor = self.world.me
        actor.drawn += 1
        return blake2b(b"%s %d %d" % (actor.name.encode(), actor.drawn, self.world.seed), digest_size=size).digest()

    def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        parts = path.split("/")
        for end in range(2, len(parts) + 1):
            if self.world.files.look("/".join(parts[:end])) is None:
                self.do_mkdir(self.world.me, "/".join(parts[:end]))

    def _scandir(self, path: str) -> Any:
        """What is in the yard's own folder when it is opened: there is no link in the model."""
        files = self.world.files
        entries = [(name, files.find(f"{path}/{name}").folder) for name in files.listed(path)]
        return nullcontext(
            [SimpleNamespace(name=name, is_dir=lambda is_dir=is_dir, **_: is_dir) for name, is_dir in entries]
        )

    def _mapped(self, descriptor: int, _: int) -> Mapped:
        return Mapped(self.world, self.world.me.opened[descriptor].node)

    # Which names and files a call is about, before it is made

    def about(self, actor: Actor, name: str, args: tuple[Any, ...]) -> list[object]:
        """All that this call may look at or change."""
        files = self.world.files
        found: list[object] = [CLOCK] if name == "advance" or (self.world.moving and _is_timed(actor, args)) else []
        for arg in args:
            if isinstance(arg, str) and arg.startswith("/"):
                folder, _, last = arg.rpartition("/")
                found += [("name", arg), ("name", folder)]
                if name in CHANGING and (name != "open" or args[1] & os.O_CREAT):
                    found.append(("list", folder))
                if name in ("listdir", "rmdir", "rmtree", "begin", LISTING_ENDS):
                    found.append(("list", arg))
                ino = files.names.get(folder, {}).get(last)
                if ino is not None:
                    found.append(("file", ino))
                seen = actor.view.get(arg)
                if seen is not None:
                    found.append(("file", seen))
        if args and isinstance(args[0], int) and args[0] in actor.opened:
            found.append(("file", actor.opened[args[0]].node.ino))
        return found

    # Names as this process sees them: its own cache may be older than the truth on a network

    def _seen(self, actor: Actor, path: str) -> Node:
        files = self.world.files
        if self.world.stale:
            if path in actor.view:
                ino = actor.view[path]
                if ino is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                if files.nodes[ino].nlink:
                    return files.nodes[ino]
            node = files.look(path)
            actor.view[path] = None if node is None else node.ino
        return files.find(path)

    def _known_missing(self, actor: Actor, path: str) -> None:
        if self.world.stale and actor.view.get(path, 0) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _learn(self, actor: Actor, *paths: str) -> None:
        if self.world.stale:
            for path in paths:
                folder, _, name = path.rpartition("/")
                actor.view[path] = self.world.files.names.get(folder, {}).get(name)

    # The calls

    def do_open(self, actor: Actor, path: str, flags: int, mode: int = 0o666) -> int:
        files = self.world.files
        if flags & os.O_CREAT:
            node = files.look(path)
            if node is None:
                node = files.made(path, actor.fresh(), folder=False)
            elif flags & os.O_EXCL:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._learn(actor, path)
        else:
            node = self._seen(actor, path)
        if node.folder and flags & (os.O_WRONLY | os.O_RDWR):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        descriptor = _free(actor)
        actor.opened[descriptor] = OpenFile(node, actor.fresh(), bool(flags & os.O_APPEND))
        actor.paths[descriptor] = path
        return descriptor

    def do_close(self, actor: Actor, descriptor: int) -> None:
        opened = actor.opened[descriptor]
        del actor.opened[descriptor]
        if opened.number in opened.node.locks and opened not in actor.opened.values():
            self.world.files.locked(opened.node, opened.number, None)

    def do_dup2(self, actor: Actor, descriptor: int, other: int, inheritable: bool = True) -> int:
        if other in actor.opened:
            self.do_close(actor, other)
        actor.opened[other] = actor.opened[descriptor]
        actor.paths[other] = actor.paths[descriptor]
        return other

    def do_read(self, actor: Actor, descriptor: int, size: int) -> bytes:
        opened = actor.opened[descriptor]
        if opened.node.folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self.world.files.read(opened.node)
        content = opened.node.content[opened.position : opened.position + size]
        opened.position += len(content)
        return content

    def do_pread(self, actor: Actor, descriptor: int, size: int, offset: int) -> bytes:
        node = actor.opened[descriptor].node
        self.world.files.read(node)
        return node.content[offset : offset + size]

    def do_write(self, actor: Actor, descriptor: int, content: bytes) -> int:
        opened, content = actor.opened[descriptor], bytes(content)
        node = opened.node
        at = len(node.content) if opened.appends else opened.position
        self.world.files.touched(node, node.content[:at] + content + node.content[at + len(content) :], "a")
        opened.position = at + len(content)
        return len(content)

    def do_pwrite(self, actor: Actor, descriptor: int, content: bytes, at: int) -> int:
        node = actor.opened[descriptor].node
        self.world.files.touched(node, node.content[:at] + content + node.content[at + len(content) :])
        return len(content)

    def do_lseek(self, actor: Actor, descriptor: int, offset: int, whence: int) -> int:
        return actor.opened[descriptor].position

    def do_fsync(self, actor: Actor, descriptor: int) -> None:
        self.world.files.sync(actor.opened[descriptor].node, actor.paths[descriptor])

    def do_syncfs(self, actor: Actor) -> None:
        self.world.files.sync_all()

    def do_rename(self, actor: Actor, path: str, target: str) -> None:
        self._known_missing(actor, path)
        try:
            self.world.files.renamed(path, target)
        finally:
            self._learn(actor, path, target)

    def do_link(self, actor: Actor, path: str, target: str, **_: Any) -> None:
        self.world.files.linked(path, target)
        self._learn(actor, target)

    def do_unlink(self, actor: Actor, path: str) -> None:
        self._known_missing(actor, path)
        try:
            self.world.files.unlinked(path)
        finally:
            self._learn(actor, path)

    def do_mkdir(self, actor: Actor, path: str, mode: int = 0o777) -> None:
        try:
            self.world.files.made(path, actor.fresh(), folder=True)
        finally:
            self._learn(actor, path)

    def do_rmdir(self, actor: Actor, path: str) -> None:
        self._known_missing(actor, path)
        try:
            self.world.files.removed(path)
        finally:
            self._learn(actor, path)

    def do_rmtree(self, actor: Actor, path: str) -> None:
        for name in self.world.files.listed(path):
            inner = f"{path}/{name}"
            if self.world.files.find(inner).folder:
                self.do_rmtree(actor, inner)
            else:
                self.world.files.unlinked(inner)
        self.world.files.removed(path)

    def do_listdir(self, actor: Actor, path: str) -> list[str]:
        names = self.world.files.listed(path)
        if self.world.stale:
            for known in [known for known in actor.view if known.rpartition("/")[0] == path]:
                del actor.view[known]
        return names

    def do_begin(self, actor: Actor, path: str) -> None:
        """A verb on a claim is said: from here on it counts who holds the task."""

    def do_utime(self, actor: Actor, path: str, follow_symlinks: bool = True) -> None:
        self.world.files.touched(self._seen(actor, path))

    def do_access(self, actor: Actor, path: str, _: int) -> bool:
        return self.do_exists(actor, path)

    def do_exists(self, actor: Actor, path: str) -> bool:
        try:
            self._seen(actor, path)
        except OSError:
            return False
        return True

    def do_stat(self, actor: Actor, path: str, follow_symlinks: bool = True) -> Status:
        return self._status(self._seen(actor, path), path)

    def do_fstat(self, actor: Actor, descriptor: int) -> Status:
        return self._status(actor.opened[descriptor].node, actor.paths[descriptor])

    def _status(self, node: Node, path: str) -> Status:
        size = len(node.content)
        if node.is_log:
            size -= size % (1 << 16)  # whether its page is full is all that anybody asks
        else:
            self.world.files.read(node)
        return Status(
            st_mode=stat.S_IFDIR | 0o777 if node.folder else stat.S_IFREG | 0o666,
            st_ino=node.ino,
            st_dev=os.makedev(0, 50) if path.startswith("/net/") else os.makedev(8, 1),
            st_nlink=node.nlink,
            st_uid=0,
            st_gid=0,
            st_size=size,
            st_mtime_ns=node.mtime,
            st_ctime_ns=node.ctime,
        )

    def do_flock(self, actor: Actor, descriptor: int, how: int) -> None:
        opened = actor.opened[descriptor]
        exclusive = None if how & LOCK_UN else bool(how & LOCK_EX)
        if not self.world.files.locked(opened.node, opened.number, exclusive):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


class Mapped:
    """A file's memory: writing to it is no call, and nobody's death takes it back."""

    def __init__(self, world: World, node: Node) -> None:
        self._world = world
        self._node = node

    def __setitem__(self, part: slice, content: bytes) -> None:
        if not self._world.me.is_dead:
            whole = self._node.content
            self._world.files.touched(self._node, whole[: part.start or 0] + content + whole[part.stop :])
            self._world.account()

    def close(self) -> None:
        """Nothing is lost by it."""
