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
import threading
import time
from contextlib import nullcontext
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN
from hashlib import blake2b
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from .files import CLOCK
from .watch import task_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .actors import Actor, Sole, World
    from .files import Node
    from .program import Run


ROOT = "/yard"
NETWORK_ROOT = "/net/yard"
BOOT = "5eed5eed-0000-4000-8000-000000000000"
MOUNTS = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:50 / /net rw - nfs4 server:/ rw\n"
LISTING_ENDS = "listdir, its end"
SECOND = 1_000_000_000
SKEW = 86_400 * SECOND  # by which each process's own clock is ahead of the one before it, and
SKEWS = 90  # of the janitor's by as much as the first one's: only what the disk says is the time

# What changes what others may see; a process that dies before one of these leaves something else than after it.
CHANGING = frozenset(("open", "write", "pwrite", "rename", "link", "unlink", "mkdir", "rmdir", "utime", "rmtree"))
CONSTANTS = [name for name in dir(os) if name.startswith(("O_", "SEEK_", "F_OK"))]


# What a process learns or says without a call that others could come before.
SILENT = frozenset(
    ("ready", "clock", "map", "mapped", "peek", "makedirs", "scandir", "say", "heard", "granted", "rest")
)


class Status(SimpleNamespace):
    """What stat tells."""


class OpenFile(NamedTuple):
    """One open file of one process."""

    ino: int
    number: int
    appends: bool
    position: int = 0


THREADS = (1, 2)  # of every process; the second has its turn only where a script gives it one
FOLDER = -1  # any folder that is open to be listed


def _on_the_way(path: str) -> Iterator[str]:
    """The folders that lead to this name, from the top, and the name itself."""
    at = path.find("/", 1)
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def _free(actor: Actor) -> int:
    number, opened = 3, actor.opened
    while number in opened:
        number += 1
    return number


def is_silent(actor: Actor, name: str, args: tuple[Any, ...]) -> bool:
    """Whether nobody could come before it: to open a folder, list it and close it again is one step."""
    if name == "open":
        return bool(args[1] & os.O_DIRECTORY)
    if name == "close":
        return args[0] in actor.opened and actor.opened[args[0]].ino == FOLDER
    return name in SILENT


class Descriptors(dict[int, OpenFile]):
    """The open files of one process by their numbers."""

    def __missing__(self, number: int) -> OpenFile:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class Kernel:
    """Makes the calls, for the world that is on at the moment."""

    def __init__(self) -> None:
        self.world: World = None  # type: ignore[assignment]  # both are set before anything runs
        self.me: Run | Sole = None  # type: ignore[assignment]
        """Whose code runs at the moment."""
        self.thread = THREADS[0]
        """Which of its threads."""
        self.calls = {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}
        """What answers each call."""
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
            getpid=lambda: 100 + self.me.number,
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
            "threading": SimpleNamespace(
                **{
                    name: getattr(threading, name)
                    for name in threading.__all__
                    if name not in ("get_ident", "enumerate")
                },
                get_ident=lambda: self.thread,
                enumerate=lambda: [SimpleNamespace(ident=number) for number in THREADS],
            ),
            "_thread": SimpleNamespace(allocate_lock=threading.Lock, get_ident=lambda: self.thread),
            "ctypes": SimpleNamespace(CDLL=lambda *_, **__: everything, get_errno=lambda: errno.EIO),
        }

    def _entry(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self.me.call(name, args, options)

        return {"open": self._open(call), "listdir": self._listdir(call)}.get(name, call)

    def _open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def open_(path: str, flags: int, *more: Any) -> Any:
            descriptor = call(path, flags, *more)
            if flags & os.O_DIRECTORY:
                self.me.folders[descriptor] = path
            return descriptor

        return open_

    def _listdir(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda folder: call(self.me.folders[folder] if isinstance(folder, int) else folder)

    def _paths(self) -> SimpleNamespace:
        same = ("dirname", "basename", "join", "abspath", "expanduser", "normpath")
        looked = {"exists": self._entry("exists"), "lexists": self._entry("exists"), "realpath": lambda path: path}
        return SimpleNamespace(**{name: getattr(posixpath, name) for name in same}, **looked)

    def open(self, path: str, mode: str = "r", **_: Any) -> Any:
        """The builtin, for the few files that are read when a yard is opened."""
        if path == "/proc/self/mountinfo":
            return io.StringIO(MOUNTS)
        if path.startswith("/proc/"):
            return io.BytesIO(f"{BOOT}\n".encode()) if "b" in mode else io.StringIO(f"{BOOT}\n")
        return io.BytesIO(self.me.call("peek", (path,), {}))

    def _clock(self) -> int:
        return int(self.me.call("clock", (), {})) + self.me.number % SKEWS * SKEW

    def _urandom(self, size: int) -> bytes:
        me = self.me
        me.drawn += 1
        return blake2b(b"%s %d %d" % (me.name.encode(), me.drawn, me.seed), digest_size=size).digest()

    def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.me.call("makedirs", (path,), {})

    def _scandir(self, path: str) -> Any:
        """What is in the yard's own folder when it is opened: there is no link in the model."""
        entries = self.me.call("scandir", (path,), {})
        return nullcontext(
            [SimpleNamespace(name=name, is_dir=lambda is_dir=is_dir, **_: is_dir) for name, is_dir in entries]
        )

    def _mapped(self, descriptor: int, size: int) -> Mapped:
        return Mapped(self, self.me.call("map", (descriptor,), {}), size)

    # What is learned or said without a call that others could come before

    def do_ready(self, actor: Actor) -> None:
        actor.is_racing = True

    def do_clock(self, actor: Actor) -> int:
        self.world.files.seen.append(("r", CLOCK))
        return self.world.files.now

    def do_rest(self, actor: Actor, _number: int, _memory: object) -> object:
        said = [note for note in self.world.told if note["by"] == actor.name]
        return actor.rest(), repr(said)

    def do_peek(self, actor: Actor, path: str) -> bytes:
        node = self.world.files.find(path)
        self.world.files.read(node)
        return node.content

    def do_makedirs(self, actor: Actor, path: str) -> None:
        parts = path.split("/")
        for end in range(2, len(parts) + 1):
            if self.world.files.look("/".join(parts[:end])) is None:
                self.do_mkdir(actor, "/".join(parts[:end]))

    def do_scandir(self, actor: Actor, path: str) -> list[tuple[str, bool]]:
        files = self.world.files
        return [(name, files.find(f"{path}/{name}").folder) for name in files.listed(path)]

    def do_map(self, actor: Actor, descriptor: int) -> int:
        return actor.opened[descriptor].ino

    def do_mapped(self, actor: Actor, ino: int, begin: int, end: int | None, content: bytes) -> None:
        node = self.world.files.nodes[ino]
        rest = b"" if end is None else node.content[end:]
        self.world.files.touched(node, node.content[:begin] + content + rest)

    def do_say(self, actor: Actor, number: int, note: dict[str, Any]) -> None:
        self.world.told.append({"by": actor.name, "number": number, **note})

    def do_heard(self, actor: Actor, number: int, more: dict[str, Any]) -> None:
        told = self.world.told
        [at] = [at for at, note in enumerate(told) if (note["by"], note["number"]) == (actor.name, number)]
        told[at] = {**told[at], **more}

    def do_granted(self, actor: Actor, id: str) -> str:
        return str(next(note["granted"] for note in self.world.told if note.get("granted", "").startswith(id)))

    # Names as this process sees them: its own cache may be older than the truth on a network

    def _seen(self, actor: Actor, path: str) -> Node:
        files = self.world.files
        if self.world.stale:
            self._known_missing(actor, path)
            if path in actor.view:
                ino = actor.view[path]
                assert ino is not None  # it would be known to be missing
                files.read(files.nodes[ino])
                if files.nodes[ino].nlink:
                    return files.nodes[ino]
            self._remember(actor, path)
        return files.find(path)

    def _known_missing(self, actor: Actor, path: str) -> None:
        """Answer from memory where this name, or a folder above it, was missing when this process looked for it last."""
        if self.world.stale and any(actor.view.get(above, 0) is None for above in _on_the_way(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _remember(self, actor: Actor, path: str) -> None:
        """Look a name up, and remember what it stands for, or the first on the way there that is missing."""
        for above in _on_the_way(path):
            node = self.world.files.look(above)
            if node is None or above == path:
                actor.view[above] = None if node is None else node.ino
                return

    def _learn(self, actor: Actor, *paths: str) -> None:
        if self.world.stale:
            for path in paths:
                folder, _, name = path.rpartition("/")
                actor.view[path] = self.world.files.names.get(folder, {}).get(name)

    # The calls

    def do_open(self, actor: Actor, path: str, flags: int, mode: int = 0o666) -> int:
        files = self.world.files
        descriptor = _free(actor)
        if flags & os.O_DIRECTORY:
            actor.opened[descriptor] = OpenFile(FOLDER, 0, False)
            actor.paths[descriptor] = path
            return descriptor
        if flags & os.O_CREAT:
            self._known_missing(actor, path.rpartition("/")[0])
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
        actor.opened[descriptor] = OpenFile(node.ino, actor.numbered(), bool(flags & os.O_APPEND))
        actor.paths[descriptor] = path
        return descriptor

    def do_close(self, actor: Actor, descriptor: int) -> None:
        opened = actor.opened[descriptor]
        del actor.opened[descriptor]
        if opened.ino != FOLDER:
            self._let_go(actor, opened)

    def _let_go(self, actor: Actor, opened: OpenFile) -> None:
        node = self.world.files.nodes[opened.ino]
        if opened.number in node.locks and all(other.number != opened.number for other in actor.opened.values()):
            self.world.files.locked(node, opened.number, None)

    def closed(self, actor: Actor) -> None:
        """The process has ended: all that it has open is closed, and its locks are free."""
        left = [opened for opened in actor.opened.values() if opened.ino != FOLDER]
        actor.opened = Descriptors()
        for opened in left:
            self._let_go(actor, opened)

    def do_dup2(self, actor: Actor, descriptor: int, other: int, inheritable: bool = True) -> int:
        if other in actor.opened:
            self.do_close(actor, other)
        actor.opened[other] = actor.opened[descriptor]
        actor.paths[other] = actor.paths[descriptor]
        return other

    def _file(self, actor: Actor, descriptor: int) -> Node:
        return self.world.files.nodes[actor.opened[descriptor].ino]

    def do_read(self, actor: Actor, descriptor: int, size: int) -> bytes:
        opened, node = actor.opened[descriptor], self._file(actor, descriptor)
        if node.folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self.world.files.read(node)
        content = node.content[opened.position : opened.position + size]
        actor.opened[descriptor] = opened._replace(position=opened.position + len(content))
        return content

    def do_pread(self, actor: Actor, descriptor: int, size: int, offset: int) -> bytes:
        node = self._file(actor, descriptor)
        if not node.is_marker:
            self.world.files.read(node)
        return node.content[: node.told if node.is_marker else None][offset : offset + size]

    def do_write(self, actor: Actor, descriptor: int, content: bytes) -> int:
        opened, node, content = actor.opened[descriptor], self._file(actor, descriptor), bytes(content)
        at = len(node.content) if opened.appends else opened.position
        self.world.files.touched(node, node.content[:at] + content + node.content[at + len(content) :], "a")
        told = node.told if node.is_marker else at
        actor.opened[descriptor] = opened._replace(position=told + len(content))
        return len(content)

    def do_pwrite(self, actor: Actor, descriptor: int, content: bytes, at: int) -> int:
        node = self._file(actor, descriptor)
        self.world.files.touched(node, node.content[:at] + content + node.content[at + len(content) :])
        return len(content)

    def do_lseek(self, actor: Actor, descriptor: int, offset: int, whence: int) -> int:
        return actor.opened[descriptor].position

    def do_fsync(self, actor: Actor, descriptor: int) -> None:
        self.world.files.sync(self._file(actor, descriptor), actor.paths[descriptor])

    def do_syncfs(self, actor: Actor) -> None:
        self.world.files.sync_all()

    def do_rename(self, actor: Actor, path: str, target: str) -> None:
        self._known_missing(actor, path)
        self._known_missing(actor, target.rpartition("/")[0])
        try:
            self.world.files.renamed(path, target)
        finally:
            self._learn(actor, path, target)

    def do_link(self, actor: Actor, path: str, target: str, **_: Any) -> None:
        self._known_missing(actor, target.rpartition("/")[0])
        self.world.files.linked(path, target)
        self._learn(actor, target)

    def do_unlink(self, actor: Actor, path: str) -> None:
        self._known_missing(actor, path)
        try:
            self.world.files.unlinked(path)
        finally:
            self._learn(actor, path)

    def do_mkdir(self, actor: Actor, path: str, mode: int = 0o777) -> None:
        self._known_missing(actor, path.rpartition("/")[0])
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
        if self.world.stale:
            self._known_missing(actor, path)
            self._remember(actor, path)
        names = self.world.files.listed(path)
        if self.world.stale:
            # A listing asks the server, and what was believed of the names in the folder is forgotten.
            for known in [known for known in actor.view if known.rpartition("/")[0] == path]:
                del actor.view[known]
        return names

    def do_begin(self, actor: Actor, id: str, nonce: str) -> bool | None:
        """A verb on a claim is said: from here on it counts who holds the task."""
        self.world.files.seen.append(("r", ("task", id)))
        return None if self.world.watch is None else self.world.watch.holder(id) == nonce

    def do_waiting(self, actor: Actor) -> list[str]:
        """The tasks that anybody could have now."""
        files, todo = self.world.files, f"{self.world.root}/todo"
        folders = [folder for folder in files.names if folder == todo or folder.startswith(f"{todo}/")]
        files.seen += [("r", ("list", folder)) for folder in folders]
        paths = [f"{folder}/{name}" for folder in folders for name in files.names[folder]]
        return sorted(path for path in paths if task_at(self.world.root, path) is not None)

    def do_advance(self, actor: Actor, seconds: float) -> None:
        """So long passes, for everybody."""
        self.world.files.seen.append(("w", CLOCK))
        self.world.advance(seconds)

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
        return self._status(self._file(actor, descriptor), actor.paths[descriptor])

    def _status(self, node: Node, path: str) -> Status:
        if not node.grows:
            self.world.files.read(node)
        return Status(
            st_mode=stat.S_IFDIR | 0o777 if node.folder else stat.S_IFREG | 0o666,
            st_ino=node.ino,
            st_dev=os.makedev(0, 50) if path.startswith("/net/") else os.makedev(8, 1),
            st_nlink=node.nlink,
            st_uid=0,
            st_gid=0,
            st_size=node.told,
            st_mtime_ns=node.mtime,
            st_ctime_ns=node.ctime,
        )

    def do_flock(self, actor: Actor, descriptor: int, how: int) -> None:
        opened = actor.opened[descriptor]
        exclusive = None if how & LOCK_UN else bool(how & LOCK_EX)
        if not self.world.files.locked(self._file(actor, descriptor), opened.number, exclusive):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


class Mapped:
    """A file's memory: writing to it is no call, and nobody's death takes it back."""

    def __init__(self, kernel: Kernel, ino: int, size: int) -> None:
        self._kernel = kernel
        self._size = size
        self.ino = ino

    def __len__(self) -> int:
        return self._size

    def __setitem__(self, part: slice, content: bytes) -> None:
        self._kernel.me.call("mapped", (self.ino, part.start or 0, part.stop, content), {})

    def close(self) -> None:
        """Nothing is lost by it."""
