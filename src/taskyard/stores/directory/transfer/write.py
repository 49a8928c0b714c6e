"""Write a whole yard as a copy of another. No client opens it before it is finished, so no write has to be atomic.

A copy that is killed leaves a yard that every client refuses. The next run compares both yards and writes the segments
anew that differ.
"""

from __future__ import annotations

import json

from taskyard.core import ids, needs, resources
from taskyard.core.draft import Draft, compact, digest
from taskyard.core.errors import Conflict
from taskyard.core.schedule import Schedule
from taskyard.core.task import State
from taskyard.core.times import rfc3339
from taskyard.core.transfer import NEVER_COPIED, value
from taskyard.core.words import encoded
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.log import lines
from taskyard.stores.directory.names import Counters, Lane
from taskyard.stores.directory.tasks import missions, schedules, task_file
from taskyard.stores.directory.tasks.keys import path_of
from taskyard.stores.directory.tasks.records import cancel_name
from taskyard.stores.directory.tasks.segments import SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.transfer import Entry, Facts, TaskCopy
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.transfer.read import YardReader

_LOG = "copied"  # the part of a log file's name that other writers fill with their kernel's
_KEPT = ".yard.jsonl"  # the end of the pages that keep the events about a yard that is copied to
_ABOUT_YARD = b'"task":"",'
_HOUR = len("2026-01-31T12")
_CHUNK = 1 << 16  # bytes that are searched at a time for the end of a line


class YardWriter:
    """Writes the tasks, the log and the files of one yard."""

    def __init__(self, reader: YardReader, disk: Disk, is_new: bool) -> None:
        self._reader = reader
        self._is_new = is_new
        self._root = reader.root
        self._disk = disk
        self._features: set[str] = set()
        self._lease = round(reader.settings.policy.lease * 1000)
        self._folders: set[str] = set()
        """Folders that exist for sure."""
        self._now = 0

    def begin(self, origin: str, facts: Facts) -> None:
        """Mark the yard as an unfinished copy, which no client opens, and pause it."""
        before = self._reader.facts()
        if before.copy_of is None and not before.is_empty:
            raise Conflict(
                f"somebody has just put something into {self._root}", hint="name an empty yard, or a new one"
            )
        self._lease = round(facts.settings.get("lease", self._lease / 1000) * 1000)
        settings = {**before.settings, "copy_of": origin}
        if self._is_new and "durability" in facts.settings:
            settings["durability"] = facts.settings["durability"]
        layout.change(self._root, self._disk, settings, unfinished=True)
        self._pause(facts)

    def _pause(self, facts: Facts) -> None:
        for name in self._reader.listed("paused"):
            self._disk.remove(f"{self._root}/paused/{name}")
        for kind in (None, *facts.kinds):
            self._disk.append(f"{self._root}/paused/{names.paused_name(kind)}", b"")

    # Tasks

    def replace(self, segment: str, tasks: Iterator[TaskCopy], known: bool) -> int:
        """Write `tasks` as the only tasks of the segment and return their number."""
        if known:
            self._clear(segment)
        self._now = self._clock()
        number = 0
        for task in tasks:
            self._write(task)
            number += 1
        return number

    def _clear(self, segment: str) -> None:
        """Remove what an earlier run has written of this segment."""
        self._folders.clear()
        folders = [f"{state}/{segment}" for state in ("blocked", "done", "failed", "cancelled")]
        folders += [f"{folder}/{segment}" for folder in ("results", "attempts", "edits", "needs", "names", layout.USES)]
        for folder in ("todo", "waiting", layout.DEADLINES):
            folders += [f"{folder}/{name}/{segment}" for name in self._reader.listed(folder)]
        folders += [f"processing/{name}" for name in self._reader.listed("processing") if name.startswith(segment)]
        for folder in folders:
            self._disk.remove_tree(f"{self._root}/{folder}")

    def _mark_features(self, draft: Draft) -> None:
        """Mark the yard before a task is in it that an older client would miss or misunderstand."""
        more = {layout.FOLDERS_USED} if not all(map(resources.is_plain, draft.uses)) else set()
        more |= {layout.MISSION_LANES} if draft.mission is not None else set()
        if not more <= self._features:
            layout.revised(self._root, self._disk, dict, more)
            self._features |= more

    def _write(self, task: TaskCopy) -> None:
        draft = _draft(task)
        self._mark_features(draft)
        folder, name = self._target(task, draft)
        added = task.added if task.added is not None and task.added != digest(task.data) else None
        self._create(folder, name, task_file.encode(task.id, draft, None, added))
        if task.added is not None and task.key is not None:
            self._link_key(task.key, f"{self._root}/{folder}/{name}")
        segment = task.id[: ids.SEGMENT]
        if task.dropped_as is not None:
            self._create(f"names/{segment}", f"{task.id}.{task.dropped_as}", b"")
        for entry in task.history:
            result = value(task.result) if entry.outcome == "done" else None
            self._record(task.id, str(entry.outcome), entry, result if entry.result is None else value(entry.result))
        cancelled = [entry.fence for entry in task.history if entry.outcome == "cancelled"]
        if task.cancel_reason is not None and task.fence - 1 not in cancelled:
            self._cancel(task, task.cancel_reason)
        used: set[str] = set()
        for entry in task.stale:
            self._record(task.id, _stale_name(entry, used), entry, value(entry.result))
        for entry in task.notes:
            line = {"claim": _claim(task.id, entry), "fence": entry.fence, "worker": entry.worker}
            line |= {"text": entry.text, "at": rfc3339(entry.at)}
            text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            attempt = self._made(f"attempts/{segment}/{task.id}/{_claim(task.id, entry)}")
            self._disk.append(f"{self._root}/{attempt}/notes.jsonl", text)
        if task.progress is not None:
            attempt = f"attempts/{segment}/{task.id}/{task.id}.{task.fence}.{task.nonce}"
            self._create(attempt, "progress.json", json.dumps({"progress": task.progress}).encode())
        if task.bound and task.expires is not None:
            bucket = names.bucket(task.expires, self._now)
            self._create(f"{layout.DEADLINES}/{bucket}/{segment}", f"{task.id}.{task.expires}", b"")
        self._relate(task)

    def _relate(self, task: TaskCopy) -> None:
        """Write the entries by which the task's parent, and the tasks that it comes after, find it."""
        if task.parent is not None and ids.is_id(task.parent):
            siblings = self._made(f"{layout.CHILDREN}/{task.parent[: ids.SEGMENT]}/{task.parent}")
            self._disk.append(f"{self._root}/{siblings}/{task.id}", b"")
        for other in task.needs:
            # The follower first: a need that exists is not written again, so it must never exist without its follower.
            followers = self._made(f"followers/{other[: ids.SEGMENT]}/{other}")
            self._disk.append(f"{self._root}/{followers}/{task.id}", b"")
            self._create(f"needs/{task.id[: ids.SEGMENT]}/{task.id}", other, b"")

    def _target(self, task: TaskCopy, draft: Draft) -> tuple[str, str]:
        """Return the folder and the file name of the task, as the store itself would choose them."""
        segment = task.id[: ids.SEGMENT]
        lane = Lane.of(task.priority, task.kind, task.assignee, task.mission)
        stem = f"{task.id}.{task.fence}.e{task.errors}.c{task.crashes}{Counters.limits(draft, deadline=task.bound)}"
        if task.state == State.TODO:
            return f"todo/{lane.text}/{segment}", f"{stem}.json"
        stem = f"{stem}.{lane.text}"
        if task.due is not None:
            stem = f"{stem}.d{task.due}"
        if task.nonce is not None:
            lease = task.held_for or task.claim_lease or task.lease or self._lease
            stem = names.held_by(f"{stem}.l{lease}", task.assignee, task.worker or "", task.nonce)
        if task.state == State.DONE:
            stem = f"{stem}.{names.RESULT}"  # its record has the time of the done: a file's own time cannot be copied
        if task.state == State.WAITING:
            return f"waiting/{names.bucket(task.due or 0, self._now)}/{segment}", f"{stem}.json"
        if task.state == State.PROCESSING:
            return "processing", f"{stem}.json"
        return f"{task.state}/{segment}", f"{stem}.json"

    def _link_key(self, key: str, path: str) -> None:
        key_path = path_of(self._root, key)
        self._made(key_path[len(self._root) + 1 :].rpartition("/")[0])
        self._disk.remove(key_path)
        self._disk.link(path, key_path)

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
        if result is not None or (entry.outcome == "released" and entry.result is not None):
            record["result"] = result  # of a released one: submitted, to be accepted
        content = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._create(f"results/{id[: ids.SEGMENT]}", f"{claim}.{kind}.json", content)

    def _cancel(self, task: TaskCopy, reason: str) -> None:
        """Write why a task that no worker held was cancelled."""
        at = rfc3339(task.ended_at or ids.created(task.id))
        record = {"task": task.id, "fence": task.fence, "reason": reason, "at": at, "by": None}
        content = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._create(f"results/{task.id[: ids.SEGMENT]}", cancel_name(task.id, task.fence), content)

    # The rest

    def append_events(self, events: list[dict[str, Any]]) -> None:
        """Append `events` to the log. Hours never fall from one event to the next, so readers get them in this order."""
        hour = max((name[:_HOUR] for name in self._pages()), default="")
        texts: list[str] = []
        for event in events:
            own = event["at"][:_HOUR]
            if own > hour:
                self._log(hour, texts)
                hour, texts = own, []
            texts.append(compact(event))
        self._log(hour, texts)

    def _log(self, hour: str, texts: list[str]) -> None:
        if texts:
            path = f"{self._root}/events/{hour}.{_LOG}.jsonl"
            self._trim(path)
            self._disk.append(path, "".join(f"{text}\n" for text in texts).encode("utf-8", "backslashreplace"))

    def _trim(self, path: str) -> None:
        """Remove the half line that a killed run may have left at the end of the file."""
        end = size = self._disk.size(path) if self._disk.exists(path) else 0
        while end:
            start = max(0, end - _CHUNK)
            whole = self._disk.read_at(path, start, end - start).rfind(b"\n") + 1
            end = start + whole if whole else start
            if whole:
                break
        if end < size:
            self._disk.cut(path, end)

    def clear_events(self) -> None:
        """Remove all events from the log but those about the yard itself."""
        folder = f"{self._root}/events"
        for name in self._pages():
            if name.endswith(_KEPT):
                continue
            own = [line for _, line, _ in lines.whole(self._disk, f"{folder}/{name}", _CHUNK) if _ABOUT_YARD in line]
            if own:
                self._disk.append(f"{folder}/{name[:_HOUR]}{_KEPT}", b"".join(line + b"\n" for line in own))
            self._disk.remove(f"{folder}/{name}")

    def _pages(self) -> list[str]:
        return [name for name in self._disk.listdir(f"{self._root}/events") if name.endswith(".jsonl")]

    def write_file(self, path: str, chunks: Iterator[bytes]) -> None:
        """Write a file, and replace the one that exists under this path."""
        folder = path.rpartition("/")[0]
        self._made(folder)
        self._disk.remove(f"{self._root}/{path}")
        self._disk.append(f"{self._root}/{path}", b"")
        for chunk in chunks:
            self._disk.append(f"{self._root}/{path}", chunk)

    def finish(self, facts: Facts) -> None:
        """Sync everything, and only then write the settings of the source, so that clients can open the yard."""
        before = self._reader.facts()
        self._mark_segments(facts.highest)
        self._pause(facts)
        for mission in facts.missions:
            for name, content in missions.written(mission):
                self._create(layout.MISSIONS, name, content)
        for fields in facts.schedules:
            schedule = Schedule(**fields)
            folder = f"{layout.SCHEDULES}/{encoded(schedule.name)}"
            self._create(folder, schedules.SAID, schedules.content(schedule))
            self._create(folder, schedules.token(schedule), b"")
        for name in self._reader.listed("processing"):
            self._disk.touch(f"{self._root}/processing/{name}")  # the lease of each claim starts anew
        copied = {name: given for name, given in facts.settings.items() if name not in NEVER_COPIED}
        local: dict[str, Any] = {
            name: before.settings[name] for name in ("durability", *NEVER_COPIED) if name in before.settings
        }
        self._disk.sync_all(self._root)
        layout.change(self._root, self._disk, {**copied, **local}, unfinished=False)

    def _mark_segments(self, highest: int) -> None:
        """Mark every segment as full, because its tasks may be of several lanes. New segments get numbers above `highest`."""
        opened = self._clock()
        segments = self._reader.segments()
        last = ids.base32(highest, ids.SEGMENT) if highest >= 0 else ""
        if last > max(segments, default=""):
            self._mark(last, opened, "5-default")
        for segment in reversed(segments):
            tokens = self._reader.tokens(segment)
            # Lists rely on it that no segment was opened after a later one.
            opened = min(opened, *(ids.created(token.id) for token in tokens))
            self._mark(segment, opened, tokens[0].lane.plain)

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
        """Make the folder and those above it, and return it."""
        if folder and folder not in self._folders:
            self._made(folder.rpartition("/")[0])
            try:
                self._disk.mkdir(f"{self._root}/{folder}")
            except FileExistsError:
                pass
            self._folders.add(folder)
        return folder


def _draft(task: TaskCopy) -> Draft:
    """Make the draft of a task without checks: its values were checked when it was added."""
    draft = Draft.__new__(Draft)
    draft.kind, draft.priority, draft.payload = task.kind, task.priority, task.data
    draft.title, draft.assignee, draft.mission = task.title, task.assignee, task.mission
    draft.key, draft.verify, draft.max_attempts = task.key, task.verify, task.max_attempts
    draft.lease = None if task.lease is None else task.lease / 1000
    draft.after, draft.uses = tuple(map(needs.parse, task.after)), tuple(task.uses)
    draft.parent, draft.discovered_from = task.parent, task.discovered_from
    draft.not_before = task.not_before
    draft.expires, draft.timeout = task.expires, task.timeout
    return draft


def _claim(id: str, entry: Entry) -> str:
    return f"{id}.{entry.fence}.{entry.nonce}"


def _stale_name(entry: Entry, used: set[str]) -> str:
    """Return the name that the store would give a late result; another one if it is in `used`, and add it there."""
    from hashlib import sha256

    content: list[Any] = [entry.outcome, value(entry.result), entry.text]
    while True:
        name = f"stale-{sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]}"
        if f"{entry.fence}.{entry.nonce}.{name}" not in used:
            used.add(f"{entry.fence}.{entry.nonce}.{name}")
            return name
        content.append(entry.at)
