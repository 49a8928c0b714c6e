"""What is known of filesystems by their names: which are unsafe for a yard, doubtful, or used by one kernel only.

A name is only half of it: `doctor` tries out what a place really does, all of it; `init` tries the quick part.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.mounts import Mount

_COPIES = "copies and deletes instead of renaming, so two workers can get one task"
_PHANTOMS = "a Docker Desktop share, shows files that are gone and hides those that are there"
UNSAFE = {
    "fuse.s3fs": f"s3fs {_COPIES}",
    "fuse.goofys": f"goofys {_COPIES}",
    "fuse.geesefs": f"geesefs {_COPIES}",
    "fuse.gcsfuse": f"gcsfuse {_COPIES}",
    "fuse.rclone": f"rclone {_COPIES}",
    "fuse.blobfuse": f"blobfuse {_COPIES}",
    "fuse.blobfuse2": f"blobfuse2 {_COPIES}",
    "fuse.mountpoint-s3": "mountpoint-s3 cannot rename files",
    "fuse.osxfs": f"osxfs, {_PHANTOMS}",
    "fuse.grpcfuse": f"grpcfuse, {_PHANTOMS}",
    "osxfs": f"osxfs, {_PHANTOMS}",
    "grpcfuse": f"grpcfuse, {_PHANTOMS}",
    "fakeowner": f"fakeowner, {_PHANTOMS}",
}
DOUBTFUL = {
    "cifs": "SMB",
    "smb3": "SMB",
    "smbfs": "SMB",
    "9p": "a 9p share (such as WSL's /mnt/c)",
    "drvfs": "a drive of Windows (WSL's /mnt/c)",
    "virtiofs": "a virtiofs share of the machine that this one runs on",
    "vboxsf": "a VirtualBox share",
    "prl_fs": "a Parallels share",
    "fuse.vmhgfs-fuse": "a VMware share",
    "fuse.glusterfs": "GlusterFS",
    "fuse.sshfs": "sshfs",
    "fuse.mergerfs": "mergerfs, which puts several disks together",
}
# Filesystems that only one kernel uses: what a process there sees is right at once.
LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs", "ramfs", "ufs", "apfs")
)
# How Docker Desktop and OrbStack name the Mac's own folders, whatever type they mount them as.
_OF_A_MAC = frozenset(("host_mark", "mac"))


def filesystem(path: str) -> str | None:
    """Return the type of the filesystem that holds this path, or None where the system does not show it."""
    from taskyard.stores.directory.filesystem import mounts  # one-shot commands on a block device need none of it

    mount = mounts.around(path, mounts.mounts())
    return None if mount is None else mount.kind


def is_local(path: str) -> bool:
    """Whether one kernel alone reads and writes here."""
    if os.major(os.stat(path).st_dev):
        return True  # a block device; network and FUSE filesystems have no major number, and reading mounts costs more
    return filesystem(os.path.realpath(path)) in LOCAL


def unsafe(mount: Mount) -> str | None:
    """Return why no yard is safe on this mount, by its type; None if its type is not known to be unsafe."""
    if mount.kind in ("virtiofs", "9p") and _OF_A_MAC.intersection(mount.source.split("/")):
        return f"{mount.kind} of {mount.source}, {_PHANTOMS}"
    # A FUSE filesystem without a subtype often has its name as the mount's source.
    return UNSAFE.get(mount.kind) or (UNSAFE.get(f"fuse.{mount.source}") if mount.kind == "fuse" else None)


def doubtful(mount: Mount) -> str | None:
    """Return what this mount is if it may break the rules, by its type; else None."""
    known = DOUBTFUL.get(mount.kind)
    if known is None and mount.kind.split(".", 1)[0] == "fuse":
        known = (
            DOUBTFUL.get(f"fuse.{mount.source}") or f"a FUSE filesystem ({mount.kind} of {mount.source or 'nothing'})"
        )
    return known
