"""Check permissions: those of this user, and the modes of a yard that several users share."""

from __future__ import annotations

import os
import stat
from shlex import quote

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor.directory import may_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.doctor.directory import ExaminedDirectory

_MOST = 5_000  # folders that are checked: enough for a verdict, and fast in a yard of a million tasks
_FILES = 500
_OWNER = "have its owner let you write there (chgrp and chmod g+ws for a group that shares it), or run as its owner"


def permissions(directory: ExaminedDirectory) -> Finding:
    """Check that this user can write in every folder of the yard, and to the files that a heartbeat touches."""
    if os.statvfs(directory.root).f_flag & os.ST_RDONLY:
        return refuse("permissions", "the filesystem is read-only here", "mount it for writing", read_only=True)
    seen, closed = 0, []
    for folder in _folders(directory):
        seen += 1
        if not may_write(folder) and os.path.isdir(folder):  # an empty folder may have been removed meanwhile
            closed.append(os.path.relpath(folder, directory.root))
    measured = {"folders": seen, "closed": closed[:20], "user": os.geteuid()}
    if closed:
        more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
        where = directory.root if closed[0] == "." else closed[0]
        return refuse("permissions", f"this user cannot write in {where}{more}", _OWNER, **measured)
    files = [path for path in _held(directory) if not os.access(path, os.W_OK) and os.path.exists(path)]
    if files:
        return warn(
            "permissions",
            f"{len(files)} held tasks cannot be touched by this user, so it cannot renew or take over their leases",
            "let the users of a yard share a group, with umask 002",
            **measured,
        )
    return green("permissions", f"this user can write in all {seen} folders", **measured)


def sharing(directory: ExaminedDirectory) -> Finding:
    """Check that the modes of a yard agree, if a group or all users share it."""
    modes = {folder: os.stat(directory.path(folder)).st_mode for folder in (".", *directory.folders)}
    shared = stat.S_IWGRP | stat.S_IWOTH
    mask = _umask()
    top = modes["."]
    measured = {"mode": f"{stat.S_IMODE(top):04o}", "umask": f"{mask:04o}"}
    if not directory.is_yard or not top & shared:
        return green(
            "sharing",
            f"mode {measured['mode']}: for its owner alone" if directory.is_yard else "no yard yet",
            **measured,
        )
    sticky = [folder for folder, mode in modes.items() if mode & stat.S_ISVTX]
    if sticky:
        return warn(
            "sharing",
            f"sticky ({', '.join(sticky[:3])}): only a file's owner can move it, so no user can claim another's task",
            f"take the bit away with: chmod -R -t {quote(directory.root)}",
            **measured,
        )
    alone = [folder for folder, mode in modes.items() if not mode & shared]
    if alone:
        return warn(
            "sharing",
            f"others may write in the yard, and not in {', '.join(alone[:3])}",
            f"let the group in everywhere with: chmod -R g+rwX {quote(directory.root)}",
            **measured,
        )
    if not top & stat.S_IWOTH and mask & stat.S_IWGRP:
        return warn(
            "sharing",
            f"the group shares this yard, and with umask {measured['umask']} it cannot write to what this user makes",
            "set umask 002 for every user who works here",
            **measured,
        )
    if not top & stat.S_IWOTH and not all(mode & stat.S_ISGID for mode in modes.values()):
        return warn(
            "sharing",
            "the group shares this yard, and what is made in it gets the group of its maker",
            f"have new files take the yard's group with: find {quote(directory.root)} -type d -exec chmod g+s {{}} +",
            **measured,
        )
    return green(
        "sharing", f"mode {measured['mode']}, umask {measured['umask']}: shared, and the modes agree", **measured
    )


def _folders(directory: ExaminedDirectory) -> Iterator[str]:
    """Yield the yard and up to `_MOST` folders below it; of another directory only itself."""
    yield directory.root
    ahead = [directory.path(folder) for folder in directory.folders] if directory.is_yard else []
    for _ in range(_MOST):
        if not ahead:
            return
        folder = ahead.pop(0)
        yield folder
        try:
            with os.scandir(folder) as entries:
                ahead += [
                    entry.path
                    for entry in entries
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
                ]
        except (FileNotFoundError, PermissionError):
            continue  # removed just now, as empty folders are; or reported as closed already


def _held(directory: ExaminedDirectory) -> list[str]:
    """Return the files of up to `_FILES` held tasks."""
    if "processing" not in directory.folders:
        return []
    names = [name for name in os.listdir(directory.path("processing")) if not name.startswith(".")]
    return [directory.path("processing", name) for name in names[:_FILES]]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
