"""A filesystem with quirks, spoken to the kernel over /dev/fuse without a library: `oddfs.py BACKING POINT TYPE QUIRKS CMD...`.

It mounts a directory (BACKING) at POINT under the name of TYPE, runs CMD, and ends with its exit code. Run it in a mount
namespace of its own. Without quirks it passes everything on; QUIRKS, separated by commas, are:

    copy        a rename copies and deletes; the name keeps its node, as with most FUSE libraries, open files stay behind
    bypath      open files are read and written by their present names, so that they seem to follow a copy
    renumber    with copy: the new name is a new node
    keep        a rename copies and does not delete
    fold        names are found whatever their case          lower      names are kept in lower case
    composed    names are kept in Unicode's composed form    short      names have at most 100 bytes
    nolinks     no hard links                                nosync     folders cannot be synced
    still       a rename does not move ctime                 coarse     times are even seconds
    ahead       the server's clock is an hour ahead          full       no byte is free
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import struct
import subprocess
import sys
import unicodedata
from pathlib import Path

ROOT = 1
HOUR = 3_600_000_000_000
NO_REPLY = (2, 36, 42)  # forget, interrupt, batch forget
_IN = struct.Struct("<IIQQIIII")
_OUT = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")


class OddFilesystem:
    """Answers the kernel's questions about one directory."""

    def __init__(self, backing: str, quirks: set[str]) -> None:
        self.backing = backing
        self.quirks = quirks
        self.paths = {ROOT: ""}
        self.nodes = {"": ROOT}
        self.still: dict[int, int] = {}
        self.handles: dict[int, list[tuple[int, str, int]]] = {}
        self.verbs = {
            1: self.lookup, 3: self.getattr, 4: self.setattr, 9: self.mkdir, 10: self.unlink, 11: self.rmdir,
            12: self.rename, 13: self.link, 14: self.open, 15: self.read, 16: self.write, 17: self.statfs,
            18: self.release, 20: self.fsync, 25: self.nothing, 26: self.init, 27: self.opendir, 28: self.readdir,
            29: self.releasedir, 30: self.fsyncdir, 35: self.create, 45: self.rename2,
        }  # fmt: skip

    def serve(self, device: int) -> None:
        while True:
            try:
                request = os.read(device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.ENODEV, errno.ENOENT, errno.EINTR):
                    if error.errno == errno.ENODEV:
                        return  # unmounted
                    continue
                raise
            _, opcode, unique, node, *_ = _IN.unpack_from(request)
            if opcode in NO_REPLY:
                continue
            code, answer = 0, b""
            try:
                if opcode not in self.verbs:
                    raise OSError(errno.ENOSYS, "")
                answer = self.verbs[opcode](node, request[_IN.size :])
            except OSError as error:
                code = -(error.errno or errno.EIO)
            os.write(device, _OUT.pack(_OUT.size + len(answer), code, unique) + answer)

    # Names and nodes

    def name(self, folder: int, raw: bytes) -> str:
        """The path of a name in a folder, as it is kept."""
        name = raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        if "short" in self.quirks and len(name) > 100:
            raise OSError(errno.ENAMETOOLONG, "")
        if "lower" in self.quirks:
            name = name.lower()
        if "composed" in self.quirks:
            name = unicodedata.normalize("NFC", name)
        path = self.paths[folder]
        if "fold" in self.quirks:
            there = {entry.lower(): entry for entry in os.listdir(self.real(path))}
            name = there.get(name.lower(), name)
        return f"{path}/{name}"

    def real(self, path: str) -> str:
        return self.backing + path

    def node(self, path: str) -> int:
        if path not in self.nodes:
            self.nodes[path] = max(self.paths) + 1
            self.paths[self.nodes[path]] = path
        return self.nodes[path]

    def attributes(self, node: int, status: os.stat_result) -> bytes:
        times = [status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns]
        if "still" in self.quirks:
            times[2] = max(self.still.get(node, 0), status.st_mtime_ns)
        if "coarse" in self.quirks:
            times = [moment // 2_000_000_000 * 2_000_000_000 for moment in times]
        if "ahead" in self.quirks:
            times = [moment + HOUR for moment in times]
        whole, rest = zip(*(divmod(moment, 1_000_000_000) for moment in times), strict=True)
        return _ATTRIBUTES.pack(
            status.st_ino, status.st_size, status.st_blocks, *whole, *rest,
            status.st_mode, status.st_nlink, status.st_uid, status.st_gid, 0, 4096, 0,
        )  # fmt: skip

    def entry(self, path: str) -> bytes:
        node = self.node(path)
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node, os.lstat(self.real(path)))

    # Verbs: each takes the node and what was sent, and gives what is answered

    def init(self, node: int, sent: bytes) -> bytes:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 17, 1 << 5, 12, 9, 1 << 17, 1, 0, 0, 0, *[0] * 7)

    def nothing(self, node: int, sent: bytes) -> bytes:
        return b""

    def lookup(self, node: int, sent: bytes) -> bytes:
        return self.entry(self.name(node, sent))

    def getattr(self, node: int, sent: bytes) -> bytes:
        flags, _, handle = struct.unpack_from("<IIQ", sent)
        status = os.fstat(handle) if flags & 1 else os.lstat(self.real(self.paths[node]))
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node, status)

    def setattr(self, node: int, sent: bytes) -> bytes:
        valid, _, _, size, _, atime, mtime, _, atime_rest, mtime_rest, _, mode, *_ = struct.unpack_from("<II6Q8I", sent)
        path = self.real(self.paths[node])
        if valid & 1:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & 8:
            os.truncate(path, size)
        if valid & (128 | 256):
            os.utime(path)
        elif valid & (16 | 32):
            os.utime(path, ns=(atime * 10**9 + atime_rest, mtime * 10**9 + mtime_rest))
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node, os.lstat(path))

    def mkdir(self, node: int, sent: bytes) -> bytes:
        path = self.name(node, sent[8:])
        os.mkdir(self.real(path), struct.unpack_from("<I", sent)[0])
        return self.entry(path)

    def unlink(self, node: int, sent: bytes) -> bytes:
        path = self.name(node, sent)
        os.unlink(self.real(path))
        self.forget(path)
        return b""

    def rmdir(self, node: int, sent: bytes) -> bytes:
        path = self.name(node, sent)
        os.rmdir(self.real(path))
        self.forget(path)
        return b""

    def forget(self, path: str) -> None:
        """The name is free; its node stays, under another name if it has one."""
        node = self.nodes.pop(path, None)
        for other, held in self.nodes.items():
            if node is not None and held == node:
                self.paths[node] = other

    def rename(self, node: int, sent: bytes) -> bytes:
        (target,) = struct.unpack_from("<Q", sent)
        return self.renamed(node, target, sent[8:])

    def rename2(self, node: int, sent: bytes) -> bytes:
        target, flags, _ = struct.unpack_from("<QII", sent)
        if flags:
            raise OSError(errno.EINVAL, "")
        return self.renamed(node, target, sent[16:])

    def renamed(self, node: int, target: int, names: bytes) -> bytes:
        first, second, *_ = names.split(b"\0")
        old, new = self.name(node, first), self.name(target, second)
        if {"copy", "keep"} & self.quirks and not os.path.isdir(self.real(old)):
            shutil.copy2(self.real(old), self.real(new) + "~")
            os.replace(self.real(new) + "~", self.real(new))
            if "copy" in self.quirks:
                Path(self.real(old)).unlink(missing_ok=True)  # an object store does not mind a delete of what is gone
        else:
            self.still[self.node(old)] = os.lstat(self.real(old)).st_mtime_ns
            os.rename(self.real(old), self.real(new))
        self.nodes.pop(new, None)
        if "renumber" in self.quirks:
            self.nodes.pop(old, None)
        for path in [path for path in self.nodes if path == old or path.startswith(f"{old}/")]:
            moved = self.nodes.pop(path)
            self.paths[moved] = new + path[len(old) :]
            self.nodes[self.paths[moved]] = moved
        return b""

    def link(self, node: int, sent: bytes) -> bytes:
        if "nolinks" in self.quirks:
            raise OSError(errno.EPERM, "")
        (old,) = struct.unpack_from("<Q", sent)
        path = self.name(node, sent[8:])
        os.link(self.real(self.paths[old]), self.real(path))
        self.nodes[path] = old
        return self.entry(path)

    def open(self, node: int, sent: bytes) -> bytes:
        (flags,) = struct.unpack_from("<I", sent)
        kept = flags & (os.O_ACCMODE | os.O_APPEND | os.O_TRUNC)
        return struct.pack("<QII", os.open(self.real(self.paths[node]), kept), 0, 0)

    def create(self, node: int, sent: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", sent)
        path = self.name(node, sent[16:])
        kept = flags & (os.O_ACCMODE | os.O_APPEND | os.O_TRUNC | os.O_EXCL)
        handle = os.open(self.real(path), kept | os.O_CREAT, stat.S_IMODE(mode))
        return self.entry(path) + struct.pack("<QII", handle, 0, 0)

    def read(self, node: int, sent: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", sent)
        if "bypath" in self.quirks:
            with open(self.real(self.paths[node]), "rb") as file:
                return os.pread(file.fileno(), size, offset)
        return os.pread(handle, size, offset)

    def write(self, node: int, sent: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", sent)
        if "bypath" in self.quirks:
            with open(self.real(self.paths[node]), "r+b") as file:
                return struct.pack("<II", os.pwrite(file.fileno(), sent[40 : 40 + size], offset), 0)
        return struct.pack("<II", os.pwrite(handle, sent[40 : 40 + size], offset), 0)

    def release(self, node: int, sent: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", sent)[0])
        return b""

    def fsync(self, node: int, sent: bytes) -> bytes:
        os.fsync(struct.unpack_from("<Q", sent)[0])
        return b""

    def fsyncdir(self, node: int, sent: bytes) -> bytes:
        if "nosync" in self.quirks:
            raise OSError(errno.EINVAL, "")
        return b""

    def opendir(self, node: int, sent: bytes) -> bytes:
        path = self.paths[node]
        handle = max(self.handles, default=0) + 1
        with os.scandir(self.real(path)) as entries:
            self.handles[handle] = [(entry.inode(), entry.name, 4 if entry.is_dir() else 8) for entry in entries]
        return struct.pack("<QII", handle, 0, 0)

    def readdir(self, node: int, sent: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", sent)
        answer = b""
        for number, (ino, name, kind) in enumerate(self.handles[handle][offset:], offset + 1):
            raw = name.encode("utf-8", "surrogateescape")
            record = struct.pack("<QQII", ino, number, len(raw), kind) + raw
            record += bytes(-len(record) % 8)
            if len(answer) + len(record) > size:
                break
            answer += record
        return answer

    def releasedir(self, node: int, sent: bytes) -> bytes:
        del self.handles[struct.unpack_from("<Q", sent)[0]]
        return b""

    def statfs(self, node: int, sent: bytes) -> bytes:
        status = os.statvfs(self.backing)
        free = 0 if "full" in self.quirks else status.f_bavail
        counts = (status.f_blocks, free, free, status.f_files, status.f_ffree)
        return struct.pack("<5Q10I", *counts, status.f_bsize, 255, status.f_frsize, *[0] * 7)


def main(backing: str, point: str, kind: str, quirks: str, *command: str) -> int:
    device = os.open("/dev/fuse", os.O_RDWR)
    owner = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    # Its name is also what is mounted, as with most: that is all that a filesystem without a subtype tells.
    if libc.mount(kind.removeprefix("fuse.").encode(), point.encode(), kind.encode(), 0, owner.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}")
    server = os.fork()
    if server == 0:
        try:
            OddFilesystem(str(Path(backing).resolve()), set(filter(None, quirks.split(",")))).serve(device)
        finally:
            os._exit(0)
    os.close(device)
    try:
        return subprocess.run(command, check=False, timeout=110).returncode
    finally:
        libc.umount2(point.encode(), 2)  # MNT_DETACH
        os.kill(server, 9)
        os.waitpid(server, 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
