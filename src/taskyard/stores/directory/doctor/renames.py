"""Check renames: that each is a real rename, works between all folders, and treats inode and times as it must."""

from __future__ import annotations

import os
import time

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks
from taskyard.stores.directory.doctor.inspection import ELSEWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.doctor.directory import ProbeFolder

_HOUR = 3_600_000_000_000  # nanoseconds
_LARGE = 32 << 20
_ROUNDS = 5
_TIMES = 5  # a rename that takes this many times as long as one of an empty file ...
_SLOWER = 0.002  # ... and this many seconds longer is a copy: copying 32 MiB takes at least 5 ms
_TIMEOUT = 3.0  # seconds until the file system's clock must have advanced: FAT counts by two seconds


def across(probes: ProbeFolder) -> Finding:
    """Check that a file can be renamed from every folder of the yard to every other, and stays the same file."""
    folders = [probes.directory.path(folder) for folder in probes.directory.usable()]
    if len(folders) < 2:
        folders = [probes.folder("across", name) for name in ("todo", "processing", "done")]
    path = os.path.join(folders[0], probes.probe)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    moves, began = 0, time.perf_counter()
    try:
        for folder in _every_pair(folders):
            target = os.path.join(folder, probes.probe)
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
    """Yield the target of each rename, starting in the first folder, so that every ordered pair occurs."""
    for number, folder in enumerate(folders):
        if number:
            yield folder
        for other in folders[number + 1 :]:
            yield other
            yield folder


def descriptor(probes: ProbeFolder) -> Finding:
    """Check that an open descriptor follows its file through a rename; a copy and a delete would break that."""
    old, new = os.path.join(probes.folder("here"), "probe"), os.path.join(probes.folder("there"), "probe")
    held = os.open(old, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(held, b"before ")
        os.rename(old, new)
        same, arrived = _is_same(held, new), _arrives(held, new)
    finally:
        os.close(held)
    measured = {"same_inode": same, "written_through": arrived}
    if os.path.lexists(old):
        return refuse("descriptor", "after a rename the old name is still there", ELSEWHERE, **measured)
    if not arrived or not same:
        return refuse(
            "descriptor",
            "a rename makes a copy: what is written to the open file is not under its new name"
            if same
            else "a rename makes a copy: the new name is another file than the open one",
            ELSEWHERE,
            **measured,
        )
    return green("descriptor", "an open file follows its rename, and what is written arrives", **measured)


def _is_same(held: int, path: str) -> bool:
    """Return whether the open file is the one under this path."""
    try:
        one, other = os.fstat(held), os.stat(path)
    except OSError:
        return False
    return (one.st_ino, one.st_dev) == (other.st_ino, other.st_dev)


def _arrives(held: int, path: str) -> bool:
    """Write to the open file; return whether the content is found under this path."""
    try:
        os.write(held, b"after")
        os.fsync(held)
    except OSError:
        return False
    return _read(path) == b"before after"


def _read(path: str) -> bytes:
    """Read the file from the disk, not from this kernel's cache."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def cost(probes: ProbeFolder) -> Finding:
    """Check that a large file is renamed as fast as an empty one, and keeps its holes; a copy does neither."""
    status = os.statvfs(probes.root)
    if status.f_bavail * status.f_frsize < 4 * _LARGE:
        return green("cost", "not tried: too little room for a large file", bytes=0)
    sparse = probes.file("sparse")
    os.truncate(sparse, _LARGE)
    before = _status(sparse).st_blocks
    os.rename(sparse, f"{sparse}.moved")
    after = _status(f"{sparse}.moved").st_blocks
    empty, large = probes.file("empty"), probes.file("large")
    descriptor = os.open(large, os.O_WRONLY | os.O_CLOEXEC)
    try:
        for _ in range(_LARGE >> 20):
            os.write(descriptor, os.urandom(1 << 20))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    small, big = _quickest(empty), _quickest(large)
    os.unlink(large)
    measured = {"bytes": _LARGE, "microseconds_large": round(big * 1e6, 1), "microseconds_empty": round(small * 1e6, 1)}
    measured |= {"blocks_before": before, "blocks_after": after}
    if after > before + 64:
        return refuse("cost", "a rename makes a copy: the holes of a file are filled after it", ELSEWHERE, **measured)
    figures = f"{big * 1e6:.0f} us for 32 MiB, {small * 1e6:.0f} us for an empty file"
    if big > _TIMES * small and big - small > _SLOWER:
        return refuse(
            "cost", f"a rename makes a copy: it takes longer the larger the file is ({figures})", ELSEWHERE, **measured
        )
    return green("cost", f"a rename does not depend on the file's size ({figures})", **measured)


def _quickest(path: str) -> float:
    """Return the seconds of the fastest of several renames: a busy machine can only make them slower."""
    spent = []
    for _ in range(_ROUNDS):
        for one, other in ((path, f"{path}.moved"), (f"{path}.moved", path)):
            began = time.perf_counter()
            os.rename(one, other)
            spent.append(time.perf_counter() - began)
    return min(spent)


def times(probes: ProbeFolder) -> Finding:
    """Check that a rename and a touch change a file's ctime, which leases go by, and that a rename keeps its mtime."""
    path, target = probes.file("times"), probes.path("times.moved")
    past = time.time_ns() - _HOUR
    os.utime(path, ns=(past, past))
    before = _status(path)
    _wait_for_tick(probes, before.st_ctime_ns)
    os.rename(path, target)
    moved = _status(target)
    _wait_for_tick(probes, moved.st_ctime_ns)
    os.utime(target)
    touched = _status(target)
    measured = {
        "ctime_moves_on_rename": moved.st_ctime_ns > before.st_ctime_ns,
        "ctime_moves_on_touch": touched.st_ctime_ns > moved.st_ctime_ns,
        "mtime_kept": moved.st_mtime_ns == before.st_mtime_ns,
    }
    if not measured["ctime_moves_on_rename"]:
        reason = "a rename does not move ctime: a task that has waited for long would look abandoned as soon as it is claimed"
        return refuse("times", reason, ELSEWHERE, **measured)
    if not measured["ctime_moves_on_touch"]:
        return refuse("times", "a touch does not move ctime: no heartbeat would renew a lease", ELSEWHERE, **measured)
    if not measured["mtime_kept"]:
        reason = "a rename changes mtime, which no rename should"
        return warn("times", reason, f"a sign of a rename that copies; if in doubt, {ELSEWHERE}", **measured)
    return green("times", "a rename and a touch move ctime, a rename keeps mtime", **measured)


def _status(path: str) -> os.stat_result:
    """Return the file's status by a descriptor: on NFS a stat by name may be 30 s old."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _wait_for_tick(probes: ProbeFolder, since: int) -> None:
    """Wait until the file system's clock is later than `since`, by the ctime of new files."""
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        ticking = probes.file("ticking")
        ctime = _status(ticking).st_ctime_ns
        os.unlink(ticking)
        if ctime > since:
            return
        clocks.pause(0.001)
