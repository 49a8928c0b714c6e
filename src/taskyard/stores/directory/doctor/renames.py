"""What a rename does here: whether it is one, crosses all folders, and keeps a file's identity and times as it must."""

from __future__ import annotations

import os
import time

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.inspection import ELSEWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.doctor.place import Corner

_AN_HOUR = 3_600_000_000_000  # nanoseconds
_LARGE = 32 << 20
_ROUNDS = 5
_TIMES, _SLOWER = (
    5,
    0.002,
)  # so many times as long, and so many seconds longer: copying 32 MiB takes 5 ms at the very least
_PATIENCE = 3.0  # seconds until the filesystem's clock must have moved on: FAT counts by twos


def across(corner: Corner) -> Finding:
    """Whether a file can be renamed from every folder of the yard to every other, and is the same file all the way."""
    folders = [corner.place.path(folder) for folder in corner.place.usable()]
    if len(folders) < 2:
        folders = [corner.folder("across", name) for name in ("todo", "processing", "done")]
    path = os.path.join(folders[0], corner.probe)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    moves, began = 0, time.perf_counter()
    try:
        for folder in _every_pair(folders):
            target = os.path.join(folder, corner.probe)
            try:
                os.rename(path, target)
            except OSError as error:
                return refuse(
                    "rename",
                    f"a file cannot be renamed from {os.path.dirname(path)} to {folder}: {error.strerror}",
                    "a yard must be one directory on one mount, in which every user may write",
                    moves=moves,
                )
            path, moves = target, moves + 1
        spent = (time.perf_counter() - began) / max(moves, 1)
        if not _is_same(descriptor, path):
            return refuse("rename", "a rename makes a copy: another inode than before", ELSEWHERE, moves=moves)
    finally:
        os.close(descriptor)
        os.unlink(path)
    reason = f"{moves} renames between {len(folders)} folders, {spent * 1e6:.0f} us each"
    return green("rename", reason, moves=moves, folders=len(folders), microseconds=round(spent * 1e6, 1))


def _every_pair(folders: list[str]) -> Iterator[str]:
    """Where to go next from the first folder, so that every folder is left for every other one."""
    for number, folder in enumerate(folders):
        if number:
            yield folder
        for other in folders[number + 1 :]:
            yield other
            yield folder


def descriptor(corner: Corner) -> Finding:
    """Whether an open descriptor follows its file through a rename; one that is a copy and a delete leaves it behind."""
    old, new = os.path.join(corner.folder("here"), "probe"), os.path.join(corner.folder("there"), "probe")
    held = os.open(old, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(held, b"before ")
        os.rename(old, new)
        same, arrived = _is_same(held, new), _arrives(held, new)
    finally:
        os.close(held)
    told = {"same_inode": same, "written_through": arrived}
    if os.path.lexists(old):
        return refuse("descriptor", "after a rename the old name is still there", ELSEWHERE, **told)
    if not arrived or not same:
        return refuse(
            "descriptor",
            "a rename makes a copy: what is written to the open file is not under its new name"
            if same
            else "a rename makes a copy: the new name is another file than the open one",
            ELSEWHERE,
            **told,
        )
    return green("descriptor", "an open file follows its rename, and what is written arrives", **told)


def _is_same(held: int, path: str) -> bool:
    """Whether the open file is the one that has this name; one that is gone with its old name is not."""
    try:
        one, other = os.fstat(held), os.stat(path)
    except OSError:
        return False
    return (one.st_ino, one.st_dev) == (other.st_ino, other.st_dev)


def _arrives(held: int, path: str) -> bool:
    """Whether what is written to the open file is found under this name."""
    try:
        os.write(held, b"after")
        os.fsync(held)
    except OSError:
        return False
    return _read(path) == b"before after"


def _read(path: str) -> bytes:
    """What is in the file, and not just in this kernel's memory of it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def cost(corner: Corner) -> Finding:
    """Whether a large file is renamed as fast as an empty one, and its holes stay: what is copied takes its time, and fills them."""
    status = os.statvfs(corner.root)
    if status.f_bavail * status.f_frsize < 4 * _LARGE:
        return green("cost", "not tried: too little room for a large file", bytes=0)
    sparse = corner.file("sparse")
    os.truncate(sparse, _LARGE)
    before = _status(sparse).st_blocks
    os.rename(sparse, f"{sparse}.moved")
    after = _status(f"{sparse}.moved").st_blocks
    empty, large = corner.file("empty"), corner.file("large")
    descriptor = os.open(large, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for _ in range(_LARGE >> 20):
            os.write(descriptor, os.urandom(1 << 20))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    small, big = _quickest(empty), _quickest(large)
    os.unlink(large)
    told = {"bytes": _LARGE, "microseconds_large": round(big * 1e6, 1), "microseconds_empty": round(small * 1e6, 1)}
    told |= {"blocks_before": before, "blocks_after": after}
    if after > before + 64:
        return refuse("cost", "a rename makes a copy: the holes of a file are filled after it", ELSEWHERE, **told)
    figures = f"{big * 1e6:.0f} us for 32 MiB, {small * 1e6:.0f} us for an empty file"
    if big > _TIMES * small and big - small > _SLOWER:
        return refuse(
            "cost", f"a rename makes a copy: it takes longer the larger the file is ({figures})", ELSEWHERE, **told
        )
    return green("cost", f"a rename does not depend on the file's size ({figures})", **told)


def _quickest(path: str) -> float:
    """Seconds for a rename there, or back: the least of several, because a busy machine only ever makes it longer."""
    spent = []
    for _ in range(_ROUNDS):
        for one, other in ((path, f"{path}.moved"), (f"{path}.moved", path)):
            began = time.perf_counter()
            os.rename(one, other)
            spent.append(time.perf_counter() - began)
    return min(spent)


def times(corner: Corner) -> Finding:
    """Whether a rename and a touch move a file's ctime, from which leases are counted, and a rename keeps its mtime."""
    path, target = corner.file("times"), corner.path("times.moved")
    past = time.time_ns() - _AN_HOUR
    os.utime(path, ns=(past, past))
    before = _status(path)
    _let_time_pass(corner, before.st_ctime_ns)
    os.rename(path, target)
    moved = _status(target)
    _let_time_pass(corner, moved.st_ctime_ns)
    os.utime(target)
    touched = _status(target)
    told = {
        "ctime_moves_on_rename": moved.st_ctime_ns > before.st_ctime_ns,
        "ctime_moves_on_touch": touched.st_ctime_ns > moved.st_ctime_ns,
        "mtime_kept": moved.st_mtime_ns == before.st_mtime_ns,
    }
    if not told["ctime_moves_on_rename"]:
        reason = "a rename does not move ctime: a task that has waited for long would look abandoned as soon as it is claimed"
        return refuse("times", reason, ELSEWHERE, **told)
    if not told["ctime_moves_on_touch"]:
        return refuse("times", "a touch does not move ctime: no heartbeat would renew a lease", ELSEWHERE, **told)
    if not told["mtime_kept"]:
        reason = "a rename changes mtime, which no rename should"
        return warn("times", reason, f"a sign of a rename that copies; if in doubt, {ELSEWHERE}", **told)
    return green("times", "a rename and a touch move ctime, a rename keeps mtime", **told)


def _status(path: str) -> os.stat_result:
    """By way of a descriptor: on NFS a stat by name may be 30 s old."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _let_time_pass(corner: Corner, since: int) -> None:
    """Wait until the filesystem's clock has moved on, as a file that is made anew each time tells."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        ticking = corner.file("ticking")
        ctime = _status(ticking).st_ctime_ns
        os.unlink(ticking)
        if ctime > since:
            return
        clocks.pause(0.001)
