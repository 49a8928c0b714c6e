"""A coordinator's `queue.json`: tasks with id, kind and status, the claims on them, and `events.jsonl` beside it if there is one."""

from __future__ import annotations

import os

from taskyard.doors.importers import item, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.item import Options
    from taskyard.doors.importers.source import Json, Place

STATUSES = {
    "ready": item.OPEN,
    "pending": item.OPEN,
    "todo": item.OPEN,
    "claimed": item.STARTED,
    "in-progress": item.STARTED,
    "blocked": item.BLOCKED,
    "done": item.DONE,
    "complete": item.DONE,
    "completed": item.DONE,
    "failed": item.FAILED,
    "cancelled": item.CANCELLED,
}
_EVENTS = "events.jsonl"


def read(path: str, options: Options) -> Found:
    """Return the tasks of a queue."""
    found = Found("lab")
    if source.is_folder(path):
        path = os.path.join(path, "queue.json")
    whole = source.read(path).json()
    fields = item.record(whole.value, whole.place(), "queue.json")
    if not isinstance(fields.get("tasks"), list):
        raise whole.place().refuse("there is no list of tasks in it", 'a queue is {"tasks": [...], "claims": [...]}')
    holders = _holders(whole)
    completed = _completed(path)
    for place, value in zip(whole.places("tasks"), fields["tasks"], strict=True):
        one = _task(dict(item.record(value, place)), place, options)
        holder = holders.get(one.id)
        if holder is not None and one.state == item.OPEN:
            one.state = item.STARTED
        one.assignee = one.assignee or holder
        if one.state == item.DONE and one.id in completed:
            one.outcome = completed[one.id]
        found.items.append(one)
    return found


def _task(fields: dict[str, Any], place: Place, options: Options) -> Item:
    one = Item(item.identity(fields, place, "id"), place, item.text(fields, place, "title", "name"))
    one.kind = item.text(fields, place, "kind")
    one.status = item.text(fields, place, "status")
    one.state = options.state(one.status, STATUSES, place)
    one.priority = item.priority(fields.pop("priority", None), place)
    one.assignee = item.text(fields, place, "assignee", "worker")
    one.after = item.texts(fields, place, "depends_on", "dependsOn", "dependencies", "after")
    one.rest = fields
    return one


def _holders(whole: Json) -> dict[str, str]:
    """Return the worker that holds a task, by the task's id."""
    claims = whole.value.get("claims") or []
    if not isinstance(claims, list):
        raise whole.place("claims").refuse("claims must be a list")
    found = {}
    for place, value in zip(whole.places("claims") if claims else (), claims, strict=True):
        fields = dict(item.record(value, place, "a claim"))
        task = item.identity(fields, place, "task_id", "taskId")
        found[task] = item.text(fields, place, "worker") or "somebody"
    return found


def _completed(path: str) -> dict[str, dict[str, Any]]:
    """Return who completed a task, and when, by its id: the last word of the events beside the queue."""
    events = os.path.join(os.path.dirname(path), _EVENTS)
    if path == "-" or not os.path.exists(events):
        return {}
    found = {}
    for place, value in source.read(events).json_lines():
        fields = item.record(value, place, "an event")
        task = fields.get("task_id")
        if fields.get("event") == "completed" and isinstance(task, str | int):
            found[str(task)] = {"completed_by": fields.get("worker"), "completed_at": fields.get("time")}
    return found
