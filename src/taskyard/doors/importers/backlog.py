"""Backlog.md: a folder with a Markdown file for each task, with YAML at its head (`backlog/tasks/back-12 - Title.md`)."""

from __future__ import annotations

import os
import re

from taskyard.core.errors import Invalid
from taskyard.doors.importers import front_matter, item, source
from taskyard.doors.importers.item import Found, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.item import Options

STATUSES = {
    "to-do": item.OPEN,
    "todo": item.OPEN,
    "in-progress": item.STARTED,
    "review": item.REVIEW,
    "in-review": item.REVIEW,
    "blocked": item.BLOCKED,
    "draft": item.HELD_BACK,
    "done": item.DONE,
    "cancelled": item.CANCELLED,
}
_ROOTS = ("backlog", ".backlog", "")
_LEFT_OUT = ("drafts", "archive")
_SECTION = re.compile(r"<!--\s*(?:SECTION:)?([A-Z_]+):(BEGIN|END)\s*-->\s*$")
_CRITERION = re.compile(r"\s*[-*] \[([ xX])\]\s+(?:#\d+\s+)?(.+)$")
_RESULT = "final_summary"


def read(path: str, options: Options) -> Found:
    """Return the tasks of a project, of one folder, or of one file."""
    found = Found("backlog")
    for file in _files(path, found):
        text = source.read(file)
        head = front_matter.read(text)
        if head is None:
            found.note(None, f"{text.file} has no front matter, and is no task: left out")
        else:
            found.items.append(_task(head, options))
    if not found.items:
        raise Invalid(f"there are no tasks in {ascii(path)[1:-1]}", hint="name the folder with backlog/tasks in it")
    _same_letters(found)
    return found


def _files(path: str, found: Found) -> list[str]:
    if not source.is_folder(path):
        return [path]
    root = next((os.path.join(path, name) for name in _ROOTS if os.path.isdir(os.path.join(path, name, "tasks"))), None)
    if root is None:
        return source.files(path, ".md")
    for name in _LEFT_OUT:
        folder = os.path.join(root, name)
        if os.path.isdir(folder) and source.files(folder, ".md"):
            found.note(None, f"{ascii(folder)[1:-1]} is left out: name it to import it as well")
    folders = [os.path.join(root, name) for name in ("tasks", "completed")]
    return [file for folder in folders if os.path.isdir(folder) for file in source.files(folder, ".md")]


def _task(head: front_matter.FrontMatter, options: Options) -> Item:
    fields, place = dict(head.fields), head.place
    one = Item(item.identity(fields, place, "id"), place, item.text(fields, place, "title"))
    one.kind = item.text(fields, place, "type")
    one.status = item.text(fields, place, "status")
    one.state = options.state(one.status, STATUSES, place)
    one.priority = item.priority(fields.pop("priority", None), place)
    one.mission = item.text(fields, place, "milestone")
    one.parent = item.text(fields, place, "parent_task_id", "parentTaskId", "parent")
    one.after = item.texts(fields, place, "dependencies", "depends_on")
    holders = item.texts(fields, place, "assignee", "assignees")
    one.assignee = holders[0].removeprefix("@") if holders else None
    if len(holders) > 1:
        fields["assignees"] = holders
    sections = _sections(head.body)
    if one.state == item.DONE:
        one.outcome = sections.pop(_RESULT, None)
    one.rest = {name: value for name, value in {**fields, **sections}.items() if value not in (None, "", [])}
    return one


def _sections(lines: list[str]) -> dict[str, Any]:
    """Return the text of each part of the body by its heading; criteria become a list."""
    parts: dict[str, list[str]] = {}
    name, marked, fenced = "body", False, False
    for line in lines:
        mark = _SECTION.match(line.strip())
        if mark is not None and not fenced:
            marked = mark[2] == "BEGIN"
            continue
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if line.startswith("## ") and not marked and not fenced:
            name = _slug(line[3:])
            continue
        parts.setdefault(name, []).append(line)
    found: dict[str, Any] = {}
    for name, content in parts.items():
        criteria = [_CRITERION.match(line) for line in content if line.strip()]
        if criteria and all(criteria):
            found[name] = [{"text": match[2].strip(), "done": match[1] != " "} for match in criteria if match]
        else:
            found[name] = "\n".join(content).strip("\n")
    return found


def _slug(heading: str) -> str:
    return "_".join(re.findall(r"\w+", heading.lower().partition("(")[0])) or "body"


def _same_letters(found: Found) -> None:
    """Write ids as the tasks themselves do: Backlog.md does not tell `task-7` from `TASK-7`."""
    names = {one.id.lower(): one.id for one in found.items}
    for one in found.items:
        one.after = [names.get(other.lower(), other) for other in one.after]
        one.parent = names.get(one.parent.lower(), one.parent) if one.parent else None
