"""Which row of a file is which task: by the base, by keys, by short names; and which rows are new."""

from __future__ import annotations

import hashlib

from taskyard.doors.tasksmd.base import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.yard_side import Tasks

_ALIKE = 0.5  # how much of two titles must be the same, if one is to be an edit of the other
_KEY_MOST = 150  # characters of a row's id in a key


class Matched:
    """The rows of a file, each with its task's id, or with the key under which it is to become a task."""

    def __init__(self) -> None:
        self.known: list[tuple[Row, str]] = []
        self.new: list[tuple[Row, str]] = []
        """Rows that no task has, and the key of each."""
        self.made: dict[str, str] = {}
        """The keys of tasks that a sync has added, which was killed before it could write their ids."""
        self.copies: set[int] = set()
        """Lines of rows that carry the id of another row, and get one of their own."""


def matched(document: Document, base: Base, tasks: Tasks, report: Report, older: bool = False) -> Matched:
    """Return which row is which task."""
    found = Matched()
    found.made = {id: key for key, id in tasks.keyed(base.pending).items()}
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
    left = _adopt(without, found, base, tasks, older)
    left = _edited_meanwhile(document, left, found, base)
    _place_new(left, found, base, tasks)
    return found


def pending(document: Document, new: list[tuple[Row, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return what is noted of rows before they become tasks, by their keys."""
    at = {row.line: number for number, row in enumerate(document.rows)}
    return {
        fields["key"]: {
            # Its status is given after the task is there: until then it is a person's edit.
            "pairs": [[{**row.fields, "status": NEVER}, _pushed(row, fields)]],
            "beside": _neighbours(document, at[row.line]),
        }
        for row, fields in new
    }


def _pushed(row: Row, fields: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a new row as the yard is to have them."""
    own = {"title": fields["title"], "agent": fields["assignee"] or "", "priority": str(fields.get("priority", 5))}
    return {**{name: value for name, value in row.fields.items() if name != "id"}, **own}


def _neighbours(document: Document, number: int) -> list[str]:
    rows = document.rows
    return [
        rows[number - 1].id or rows[number - 1].title if number else "",
        rows[number + 1].id or rows[number + 1].title if number + 1 < len(rows) else "",
    ]


def _edited_meanwhile(document: Document, without: list[Row], found: Matched, base: Base) -> list[Row]:
    """Give rows to the tasks that they have become in a sync that was killed, or met by a save; return the others.

    A person may have edited the row before its id was written. It is known by its title, else by the rows beside it.
    """
    made = {key: id for id, key in found.made.items()}
    taken = {id for _, id in found.known}
    open_keys = [key for key in made if made[key] not in taken]
    titles = {key: base.pending[key]["pairs"][0][0].get("title", "") for key in open_keys}
    by_title: dict[str, list[Row]] = {}
    for row in without:
        by_title.setdefault(row.title, []).append(row)
    given: dict[int, str] = {}
    for key in open_keys:
        if by_title.get(titles[key]):
            given[by_title[titles[key]].pop(0).line] = key
    left = [row for row in without if row.line not in given]
    numbers = {row.line: number for number, row in enumerate(document.rows)}
    for likeness in (_same_place, _same_words):
        for key in [key for key in open_keys if key not in given.values()] if left else ():
            beside = base.pending[key]["beside"]
            ranked = [
                (likeness(row, titles[key], _neighbours(document, numbers[row.line]) == beside), row) for row in left
            ]
            best, likeliest = max(ranked, key=lambda one: one[0], default=(0.0, None))
            if likeliest is not None and best >= _ALIKE:
                given[likeliest.line] = key
                left.remove(likeliest)
    found.known += [(row, made[given[row.line]]) for row in without if row.line in given]
    return left


def _same_title(row: Row, title: str, in_place: bool) -> float:
    del in_place
    return float(row.title == title)


def _same_place(row: Row, title: str, in_place: bool) -> float:
    del row, title
    return float(in_place)


def _same_words(row: Row, title: str, in_place: bool) -> float:
    """Return how much of the longer title both begin with; all of it, if one goes on where the other ends."""
    del in_place
    shorter, longer = sorted((row.title, title), key=len)
    if shorter and longer.startswith(shorter) and not longer[len(shorter) :][:1].isalnum():
        return 1.0
    common = next(
        (at for at, (one, other) in enumerate(zip(shorter, longer, strict=False)) if one != other), len(shorter)
    )
    return common / max(1, len(longer))


def _adopt(without: list[Row], found: Matched, base: Base, tasks: Tasks, older: bool) -> list[Row]:
    """Give rows that have lost their ids back to their tasks, by the title; return the others.

    In an older version of the file the title may have been edited as well.
    """
    here = {id for _, id in found.known}
    lost = [
        (id, entry.file.get("title", "")) for id, entry in base.entries.items() if id not in here and id in tasks.all
    ]
    left = [row for row in without if row.line not in found.copies]
    for likeness in (_same_title, _same_words) if older else (_same_title,):
        for id, title in list(lost):
            row = next((row for row in left if likeness(row, title, False) == 1.0), None)
            if row is not None and (likeness is _same_title or not tasks.all[id].state.ended):
                found.known.append((row, id))
                left.remove(row)
                lost.remove((id, title))
    return [row for row in without if row in left or row.line in found.copies]


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
