"""What travels when a yard is copied: one parcel for each task, events, and files; the same whichever store they come from.

A parcel says all that a yard tells of a task, and nothing of how a store keeps it. Two yards are the same if their parcels,
their events and their files are. Moments are milliseconds since 1970, JSON values are texts in one form (`plain`).
"""

from __future__ import annotations

import json

from taskyard.core.draft import compact
from taskyard.core.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import Any, Protocol
else:
    Protocol = object

WINDOW = 10_000  # events that are put in order, compared and kept together
PLACE = ("durability", "shared", "copy_of")  # settings that are about the place, and not about the work
_RANK = {"claimed": 0, "noted": 1}  # within one fence a claim comes first and its ending last
_seconds: dict[str, int] = {}


class Entry:
    """How one claim ended, or what it brought too late, or a note that it left."""

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
        """None of a note."""
        self.text = text
        """The reason, or the note."""
        self.result = result

    def fields(self) -> list[Any]:
        """All of it, for JSON."""
        return [self.fence, self.nonce, self.worker, self.at, self.outcome, self.text, self.result]


class Parcel:
    """One task with all about it."""

    SAME = (
        "id", "kind", "state", "priority", "assignee", "fence", "errors", "crashes", "max_attempts", "lease", "uses", "due",
        "title", "mission", "key", "added", "after", "verify", "not_before", "data", "needs", "worker", "nonce", "held_for",
        "progress", "result", "dropped_as",
    )  # fmt: skip
    __slots__ = (*SAME, "claim_lease", "ended_at", "history", "notes", "stale")

    id: str
    kind: str
    state: str
    priority: int
    assignee: str | None
    fence: int
    errors: int
    crashes: int
    max_attempts: int | None
    """Its own limit, if it has one."""
    lease: int | None
    """Its own lease in milliseconds, if it has one."""
    uses: list[str]
    due: int | None
    """When it is due, while it is waiting or blocked."""
    title: str | None
    mission: str | None
    key: str | None
    added: str | None
    """What its key stands for: the digest of the data that was added (`draft.digest`); None without a key."""
    after: list[str]
    verify: str | None
    not_before: int | None
    data: str
    needs: list[str]
    """What must be done before it and is not."""
    worker: str | None
    nonce: str | None
    held_for: int | None
    """The lease, in milliseconds, of the claim that holds it."""
    progress: float | None
    result: str | None
    dropped_as: str | None
    """The name under which its file was dropped."""
    history: list[Entry]
    notes: list[Entry]
    stale: list[Entry]
    ended_at: int | None
    """When it ended, as far as the store knows; not every store can keep it."""
    claim_lease: int | None
    """The lease of the claim that ended it; the same."""

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, fields.pop(name))
        assert not fields, fields

    def fields(self) -> dict[str, Any]:
        """All that must be the same wherever the task is kept, for JSON."""
        told = {name: getattr(self, name) for name in self.SAME}
        for name in ("history", "notes", "stale"):
            told[name] = [entry.fields() for entry in getattr(self, name)]
        return told

    def digest(self) -> bytes:
        """Stands for all that must be the same."""
        from hashlib import sha256

        return sha256(compact(self.fields()).encode("utf-8", "surrogatepass")).digest()

    def reason(self) -> str | None:
        """Why it failed last."""
        return next((entry.text for entry in reversed(self.history) if entry.outcome in ("error", "crash")), None)


class Facts:
    """What is true of a yard as a whole."""

    __slots__ = ("copy_of", "dropped", "held", "highest", "is_empty", "kinds", "paused", "settings", "warnings")

    def __init__(self, paused: bool, kinds: Iterable[str], settings: dict[str, Any]) -> None:
        self.paused = paused
        self.kinds = sorted(kinds)
        self.settings = {name: value for name, value in settings.items() if name != "copy_of"}
        self.copy_of: str | None = settings.get("copy_of")
        """The yard that this is an unfinished copy of."""
        self.held: list[str] = []
        """Handles of claims that hold a task, a few of them."""
        self.dropped = 0
        """Files that lie in the drop box."""
        self.highest = -1
        """The number of the highest segment that was ever used."""
        self.is_empty = True
        self.warnings: list[str] = []

    def same(self) -> dict[str, Any]:
        """What must be the same in a copy."""
        own = {name: value for name, value in self.settings.items() if name not in PLACE}
        return {"paused": self.paused, "kinds": self.kinds, "settings": own}


class Port(Protocol):
    """One yard, to be copied from or to be copied to."""

    label: str
    identity: object
    """Equal for two URLs of one yard."""
    keeps_files: bool

    def facts(self) -> Facts:
        """What is true of the yard as a whole, at this moment."""

    def segments(self) -> list[str]:
        """The segments that have tasks, in order; what is read after this is at least as new."""

    def tasks(self, segment: str) -> Iterator[Parcel]:
        """The tasks of one segment, by their ids."""

    def events(self) -> Iterator[dict[str, Any]]:
        """The log, in the order in which it was written."""

    def files(self, whole: bool) -> Iterator[str]:
        """The paths of files beside the tasks: what attempts left, what was set aside, the archive.

        With `whole` also those that mean something to a directory alone.
        """

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of such a file in at least one piece; nothing at all if it is not there."""

    def warnings(self) -> list[str]:
        """What was met on the way, and could not be told as it is."""

    # Only of a yard that is copied to

    def begin(self, origin: str, facts: Facts) -> None:
        """Have nobody work here until `finish`; `Conflict` if somebody does already."""

    def replace(self, segment: str, parcels: Iterator[Parcel], known: bool) -> int:
        """Make these the tasks of the segment, and give their number; `known` says whether it may have others."""

    def tell(self, events: list[dict[str, Any]]) -> None:
        """Add these to the end of the log."""

    def forget(self) -> None:
        """Make the log empty."""

    def put(self, path: str, pieces: Iterator[bytes]) -> None:
        """Keep a file under this path, in the place of what was there."""

    def finish(self, facts: Facts) -> None:
        """Give the yard the settings and pauses of its origin, and have everybody see it, paused as it is."""

    def close(self) -> None:
        """Let go of what is open."""


def plain(value: Any) -> str:
    """A JSON value as text, in the one form that is compared."""
    return compact(value)


def ordered(entries: list[Entry]) -> list[Entry]:
    """Entries by their claims, and those of one claim by their time."""
    return sorted(entries, key=lambda entry: (entry.fence, entry.nonce, entry.at))


def moment(text: str) -> int:
    """Milliseconds since 1970 of a moment as `times.rfc3339` writes it."""
    second = _seconds.get(text[:19])
    if second is None:
        from calendar import timegm

        if len(_seconds) > 10_000:
            _seconds.clear()
        parts = (text[0:4], text[5:7], text[8:10], text[11:13], text[14:16], text[17:19])
        try:
            second = timegm(tuple(map(int, parts)))
        except ValueError:
            second = 0  # a year that no calendar has: somebody's who wrote into the file
        _seconds[text[:19]] = second
    return second * 1000 + int(text[20:23])


def told(event: dict[str, Any]) -> dict[str, Any]:
    """An event in the form that is compared: its seven fields, then what it tells beyond them."""
    whole = {
        "at": rfc3339(moment(event["at"])),
        "event": event["event"],
        "task": event["task"],
        "fence": event["fence"],
        "kind": event["kind"],
        "worker": event.get("worker"),
        "by": event.get("by") or "taskyard",
    }
    for name, value in event.items():
        whole.setdefault(name, value)
    return whole


def windows(events: Iterable[dict[str, Any]]) -> Generator[list[dict[str, Any]], None, None]:
    """The log in parts of one length, each in order."""
    window = []
    for event in events:
        window.append(told(event))
        if len(window) == WINDOW:
            yield in_order(window)
            window = []
    if window:
        yield in_order(window)


def in_order(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each task's own events by their fence: a move is logged after it is made, and the next may be quicker.

    A task's events trade places among themselves only, so nothing else moves.
    """
    places: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        if event["event"] == "refused":
            continue  # a late word on an old fence belongs where it was said
        places.setdefault(str(event.get("task")), []).append(place)
    for mine in places.values():
        story = sorted(
            (events[place] for place in mine), key=lambda event: (event.get("fence", 0), _RANK.get(event["event"], 2))
        )
        for place, event in zip(mine, story, strict=True):
            events[place] = event
    return events


def value(text: str | None) -> Any:
    """What a JSON text says."""
    return None if text is None else json.loads(text)
