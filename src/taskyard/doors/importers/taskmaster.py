"""Taskmaster (task-master-ai): `.taskmaster/tasks/tasks.json`, with a list of tasks for each tag, or one list in older files."""

from __future__ import annotations

from taskyard.doors.importers import item, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.source import Json, Place

STATUSES = {
    "pending": item.OPEN,
    "in-progress": item.STARTED,
    "review": item.REVIEW,
    "blocked": item.BLOCKED,
    "deferred": item.HELD_BACK,
    "done": item.DONE,
    "completed": item.DONE,
    "cancelled": item.CANCELLED,
    "canceled": item.CANCELLED,
}
DEFAULT_TAG = "master"
_PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")


def read(path: str, options: Options) -> Found:
    """Return the tasks of every tag; a tag other than `master` becomes a mission."""
    found = Found("taskmaster")
    whole = source.read(_file(path)).json()
    fields = item.record(whole.value, whole.place(), "tasks.json")
    if isinstance(fields.get("tasks"), list):
        _Tag(found, whole, options, None).read("tasks")
        return found
    tags = [tag for tag, value in fields.items() if isinstance(value, dict) and isinstance(value.get("tasks"), list)]
    if not tags:
        raise whole.place().refuse(
            "there is no list of tasks in it", 'tasks.json has {"tasks": [...]}, or {"TAG": {"tasks": [...]}}'
        )
    for tag in tags:
        if tag != DEFAULT_TAG:
            metadata = fields[tag].get("metadata")
            brief = metadata.get("description") if isinstance(metadata, dict) else None
            found.missions[tag] = brief if isinstance(brief, str) and brief else None
        _Tag(found, whole, options, None if tag == DEFAULT_TAG else tag).read(tag, "tasks")
    return found


def _file(path: str) -> str:
    import os

    if not source.is_folder(path):
        return path
    candidates = [os.path.join(path, name) for name in _PLACES]
    return next(filter(os.path.exists, candidates), candidates[0])


class _Tag:
    """The tasks of one tag; ids are unique within it."""

    def __init__(self, found: Found, whole: Json, options: Options, tag: str | None) -> None:
        self._found = found
        self._whole = whole
        self._options = options
        self._tag = tag

    def read(self, *path: str) -> None:
        """Take over the tasks of the list at this path."""
        tasks = self._whole.value
        for name in path:
            tasks = tasks[name]
        for position, (place, value) in enumerate(zip(self._whole.places(*path), tasks, strict=True)):
            fields = dict(item.record(value, place))
            parts = fields.pop("subtasks", None)
            one = self._task(fields, place, item.identity(fields, place, "id"))
            one.after = [self._named(other) for other in item.texts(fields, place, "dependencies")]
            one.rest = _kept(fields)
            self._found.items.append(one)
            if parts:
                self._parts(one, parts, (*path, position, "subtasks"))

    def _parts(self, parent: Item, parts: object, path: tuple[str | int, ...]) -> None:
        if not isinstance(parts, list):
            raise parent.place.refuse("subtasks must be a list")
        number = parent.id.rpartition("/")[2]
        for place, value in zip(self._whole.places(*path), parts, strict=True):
            fields = dict(item.record(value, place, "a subtask"))
            own = item.identity(fields, place, "id")
            one = self._task(fields, place, own if own.startswith(f"{number}.") else f"{number}.{own}")
            # A plain number is a sibling; "3.2" is a subtask of another task.
            after = item.texts(fields, place, "dependencies")
            one.after = [self._named(other if "." in other else f"{number}.{other}") for other in after]
            one.parent = parent.id
            one.priority = parent.priority if one.priority is None else one.priority
            deeper = fields.get("subtasks")
            if deeper in (None, []):
                fields.pop("subtasks", None)
            else:
                self._found.note(place, f"the subtasks of subtask {one.id} stay in its data")
            one.rest = _kept(fields)
            self._found.items.append(one)

    def _task(self, fields: dict[str, Any], place: Place, id: str) -> Item:
        one = Item(self._named(id), place, item.text(fields, place, "title"))
        one.status = item.text(fields, place, "status")
        one.state = self._options.state(one.status, STATUSES, place)
        one.priority = item.priority(fields.pop("priority", None), place)
        one.assignee = item.text(fields, place, "assignee")
        one.mission = self._tag
        return one

    def _named(self, id: str) -> str:
        return id if self._tag is None else f"{self._tag}/{id}"


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}
