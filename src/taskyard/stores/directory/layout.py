"""The yard's folders and its yard.json: making them, and opening what is there."""

from __future__ import annotations

import json
import os

from taskyard.draft import LEASE_MOST
from taskyard.errors import Invalid, Unavailable
from taskyard.retry import Policy
from taskyard.stores.directory import safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
SETTINGS = "yard.json"
FOLDERS = (
    "todo", "waiting", "blocked", "processing", "done", "failed", "cancelled",
    "results", "attempts", "edits", "needs", "followers", "keys", "paused", "segments", "events", "workers", "writers", "turns",
    "archive", "dead", "tmp",
)  # fmt: skip
BY_HAND = frozenset(
    ("todo", "processing", "done", "failed")
)  # the folders of a queue that somebody has made with mkdir
DURABILITY = "durable"
_FIRST_TURN = "0"
_POLICY = ("max_attempts", "max_crashes", "backoff", "backoff_cap", "lease", "sweep_every")


class Made:
    """What `make` found or did."""

    __slots__ = ("created", "warnings")

    def __init__(self, created: bool, warnings: list[str]) -> None:
        self.created = created
        self.warnings = warnings


class Retention:
    """How long ended tasks and events are kept: for so many seconds, and so many of them; None is for ever."""

    __slots__ = ("age", "count")

    def __init__(self, age: float | None = None, count: int | None = None) -> None:
        self.age = age
        self.count = count


class Settings:
    """A yard's own settings, from its yard.json."""

    __slots__ = ("checks", "durability", "policy", "retention", "settle")

    def __init__(
        self, durability: str, policy: Policy, retention: Retention, settle: int | None, checks: dict[str, list[str]]
    ) -> None:
        self.checks = checks
        """Commands that tasks may name to be verified by."""
        self.durability = durability
        self.policy = policy
        self.retention = retention
        self.settle = settle
        """Milliseconds that a dropped file which does not parse is left in peace; None for the default of the place."""


def make(path: str, durability: str | None = None) -> Made:
    """Make a yard here, after a quick look at whether the place is safe; a yard that is there already is left as it is."""
    settings = os.path.join(path, SETTINGS)
    if os.path.lexists(settings):
        kept = load(path).durability
        note = f"this yard exists already and keeps its durability, {kept}"
        return Made(False, [note] if durability not in (None, kept) else [])
    others = _others(path)
    try:
        os.makedirs(path, exist_ok=True)
        for folder in FOLDERS:
            os.makedirs(os.path.join(path, folder), exist_ok=True)
        warnings = safety.check(path, FOLDERS)
        _write_once(os.path.join(path, "turns", _FIRST_TURN), b"", path)
        if others:
            warnings.append(
                f"{path} has other files in it ({_some(others)}): they stay, and the yard has no use for them"
            )
        else:
            # Git asks every folder for its own list of what to ignore: the yard hides itself, and the user's files stay as they are.
            _write_once(os.path.join(path, ".gitignore"), b"*\n", path)
        content = {"taskyard": FORMAT, "features": [], "settings": {"durability": durability or DURABILITY}}
        created = _write_once(settings, json.dumps(content, indent=2).encode() + b"\n", path)
        _sync_folders(path)
    except OSError as error:
        raise Unavailable(
            f"no yard can be made at {path}: {error.strerror or error}", hint="choose a directory that you can write to"
        ) from None
    return Made(created, warnings)


def load(path: str) -> Settings:
    """The settings of the yard at this path; `Unavailable` if there is none, or none that this version can keep to."""
    file = os.path.join(path, SETTINGS)
    try:
        with open(file, "rb") as stream:
            content = json.loads(stream.read())
    except FileNotFoundError:
        raise Unavailable(
            f"there is no yard at {path}", hint=f"check the path, or make one there with: taskyard init {path}"
        ) from None
    except OSError as error:
        raise Unavailable(
            f"the yard at {path} cannot be read: {error.strerror or error}",
            hint="check its permissions and that its disk is mounted",
        ) from None
    except ValueError as error:
        raise Unavailable(
            f"{file} is not JSON: {error}", hint="put it right by hand; nothing else in the yard is touched"
        ) from None
    if not isinstance(content, dict) or content.get("taskyard") != FORMAT or content.get("features"):
        raise Unavailable(
            f"{file} is of a format or has features that this version does not know",
            hint="use the version of Taskyard that made it, or a newer one",
        )
    return _settings(file, content.get("settings", {}))


def _settings(file: str, given: Any) -> Settings:
    if not isinstance(given, dict):
        raise Unavailable(f"'settings' in {file} must be an object")
    durability = given.get("durability", DURABILITY)
    if durability not in ("fast", "durable", "strict"):
        raise Unavailable(f"'durability' in {file} must be fast, durable or strict, not {durability!a}")
    numbers = {name: given[name] for name in _POLICY if name in given}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise Unavailable(f"{name!r} in {file} must be a number, not {value!a}")
    if numbers.get("lease", 0) > LEASE_MOST:
        raise Unavailable(f"'lease' in {file} must be at most {LEASE_MOST:g} seconds, not {numbers['lease']!a}")
    limits = {name: given.pop(name, None) for name in ("retention_age", "retention_count", "settle")}
    for name, value in limits.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
            raise Unavailable(f"{name!r} in {file} must be a number, not {value!a}")
    settle = None if limits["settle"] is None else round(limits["settle"] * 1000)
    return Settings(
        durability,
        Policy(**numbers),
        Retention(limits["retention_age"], limits["retention_count"]),
        settle,
        _checks(file, given.get("checks", {})),
    )


def _checks(file: str, given: Any) -> dict[str, list[str]]:
    """Checks by name, each a list of words; a single text would be a shell's business, and there is no shell here."""
    if not isinstance(given, dict):
        raise Unavailable(f"'checks' in {file} must be an object")
    for name, words in given.items():
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise Unavailable(f'the check {name!a} in {file} must be a list of words, such as ["make", "test"]')
    return given


def is_by_hand(path: str) -> bool:
    """Whether somebody has made a queue's four folders here, and nobody has made a yard of them yet."""
    try:
        return BY_HAND.issubset(names := os.listdir(path)) and SETTINGS not in names
    except OSError:
        return False


def _others(path: str) -> list[str]:
    """What else is in this folder; refused where that makes it somebody's, and no place for a yard."""
    try:
        names = set(os.listdir(path))
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


def _write_once(path: str, content: bytes, root: str) -> bool:
    """Whether the file is ours: a twin that makes the same yard may have been first."""
    from taskyard import ids
    from taskyard.stores.directory.disk import Disk

    disk = Disk()
    draft = os.path.join(root, "tmp", f"init-{ids.base32(ids.chance(40), 8)}")
    disk.create(draft, content, sync=True)
    return disk.publish(draft, path)


def _sync_folders(path: str) -> None:
    from taskyard.stores.directory.disk import Disk

    disk = Disk()
    for folder in (os.path.join(path, "turns"), path, os.path.dirname(path)):
        disk.sync(folder)
