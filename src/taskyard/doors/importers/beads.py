"""beads: `.beads/issues.jsonl`, or what `bd list --json` and `bd export` print. One JSON object for each issue."""

from __future__ import annotations

from taskyard.doors.importers import item, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.source import Place

STATUSES = {
    "open": item.OPEN,
    "in-progress": item.STARTED,
    "hooked": item.STARTED,
    "blocked": item.BLOCKED,
    "deferred": item.HELD_BACK,
    "pinned": item.HELD_BACK,
    "closed": item.DONE,
    "tombstone": item.DELETED,
}
_SCALE = {0: 0, 1: 2, 2: 5, 3: 7, 4: 9}  # 2 is the default there, as 5 is here
_BLOCKING = ("blocks", "waits-for")
_PARENT = "parent-child"
_NO_WORK = ("message", "event")  # kept among the issues, and nothing to be done


def read(path: str, options: Options) -> Found:
    """Return the issues of a file."""
    found = Found("beads")
    for place, value in _issues(path):
        one = _issue(item.record(value, place, "an issue"), place, options, found)
        if one is not None:
            found.items.append(one)
    _parents_by_id(found)
    return found


def _issues(path: str) -> Iterator[tuple[Place, Any]]:
    if source.is_folder(path):
        path = f"{path.rstrip('/')}/issues.jsonl"
    text = source.read(path)
    if not text.text.lstrip().startswith("["):
        yield from text.json_lines()
        return
    whole = text.json()
    yield from zip(whole.places(), whole.value, strict=True)


def _issue(fields: dict[str, Any], place: Place, options: Options, found: Found) -> Item | None:
    fields = dict(fields)
    one = Item(item.identity(fields, place, "id"), place, item.text(fields, place, "title"))
    one.kind = item.text(fields, place, "issue_type", "type")
    if one.kind in _NO_WORK:
        found.note(place, f"{one.id} is a {one.kind}, and no work: left out")
        return None
    one.status = item.text(fields, place, "status")
    one.state = options.state(one.status, STATUSES, place)
    one.priority = item.priority(fields.pop("priority", None), place, _SCALE)
    one.assignee = item.text(fields, place, "assignee")
    one.due = item.text(fields, place, "defer_until")
    one.outcome = item.text(fields, place, "close_reason")
    _relate(one, fields.pop("dependencies", None), place, found)
    one.rest = {name: value for name, value in fields.items() if value not in (None, "", [])} | one.rest
    return one


def _relate(one: Item, links: object, place: Place, found: Found) -> None:
    """Take over what the issue depends on; other links become data."""
    if links is None:
        return
    if not isinstance(links, list):
        raise place.refuse("dependencies must be a list")
    others = []
    for link in links:
        fields = dict(item.record(link, place, "a dependency"))
        kind = item.text(fields, place, "type", "dependency_type") or "blocks"
        other = item.identity(fields, place, "depends_on_id", "id")
        if kind in _BLOCKING:
            one.after.append(other)
        elif kind == _PARENT:
            one.parent = other
        else:
            others.append({"type": kind, "id": other})
            if kind == "conditional-blocks":
                found.note(place, f"{one.id} is to run only if {other} fails: that is kept as data, and does not block")
    if others:
        one.rest["links"] = others


def _parents_by_id(found: Found) -> None:
    """Take `bd-a3f8.1` for a part of `bd-a3f8`, as beads does, where no link says whose part it is."""
    ids = {one.id for one in found.items}
    for one in found.items:
        above, dot, number = one.id.rpartition(".")
        if one.parent is None and dot and number.isdecimal() and above in ids:
            one.parent = above
