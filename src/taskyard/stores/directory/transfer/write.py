"""Writing a whole yard, as a copy of another: nobody works in it before it is finished, so nothing has to be atomic.

Whoever is killed here leaves a yard that every client refuses. The next run compares what there is, and writes the
segments anew that are not as they should be.
"""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.core.draft import Draft, compact, digest
from taskyard.core.errors import Conflict
from taskyard.core.task import State
from taskyard.core.times import rfc3339
from taskyard.core.transfer import value
from taskyard.core.words import encoded
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.names import Counters, Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.keys import path_of
from taskyard.stores.directory.tasks.segments import SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.transfer import Entry, Facts, Parcel
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.transfer.read import Unloading

_LOG = "copied"  # the log that copied events are in, beside those of the kernels
_HOUR = len("2026-01-31T12")
_PIECE = 1 << 16  # bytes that are searched at a time for the end of a line


class Loading:
    """Writes one yard."""

    def __init__(self, reading: Unloading, disk: Disk, made: bool) -> None:
        self._reading = reading
        self._made_for_it = made
        self._root = reading.root
        self._disk = disk
        self._lease = round(reading.settings.policy.lease * 1000)
        self._folders: set[str] = set()
        self._now = 0

    def begin(self, origin: str, facts: Facts) -> None:
        """Mark the yard as an unfinished copy, so that nobody else opens it, and have it paused."""
        there = self._reading.facts()
        if there.copy_of is None and not there.is_empty:
            raise Conflict(
                f"somebody has just put something into {self._root}", hint="name an empty yard, or a new one"
            )
        self._lease = round(facts.settings.get("lease", self._lease / 1000) * 1000)
        own = {**there.settings, "copy_of": origin}
        if self._made_for_it and "durability" in facts.settings:
            own["durability"] = facts.settings["durability"]
        layout.change(self._root, self._disk, [layout.UNFINISHED], own)
        self._pause(facts)

    def _pause(self, facts: Facts) -> None:
        for name in self._disk.listdir(f"{self._root}/paused"):
            self._disk.remove(f"{self._root}/paused/{name}")
        for kind in (None, *facts.kinds):
            self._disk.append(f"{self._root}/paused/{names.paused_name(kind)}", b"")

    # Tasks

    def replace(self, segment: str, parcels: Iterator[Parcel], known: bool) -> int:
        """Make these the tasks of the segment."""
        if known:
            self._clear(segment)
        self._now = self._clock()
        number = 0
        for parcel in parcels:
            self._write(parcel)
            number += 1
        return number

    def _clear(self, segment: str) -> None:
        """Take away what an earlier run has written of this segment."""
        self._folders.clear()
        folders = [f"{state}/{segment}" for state in ("blocked", "done", "failed", "cancelled")]
        folders += [f"{place}/{segment}" for place in ("results", "attempts", "edits", "needs", "names")]
        for place in ("todo", "waiting"):
            folders += [f"{place}/{name}/{segment}" for name in self._disk.listdir(f"{self._root}/{place}")]
        folders += [
            f"processing/{name}" for name in self._disk.listdir(f"{self._root}/processing") if name.startswith(segment)
        ]
        for folder in folders:
            self._disk.remove_tree(f"{self._root}/{folder}")

    def _write(self, parcel: Parcel) -> None:
        draft = _draft(parcel)
        folder, name = self._target(parcel, draft)
        added = parcel.added if parcel.added is not None and parcel.added != digest(parcel.data) else None
        self._create(folder, name, task_file.encode(parcel.id, draft, None, added))
        if parcel.added is not None and parcel.key is not None:
            self._take(parcel.key, f"{self._root}/{folder}/{name}")
        segment = parcel.id[: ids.SEGMENT]
        if parcel.dropped_as is not None:
            self._create(f"names/{segment}", f"{parcel.id}.{parcel.dropped_as}", b"")
        for entry in parcel.history:
            result = value(parcel.result) if entry.outcome == "done" else None
            self._record(parcel.id, str(entry.outcome), entry, result)
        kept: set[str] = set()
        for entry in parcel.stale:
            self._record(parcel.id, _stale(entry, kept), entry, value(entry.result))
        for entry in parcel.notes:
            line = {"claim": _claim(parcel.id, entry), "fence": entry.fence, "worker": entry.worker}
            line |= {"text": entry.text, "at": rfc3339(entry.at)}
            text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            attempt = self._made(f"attempts/{segment}/{parcel.id}/{_claim(parcel.id, entry)}")
            self._disk.append(f"{self._root}/{attempt}/notes.jsonl", text)
        if parcel.progress is not None:
            attempt = f"attempts/{segment}/{parcel.id}/{parcel.id}.{parcel.fence}.{parcel.nonce}"
            self._create(attempt, "progress.json", json.dumps({"progress": parcel.progress}).encode())
        for other in parcel.needs:
            # The follower first: a need that is there, and so not written again, must never be without it.
            followers = self._made(f"followers/{other[: ids.SEGMENT]}/{other}")
            self._disk.append(f"{self._root}/{followers}/{parcel.id}", b"")
            self._create(f"needs/{segment}/{parcel.id}", other, b"")

    def _target(self, parcel: Parcel, draft: Draft) -> tuple[str, str]:
        """Folder and name of the task, by the rules of every other move."""
        segment = parcel.id[: ids.SEGMENT]
        lane = Lane.of(parcel.priority, parcel.kind, parcel.assignee)
        stem = f"{parcel.id}.{parcel.fence}.e{parcel.errors}.c{parcel.crashes}{Counters.limits(draft)}"
        if parcel.state == State.TODO:
            return f"todo/{lane.text}/{segment}", f"{stem}.json"
        stem = f"{stem}.{lane.text}"
        if parcel.due is not None:
            stem = f"{stem}.d{parcel.due}"
        if parcel.nonce is not None:
            lease = parcel.held_for or parcel.claim_lease or parcel.lease or self._lease
            holder = names.ASSIGNED if parcel.worker == parcel.assignee else encoded(parcel.worker or "")
            stem = f"{stem}.l{lease}.{holder}-{parcel.nonce}"
        if parcel.state == State.DONE:
            stem = f"{stem}.{names.RESULT}"  # its record tells when it was done: a file's own time cannot be copied
        if parcel.state == State.WAITING:
            return f"waiting/{names.bucket(parcel.due or 0, self._now)}/{segment}", f"{stem}.json"
        if parcel.state == State.PROCESSING:
            return "processing", f"{stem}.json"
        return f"{parcel.state}/{segment}", f"{stem}.json"

    def _take(self, key: str, path: str) -> None:
        second = path_of(self._root, key)
        self._made(second[len(self._root) + 1 :].rpartition("/")[0])
        self._disk.remove(second)
        self._disk.link(path, second)

    def _record(self, id: str, kind: str, entry: Entry, result: Any) -> None:
        claim = _claim(id, entry)
        record = {
            "claim": claim,
            "fence": entry.fence,
            "worker": entry.worker,
            "outcome": entry.outcome,
            "reason": entry.text,
            "at": rfc3339(entry.at),
            "by": entry.worker,
        }
        if result is not None:
            record["result"] = result
        content = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._create(f"results/{id[: ids.SEGMENT]}", f"{claim}.{kind}.json", content)

    # The rest

    def tell(self, events: list[dict[str, Any]]) -> None:
        """Add these to the log: hours only rise, so that what is read in their order is read in this one."""
        hour = max((name[:_HOUR] for name in self._pages()), default="")
        lines: list[str] = []
        for event in events:
            own = event["at"][:_HOUR]
            if own > hour:
                self._log(hour, lines)
                hour, lines = own, []
            lines.append(compact(event))
        self._log(hour, lines)

    def _log(self, hour: str, lines: list[str]) -> None:
        if lines:
            path = f"{self._root}/events/{hour}.{_LOG}.jsonl"
            self._trim(path)
            self._disk.append(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))

    def _trim(self, path: str) -> None:
        """Take half a line away that a run which was killed may have left."""
        end = size = self._disk.size(path) if self._disk.exists(path) else 0
        while end:
            start = max(0, end - _PIECE)
            whole = self._disk.read_at(path, start, end - start).rfind(b"\n") + 1
            end = start + whole if whole else start
            if whole:
                break
        if end < size:
            self._disk.cut(path, end)

    def forget(self) -> None:
        """Make the log empty."""
        for name in self._pages():
            self._disk.remove(f"{self._root}/events/{name}")

    def _pages(self) -> list[str]:
        return [name for name in self._disk.listdir(f"{self._root}/events") if name.endswith(".jsonl")]

    def put(self, path: str, pieces: Iterator[bytes]) -> None:
        """Keep a file under this path, in the place of what was there."""
        folder = path.rpartition("/")[0]
        self._made(folder)
        self._disk.remove(f"{self._root}/{path}")
        self._disk.append(f"{self._root}/{path}", b"")
        for piece in pieces:
            self._disk.append(f"{self._root}/{path}", piece)

    def finish(self, facts: Facts) -> None:
        """Give the yard its settings, make all of it survive a power cut, and only then let others see it."""
        there = self._reading.facts()
        self._number(facts.highest)
        self._pause(facts)
        for name in self._disk.listdir(f"{self._root}/processing"):
            self._disk.touch(f"{self._root}/processing/{name}")  # whoever holds it has its whole lease from now on
        own = {name: given for name, given in facts.settings.items() if name != "shared"}
        place: dict[str, Any] = {
            name: there.settings[name] for name in ("durability", "shared") if name in there.settings
        }
        self._disk.sync_all(self._root)
        layout.change(self._root, self._disk, [], {**own, **place})

    def _number(self, highest: int) -> None:
        """Mark every segment, as full: its tasks may be of several lanes. New ones come after all that were ever used."""
        opened = self._clock()
        segments = self._reading.segments()
        last = ids.base32(highest, ids.SEGMENT) if highest >= 0 else ""
        if last > max(segments, default=""):
            self._mark(last, opened, "5-default")
        for segment in reversed(segments):
            names_there = self._reading.names(segment)
            # No segment may seem to be opened after a later one: lists go by that.
            opened = min(opened, *(ids.created(token.id) for token in names_there))
            self._mark(segment, opened, names_there[0].lane.text)

    def _mark(self, segment: str, opened: int, lane: str) -> None:
        path = f"{self._root}/segments/{segment}"
        self._disk.remove(path)
        self._disk.create(path, f"{opened} {lane}\n".encode() + b"." * SIZE, sync=False)

    def _clock(self) -> int:
        return self._disk.now(f"{self._root}/tmp/clock") // 1_000_000

    def _create(self, folder: str, name: str, content: bytes) -> None:
        path = f"{self._root}/{self._made(folder)}/{name}"
        try:
            self._disk.create(path, content, sync=False)
        except FileExistsError:
            self._disk.remove(path)
            self._disk.create(path, content, sync=False)

    def _made(self, folder: str) -> str:
        """The folder, after it was made with all above it."""
        if folder and folder not in self._folders:
            self._made(folder.rpartition("/")[0])
            try:
                self._disk.mkdir(f"{self._root}/{folder}")
            except FileExistsError:
                pass
            self._folders.add(folder)
        return folder


def _draft(parcel: Parcel) -> Draft:
    """What the task asks for, as it was checked when it was added."""
    draft = Draft.__new__(Draft)
    draft.kind, draft.priority, draft.payload = parcel.kind, parcel.priority, parcel.data
    draft.title, draft.assignee, draft.mission = parcel.title, parcel.assignee, parcel.mission
    draft.key, draft.verify, draft.max_attempts = parcel.key, parcel.verify, parcel.max_attempts
    draft.lease = None if parcel.lease is None else parcel.lease / 1000
    draft.after, draft.uses = tuple(parcel.after), tuple(parcel.uses)
    draft.not_before = parcel.not_before
    return draft


def _claim(id: str, entry: Entry) -> str:
    return f"{id}.{entry.fence}.{entry.nonce}"


def _stale(entry: Entry, kept: set[str]) -> str:
    """The name of a late result: what the store itself would give it, and another where two are just the same."""
    from hashlib import sha256

    told: list[Any] = [entry.outcome, value(entry.result), entry.text]
    while True:
        name = f"stale-{sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]}"
        if f"{entry.fence}.{entry.nonce}.{name}" not in kept:
            kept.add(f"{entry.fence}.{entry.nonce}.{name}")
            return name
        told.append(entry.at)
