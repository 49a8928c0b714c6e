"""Checks that only read: the mounts of a directory, and the folders of its yard."""

from __future__ import annotations

import os
import stat
from shlex import quote

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem import safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.directory import ExaminedDirectory

ELSEWHERE = "choose a local disk, NFS, or another POSIX filesystem"
_NETWORK = frozenset(("nfs", "nfs4", "ceph", "fuse.ceph-fuse", "lustre", "gpfs", "beegfs", "afs", "ocfs2", "gfs2"))
_TEMPORARY = {
    "tmpfs": "gone when this machine stops",
    "ramfs": "gone when this machine stops",
    "overlay": "in a container, gone with the container",
}


def yard(directory: ExaminedDirectory) -> Finding:
    """Check whether there is a yard that this version can use."""
    if directory.broken is not None:
        return refuse("yard", directory.broken.message, directory.broken.hint or "put yard.json right by hand")
    if not directory.is_yard:
        return green("yard", "no yard yet: examined as a place for one", is_yard=False)
    return green("yard", f"a yard, durability {directory.durability}", is_yard=True, durability=directory.durability)


def filesystem(directory: ExaminedDirectory) -> Finding:
    """Check whether the type and the options of the file system are known to be safe."""
    mount = directory.mount
    if mount is None:
        return green("filesystem", "this system does not tell its type: what it does decides", type=None)
    measured = {
        "type": mount.kind,
        "source": mount.source,
        "mount_point": mount.point,
        "local": safety.is_local(directory.root),
    }
    unsafe, doubt = safety.unsafe(mount), safety.doubtful(mount)
    if unsafe is not None:
        return refuse("filesystem", unsafe, ELSEWHERE, **measured)
    if doubt is not None:
        return warn(
            "filesystem",
            f"this is {doubt}: renames may not be atomic for all who share it",
            "let workers on one machine alone use it, or prove it with: taskyard doctor --peer, on two machines at once",
            **measured,
        )
    if mount.kind in ("nfs", "nfs4") and "soft" in mount.options:
        return warn(
            "filesystem",
            f"{mount.kind} of {mount.source} is mounted soft: a move that was made may be reported as failed",
            "mount it hard, which is what NFS does by default",
            **measured,
        )
    if mount.kind in ("nfs", "nfs4") and "nocto" in mount.options:
        return warn(
            "filesystem",
            f"{mount.kind} of {mount.source} is mounted nocto: even a listing may be old, and what others have made seem to be missing",
            "mount it without nocto, which is what NFS does by default",
            **measured,
        )
    if mount.kind in _NETWORK:
        reason = f"{mount.kind} of {mount.source}: shared between machines, only leases show that a worker is dead"
    else:
        temporary = _TEMPORARY.get(mount.kind)
        reason = f"{mount.kind} of {mount.source}" + (f" ({temporary})" if temporary else "")
    return green("filesystem", reason, **measured)


def mounts(directory: ExaminedDirectory) -> Finding:
    """Check that the yard is one mount: a rename cannot cross mounts, even of the same file system."""
    tops = {os.path.relpath(point, directory.root).split(os.sep, 1)[0] for point in directory.mounted_within}
    if not tops:
        return green("mounts", "no other mount in it", mounted_within=[])
    first = directory.mounted_within[0]
    if directory.is_yard or tops & set(layout.FOLDERS):
        return refuse(
            "mounts",
            f"{first} is a mount of its own, and a yard must be one mount: a rename cannot cross it",
            "choose a directory without other mounts in it, or mount one volume for the whole yard",
            mounted_within=directory.mounted_within,
        )
    return warn(
        "mounts",
        f"{first} is a mount of its own: a yard here must not take that in",
        "make the yard in a directory without other mounts in it",
        mounted_within=directory.mounted_within,
    )


def folders(directory: ExaminedDirectory) -> Finding:
    """Check that the yard's folders are folders, and no links."""
    if not directory.is_yard:
        return green("folders", "none of a yard's yet")
    missing, odd = [], []
    for folder in layout.FOLDERS:
        try:
            mode = os.lstat(directory.path(folder)).st_mode
        except FileNotFoundError:
            if folder not in layout.LATER:
                missing.append(folder)
        except PermissionError:
            continue  # the check of permissions reports it
        else:
            if not stat.S_ISDIR(mode):
                odd.append(f"{folder} ({'a symbolic link' if stat.S_ISLNK(mode) else 'not a folder'})")
    if odd:
        return refuse(
            "folders",
            f"not folders of the yard's own: {', '.join(odd)}",
            "move what the link leads to into its place, while no worker runs; a yard is one directory with real folders",
            odd=odd,
            missing=missing,
        )
    if missing:
        return warn(
            "folders",
            f"missing: {', '.join(missing)}",
            f"make them again with: cd {quote(directory.root)} && mkdir {' '.join(missing)}",
            odd=odd,
            missing=missing,
        )
    return green("folders", f"all {len(layout.FOLDERS)} there", odd=odd, missing=missing)
