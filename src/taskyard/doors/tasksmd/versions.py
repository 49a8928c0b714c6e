"""Is the file an older version of itself? An editor that saves an old buffer, or a checkout, must not undo what the yard said.

Each sync notes what it read and what it wrote. A file from which everything is missing that the last syncs have written is what it
was before them, perhaps with new edits: it is compared with that. A person who takes back one thing by hand does not look so.
"""

from __future__ import annotations

import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.rows import Document

    Change = list[Any]
    """A task's id, a field (or an empty text for the whole row), and its value before and after; None for no row."""

_STEPS = 50
_CHANGES = 20_000  # of all steps together
_JUDGED = 20
ROW = ""


def digest(text: str) -> str:
    """Return a name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def changes(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> list[Change]:
    """Return in what the rows of two versions differ, by task id."""
    found: list[Change] = []
    for id in dict.fromkeys((*before, *after)):
        old, new = before.get(id), after.get(id)
        if old is None or new is None:
            found.append([id, ROW, old, new])
        elif old != new:
            names = dict.fromkeys((*old, *new))
            found += [
                [id, name, old.get(name, ""), new.get(name, "")]
                for name in names
                if old.get(name, "") != new.get(name, "")
            ]
    return found


def note(base: Base, read: str, theirs: list[Change], ours: list[Change]) -> None:
    """Add what people have changed since the last sync, and what this sync has changed, to the steps that are kept."""
    if not theirs and not ours:
        return
    base.steps = [*base.steps, {"read": digest(read), "theirs": theirs, "ours": ours}][-_STEPS:]
    while len(base.steps) > 1 and sum(len(step["ours"]) + len(step["theirs"]) for step in base.steps) > _CHANGES:
        base.steps = base.steps[1:]


def rewind(base: Base, document: Document) -> set[str] | None:
    """Take the base back to the version that this file comes from, if that is an older one; None if it is not.

    Return the tasks whose rows that version did not have.
    """
    name = digest(document.text)
    if name in base.judged:
        return None  # the same text once more: then it is meant
    number = _older(base, document, name)
    if not number:
        return None
    base.judged = [*base.judged, name][-_JUDGED:]
    steps, base.steps = base.steps[-number:], base.steps[:-number]
    unseen: set[str] = set()
    for step in reversed(steps):
        for change in (*reversed(step["ours"]), *reversed(step["theirs"])):
            _undo(base, change, unseen)
    return unseen


def _undo(base: Base, change: Change, unseen: set[str]) -> None:
    id, field, old, _ = change
    entry = base.entries.get(id)
    if field == ROW and old is None:
        unseen.add(id)
    elif field == ROW:
        unseen.discard(id)
    elif entry is not None and field != "id":
        # What the yard said then is not known any more, only that it has said something else since.
        entry.pairs = [[{**file, field: old}, {**yard, field: None}] for file, yard in entry.pairs]


def _older(base: Base, document: Document, name: str) -> int:
    """Return how many steps the file is behind."""
    rows = {row.id: row.fields for row in document.rows if row.id}
    ids = {id: entry.row for id, entry in base.entries.items()}
    behind = 0
    first: dict[tuple[str, str], Any] = {}
    for number, step in enumerate(reversed(base.steps), 1):
        for id, field, old, _ in step["ours"]:
            first[id, field] = old
        if not all(_undone(rows, base, ids, key, old) for key, old in first.items()):
            break
        if step["ours"]:
            behind = number
            if step["read"] == name:
                return 0 if _by_hand(first, exactly=True) else behind
    return 0 if behind and _by_hand(first, exactly=False) else behind


def _by_hand(first: Mapping[tuple[str, str], Any], exactly: bool) -> bool:
    """Whether a person may just as well have taken this back: one status, or one row if nothing else was changed."""
    return len(first) == 1 and all(field == "status" or (exactly and field == ROW) for _, field in first)


def _undone(
    rows: Mapping[str, Mapping[str, str]], base: Base, ids: Mapping[str, str], key: tuple[str, str], old: Any
) -> bool:
    """Whether the file does not have what a sync wrote there; what was written and taken back since says nothing."""
    id, field = key
    row = rows.get(ids.get(id, ""))
    if field == ROW:
        return (row is None) if old is None else str(old["id"]) in rows
    if field == "id":
        return row is None
    if row is None:  # without its id it cannot be found: the id itself was written then, or the row is gone
        return True
    return old in (row.get(field, ""), base.entries[id].file.get(field, ""))
