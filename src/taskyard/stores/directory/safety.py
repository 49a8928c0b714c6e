"""Is this place fit for a yard? A quick look at the filesystem by its name and by its behaviour."""

from __future__ import annotations

import os

from taskyard.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A "rename" of these is a copy and a delete, or their listings show what is gone: two workers would get one task.
UNSAFE = {
    "fuse.s3fs": "s3fs copies and deletes instead of renaming",
    "fuse.goofys": "goofys copies and deletes instead of renaming",
    "fuse.gcsfuse": "gcsfuse copies and deletes instead of renaming",
    "fuse.rclone": "rclone copies and deletes instead of renaming",
    "fuse.osxfs": "a Docker Desktop share shows files that are gone",
    "fuse.grpcfuse": "a Docker Desktop share shows files that are gone",
    "fakeowner": "a Docker Desktop share shows files that are gone",
}
DOUBTFUL = {
    "cifs": "SMB",
    "smb3": "SMB",
    "9p": "a 9p share (such as WSL's /mnt/c)",
    "fuse.glusterfs": "GlusterFS",
    "fuse.sshfs": "sshfs",
}
# Filesystems that one kernel has to itself: what a process on it sees is the truth at once.
LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs", "ramfs", "ufs", "apfs")
)


def filesystem(path: str) -> str | None:
    """The type of the filesystem that holds this path, or None where the system does not tell."""
    best, kind = "", None
    for point, mounted in _mounts():
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, mounted
    return kind


def is_local(path: str) -> bool:
    """Whether one kernel alone reads and writes here."""
    if os.major(os.stat(path).st_dev):
        return True  # a block device; network and FUSE filesystems have no major number, and reading mounts costs more
    return filesystem(os.path.realpath(path)) in LOCAL


def check(root: str, folders: Iterable[str]) -> list[str]:
    """Warnings about this place; `Unavailable` if tasks would not be safe here."""
    place = os.path.realpath(root)
    inner = sorted(point for point, _ in _mounts() if point.startswith(place + "/"))
    if inner:
        raise Unavailable(
            f"{inner[0]} is a mount of its own, and a yard must be one mount: a rename cannot cross it",
            hint="choose a directory without other mounts in it",
        )
    kind = filesystem(place) or ""
    if kind in UNSAFE:
        raise Unavailable(
            f"{place} is not safe for a yard: {UNSAFE[kind]}",
            hint="choose a local disk, NFS, or another POSIX filesystem",
        )
    warnings = [f"this is {DOUBTFUL[kind]}: renames may not be atomic for all who share it"] if kind in DOUBTFUL else []
    return warnings + _try(place, list(folders))


def _try(root: str, folders: list[str]) -> list[str]:
    """Rename a file through all folders, with a descriptor held open: behaviour says more than a name."""
    name = f"Probe-{os.getpid()}-{os.urandom(4).hex()}"
    path = os.path.join(root, folders[-1], name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        warnings = (
            ["names that differ only in case are one name here: do not use such kinds side by side"]
            if os.path.lexists(path.lower()) and name != name.lower()
            else []
        )
        for folder in folders:
            target = os.path.join(root, folder, name)
            try:
                os.rename(path, target)
            except OSError as error:
                raise Unavailable(
                    f"a file cannot be renamed from {path} to {target}: {error.strerror}",
                    hint="a yard must be one directory on one filesystem",
                ) from None
            path = target
        here, held = os.stat(path), os.fstat(descriptor)
        if (here.st_ino, here.st_dev) != (held.st_ino, held.st_dev):
            raise Unavailable(
                f"renaming in {root} makes a copy: this filesystem has no atomic rename",
                hint="choose a local disk, NFS, or another POSIX filesystem",
            )
    finally:
        os.close(descriptor)
        os.unlink(path)
    return warnings


def _mounts() -> list[tuple[str, str]]:
    """Mount points and types, later mounts last."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    mounts = []
    for line in lines:
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4]
        if "\\" in point:
            for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
                point = point.replace(code, letter)
        mounts.append((point, right.split(" ", 1)[0]))
    return mounts
