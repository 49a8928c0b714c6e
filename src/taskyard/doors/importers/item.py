"""What every importer returns: the tasks of another tool, in one form."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.importers.source import Place

OPEN = "open"
STARTED = "started"
"""A worker had it in the other tool: it is to be done here, with a note of who that was."""
REVIEW = "review"
"""To be looked at before it counts as done."""
HELD_BACK = "held back"
"""Not to be handed out before a person says so."""
BLOCKED = "blocked"
"""Blocked in the other tool: here by what it comes after; if that is all done, it is held back."""
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
DELETED = "deleted"
"""Deleted in the other tool: not imported, and no task comes after it."""
STATES = (OPEN, STARTED, REVIEW, HELD_BACK, BLOCKED, DONE, FAILED, CANCELLED, DELETED)
ENDED = (DONE, FAILED, CANCELLED)

PRIORITIES = {
    "critical": 0, "urgent": 0, "highest": 0, "high": 2, "medium": 5, "normal": 5, "low": 8, "lowest": 9,
    "p0": 0, "p1": 2, "p2": 5, "p3": 7, "p4": 9,
}  # fmt: skip
"""Words for priorities; 5 is the default here as `medium` and P2 are elsewhere."""


class Item:
    """One task of another tool."""

    __slots__ = (
        "after", "assignee", "due", "id", "kind", "mission", "options", "outcome", "parent", "place", "priority", "rest", "state",
        "status", "title",
    )  # fmt: skip

    def __init__(self, id: str, place: Place, title: str | None = None) -> None:
        self.id = id
        self.place = place
        self.title = title
        self.status: str | None = None
        """The state in the other tool's own word."""
        self.state = OPEN
        self.kind: str | None = None
        self.priority: int | None = None
        self.after: list[str] = []
        """Ids of the items that must be done first."""
        self.parent: str | None = None
        """The id of the item that this one is a part of."""
        self.assignee: str | None = None
        self.mission: str | None = None
        self.due: str | None = None
        """Not to be begun before this moment."""
        self.options: dict[str, Any] = {}
        """Other options of `add`, such as `max_attempts`."""
        self.outcome: Any = None
        """The result of one that is done, or the reason of one that is failed or cancelled."""
        self.rest: dict[str, Any] = {}
        """What has no field of its own here, by the other tool's names: it becomes the task's data."""


class Found:
    """All that was found in a file or folder."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.items: list[Item] = []
        self.missions: dict[str, str | None] = {}
        """Missions that the other tool knows by name, with their briefs."""
        self.notes: list[str] = []
        """What cannot be carried, in sentences."""

    def note(self, place: Place | None, text: str) -> None:
        """Note something that is not carried."""
        self.notes.append(f"{place}: {text}" if place is not None else text)


class Options:
    """What the caller asked for."""

    __slots__ = ("keep_assignee", "kind", "mission", "open_only", "prefix", "statuses")

    def __init__(
        self,
        kind: str | None = None,
        mission: str | None = None,
        prefix: str | None = None,
        keep_assignee: bool = False,
        open_only: bool = False,
        statuses: dict[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.mission = mission
        self.prefix = prefix
        self.keep_assignee = keep_assignee
        self.open_only = open_only
        self.statuses = {_plain(word): state for word, state in (statuses or {}).items()}
        """States by the other tool's own words, which count before the importer's table."""

    def state(self, word: object, table: dict[str, str], place: Place, usual: str = OPEN) -> str:
        """Return the state that the other tool's word means; raise `Invalid` for an unknown word: a guess could hand out what is done."""
        if word is None or word == "":
            return usual
        if not isinstance(word, str):
            raise place.refuse(f"the status must be a text, not {type(word).__name__}")
        found = self.statuses.get(_plain(word)) or table.get(_plain(word))
        if found is None:
            known = ", ".join(sorted({*table, *self.statuses}))
            raise place.refuse(
                f"the status {ascii(word)[:60]} is not known",
                f"say what it means: --status {ascii(word)[:60]}=open, or one of {', '.join(STATES)}; known are {known}",
            )
        return found


def _plain(word: str) -> str:
    """Return a status in one spelling: `In Progress`, `in_progress` and `in-progress` are the same."""
    return "-".join(word.lower().replace("_", " ").replace("-", " ").split())


# Fields of JSON objects and front matter, each refused with its place if it is of the wrong sort


def record(value: object, place: Place, what: str = "a task") -> dict[str, Any]:
    """Return an object's fields."""
    if not isinstance(value, dict):
        raise place.refuse(f"{what} must be a JSON object, not {_called(value)}")
    return value


def text(fields: dict[str, Any], place: Place, *names: str) -> str | None:
    """Return the first of these fields that is there, as a text, and take all of them out; None if it is missing or empty."""
    found = [fields.pop(name) for name in names if name in fields]
    value = next((one for one in found if one is not None and one != ""), None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise place.refuse(f"{names[0]} must be a text, not {_called(value)}")
    return str(value)


def identity(fields: dict[str, Any], place: Place, *names: str) -> str:
    """Return the id of a task."""
    id = text(fields, place, *names)
    if id is None or not id.strip():
        raise place.refuse(f"a task has no {names[0]}")
    return id.strip()


def texts(fields: dict[str, Any], place: Place, *names: str) -> list[str]:
    """Return a list of texts or numbers as texts; one text alone is split at commas."""
    for name in names:
        if fields.get(name) in (None, ""):
            fields.pop(name, None)
    given = [name for name in names if name in fields]
    if not given:
        return []
    name = given[0]
    value = fields.pop(name)
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, str | int) for one in value):
        raise place.refuse(f"{name} must be a list of ids")
    return [str(one).strip() for one in value if str(one).strip()]


def priority(value: object, place: Place, numbers: dict[int, int] | None = None) -> int | None:
    """Return a priority from 0 to 9, for a word, `P1`, or a number of the other tool's own scale."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        if word in PRIORITIES:
            return PRIORITIES[word]
        value = int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else value
    scale = numbers or {number: number for number in range(10)}
    if isinstance(value, int) and not isinstance(value, bool) and value in scale:
        return scale[value]
    known = ", ".join([*map(str, scale), *(word for word in PRIORITIES if not word.startswith("p"))])
    raise place.refuse(f"the priority {ascii(value)[:40]} is not known", f"known are {known}, and P0 to P4")


_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def _called(value: object) -> str:
    return _NAMES.get(type(value), "a number")
