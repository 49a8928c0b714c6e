"""Which version of itself a file comes from. An editor that saves an old buffer, or a checkout, must not undo what came since.

Each sync notes how the version that it read differs from the one before, and how the one that it is about to write differs from
that: before it writes, so that a sync that is killed has left its note. A file comes from the version that it differs from in the
fewest places, and from the newest of those. If that is an older one, the file is compared with what was agreed on then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from taskyard.doors.tasksmd.base import Base
    from taskyard.doors.tasksmd.rows import Document

    Change = list[Any]
    """A task's id, a field (or an empty text for the whole row), and its value before and after; None for no row."""
    Values = dict[tuple[str, str], Any]
    """What stands in each place: a task's id and a field."""

_STEPS = 100  # versions, of which each sync makes one or two
_CHANGES = 20_000  # of all steps together
ROW = ""


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


def noted(base: Base, theirs: list[Change], ours: list[Change]) -> list[dict[str, Any]]:
    """Return the steps with what people have changed since the last one, and what this sync is about to change."""
    steps, first = base.steps, base.text is None
    known = {(id, field): new for step in steps for id, field, _, new in step["changes"]}
    # A sync that was killed may have noted some of it already.
    fresh = [one for one in theirs if known.get((one[0], one[1]), NotImplemented) != one[3]]
    new = [
        {"ours": own, "written": not own, "first": first and not own, "changes": some}
        for own, some in ((False, fresh), (True, ours))
        if some
    ]
    kept = [*steps, *new][-_STEPS:]
    while len(kept) > 1 and sum(len(step["changes"]) for step in kept) > _CHANGES:
        kept = kept[1:]
    return kept


def titles(base: Base) -> dict[str, list[str]]:
    """Return the titles that rows had in the versions that are known, by task id, the newest last."""
    found: dict[str, list[str]] = {}
    for step in base.steps:
        for id, field, old, new in step["changes"]:
            some = [row.get("title", "") for row in (old, new) if row] if field == ROW else [old, new]
            if field in (ROW, "title"):
                found.setdefault(id, []).extend(some)
    return found


def settle(base: Base, document: Document, last: dict[str, dict[str, str]]) -> None:
    """Find out whether the last sync came to write its text, if it did not come to its end; `last` becomes what the file was.

    A text that was not written stays among those that are known: an editor may have seen it before another one came.
    """
    if not base.steps or base.steps[-1]["written"]:
        return
    step, rows = base.steps[-1], Rows(base, document)
    written = sum(rows.gain(change) for change in step["changes"]) >= 0
    back = [[id, field, new, old] for id, field, old, new in reversed(step["changes"])]
    base.steps = [*base.steps[:-1], {**step, "written": True}]
    if not written:
        base.steps.append({"ours": False, "written": True, "first": False, "changes": back})
    for id, field, _, value in step["changes"] if written else back:
        if field != ROW:
            last.setdefault(id, {})[field] = value
        elif value is not None:
            last[id] = dict(value)
        else:
            last.pop(id, None)


def rewind(base: Base, document: Document) -> bool:
    """Whether this file comes from an older version; then the base is what was agreed on with that.

    `base.unseen` has the tasks whose rows that version did not have, until the sync has come to its end.
    """
    if document.text == base.text:
        return False
    rows = Rows(base, document)
    undone = base.steps[len(base.steps) - _behind(base, rows) :]
    if not undone:
        return False
    unseen = set(base.unseen or ())
    then: Values = {}  # of each place the oldest value, which comes last
    for step in reversed(undone):
        for id, field, old, _ in step["changes"]:
            then |= _places(id, field, old)
    unseen.update(id for (id, field), row in then.items() if field == ROW and row is None)
    unseen.difference_update(id for (id, field), row in then.items() if field == ROW and row is not None)
    base.unseen = sorted(unseen)
    former = _former(base)
    for id, entry in base.entries.items():
        for field, now in (rows.row(id) or {}).items():
            place = id, field
            # Versions that a killed sync was about to write are among those that are known: any former value is no edit.
            if now in former.get(place, ()):
                entry.date_back(field, now, now)
            elif place in then:
                entry.date_back(field, then[place], now)
    return True


def _places(id: str, field: str, value: Any) -> Values:
    """Return the value of a field; of a whole row all its fields as well."""
    row = value if field == ROW and value is not None else {}
    return {(id, field): value, **{(id, name): one for name, one in row.items()}}


def _former(base: Base) -> dict[tuple[str, str], set[str]]:
    """Return the values that each field had in the versions that are known, without the last one."""
    found: dict[tuple[str, str], list[str]] = {}
    for step in base.steps:
        for id, field, *values in step["changes"]:
            for one in values:
                for place, value in _places(id, field, one).items():
                    if place[1] not in (ROW, "id"):
                        found.setdefault(place, []).append(value)
    return {place: {*values} - {values[-1]} for place, values in found.items()}


def _behind(base: Base, rows: Rows) -> int:
    """Return how many steps lie between the version that the file comes from and the newest one."""
    distance, best, behind = 0, 0, 0
    for number, step in enumerate(reversed(base.steps), 1):
        if step["first"]:
            break  # there is no version before it
        distance += sum(rows.gain(change) for change in step["changes"])
        if distance < best:
            best, behind = distance, number
    if best == -1 and _by_hand(rows, base.steps[len(base.steps) - behind :]):
        return 0
    return behind


def _by_hand(rows: Rows, steps: Iterable[dict[str, Any]]) -> bool:
    """Whether a person may just as well have taken back the one place in which the file is nearer to the older version.

    A row counts as deleted only if that is certain (`lineage`), so that nothing is lost if it was meant. A status may be set back,
    and people change their own plans back. But no words are undone by typing the former ones.
    """
    undone = [(step["ours"], change[1]) for step in steps for change in step["changes"] if rows.gain(change) < 0]
    return all(field in (ROW, "status") if ours else field != "title" for ours, field in undone)


def _distance(row: Mapping[str, str] | None, other: Mapping[str, str] | None) -> int:
    """Return in how many places a row differs from what it was; a line is sooner deleted than typed."""
    if row is None:
        return int(other is not None)
    if other is None:
        return 1 + len(row)
    return sum(row.get(name, "") != value for name, value in other.items() if name != "id")


class Rows:
    """The rows of a file, as they are compared with those of older versions."""

    def __init__(self, base: Base, document: Document) -> None:
        self._names = {id: entry.row for id, entry in base.entries.items()}
        self._titles = titles(base)
        self._by_id = {row.id: row.fields for row in document.rows if row.id}
        self._by_title = {row.title: row.fields for row in document.rows if not row.id}

    def gain(self, change: Change) -> int:
        """Return by how much the file differs more from the version before this change than from the one after it."""
        id, field, old, new = change
        row = self.row(id, (old or new).get("id", "") if field == ROW else "")
        if field == ROW:
            return _distance(row, old) - _distance(row, new)
        return 0 if row is None else (row.get(field, "") != old) - (row.get(field, "") != new)

    def row(self, id: str, name: str = "") -> Mapping[str, str] | None:
        """Return the row of a task: by its id, else by a title that it had, because older versions have rows without ids."""
        row = self._by_id.get(self._names.get(id, name))
        if row is None:
            row = next((self._by_title[one] for one in self._titles.get(id, ()) if one in self._by_title), None)
        return row
