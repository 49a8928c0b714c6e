"""What a file in the drop box means: any JSON object is a task, and known keys set its options."""

from __future__ import annotations

import json

from taskyard.core import words
from taskyard.core.draft import Draft
from taskyard.core.errors import Invalid, NotFound
from taskyard.stores.directory.dropbox.json_text import no_constant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STEERING = {
    "taskId": "key",
    "task_id": "key",
    "title": "title",
    "priority": "priority",
    "notBefore": "not_before",
    "not_before": "not_before",
    "maxAttempts": "max_attempts",
    "max_attempts": "max_attempts",
    "lease": "lease",
    "expires": "expires",
    "timeout": "timeout",
    "assignee": "assignee",
    "mission": "mission",
    "verify": "verify",
    "review": "review",
    "after": "after",
    "uses": "uses",
}
DEFAULT_KIND = "default"


class NotWhole(Invalid):
    """The file is not a JSON object; it may be incomplete."""


def parse(content: bytes) -> dict[str, Any]:
    """Return the object in the file. No beginning of an object parses, so what parses is complete."""
    try:
        value = json.loads(content, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise NotWhole(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        several = ": import its tasks with 'taskyard add --from FILE', one a line" if isinstance(value, list) else ""
        raise NotWhole(f"a task must be a JSON object, and this is {_CALLED[type(value)]}{several}")
    return value


_CALLED = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}


def _refuse_queue(fields: dict[str, Any]) -> None:
    """Refuse a whole queue, such as the queue.json of a coordinator or Taskmaster's tasks.json: it is many tasks, not one."""
    if not _OWN.isdisjoint(fields):
        return
    lists = [fields.get("tasks"), *(value.get("tasks") for value in fields.values() if isinstance(value, dict))]
    tasks = [task for some in lists if _is_queue(some) for task in some or ()]
    if tasks:
        tool = "taskmaster" if any(_TASKMASTER & task.keys() for task in tasks) else "lab"
        raise Invalid(
            f"this is a queue of {len(tasks)} tasks, and not one task: 'taskyard import {tool} FILE' imports all of them; "
            "FILE is this file, which is in failed/ now"
        )


def _is_queue(tasks: object) -> bool:
    return (
        isinstance(tasks, list)
        and all(isinstance(task, dict) for task in tasks)
        and any(_ONE_OF_MANY & task.keys() for task in tasks)
    )


_OWN = frozenset(("kind", "operation", "taskId", "task_id", "data"))  # an object with one of these is a task
_ONE_OF_MANY = frozenset(("id", "kind", "status", "state", "title"))
_TASKMASTER = frozenset(("subtasks", "dependencies", "testStrategy"))


def draft(fields: dict[str, Any]) -> Draft:
    """Return the task that the object describes; raise `Invalid` with the reason."""
    _refuse_queue(fields)
    if "taskyard" in fields:
        raise Invalid("this is a task's own file, of this yard or another; drop the data, not the file")
    options: dict[str, Any] = {}
    for key, option in _STEERING.items():
        if fields.get(key) is not None:
            if option in options:
                raise Invalid(f"{key!r} and its twin are both there; give one of them")
            options[option] = fields[key]
    if isinstance(options.get("key"), int) and not isinstance(options["key"], bool):
        options["key"] = str(options["key"])
    try:
        return Draft(_kind(fields), fields.get("data", fields), options)
    except NotFound as error:  # an `after` that can be no id
        raise Invalid(error.message) from None


def _kind(fields: dict[str, Any]) -> object:
    if fields.get("kind") is not None:
        return fields["kind"]
    try:
        return words.kind(fields["operation"])
    except (KeyError, Invalid):
        return DEFAULT_KIND
