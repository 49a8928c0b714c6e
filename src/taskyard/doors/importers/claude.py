"""Claude Code: the folder of a session's or a team's task list, `~/.claude/tasks/NAME/`, with one JSON file for each task."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid
from taskyard.doors.importers import item, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.source import Place

STATUSES = {
    "pending": item.OPEN,
    "in-progress": item.STARTED,
    "completed": item.DONE,
    "cancelled": item.CANCELLED,
    "deleted": item.DELETED,
}


def read(path: str, options: Options) -> Found:
    """Return the tasks of one list, or of every list in a folder of lists."""
    found = Found("claude")
    if not source.is_folder(path):
        text = source.read(path)
        name = "" if path == "-" else _list_name(os.path.dirname(os.path.abspath(path)))
        whole = text.json()
        if isinstance(whole.value, list):
            entries = list(zip(whole.places(), whole.value, strict=True))
        else:
            entries = [(whole.place(), whole.value)]
        _read_list(entries, name, options, found)
        return found
    lists = [path, *sorted(entry.path for entry in os.scandir(path) if entry.is_dir())]
    for folder in lists:
        wholes = [source.read(file).json() for file in source.files(folder, ".json")]
        _read_list([(whole.place(), whole.value) for whole in wholes], _list_name(folder), options, found)
    if not found.items:
        raise Invalid(
            f"{ascii(path)[1:-1]} has no tasks: there is no JSON file in it",
            hint="name the folder of one task list, such as ~/.claude/tasks/SESSION",
        )
    return found


def _list_name(folder: str) -> str:
    return os.path.basename(os.path.abspath(folder))


def _read_list(entries: list[tuple[Place, Any]], name: str, options: Options, found: Found) -> None:
    """Take over one list: ids are unique within it, and edges stay in it."""
    items = {}
    behind: list[tuple[str, str]] = []
    for place, value in entries:
        fields = dict(item.record(value, place))
        id = item.identity(fields, place, "id")
        one = Item(_named(name, id), place, item.text(fields, place, "subject", "title", "content"))
        one.status = item.text(fields, place, "status")
        one.state = options.state(one.status, STATUSES, place)
        one.priority = item.priority(fields.pop("priority", None), place)
        one.assignee = item.text(fields, place, "owner", "assignee")
        one.after = [_named(name, other) for other in item.texts(fields, place, "blockedBy", "blocked_by")]
        behind += [(_named(name, other), one.id) for other in item.texts(fields, place, "blocks")]
        one.rest = {field: value for field, value in fields.items() if value not in (None, "", [], {})}
        items[one.id] = one
        found.items.append(one)
    for later, first in behind:  # both ends of an edge are written there; one is enough
        if later in items and first not in items[later].after:
            items[later].after.append(first)


def _named(name: str, id: str) -> str:
    return f"{name}/{id}" if name else id
