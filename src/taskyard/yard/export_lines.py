"""A whole yard as JSON Lines: the same tasks, events and files that a copy carries, one a line.

    {"taskyard": "export", "version": 1, "from": ..., "whole": true, "facts": {...}}
    {"task": {...}}                       in the order of their ids; times are milliseconds since 1970
    {"event": {...}}                      in the order of the log
    {"file": "attempts/...", "data": "..."}   a piece of a file in base64; its pieces follow one another
    {"end": {"tasks": 3, "events": 9, "files": 0, "exact": true}}

The last line proves that the file is whole. `exact` means that nothing was logged while the yard was read.
"""

from __future__ import annotations

import json
from base64 import b64encode

from taskyard.core.transfer import LOCAL_SETTINGS, value, windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    from taskyard.core.transfer import Entry, Facts, Source, TaskCopy

FORMAT, VERSION = "export", 1
FACTS = ("paused", "kinds", "settings", "highest", "missions", "schedules")
ENTRY = ("fence", "nonce", "worker", "at", "outcome", "text", "result")
_JSON = ("data", "result")  # kept as text by a copy, and as values here, for programs to read


class Choice:
    """Which tasks are exported."""

    def __init__(
        self, states: Collection[str] | None = None, kinds: Collection[str] | None = None, mission: str | None = None
    ) -> None:
        self._states = states
        self._kinds = kinds
        self._mission = mission
        self.is_whole = states is None and kinds is None and mission is None

    def has(self, task: TaskCopy) -> bool:
        """Return whether this task is among them."""
        return (
            (self._states is None or task.state in self._states)
            and (self._kinds is None or task.kind in self._kinds)
            and (self._mission is None or task.mission == self._mission)
        )


class Exported:
    """How much was exported."""

    def __init__(self) -> None:
        self.tasks = self.events = self.files = 0
        self.exact = True

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {"tasks": self.tasks, "events": self.events, "files": self.files, "exact": self.exact}


def lines(source: Source, choice: Choice, moved: Callable[[], bool], counts: Exported) -> Iterator[str]:
    """Yield the lines of a yard as they are read; a part of one has tasks alone. `moved` is asked at the end."""
    head = {"taskyard": FORMAT, "version": VERSION, "from": source.label, "whole": choice.is_whole}
    yield _line({**head, "facts": _facts(source.facts())})
    for segment in source.segments():
        for task in source.tasks(segment):
            if choice.has(task):
                counts.tasks += 1
                yield _line({"task": _task(task)})
    if choice.is_whole:
        for window in windows(source.events()):
            for event in window:
                counts.events += 1
                yield _line({"event": event})
        for path in source.files(with_progress=True):
            counts.files += 1
            for chunk in source.chunks(path):
                yield _line({"file": path, "data": b64encode(chunk).decode()})
    counts.exact = not moved()
    yield _line({"end": counts.as_dict()})


def _facts(facts: Facts) -> dict[str, Any]:
    """Return what is true of the whole yard, without what belongs to its place: secrets of tokens are not exported."""
    fields = {name: getattr(facts, name) for name in FACTS}
    fields["settings"] = {name: value for name, value in facts.settings.items() if name not in LOCAL_SETTINGS}
    return fields


def _task(task: TaskCopy) -> dict[str, Any]:
    fields = {name: getattr(task, name) for name in (*task.COMPARED, "ended_at", "claim_lease")}
    for name in ("history", "notes", "stale"):
        fields[name] = [_entry(entry) for entry in getattr(task, name)]
    return _with_values(fields)


def _entry(entry: Entry) -> dict[str, Any]:
    return _with_values(dict(zip(ENTRY, entry.fields(), strict=True)))


def _with_values(fields: dict[str, Any]) -> dict[str, Any]:
    """Put values in place of JSON in texts; one that is missing is left out, because `null` is a value too."""
    for name in _JSON:
        if name in fields:
            text = fields.pop(name)
            if text is not None:
                fields[name] = value(text)
    return fields


def _line(fields: dict[str, Any]) -> str:
    # ASCII only: a text may have lone surrogates, which no file in UTF-8 can.
    return json.dumps(fields, separators=(",", ":"))
