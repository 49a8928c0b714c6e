"""The yard's folders and its yard.json: makes them, and opens existing ones."""

from __future__ import annotations

import os
import stat
import time

from taskyard.core import ids
from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.json_codec import decode
from taskyard.core.settings import DURABILITY, GROUP, Settings, parse
from taskyard.stores.directory.filesystem.disk import Disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

FORMAT = 1
UNFINISHED = "unfinished-copy"  # a feature that every version and every other client refuses, on purpose
LIMITS = "limits"  # a kind has a limit that every claim must heed
FOLDERS_USED = "folders"  # a task uses a folder, or a name that is not compared as it is written
MISSION_LANES = "missions"  # a task is in a lane of its mission, which a client of an older version does not see
SETTINGS = "yard.json"
FOLDERS = (
    "todo", "waiting", "blocked", "processing", "done", "failed", "cancelled",
    "results", "attempts", "edits", "names", "needs", "followers", "sheets", "children", "keys", "uses", "deadlines", "backlog", "missions", "schedules", "paused", "pace", "asked", "segments", "events", "workers",
    "writers", "turns", "leader",
    "archive", "dead", "tmp",
)  # fmt: skip
MISSIONS = "missions"
CHILDREN = "children"
SHEETS = "sheets"
USES = "uses"
DEADLINES = "deadlines"
BACKLOG = "backlog"
SCHEDULES = "schedules"
SINCE = "since"  # in missions/: from when on every task of a mission is in a lane of the mission
LATER = frozenset(
    ("names", "asked", "pace", "leader", SHEETS, USES, CHILDREN, DEADLINES, BACKLOG, MISSIONS, SCHEDULES)
)  # folders that a yard of a version before lacks, until they are first needed
BY_HAND = frozenset(("todo", "processing", "done", "failed"))  # a queue's folders, as made with mkdir
_SETTINGS_MOST = 1 << 20  # bytes
_LOCKED = 0.002  # seconds before the next look at a settings file that somebody else is changing
DOCTOR_PREFIX = ".doctor%."  # prefix of a doctor's own files, which belong to no yard
_FIRST_TURN = "0"
_KNOWN = (UNFINISHED, LIMITS, FOLDERS_USED, MISSION_LANES)
_OWN = BY_HAND | {"segments", "turns", "writers", "events"}  # folders that no queue made by hand has together
BROKEN_HINT = "put it right by hand; nothing else in the yard is touched"


class Made:
    """What `make` found or did."""

    __slots__ = ("created", "warnings")

    def __init__(self, created: bool, warnings: list[str]) -> None:
        self.created = created
        self.warnings = warnings


def make(
    path: str,
    durability: str | None = None,
    shared: bool | None = None,
    group: str | None = None,
    more: Mapping[str, object] | None = None,
) -> Made:
    """Make a yard here, after a quick check that the place is safe; an existing yard is left as it is.

    It is shared with its group if that is asked for, or if a group shares the place already. `more` are settings that a
    new one begins with.
    """
    from taskyard.stores.directory.filesystem.sharing import SharedDisk, give, group_number, place_is_shared

    settings = os.path.join(path, SETTINGS)
    if os.path.lexists(settings):
        return Made(False, _notes(path, load(path), durability, shared, group))
    others = _others(path)
    try:
        number = None if group is None else group_number(group)
        together = shared or group is not None or (shared is None and place_is_shared(path))
        os.makedirs(path, exist_ok=True)
        if together:
            give(path, number)
        for folder in FOLDERS:
            os.makedirs(os.path.join(path, folder), exist_ok=True)
            if together:
                give(os.path.join(path, folder), number)
        _refuse_links(path)
        warnings = _check_place(path)
        disk = SharedDisk(path) if together else Disk()
        if not os.listdir(os.path.join(path, "turns")):
            _write_once(disk, os.path.join(path, "turns", _FIRST_TURN), b"", path)
        if not os.listdir(os.path.join(path, "segments")):
            _write_once(disk, os.path.join(path, MISSIONS, SINCE), b"0\n", path)
        if others:
            warnings.append(
                f"{path} has other files in it ({_some(others)}): they stay, and the yard has no use for them"
            )
        else:
            # Git reads a .gitignore in every folder: the yard hides itself, and the user's files stay as they are.
            _write_once(disk, os.path.join(path, ".gitignore"), b"*\n", path)
        own = {"durability": durability or DURABILITY, **({"shared": GROUP} if together else {}), **(more or {})}
        # Only its owner can change the settings of a shared one: it is marked before others add the first such task.
        content = {"taskyard": FORMAT, "features": [MISSION_LANES] if together else [], "settings": own}
        created = _write_once(disk, settings, _written(content), path)
        if created and together:
            # It may name commands to be run.
            os.chmod(settings, stat.S_IMODE(os.stat(settings).st_mode) & ~stat.S_IWGRP)
        _sync_folders(path)
    except OSError as error:
        raise Unavailable(
            f"no yard can be made at {path}: {error.strerror or error}", hint="choose a directory that you can write to"
        ) from None
    return Made(created, warnings)


def _notes(path: str, settings: Settings, durability: str | None, shared: bool | None, group: str | None) -> list[str]:
    """Return notes for a caller that wanted to make this yard, which exists already."""
    notes = []
    if durability not in (None, settings.durability):
        notes.append(f"this yard exists already and keeps its durability, {settings.durability}")
    if (shared or group is not None) and not settings.shared:
        notes.append("this yard exists already and is not shared; docs/trust.md tells how to share it by hand")
    if not os.access(os.path.join(path, "tmp"), os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        notes.append("this yard can be looked at from here, and not worked in: it cannot be written by this user")
    return notes


def _check_place(path: str) -> list[str]:
    """Return warnings about this place; raise `Unavailable` if tasks would not be safe here."""
    from taskyard.stores.directory.doctor.examination import quick

    return quick(path)


class Broken(Unavailable):
    """The yard's settings cannot be read."""


def load(path: str) -> Settings:
    """Return the settings of the yard at this path; raise `Unavailable` if there is none, or this version cannot use it."""
    file = os.path.join(path, SETTINGS)
    try:
        found = _parsed(file)
        _refuse_links(path)
    except FileNotFoundError:
        if _is_yard(path):
            raise Unavailable(
                f"{path} has no yard.json", hint=f"'taskyard fsck --yard {path}' says how to mend it"
            ) from None
        raise Unavailable(
            f"there is no yard at {path}", hint=f"check the path, or make one there with: taskyard init {path}"
        ) from None
    except OSError as error:
        raise Unavailable(
            f"the yard at {path} cannot be read: {error.strerror or error}",
            hint="check its permissions and that its disk is mounted",
        ) from None
    return found


def load_for_check(path: str) -> tuple[Settings, str | None]:
    """The same for a check; if the settings are broken or gone, return the defaults and the reason.

    Links in place of its folders are no reason to refuse it.
    """
    try:
        return _parsed(os.path.join(path, SETTINGS)), None
    except Broken as error:
        return parse({}, SETTINGS), error.message
    except OSError as error:
        if not _is_yard(path):
            return load(path), None  # which raises the reason
        gone = isinstance(error, FileNotFoundError)
        return parse({}, SETTINGS), "it is not there" if gone else f"it cannot be read: {error.strerror or error}"


def _is_yard(path: str) -> bool:
    """Whether this is a yard, by folders that no queue made by hand has."""
    try:
        return _OWN.issubset(os.listdir(path))
    except OSError:
        return False


def _parsed(file: str) -> Settings:
    try:
        content = decode(_read(file))
    except (ValueError, RecursionError) as error:
        raise Broken(f"{file} is not JSON: {error}", hint=BROKEN_HINT) from None
    if not isinstance(content, dict) or type(content.get("taskyard")) is not int:
        raise Broken(f"{file} is no yard's settings: it does not tell its format", hint=BROKEN_HINT)
    features = content.get("features") or []
    if content["taskyard"] != FORMAT or not isinstance(features, list) or not all(map(_KNOWN.__contains__, features)):
        raise Unavailable(
            f"{file} is of a format or has features that this version does not know",
            hint="use the version of Taskyard that made it, or a newer one",
        )
    try:
        found = parse(content.get("settings", {}), file)
    except Unavailable as error:
        raise Broken(error.message, hint=BROKEN_HINT) from None
    found.checks = _trusted(file, found.checks, found.shared)
    found.features = frozenset(features)
    return found


def revised(
    path: str, disk: Disk, changed: Callable[[dict[str, Any]], dict[str, Any]], more: Iterable[str] = ()
) -> dict[str, Any]:
    """Replace the settings of a yard that is in use by what `changed` makes of them, and return them.

    Clients that do not know one of `more` features refuse the yard from then on. The lock is on the file that is replaced. A process that waits for it finds that it has lost its name, and reads the new one.
    """
    file = os.path.join(path, SETTINGS)
    if not os.access(file, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise Unavailable(
            f"{file} cannot be written by this user",
            hint="ask its owner to add the first task of this sort: it marks the yard, so that older versions refuse it"
            if more
            else "ask its owner to change the settings: it may name commands",
        )
    while (lock := disk.lock(file)) is None:
        time.sleep(_LOCKED)
    try:
        content = decode(_read(file))
        content["settings"] = changed(content.get("settings") or {})
        features = [*(content.get("features") or []), *more]
        content["features"] = _features(features, content["settings"])
        _replace(path, disk, content)
        return dict(content["settings"])
    finally:
        os.close(lock)


def settings(path: str) -> tuple[dict[str, Any], bool]:
    """Return the settings as written, and whether untrusted checks were left out."""
    file = os.path.join(path, SETTINGS)
    given: dict[str, Any] = dict(decode(_read(file)).get("settings") or {})
    untrusted = "checks" in given and not _trusted(file, given["checks"], given.get("shared") is not None)
    if untrusted:
        del given["checks"]
    return given, untrusted


def change(path: str, disk: Disk, settings: dict[str, Any], *, unfinished: bool) -> None:
    """Change the settings of a yard that no process uses, and whether it is an unfinished copy; other features stay."""
    features = set(decode(_read(os.path.join(path, SETTINGS))).get("features") or []) - {UNFINISHED}
    features |= {UNFINISHED} if unfinished else set()
    _replace(path, disk, {"taskyard": FORMAT, "features": _features([*features], settings), "settings": settings})


def _features(features: list[str], settings: dict[str, Any]) -> list[str]:
    """Return the features of a yard with these settings: a client that does not know a limit must not claim."""
    limits = parse(settings, SETTINGS).kinds.values()
    limited = any(limit.concurrency is not None or limit.rate is not None for limit in limits)
    return sorted({*features} - {LIMITS} | ({LIMITS} if limited else set()))


def _replace(path: str, disk: Disk, content: dict[str, Any]) -> None:
    """Put a new settings file in the place of the old one, which keeps its owner and what others may do."""
    from contextlib import suppress

    file = os.path.join(path, SETTINGS)
    draft = os.path.join(path, "tmp", f"init-{ids.base32(ids.chance(40), 8)}")
    disk.create(draft, _written(content), sync=True)
    before, made = os.stat(file), os.stat(draft)
    mode = stat.S_IMODE(before.st_mode) & ~(stat.S_IWGRP if content["settings"].get("shared") else 0)
    if (before.st_uid, before.st_gid) != (made.st_uid, made.st_gid):
        with suppress(PermissionError):
            os.chown(draft, before.st_uid, before.st_gid)
    os.chmod(draft, mode)
    disk.rename(draft, file)
    disk.sync(path)


def stamp(path: str) -> tuple[int, int, int]:
    """Return what differs whenever the settings file was replaced or changed; raise OSError if it is gone."""
    status = os.stat(os.path.join(path, SETTINGS))
    return status.st_ino, status.st_mtime_ns, status.st_size


def _written(content: dict[str, Any]) -> bytes:
    """Return the content of yard.json, for people to read and to change."""
    import json

    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _read(file: str) -> bytes:
    """Read the settings file, which must be a regular file: no link, no pipe."""
    look = Disk().examine(file, _SETTINGS_MOST)
    if look.oddity or look.is_folder:
        raise Broken(
            f"{file} cannot be taken for a yard's settings: {look.oddity or 'it is a folder'}",
            hint="put an ordinary file there; nothing else in the yard is touched",
        )
    return look.content


def _refuse_links(path: str) -> None:
    """Refuse links in place of a yard's own folders: their targets are not the yard's, or on another disk."""
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name in FOLDERS and not entry.is_dir(follow_symlinks=False):
                raise Unavailable(
                    f"{entry.path} is {'a symbolic link' if entry.is_symlink() else 'no folder'}, and a yard's folders must be its own",
                    hint="put the folder itself there; the yard as a whole may be reached through a link",
                )


def _trusted(file: str, checks: dict[str, list[str]], shared: bool) -> dict[str, list[str]]:
    """Return the checks, if a user wrote them who may run commands as this user: this user itself, or root.

    All who can write to a yard can replace its yard.json; that must not let them run commands as other users.
    """
    if not checks:
        return checks
    status = os.lstat(file)
    is_ours = status.st_uid in (os.geteuid(), 0) and not (shared and status.st_mode & 0o022)
    return checks if is_ours else {}


def is_made_by_hand(path: str) -> bool:
    """Whether this has a queue's four folders, made by hand, and is no yard yet."""
    try:
        return BY_HAND.issubset(names := os.listdir(path)) and SETTINGS not in names
    except OSError:
        return False


def _others(path: str) -> list[str]:
    """Return what else is in this folder; raise `Invalid` if that makes it no place for a yard."""
    try:
        names = {name for name in os.listdir(path) if not name.startswith(DOCTOR_PREFIX)}
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise Invalid(f"{path} is not a directory", hint="name a directory, or one that is not there yet") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror or error}") from None
    others = sorted(names - set(FOLDERS) - {".gitignore"})
    if others and not names >= BY_HAND:
        raise Invalid(
            f"{path} has other files in it ({_some(others)})",
            hint=f"name an empty or a new directory, such as {os.path.join(path, '.taskyard')}",
        )
    return others


def _some(names: list[str]) -> str:
    return ", ".join(map(ascii, names[:3])) + (", ..." if len(names) > 3 else "")


def _write_once(disk: Disk, path: str, content: bytes, root: str) -> bool:
    """Write the file unless it exists; return whether this process made it: another may make the same yard."""
    draft = os.path.join(root, "tmp", f"init-{ids.base32(ids.chance(40), 8)}")
    disk.create(draft, content, sync=True)
    return disk.publish(draft, path)


def _sync_folders(path: str) -> None:
    disk = Disk()
    for folder in (os.path.join(path, "turns"), os.path.join(path, MISSIONS), path, os.path.dirname(path)):
        disk.sync(folder)
