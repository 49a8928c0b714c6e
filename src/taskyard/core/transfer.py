"""The data of a copy: one `TaskCopy` for each task, events and files, in a form that is independent of the store.

A `TaskCopy` has everything that a yard reports about a task, and nothing about how a store keeps it. Two yards are equal if
their task copies, events and files are equal. Times are milliseconds since 1970; JSON values are text in one form (`plain`).
"""

from __future__ import annotations

import json

from taskyard.core.draft import compact
from taskyard.core.task import State
from taskyard.core.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import Any, Protocol
else:
    Protocol = object

WINDOW = 10_000  # events that are sorted, compared and written together
LOCAL_SETTINGS = (
    "durability",
    "shared",
    "copy_of",
    "tokens",
    "file_conflicts",
)  # describe where a yard is kept, so a copy may differ in them
NEVER_COPIED = ("shared", "tokens", "file_conflicts")  # the target keeps its own
_RANK = {"claimed": 0, "noted": 1}  # within one fence a claim comes first and its ending last
_seconds: dict[str, int] = {}


class Entry:
    """The ending of one claim, a result that came too late, or a note."""

    __slots__ = ("at", "fence", "nonce", "outcome", "result", "text", "worker")

    def __init__(
        self,
        fence: int,
        nonce: str,
        worker: str | None,
        at: int,
        outcome: str | None,
        text: str | None,
        result: str | None = None,
    ) -> None:
        self.fence = fence
        self.nonce = nonce
        self.worker = worker
        self.at = at
        self.outcome = outcome
        """None if this is a note."""
        self.text = text
        """The reason of an ending, or the text of a note."""
        self.result = result

    def fields(self) -> list[Any]:
        """Return all values as a list for JSON."""
        return [self.fence, self.nonce, self.worker, self.at, self.outcome, self.text, self.result]


class TaskCopy:
    """One task with its history, notes and late results."""

    COMPARED = (
        "id", "kind", "state", "priority", "assignee", "fence", "errors", "crashes", "max_attempts", "lease", "uses", "due",
        "title", "mission", "key", "added", "after", "verify", "not_before", "data", "needs", "worker", "nonce", "held_for",
        "progress", "result", "dropped_as", "cancel_reason", "parent", "discovered_from", "expires", "bound", "timeout",
    )  # fmt: skip
    __slots__ = (*COMPARED, "claim_lease", "ended_at", "history", "notes", "stale")

    id: str
    kind: str
    state: str
    priority: int
    assignee: str | None
    fence: int
    errors: int
    crashes: int
    max_attempts: int | None
    """The task's own limit; None if the yard's setting applies."""
    lease: int | None
    """The task's own lease in milliseconds; None if the yard's setting applies."""
    uses: list[str]
    due: int | None
    """When the task is due, while it is waiting or blocked."""
    title: str | None
    mission: str | None
    key: str | None
    added: str | None
    """The digest of the data that was first added under the key (`draft.digest`); None without a key."""
    after: list[Any]
    """What the task comes after, as JSON has it (`needs.encode`)."""
    verify: str | None
    not_before: int | None
    data: str
    needs: list[str]
    """Ids of the tasks in `after` that it still waits for."""
    worker: str | None
    nonce: str | None
    held_for: int | None
    """The lease, in milliseconds, of the claim that holds the task."""
    progress: float | None
    result: str | None
    dropped_as: str | None
    """The file name under which the task was dropped."""
    cancel_reason: str | None
    """Why the task was cancelled; None if that is the reason of its last error."""
    parent: str | None
    discovered_from: str | None
    expires: int | None
    bound: bool
    """Whether the deadline `expires` applies to the task, which has not ended."""
    timeout: float | None
    history: list[Entry]
    notes: list[Entry]
    stale: list[Entry]
    ended_at: int | None
    """When the task ended, if the store knows. It is not compared, because not every store can keep it."""
    claim_lease: int | None
    """The lease of the claim that ended the task. It is not compared either."""

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, fields.pop(name))
        assert not fields, fields

    def fields(self) -> dict[str, Any]:
        """Return the values that must be equal in every store, for JSON."""
        fields = {name: getattr(self, name) for name in self.COMPARED}
        for name in ("history", "notes", "stale"):
            fields[name] = [entry.fields() for entry in getattr(self, name)]
        return fields

    def digest(self) -> bytes:
        """Return a hash of `fields()`."""
        from hashlib import sha256

        return sha256(compact(self.fields()).encode("utf-8", "surrogatepass")).digest()


def last_error(history: list[Entry]) -> str | None:
    """Return the reason of the last error or crash."""
    return next((entry.text for entry in reversed(history) if entry.outcome in ("error", "crash")), None)


def cancel_reason(state: str, error: str | None, history: list[Entry]) -> str | None:
    """Return why the task was cancelled, from its shown error; None if that is only its last attempt's."""
    return error if state == State.CANCELLED and error != last_error(history) else None


MISSION_FIELDS = ("name", "brief", "owner", "created_at", "cancelled_at", "reason", "done", "failed")

SCHEDULE_FIELDS = ("name", "identity", "said", "due", "created_at", "number", "paused", "last_at", "last_task")


class Facts:
    """The settings and state of a whole yard that decide whether it can be copied."""

    __slots__ = (
        "copy_of",
        "dropped",
        "held",
        "highest",
        "is_empty",
        "kinds",
        "missions",
        "paused",
        "schedules",
        "settings",
        "warnings",
    )

    def __init__(self, paused: bool, kinds: Iterable[str], settings: dict[str, Any]) -> None:
        self.paused = paused
        self.kinds = sorted(kinds)
        self.settings = {name: value for name, value in settings.items() if name != "copy_of"}
        self.copy_of: str | None = settings.get("copy_of")
        """The label of the source, if this yard is an unfinished copy."""
        self.held: list[str] = []
        """Handles of the claims that hold a task."""
        self.dropped = 0
        """The number of files in the drop box."""
        self.highest = -1
        """The number of the highest segment that was ever used; -1 if there is none."""
        self.missions: list[dict[str, Any]] = []
        """What was said about each mission, by name: `MISSION_FIELDS`."""
        self.schedules: list[dict[str, Any]] = []
        """Every schedule and where it stands, by name: `SCHEDULE_FIELDS`."""
        self.is_empty = True
        self.warnings: list[str] = []

    def compared(self) -> dict[str, Any]:
        """Return the values that must be equal in a copy."""
        settings = {name: value for name, value in self.settings.items() if name not in LOCAL_SETTINGS}
        return {
            "paused": self.paused,
            "kinds": self.kinds,
            "settings": settings,
            "missions": self.missions,
            "schedules": self.schedules,
        }


class Source(Protocol):
    """What a copy reads from: a yard, or a file that has one."""

    label: str
    identity: object
    """Equal for two URLs of the same yard."""

    def facts(self) -> Facts:
        """Read the settings and state of the whole yard, as they are now."""

    def segments(self) -> list[str]:
        """List the segments that have tasks, in order. Later reads return at least this state, or a newer one."""

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """Read the tasks of one segment, in the order of their ids."""

    def events(self) -> Iterator[dict[str, Any]]:
        """Read the log, in the order in which it was written."""

    def files(self, with_progress: bool) -> Iterator[str]:
        """List the paths of the files of attempts, of refused drops, and of the archive.

        `with_progress` adds the progress files of ended attempts, which only a directory keeps.
        """

    def chunks(self, path: str) -> Iterator[bytes]:
        """Read such a file in chunks: at least one if the file exists, none if it does not."""

    def warnings(self) -> list[str]:
        """Return what was read and could not be copied as it is."""

    def close(self) -> None:
        """Release locks and connections."""


class Endpoint(Source, Protocol):
    """The source or the target of a copy; the methods here are those of a target."""

    keeps_files: bool

    def begin(self, origin: str, facts: Facts) -> None:
        """Mark the yard as an unfinished copy of `origin`, which no client opens; raise `Conflict` if it has content."""

    def replace(self, segment: str, tasks: Iterator[TaskCopy], known: bool) -> int:
        """Write `tasks` as the only tasks of the segment and return their number.

        With `known` the segment may have tasks already, which are removed first.
        """

    def append_events(self, events: list[dict[str, Any]]) -> None:
        """Append `events` to the log."""

    def clear_events(self) -> None:
        """Remove all events from the log."""

    def write_file(self, path: str, chunks: Iterator[bytes]) -> None:
        """Write a file, and replace the one that exists under this path."""

    def finish(self, facts: Facts) -> None:
        """Write the settings and pauses of the source, and remove the mark, so that clients can open the yard."""


def plain(value: Any) -> str:
    """Return a JSON value as text, in the one form that is compared."""
    return compact(value)


def ordered(entries: list[Entry]) -> list[Entry]:
    """Sort entries by claim, and those of one claim by time."""
    return sorted(entries, key=lambda entry: (entry.fence, entry.nonce, entry.at))


def moment(text: str) -> int:
    """Return milliseconds since 1970 for a time that `times.rfc3339` has written."""
    second = _seconds.get(text[:19])
    if second is None:
        from calendar import timegm

        if len(_seconds) > 10_000:
            _seconds.clear()
        parts = (text[0:4], text[5:7], text[8:10], text[11:13], text[14:16], text[17:19])
        try:
            second = timegm(tuple(map(int, parts)))
        except ValueError:
            second = 0  # a year that no calendar has: another program wrote into the file
        _seconds[text[:19]] = second
    return second * 1000 + int(text[20:23])


def _normalized(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event in the form that is compared: its seven common fields, then its others."""
    fields = {
        "at": rfc3339(moment(event["at"])),
        "event": event["event"],
        "task": event["task"],
        "fence": event["fence"],
        "kind": event["kind"],
        "worker": event.get("worker"),
        "by": event.get("by") or "taskyard",
    }
    for name, value in event.items():
        fields.setdefault(name, value)
    return fields


def windows(events: Iterable[dict[str, Any]]) -> Generator[list[dict[str, Any]], None, None]:
    """Yield the log in lists of `WINDOW` events, each sorted by `in_order`; events about a yard itself stay with it."""
    window = []
    for event in events:
        if not event["task"]:
            continue
        window.append(_normalized(event))
        if len(window) == WINDOW:
            yield in_order(window)
            window = []
    if window:
        yield in_order(window)


def in_order(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort the events of each task by fence: a move is logged after it is made, so two may be logged in the wrong order.

    The events of a task only change positions among themselves, so the events of other tasks stay where they are.
    """
    positions: dict[str, list[int]] = {}
    for position, event in enumerate(events):
        if event["event"] == "refused":
            continue  # a refused late verb has an old fence, and belongs where it was logged
        positions.setdefault(str(event.get("task")), []).append(position)
    for own in positions.values():
        events_of_task = sorted(
            (events[position] for position in own),
            key=lambda event: (event.get("fence", 0), _RANK.get(event["event"], 2)),
        )
        for position, event in zip(own, events_of_task, strict=True):
            events[position] = event
    return events


def value(text: str | None) -> Any:
    """Parse JSON text; None stays None."""
    return None if text is None else json.loads(text)
