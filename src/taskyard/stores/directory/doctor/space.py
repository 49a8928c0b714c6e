"""Check the free space: bytes and inodes."""

from __future__ import annotations

import os

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.filesystem import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.directory import ExaminedDirectory, ProbeFolder

_LEAST_BYTES, _LEAST_FILES = 100 << 20, 5_000
_LEAST_SHARE = 0.02
_PROBE = bytes(1 << 20)  # the largest size of a task
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def space(directory: ExaminedDirectory) -> Finding:
    """Check the free bytes that the file system reports."""
    status = os.statvfs(directory.root)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    measured = {"free_bytes": free, "total_bytes": total}
    if total == 0:
        return green("space", "the filesystem does not tell how much room it has", **measured)
    reason = f"{amount(free)} free of {amount(total)}"
    if free == 0:
        return refuse("space", f"the disk is full: {reason}", "make room on the disk (df -h)", **measured)
    if free < _LEAST_BYTES or free < total * _LEAST_SHARE:
        return warn("space", f"only {reason}", "make room on the disk before it is full (df -h)", **measured)
    return green("space", reason, **measured)


def inodes(directory: ExaminedDirectory) -> Finding:
    """Check the free inodes: each task and each result is a file."""
    status = os.statvfs(directory.root)
    measured = {"free_files": status.f_favail, "total_files": status.f_files}
    if status.f_files == 0:
        return green("inodes", "as many files as there is space for", **measured)
    reason = f"{status.f_favail:,} of {status.f_files:,} inodes free"
    if status.f_favail == 0:
        return refuse("inodes", f"no file can be made: {reason}", "make room for files (df -i)", **measured)
    if status.f_favail < _LEAST_FILES or status.f_favail < status.f_files * _LEAST_SHARE:
        return warn("inodes", f"only {reason}", "make room for files before there is none (df -i)", **measured)
    return green("inodes", reason, **measured)


def writing(probes: ProbeFolder) -> Finding:
    """Check that a task of the largest size can be written; a quota may prevent it."""
    path = probes.path("writing")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(_PROBE)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        os.unlink(path)
    return green("writing", f"{amount(len(_PROBE))} written and synced", bytes=len(_PROBE))


def unwritable(error: OSError) -> Finding:
    """Make the finding for a directory in which no probe folder can be made."""
    hint = errors.hint(error)
    return refuse(
        "writing",
        f"nothing can be written here: {error.strerror or error}; so what the place does could not be tried",
        hint,
    )


def amount(count: float) -> str:
    """Return a number of bytes as text with a unit."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 or count >= 10 else f"{count:.1f} {_UNITS[unit]}"
