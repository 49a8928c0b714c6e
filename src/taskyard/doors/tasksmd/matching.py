"""Which row of a file is which task: by the base, by keys, by short names; and which rows are new."""

from __future__ import annotations

import hashlib

from taskyard.doors.tasksmd import lineage, versions
from taskyard.doors.tasksmd.base import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.base import Base, Entry
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row
    from taskyard.doors.tasksmd.yard_side import Seen, Tasks

_ALIKE, _ALIKE_IN_PLACE = 0.6, 0.3  # how many words two titles must share, if one is to be an edit of the other
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
        self.since = 1
        """The oldest version that the file can come from (`lineage.since`)."""


def matched(document: Document, base: Base, tasks: Tasks, report: Report, certain: bool = False) -> Matched:
    """Return which row is which task; `certain` if the file counts as it is, however old it may look."""
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
    found.since = lineage.CERTAIN if certain else lineage.since(found.known, base)
    left = _adopt(without, found, base, tasks)
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
    noted = {one["pairs"][0][0].get("title", "") for one in base.pending.values()}  # words that were read before
    titles = {key: base.pending[key]["pairs"][-1][0].get("title", "") for key in open_keys}
    by_title: dict[str, list[Row]] = {}
    for row in without:
        by_title.setdefault(row.title, []).append(row)
    given: dict[int, str] = {}
    for key in open_keys:
        if by_title.get(titles[key]):
            given[by_title[titles[key]].pop(0).line] = key
    left = [row for row in without if row.line not in given]
    numbers = {row.line: number for number, row in enumerate(document.rows)}
    for is_edit in (_same_place, _same_words):
        for key in [key for key in open_keys if key not in given.values()]:
            beside = base.pending[key]["beside"]
            for row in left:
                if is_edit(row.title, titles[key], _neighbours(document, numbers[row.line]) == beside):
                    if row.title in noted:
                        base.pending[key]["pairs"].insert(0, [{"title": row.title}, {"title": None}])
                    given[row.line] = key
                    left.remove(row)
                    break
    found.known += [(row, made[given[row.line]]) for row in without if row.line in given]
    return left


def _same_place(title: str, other: str, in_place: bool) -> bool:
    """Whether a row is where another one was, and has some of its words: else it is a new line in the place of that."""
    return in_place and _likeness(title, other) >= _ALIKE_IN_PLACE


def _same_words(title: str, other: str, in_place: bool = False) -> bool:
    del in_place
    return _likeness(title, other) >= _ALIKE


def _likeness(title: str, other: str) -> float:
    """Return how many of the words of the longer title are in both; 1 if one goes on where the other ends."""
    shorter, longer = sorted((title, other), key=len)
    if shorter and longer.startswith(shorter) and not longer[len(shorter) :][:1].isalnum():
        return 1.0
    one, two = shorter.lower().split(), longer.lower().split()
    return sum(word in two for word in one) / max(1, len(one), len(two))


def _adopt(without: list[Row], found: Matched, base: Base, tasks: Tasks) -> list[Row]:
    """Give rows that have lost their ids back to their tasks, by the title; return the others.

    A file that may be an older version of itself can have rows from before they got their ids, under titles of that time.
    """
    here = {id for _, id in found.known}
    lost = [id for id in base.entries if id not in here and id in tasks.all]
    left = [row for row in without if row.line not in found.copies]
    if not lost or not left:
        return without
    former = versions.titles(base)
    for id in lost:
        entry = base.entries[id]
        title = entry.file.get("title", "")
        row = next((row for row in left if row.title == title), None)
        if row is None and (id in (base.unseen or ()) or not lineage.is_gone(entry, found.since)):
            row = _former(entry, left, former.get(id, []), tasks.all[id])
        if row is not None:
            found.known.append((row, id))
            left.remove(row)
    return [row for row in without if row in left or row.line in found.copies]


def _former(entry: Entry, rows: list[Row], known: list[str], task: Seen) -> Row | None:
    """Return the row that had this task's title in an older version, or has most words of one; `known` has all, the newest last."""
    agreed = {said.get("title", "") for said, _ in entry.pairs}
    titles = ({*known} - {*known[-1:]}) | agreed - {NEVER}
    row = next((row for row in rows if row.title in titles), None)
    if row is not None:
        entry.date_back("title", row.title, row.title)
    elif not task.state.ended:
        titles.add(task.fields["title"])
        row = next((row for row in rows if any(_same_words(row.title, title) for title in titles)), None)
        if row is not None:
            entry.date_back("title", NEVER, row.title)  # whether these words are older or newer is not known
    return row


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
    taken = {id for _, id in found.known} | {
        id for id, entry in base.entries.items() if lineage.is_gone(entry, found.since)
    }
    left, new = [(row, 1) for row in rows], set()
    while left:
        keys = [_words_key(base.mission, row, number) for row, number in left]
        known = tasks.keyed(keys)
        again = []
        for (row, number), key in zip(left, keys, strict=True):
            id = known.get(key)
            used = id in taken or key in new
            if not used and id is not None and (key in base.pending or not tasks.all[id].state.ended):
                if id in base.entries:
                    base.entries[id].date_back("title", row.title, row.title)
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
