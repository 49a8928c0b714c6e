"""From what was found to new tasks: keys, states, edges and data, each checked as `add` checks it, before any yard is touched."""

from __future__ import annotations

from taskyard.core import times, words
from taskyard.core.draft import Draft, same
from taskyard.core.errors import Invalid, NotFound
from taskyard.doors.importers import edges
from taskyard.doors.importers.item import BLOCKED, CANCELLED, DELETED, DONE, ENDED, FAILED, HELD_BACK, REVIEW, STARTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.doors.importers.item import Found, Item, Options

    Known = Callable[[Sequence[str]], Mapping[str, Task]]
    """Returns the tasks that were added under these keys, by key."""

IMPORTER = "import"
"""The worker that ends imported tasks. Done ones are assigned to it, so that no worker takes one before it is ended."""
SOMEDAY = "2200-01-01T00:00:00Z"
"""When a task is due that is not to be handed out before a person says so ('taskyard retry')."""
KIND = "task"


class Row:
    """One item and the task that it becomes."""

    __slots__ = ("after", "created", "differs", "fields", "id", "item", "key", "state", "task")

    def __init__(self, item: Item, fields: dict[str, Any], state: str, after: list[str], task: Task | None) -> None:
        self.item = item
        self.key: str = fields["key"]
        self.fields = fields
        """What `add_many` takes."""
        self.state = state
        """The state that the task is to have in the end."""
        self.after = after
        """What it comes after, by the ids of the other tool."""
        self.task = task
        """The task as the yard has it, if that knows the key already."""
        self.id = None if task is None else task.id
        self.created = task is None
        self.differs = task is not None and _differs(fields, task)
        """Whether the yard has it already, in other words: an edit on one side, or another project's file."""

    def as_dict(self) -> dict[str, Any]:
        """Return the mapping for JSON."""
        return {
            "from": self.item.id,
            "id": self.id,
            "key": self.key,
            "title": self.fields.get("title"),
            "status": self.item.status,
            "state": self.state,
            "kind": self.fields["kind"],
            "priority": self.fields["priority"],
            "after": self.after,
            "mission": self.fields.get("mission"),
            "created": self.created,
            "differs": self.differs,
        }


def _differs(fields: dict[str, Any], task: Task) -> bool:
    wanted = (fields.get("title"), fields["kind"])
    return wanted != (task.title, task.kind) or not same(task.data, fields["data"])


def rows(found: Found, options: Options, known: Known) -> list[Row]:
    """Return a row for each item that is imported; raise `Invalid` with its place for one that can be no task."""
    items, gone = _chosen(found, options)
    named = {*items, *(other for one in items.values() for other in one.after if other not in gone)}
    keys = {id: _key(found.tool, options, id) for id in named}
    tasks = known([key for key in keys.values() if _is_legal(key)])
    there = {id: tasks[key] for id, key in keys.items() if key in tasks}
    after = edges.explicit(items, found, there, gone)
    edges.add_parts(after, items, found)
    made = [_row(one, after[one.id], items, found, options, there.get(one.id)) for one in items.values()]
    for row in made:
        if row.created:
            _note_state(row, found)
    return made


def _chosen(found: Found, options: Options) -> tuple[dict[str, Item], dict[str, str]]:
    """Return the items to import by id, and the states of those that are left out; raise `Invalid` for an id that two have."""
    items: dict[str, Item] = {}
    gone: dict[str, str] = {}
    first: dict[str, Item] = {}
    for one in found.items:
        if one.id in first:
            if _words(first[one.id]) != _words(one):
                raise one.place.refuse(
                    f"the id {ascii(one.id)[:60]} is there twice, first at {first[one.id].place}",
                    "give one of them another id, or take it out",
                )
            found.note(one.place, f"{one.id} is there twice, in the same words: imported once")
            continue
        first[one.id] = one
        if one.state == DELETED:
            found.note(one.place, f"{one.id} was deleted there: left out")
            gone[one.id] = DONE  # a deleted task blocks no other
        elif options.open_only and one.state in ENDED:
            gone[one.id] = one.state
        else:
            items[one.id] = one
    return items, gone


def _words(one: Item) -> list[Any]:
    return [getattr(one, name) for name in one.__slots__ if name != "place"]


def _row(
    one: Item, after: list[str], items: Mapping[str, Item], found: Found, options: Options, task: Task | None
) -> Row:
    waits = any(other not in items or items[other].state != DONE for other in after)
    fields: dict[str, Any] = {
        "key": _key(found.tool, options, one.id),
        "kind": _kind(one, options),
        "title": _title(one),
        "priority": 5 if one.priority is None else one.priority,
        "mission": options.mission or one.mission,
        "after": [{"key": _key(found.tool, options, other)} for other in after],
        "data": _data(one, found.tool),
        **one.options,
    }
    state = one.state if one.state in ENDED else "blocked" if waits else "todo"
    if one.state == DONE:
        fields["assignee"] = IMPORTER
    elif options.keep_assignee and one.assignee:
        fields["assignee"] = one.assignee
    if one.state in (FAILED, CANCELLED):
        fields["not_before"] = SOMEDAY
    elif one.state == HELD_BACK or (one.state == BLOCKED and not waits):
        fields["not_before"] = _moment(one) or SOMEDAY
        state = "blocked" if waits else "waiting"
    elif one.state not in ENDED and _moment(one):
        fields["not_before"] = _moment(one)
    if one.state == REVIEW:
        fields["review"] = True
    fields = {name: value for name, value in fields.items() if value not in (None, [])}
    try:
        Draft.of(fields)
    except (Invalid, NotFound) as error:
        raise one.place.refuse(f"{ascii(one.id)[:60]} can be no task: {error.message}", error.hint) from None
    return Row(one, fields, state, after, task)


def _note_state(row: Row, found: Found) -> None:
    """Note what a person should know about the state that the task gets."""
    one, fields = row.item, row.fields
    who = f" by {one.assignee}" if one.assignee else ""
    if one.state == STARTED:
        found.note(one.place, f"{one.id} was being worked on{who}: here it is still to be done")
    elif one.state == REVIEW:
        found.note(one.place, f"{one.id} was in review: here it is to be done, and its result must be accepted")
    elif fields.get("not_before") == SOMEDAY and one.state == BLOCKED:
        found.note(one.place, f"{one.id} is blocked by nothing that the file names: held back until 'taskyard retry'")
    elif fields.get("not_before") == SOMEDAY and one.state == HELD_BACK:
        found.note(one.place, f"{one.id} is held back until 'taskyard retry'")


def _key(tool: str, options: Options, id: str) -> str:
    return f"{tool}:{options.prefix}/{id}" if options.prefix else f"{tool}:{id}"


def _is_legal(key: str) -> bool:
    try:
        words.text(key, "key")
    except Invalid:
        return False
    return True


def _kind(one: Item, options: Options) -> str:
    """Return the kind that was asked for, else the tool's own word if it is a legal kind."""
    if options.kind is not None:
        return options.kind
    for word in (one.kind, (one.kind or "").strip().lower().replace(" ", "-")):
        try:
            kind = words.kind(word)
        except Invalid:
            continue
        if len(words.encoded(kind)) <= words.KIND_WITH_MISSION:
            return kind
    return KIND


def _title(one: Item) -> str:
    """Return a title of one printable line; `_data` keeps the whole text if this is less."""
    text = " ".join("".join(letter if _is_printable(letter) else " " for letter in one.title or "").split())
    if len(text) > words.TITLE_MOST:
        text = text[: words.TITLE_MOST - 1] + "…"
    return text or one.id[: words.TITLE_MOST]


def _is_printable(letter: str) -> bool:
    try:
        words.text(letter, "title")
    except Invalid:
        return False
    return True


def _moment(one: Item) -> str | None:
    """Return when it may begin, in the form that `add` takes; a time without a zone is taken for UTC."""
    if not one.due:
        return None
    try:
        times.moment(one.due, "due")
    except Invalid:
        text = one.due.replace(" ", "T")
        text = f"{text}Z" if "T" in text else f"{text}T00:00:00Z"
        try:
            times.moment(text, "due")
        except Invalid as error:
            raise one.place.refuse(f"{ascii(one.id)[:60]}: {error.message}", error.hint) from None
        return text
    return one.due


def _data(one: Item, tool: str) -> dict[str, Any]:
    """Return the task's data: all that the other tool wrote and that is no option here, and where it comes from."""
    origin = {
        "from": tool,
        "id": one.id,
        "status": one.status,
        "assignee": one.assignee,
        "parent": one.parent,
        "kind": one.kind,
        "title": one.title if one.title != _title(one) else None,
        "imported": one.rest.get("imported"),
    }
    return {**one.rest, "imported": {name: value for name, value in origin.items() if value is not None}}
