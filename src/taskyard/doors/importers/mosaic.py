"""Mosaic: the orchestrator's queue (`tasks.json`), coord's missions (`mission.json`), and the tables of `TASKS.md`."""

from __future__ import annotations

import os
import re

from taskyard.core.errors import Invalid
from taskyard.doors.importers import item, markdown, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.source import Json, Place

STATUSES = {
    "pending": item.OPEN,
    "not-started": item.OPEN,
    "todo": item.OPEN,
    "running": item.STARTED,
    "in-progress": item.STARTED,
    "gated": item.REVIEW,
    "needs-qa": item.REVIEW,
    "blocked": item.BLOCKED,
    "escalated": item.HELD_BACK,
    "completed": item.DONE,
    "done": item.DONE,
    "failed": item.FAILED,
    "cancelled": item.CANCELLED,
}
_MISSION, _QUEUE, _TABLES = "mission.json", "tasks.json", "TASKS.md"
_FOLDERS = ("", ".mosaic/orchestrator", "docs")
_ABOVE = ("", "../../docs")  # from .mosaic/orchestrator/mission.json to the project's TASKS.md
_EMPTY = ("", "\u2014", "\u2013", "-")  # dashes of three lengths stand for nothing
_NAMED = re.compile(r"(?:> *)?\*\*Mission:?\*\*:?(.*)$")


def read(path: str, options: Options) -> Found:
    """Return the tasks of a queue, a mission or a table; a folder may have all of them."""
    found = Found("mosaic")
    if source.is_folder(path):
        _read_folder(path, options, found)
    elif path.lower().endswith(".md"):
        _tables(path, options, found, None)
    else:
        _read_json(path, source.read(path).json(), options, found)
    if not found.items:
        raise Invalid(
            f"there are no tasks in {ascii(path)[1:-1]}",
            hint="name a tasks.json, a mission.json with its TASKS.md, a TASKS.md with a table, or the folder of them",
        )
    return found


def _read_folder(path: str, options: Options, found: Found) -> None:
    mission = _first(path, _FOLDERS, _MISSION)
    if mission is not None:
        _mission(mission, source.read(mission).json(), options, found, path)
        return
    queue, tables = _first(path, _FOLDERS, _QUEUE), _first(path, _FOLDERS, _TABLES)
    if queue is not None:
        _queue(source.read(queue).json(), options, found, None)
    if tables is not None:
        _tables(tables, options, found, None)


def _first(folder: str, below: tuple[str, ...], name: str) -> str | None:
    paths = (os.path.join(folder, part, name) for part in below)
    return next(filter(os.path.isfile, paths), None)


def _read_json(path: str, whole: Json, options: Options, found: Found) -> None:
    value = whole.value
    if isinstance(value, dict) and not isinstance(value.get("tasks"), list) and _is_mission(value):
        _mission(path, whole, options, found, None)
    else:
        _queue(whole, options, found, None)


def _is_mission(fields: dict[str, Any]) -> bool:
    return any(name in fields for name in ("mission_id", "missionId", "milestones"))


def _mission(path: str, whole: Json, options: Options, found: Found, project: str | None) -> None:
    """Take over a mission: its tasks are beside it; if there are none, its milestones are."""
    fields = dict(item.record(whole.value, whole.place(), "a mission"))
    place = whole.place()
    name = item.text(fields, place, "name") or item.identity(fields, place, "mission_id", "missionId", "id")
    found.missions[name] = item.text(fields, place, "description", "statement", "goal")
    if isinstance(fields.get("tasks"), list):
        _queue(whole, options, found, name)
    folder = os.path.dirname(path)
    given = item.text(fields, place, "tasks_file", "tasksFile")
    tables = [os.path.join(base, given) for base in (folder, project or folder) if given]
    tables += [file for file in (_first(folder, _ABOVE, _TABLES), _first(project or folder, _FOLDERS, _TABLES)) if file]
    for file in [one for one in tables if os.path.isfile(one)][:1]:
        _tables(file, options, found, name)
    queue = _first(folder, ("",), _QUEUE)
    if queue is not None and path != "-":
        _queue(source.read(queue).json(), options, found, name)
    if not found.items and fields.get("milestones"):
        for milestone in _entries(whole, ("milestones",)):
            _keep(*milestone, options, found, name, "milestone")


def _queue(whole: Json, options: Options, found: Found, mission: str | None) -> None:
    path = () if isinstance(whole.value, list) else ("tasks",)
    if path and not isinstance(item.record(whole.value, whole.place(), "the file").get("tasks"), list):
        raise whole.place().refuse("there is no list of tasks in it", 'a queue is {"tasks": [...]}')
    for place, value in _entries(whole, path):
        _keep(place, value, options, found, mission, None)


def _entries(whole: Json, path: tuple[str, ...]) -> list[tuple[Place, Any]]:
    value = whole.value
    for name in path:
        value = value[name]
    if not isinstance(value, list):
        raise whole.place(*path).refuse(f"{path[-1]} must be a list")
    return list(zip(whole.places(*path), value, strict=True))


def _keep(place: Place, value: Any, options: Options, found: Found, mission: str | None, kind: str | None) -> None:
    fields = dict(item.record(value, place))
    one = Item(item.identity(fields, place, "id"), place, item.text(fields, place, "title", "name"))
    one.kind = item.text(fields, place, "type") or kind
    one.status = item.text(fields, place, "status")
    one.state = options.state(one.status, STATUSES, place)
    one.priority = item.priority(fields.pop("priority", None), place)
    one.assignee = item.text(fields, place, "assignee", "agent")
    one.mission = mission
    one.after = item.texts(fields, place, "depends_on", "dependsOn", "dependencies")
    one.outcome = item.text(fields, place, "error") if one.state == item.FAILED else None
    for name, option in (("max_attempts", "max_attempts"), ("timeout_seconds", "timeout")):
        if fields.get(name) is not None:
            one.options[option] = fields.pop(name)
    one.rest = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    found.items.append(one)


def _tables(path: str, options: Options, found: Found, mission: str | None) -> None:
    """Take over the rows of every table that has an id and a status."""
    heads: list[str] | None = None
    for line in markdown.lines(source.read(path)):
        named = _NAMED.match(line.text)
        if named is not None and mission is None:
            mission = named[1].strip(" `") or None
        row = markdown.cells(line.text)
        if row is None:
            heads = None
        elif heads is None:
            heads = [cell.strip("`* ").lower() for cell in row]
        elif not markdown.is_rule(row) and {"id", "status"} <= set(heads):
            if len(row) > len(heads):
                raise line.place.refuse(f"the row has {len(row)} cells, and its table has {len(heads)} columns")
            _row(dict(zip(heads, row, strict=False)), line, options, found, mission)


def _row(cells: dict[str, str], line: markdown.Line, options: Options, found: Found, mission: str | None) -> None:
    fields: dict[str, Any] = {name: cell for name, cell in cells.items() if cell not in _EMPTY and name}
    fields["title"] = fields.pop("title", None) or fields.pop("description", None) or fields.get("task")
    for name in ("id", "status", "depends_on", "agent"):
        if name in fields:
            fields[name] = fields[name].strip("`* ")
    if line.section:
        fields["section"] = " / ".join(line.section[1:] or line.section)
    _keep(line.place, fields, options, found, mission, None)
