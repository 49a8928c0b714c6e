"""What synced files and their yard disagree about, as the yard's settings keep it, by file. Pure functions."""

from __future__ import annotations

from taskyard.core import ids, words
from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Conflicts = dict[str, dict[str, Any]]

KEY = "file_conflicts"
"""The name of the setting; `yard.settings` leaves it out."""
_FILES_MOST = 50  # files with conflicts; those that were reported longest ago are left out
_KEPT_MOST = 50  # conflicts of one file; of more, only their number is known
_WORDS_MOST = 200  # characters of each text
_FIELDS = ("task", "row", "line", "field", "file", "yard")


def kept(written: dict[str, Any]) -> Conflicts:
    """Return the conflicts in a yard's settings, by file: when they were reported, how many there are, and those kept."""
    given = written.get(KEY)
    found = given.items() if isinstance(given, dict) else ()
    return {file: one for file, one in found if isinstance(one, dict) and isinstance(one.get("conflicts"), list)}


def listed(conflicts: object) -> list[dict[str, Any]]:
    """Return legal conflicts with the known fields alone, their texts cut; raise `Invalid` for anything else."""
    if not isinstance(conflicts, list) or not all(isinstance(one, dict) for one in conflicts):
        raise Invalid("conflicts are a list of objects", hint=f"each with {', '.join(_FIELDS)}")
    return [_legal(one) for one in conflicts]


def _legal(one: dict[str, Any]) -> dict[str, Any]:
    task = one.get("task")
    if not isinstance(task, str) or not ids.is_id(task):
        raise Invalid(f"a conflict names its task by the whole id, not {words.shown(task)}")
    found = {name: one.get(name) for name in _FIELDS}
    for name, value in found.items():
        if name == "line":
            if not (value is None or (type(value) is int and value > 0)):
                raise Invalid(f"the line of a conflict is a number, not {words.shown(value)}")
        elif not isinstance(value, str):
            raise Invalid(f"the {name} of a conflict is a text, not {words.shown(value)}")
        else:
            # No database takes every character, and no screen shows them.
            found[name] = "".join(letter if letter.isprintable() else " " for letter in value[:_WORDS_MOST])
    return found


def replaced(written: dict[str, Any], file: str, at: str, conflicts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings in which these conflicts replace the file's old ones; with none, the file is left out."""
    files = {name: one for name, one in kept(written).items() if name != file}
    if conflicts:
        files[file] = {"at": at, "count": len(conflicts), "conflicts": list(conflicts[:_KEPT_MOST])}
        newest = sorted(files, key=lambda name: (name == file, str(files[name].get("at"))))[-_FILES_MOST:]
        files = {name: files[name] for name in files if name in newest}
    rest = {name: value for name, value in written.items() if name != KEY}
    return {**rest, KEY: files} if files else rest


def same(written: dict[str, Any], file: str, conflicts: Sequence[dict[str, Any]]) -> bool:
    """Whether these are the conflicts of the file that the settings have already."""
    known = kept(written).get(file, {"count": 0, "conflicts": []})
    return [known["count"], known["conflicts"]] == [len(conflicts), list(conflicts[:_KEPT_MOST])]
