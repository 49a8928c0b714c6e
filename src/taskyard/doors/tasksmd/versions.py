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


def rewind(base: Base, document: Document) -> bool:
    """Whether this file comes from an older version; then the base is what was agreed on with that.

    `base.unseen` has the tasks whose rows that version did not have, until the sync has come to its end.
    """
    name = digest(document.text)
    number = 0 if document.text == base.text or name in base.judged else _older(base, document, name)
    if not number:
        return False  # a text that comes once more is meant
    base.judged = [*base.judged, name][-_JUDGED:]
    steps, base.steps = base.steps[-number:], base.steps[:-number]
    unseen, rows = set(base.unseen or ()), {row.id: row.fields for row in document.rows}
    for step in reversed(steps):
        for change in (*reversed(step["ours"]), *reversed(step["theirs"])):
            _undo(base, change, unseen, rows)
    base.unseen = sorted(unseen)
    return True


def _undo(base: Base, change: Change, unseen: set[str], rows: Mapping[str, Mapping[str, str]]) -> None:
    id, field, old, _ = change
    entry = base.entries.get(id)
    if field == ROW and old is None:
        unseen.add(id)
    elif field == ROW:
        unseen.discard(id)
    elif entry is not None and field != "id" and rows.get(entry.row, {}).get(field, old) == old:
        # What the yard said then is not known any more, only that it has said something else since.
        entry.pairs = [[{**file, field: old}, {**yard, field: None}] for file, yard in entry.pairs]


def _older(base: Base, document: Document, name: str) -> int:
    """Return how many steps the file is behind."""
    rows = {row.id: row.fields for row in document.rows if row.id}
    behind, exactly = 0, False
    evidence: list[tuple[str, str]] = []
    first: dict[tuple[str, str], Any] = {}
    for number, step in enumerate(reversed(base.steps), 1):
        first |= {(id, field): old for id, field, old, _ in step["ours"]}
        wrote = [key for key, old in first.items() if _written(base, key) != (_present(old) if key[1] == ROW else old)]
        if exactly or not all(_undone(rows, base, key, first[key]) for key in wrote):
            break
        exactly = bool(wrote) and step["read"] == name
        if exactly or len(wrote) > len(evidence) or (evidence and _is_before(rows, base, step)):
            behind, evidence = number, wrote
    return 0 if _by_hand(evidence, exactly) else behind


def _is_before(rows: Mapping[str, Mapping[str, str]], base: Base, step: dict[str, Any]) -> bool:
    """Whether the file has nothing of what people had changed in a step in which the sync itself wrote nothing."""
    changed = [(id, field, old) for id, field, old, _ in step["theirs"]]
    return not step["ours"] and all(_undone(rows, base, (id, field), old) for id, field, old in changed)


def _by_hand(wrote: list[tuple[str, str]], exactly: bool) -> bool:
    """Whether a person may just as well have taken this back: one status, or one row if nothing else was changed."""
    return len(wrote) == 1 and all(field == "status" or (exactly and field == ROW) for _, field in wrote)


def _present(row: object) -> bool:
    return row is not None


def _written(base: Base, key: tuple[str, str]) -> Any:
    """Return what the last sync has left there: a field's value, or whether there is a row."""
    id, field = key
    entry = base.entries.get(id)
    if field == ROW:
        return _present(entry)
    if entry is None:
        return None
    return entry.row if field == "id" else entry.file.get(field, "")


def _undone(rows: Mapping[str, Mapping[str, str]], base: Base, key: tuple[str, str], old: Any) -> bool:
    """Whether the file has what was there before a sync wrote."""
    id, field = key
    entry = base.entries.get(id)
    row = None if entry is None else rows.get(entry.row)
    if field == ROW:
        return (row is None) if old is None else old.get("id", "") in rows
    if field == "id" or row is None:  # without its id a row cannot be found: the id was written too, or the row is gone
        return row is None
    return bool(row.get(field, "") == old)
