"""Who may write here: permissions of this user, and the modes of a yard that several users share."""

from __future__ import annotations

import os
import stat
from shlex import quote

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor.place import may_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.doctor.place import Place

_MOST = 5_000  # folders that are looked at: enough to tell, and soon over in a yard of a million tasks
_FILES = 500
_OWNER = "have its owner let you write there (chgrp and chmod g+ws for a group that shares it), or run as its owner"


def permissions(place: Place) -> Finding:
    """Whether this user can write in every folder of the yard, and to the files that a heartbeat touches."""
    if os.statvfs(place.root).f_flag & os.ST_RDONLY:
        return refuse("permissions", "the filesystem is read-only here", "mount it for writing", read_only=True)
    seen, closed = 0, []
    for folder in _folders(place):
        seen += 1
        if not may_write(folder) and os.path.isdir(folder):  # one that was empty may have been dropped meanwhile
            closed.append(os.path.relpath(folder, place.root))
    told = {"folders": seen, "closed": closed[:20], "user": os.geteuid()}
    if closed:
        more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
        where = place.root if closed[0] == "." else closed[0]
        return refuse("permissions", f"this user cannot write in {where}{more}", _OWNER, **told)
    files = [path for path in _held(place) if not os.access(path, os.W_OK) and os.path.exists(path)]
    if files:
        return warn(
            "permissions",
            f"{len(files)} held tasks cannot be touched by this user, so it cannot renew or take over their leases",
            "let the users of a yard share a group, with umask 002",
            **told,
        )
    return green("permissions", f"this user can write in all {seen} folders", **told)


def sharing(place: Place) -> Finding:
    """Whether the modes fit together where a group, or everybody, shares the yard."""
    modes = {folder: os.stat(place.path(folder)).st_mode for folder in (".", *place.folders)}
    shared = stat.S_IWGRP | stat.S_IWOTH
    mask = _umask()
    top = modes["."]
    told = {"mode": f"{stat.S_IMODE(top):04o}", "umask": f"{mask:04o}"}
    if not place.is_yard or not top & shared:
        return green("sharing", f"mode {told['mode']}: for its owner alone" if place.is_yard else "no yard yet", **told)
    sticky = [folder for folder, mode in modes.items() if mode & stat.S_ISVTX]
    if sticky:
        return warn(
            "sharing",
            f"sticky ({', '.join(sticky[:3])}): only a file's owner can move it, so no user can claim another's task",
            f"take the bit away with: chmod -R -t {quote(place.root)}",
            **told,
        )
    alone = [folder for folder, mode in modes.items() if not mode & shared]
    if alone:
        return warn(
            "sharing",
            f"others may write in the yard, and not in {', '.join(alone[:3])}",
            f"let the group in everywhere with: chmod -R g+rwX {quote(place.root)}",
            **told,
        )
    if not top & stat.S_IWOTH and mask & stat.S_IWGRP:
        return warn(
            "sharing",
            f"the group shares this yard, and with umask {told['umask']} it cannot write to what this user makes",
            "set umask 002 for whoever works here",
            **told,
        )
    if not top & stat.S_IWOTH and not all(mode & stat.S_ISGID for mode in modes.values()):
        return warn(
            "sharing",
            "the group shares this yard, and what is made in it gets the group of its maker",
            f"have new files take the yard's group with: find {quote(place.root)} -type d -exec chmod g+s {{}} +",
            **told,
        )
    return green("sharing", f"mode {told['mode']}, umask {told['umask']}: shared, and the modes agree", **told)


def _folders(place: Place) -> Iterator[str]:
    """The yard, its folders, and theirs, as far as there is patience for; of any other place that alone."""
    yield place.root
    ahead = [place.path(folder) for folder in place.folders] if place.is_yard else []
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
            continue  # removed just now, as empty folders are; or it is told of as closed already


def _held(place: Place) -> list[str]:
    """Files of held tasks, as far as there is patience for."""
    if "processing" not in place.folders:
        return []
    names = [name for name in os.listdir(place.path("processing")) if not name.startswith(".")]
    return [place.path("processing", name) for name in names[:_FILES]]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
