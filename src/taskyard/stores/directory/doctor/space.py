"""How much room is left: bytes, and files."""

from __future__ import annotations

import os

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.filesystem import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.place import Corner, Place

_LEAST_BYTES, _LEAST_FILES = 100 << 20, 5_000
_LEAST_SHARE = 0.02
_PROBE = bytes(1 << 20)  # as much as one task may have
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def space(place: Place) -> Finding:
    """Whether there is room for tasks, as far as the filesystem tells."""
    status = os.statvfs(place.root)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    told = {"free_bytes": free, "total_bytes": total}
    if total == 0:
        return green("space", "the filesystem does not tell how much room it has", **told)
    reason = f"{amount(free)} free of {amount(total)}"
    if free == 0:
        return refuse("space", f"the disk is full: {reason}", "make room on the disk (df -h)", **told)
    if free < _LEAST_BYTES or free < total * _LEAST_SHARE:
        return warn("space", f"only {reason}", "make room on the disk before it is full (df -h)", **told)
    return green("space", reason, **told)


def inodes(place: Place) -> Finding:
    """Whether there is room for more files: each task is one, and each result."""
    status = os.statvfs(place.root)
    told = {"free_files": status.f_favail, "total_files": status.f_files}
    if status.f_files == 0:
        return green("inodes", "as many files as there is space for", **told)
    reason = f"{status.f_favail:,} of {status.f_files:,} inodes free"
    if status.f_favail == 0:
        return refuse("inodes", f"no file can be made: {reason}", "make room for files (df -i)", **told)
    if status.f_favail < _LEAST_FILES or status.f_favail < status.f_files * _LEAST_SHARE:
        return warn("inodes", f"only {reason}", "make room for files before there is none (df -i)", **told)
    return green("inodes", reason, **told)


def writing(corner: Corner) -> Finding:
    """Whether a task of the largest size can be written, which quotas and reserves may keep from it."""
    path = corner.path("writing")
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
    """What to say where not even a corner of the doctor's own can be made."""
    hint = errors.hint(error)
    return refuse(
        "writing",
        f"nothing can be written here: {error.strerror or error}; so what the place does could not be tried",
        hint,
    )


def amount(count: float) -> str:
    """Bytes as people read them."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 or count >= 10 else f"{count:.1f} {_UNITS[unit]}"
