"""Which row of a file is which task: by the base, by keys, by short names; and which rows are new."""

from __future__ import annotations

import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.yard_side import Tasks

_KEY_MOST = 150  # characters of a row's id in a key


class Matched:
    """The rows of a file, each with its task's id, or with the key under which it is to become a task."""

    def __init__(self) -> None:
        self.known: list[tuple[Row, str]] = []
        self.new: list[tuple[Row, str]] = []
        """Rows that no task has, and the key of each."""
        self.copies: set[int] = set()
        """Lines of rows that carry the id of another row, and get one of their own."""


def matched(document: Document, base: Base, tasks: Tasks, report: Report) -> Matched:
    """Return which row is which task."""
    found = Matched()
    with_id, without = _split(document, base, found, report)
    of_row = {entry.row: id for id, entry in base.entries.items()}
    unknown = [row for row in with_id if row.id not in of_row]
    keys = {row.id: _key(base.mission, row.id) for row in unknown}
    keyed = tasks.keyed(keys.values())
    named = tasks.named([id for id, key in keys.items() if key not in keyed])
    for row in with_id:
        id = of_row.get(row.id) or keyed.get(keys.get(row.id, "")) or named.get(row.id)
        if id is not None and id in tasks.all:
            found.known.append((row, id))
        elif id is None:
            found.new.append((row, keys[row.id]))
        # Else its task ended long ago and was pruned: the row stays as it is.
    _place_new(_adopt(without, found, base, tasks), found, base, tasks)
    return found


def _adopt(without: list[Row], found: Matched, base: Base, tasks: Tasks) -> list[Row]:
    """Give rows that have lost their ids back to their tasks, by the title; return the others."""
    here = {id for _, id in found.known}
    lost: dict[str, list[str]] = {}
    for id, entry in base.entries.items():
        if id not in here and id in tasks.all:
            lost.setdefault(entry.file.get("title", ""), []).append(id)
    left = []
    for row in without:
        ids = lost.get(row.title) if row.line not in found.copies else None
        if ids:
            found.known.append((row, ids.pop(0)))
        else:
            left.append(row)
    return left


def _split(document: Document, base: Base, found: Matched, report: Report) -> tuple[list[Row], list[Row]]:
    """Return rows with an id of their own, and rows without; of several rows with one id, one is the original."""
    by_id: dict[str, list[Row]] = {}
    for row in document.rows:
        by_id.setdefault(row.id, []).append(row)
    without = by_id.pop("", [])
    titles = {entry.row: entry.file.get("title", "") for entry in base.entries.values()}
    for id, some in by_id.items():
        original = next((row for row in some if row.title == titles.get(id)), some[0])
        for row in some:
            if row is not original:
                found.copies.add(row.line)
                without.append(row)
                report.notice("copy", id, f"line {row.line} is a copy of {id}: it gets an id of its own", row.line)
        by_id[id] = [original]
    return [some[0] for some in by_id.values()], sorted(without, key=lambda row: row.line)


def _place_new(rows: list[Row], found: Matched, base: Base, tasks: Tasks) -> None:
    """Give each row without an id the key under which it becomes a task, or the task that it has become already.

    The key follows from the words, so that the same line in two clones becomes one task. A key whose task is in the file, or
    has ended, belongs to an earlier line of the same words, and the next one is taken.
    """
    taken = {id for _, id in found.known} | set(base.entries)
    left, new = [(row, 1) for row in rows], set()
    while left:
        keys = [_words_key(base.mission, row, number) for row, number in left]
        known = tasks.keyed(keys)
        again = []
        for (row, number), key in zip(left, keys, strict=True):
            id = known.get(key)
            used = id in taken or key in new
            if not used and id is not None and (key in base.pending or not tasks.all[id].state.ended):
                found.known.append((row, id))
                taken.add(id)
            elif used or id is not None:
                again.append((row, number + 1))
            else:
                found.new.append((row, key))
                new.add(key)
        left = again


def _key(mission: str | None, id: str) -> str:
    name = id if len(id) <= _KEY_MOST and id.isprintable() else hashlib.sha256(id.encode()).hexdigest()
    return f"{_scope(mission)}{name}"


def _words_key(mission: str | None, row: Row, number: int) -> str:
    words = hashlib.sha256(row.title.encode()).hexdigest()[:24]
    return f"{_scope(mission)}~{words}.{number}"


def _scope(mission: str | None) -> str:
    """Return how all keys of one file's tasks begin; the mission is hashed if the key would be too long."""
    if mission is not None and len(mission) > 60:
        mission = hashlib.sha256(mission.encode()).hexdigest()[:24]
    return f"tasks.md:{mission or ''}:"
