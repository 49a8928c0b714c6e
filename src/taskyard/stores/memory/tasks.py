"""The tasks of a memory yard: by id, by lane in the order of claims, and by the moment when they fall due."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from threading import Condition

from taskyard.core import ids, task_names, times
from taskyard.core.task import Standing, State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Want

SEGMENT_HOLDS = 1024


class Record:
    """One task: its standing, and its records. Data and results are kept as JSON, so that no caller can change them."""

    __slots__ = (
        "cancel_reason", "draft", "history", "lease", "needs", "not_before", "notes", "progress", "result", "stale", "standing", "until",
    )  # fmt: skip

    def __init__(self, id: str, draft: Draft, policy: Policy, now: int, needs: set[str]) -> None:
        due = draft.due(now)
        self.draft = draft
        self.needs = needs
        """The tasks that must be done before this one and are not."""
        self.lease = policy.lease if draft.lease is None else draft.lease
        self.not_before = due if draft.not_before is None else draft.not_before
        self.until = due or 0
        """When a waiting task is due, or a held one's lease ends."""
        self.progress: float | None = None
        self.result: str | None = None
        self.cancel_reason: str | None = None
        self.history: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.stale: list[dict[str, Any]] = []
        state = State.BLOCKED if needs else State.TODO if due is None else State.WAITING
        attempts = policy.max_attempts if draft.max_attempts is None else draft.max_attempts
        self.standing = Standing(id, draft.kind, draft.priority, draft.assignee, state, 0, 0, 0, attempts, self.lease)
        self.standing.verified = draft.verify is not None

    def stands(self, there: Standing) -> bool:
        """Whether the task has not moved since this standing was seen."""
        at = self.standing
        return (at.state, at.fence, at.nonce) == (there.state, there.fence, there.nonce)

    def claim(self) -> dict[str, Any]:
        """Return the fields about the claim that holds the task, with which every entry about it begins."""
        at = self.standing
        return {"claim": f"{at.id}.{at.fence}.{at.nonce}", "fence": at.fence, "worker": at.worker}

    def error(self) -> str | None:
        """Return why the task was cancelled, or the reason of its newest failed attempt; None once it is done."""
        if self.standing.state is State.DONE:
            return None
        if self.standing.state is State.CANCELLED and self.cancel_reason is not None:
            return self.cancel_reason
        return next(
            (entry["reason"] for entry in reversed(self.history) if entry["outcome"] in ("error", "crash")), None
        )

    def task(self) -> Task:
        """Return the whole task, as a copy."""
        at = self.standing
        held = at.state is State.PROCESSING
        return self.draft.task(
            at.id,
            at.state,
            self.until if at.state is State.WAITING else self.not_before,
            at.max_attempts,
            priority=at.priority,
            assignee=at.assignee,
            attempts=at.errors + at.crashes,
            fence=at.fence,
            worker=at.worker,
            lease_ends=self.until if held else None,
            progress=self.progress if held else None,
            result=None if self.result is None else json.loads(self.result),
            error=self.error(),
        )

    def line(self) -> Task:
        """Return the few fields that a list shows."""
        at, draft = self.standing, self.draft
        return Task(
            id=at.id,
            kind=at.kind,
            title=draft.title,
            state=at.state,
            priority=at.priority,
            worker=at.worker,
            mission=draft.mission,
            assignee=at.assignee,
            fence=at.fence,
        )


class MemoryTasks:
    """The tasks of one yard under one lock; `with shelf` holds it.

    Lanes and alarms are heaps of (order, fence, id). A task that moves leaves its entry behind. Every move but an ending raises
    the fence, so an entry whose fence or state is not the task's own is old, and is dropped.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.rings = 0
        self.swept: int | None = None
        self.paused = False
        self.paused_kinds: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.keys: dict[str, tuple[str, Draft]] = {}
        """For each key its task, and the draft as it was added: an edit changes the task, not what the key stands for."""
        self.followers: dict[str, set[str]] = {}
        """For each task that is not done, the tasks that wait for it."""
        self.using: dict[str, str] = {}
        """The resources that running tasks use, each with the task that uses it."""
        self._parked: dict[str, list[tuple[tuple[int, str, str | None], tuple[str, int, str]]]] = {}
        self._records: dict[str, Record] = {}
        self._ids: list[str] = []  # sorted by age and by name alike: segments and the mint's tails both rise
        self._lanes: dict[tuple[int, str, str | None], list[tuple[str, int, str]]] = {}
        self._alarms: list[tuple[int, int, str]] = []
        self._mint = ids.Mint()
        self._minted = 0

    def __enter__(self) -> Self:
        self.changed.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.changed.release()

    def new_id(self, now: int) -> str:
        """Return a new id, younger than all before it."""
        segment = self._minted // SEGMENT_HOLDS
        self._minted += 1
        return ids.base32(segment, ids.SEGMENT) + self._mint.tail(now)

    def keep(self, record: Record) -> None:
        """Store a new task."""
        self._records[record.standing.id] = record
        self._ids.append(record.standing.id)
        if record.draft.key is not None:
            self.keys[record.draft.key] = (record.standing.id, record.draft)
        for other in record.needs:
            self.followers.setdefault(other, set()).add(record.standing.id)
        self.place(record)

    def unmet(self, after: tuple[str, ...]) -> set[str]:
        """Return those of these tasks that are not done."""
        return {id for id in after if self._records[id].standing.state is not State.DONE}

    def under_key(self, key: str | None) -> Record | None:
        """Return the task that was added under this key, or None."""
        known = None if key is None else self.keys.get(key)
        return None if known is None else self._records[known[0]]

    def tell(self, at: int, event: str, standing: Standing, by: str, **more: Any) -> None:
        """Append an event about the task with this standing to the log; `more` adds fields, and may replace some."""
        told = {"at": times.rfc3339(at), "event": event, "task": standing.id, "fence": standing.fence}
        self.events.append({**told, "kind": standing.kind, "worker": standing.worker, "by": by, **more})
        self.ring()

    def ring(self) -> None:
        """Wake all waiters: something has changed."""
        self.rings += 1
        self.changed.notify_all()

    def is_paused(self, kind: str) -> bool:
        """Whether no task of this kind can be claimed."""
        return self.paused or kind in self.paused_kinds

    def place(self, record: Record) -> None:
        """Put a task that has moved into the heap of its new state."""
        at = record.standing
        if at.state is State.TODO:
            lane = self._lanes.setdefault((at.priority, at.kind, at.assignee), [])
            heappush(lane, (ids.age_key(at.id), at.fence, at.id))
        elif at.state in (State.WAITING, State.PROCESSING):
            heappush(self._alarms, (record.until, at.fence, at.id))
        if record.draft.uses:
            self._reserve(record)

    def _reserve(self, record: Record) -> None:
        """Reserve the resources of a running task, or free them and put the tasks that wait for them back into their lanes."""
        id, running = record.standing.id, record.standing.state is State.PROCESSING
        for resource in record.draft.uses:
            if running:
                self.using[resource] = id
            elif self.using.get(resource) == id:
                del self.using[resource]
                for key, entry in self._parked.pop(resource, ()):
                    heappush(self._lanes.setdefault(key, []), entry)

    def holder(self, record: Record) -> tuple[str, Record] | None:
        """Return a resource that this task uses, and the running task that uses it; None if all are free."""
        taken = next((name for name in record.draft.uses if name in self.using), None)
        return None if taken is None else (taken, self._records[self.using[taken]])

    def first(self, want: Want) -> Record | None:
        """Return the most urgent, oldest task in todo that fits, or None."""
        best: tuple[int, str, str] | None = None
        if self.paused:
            return None
        for key, lane in list(self._lanes.items()):
            priority, kind, assignee = key
            if (want.kinds is not None and kind not in want.kinds) or assignee not in (None, want.worker):
                continue
            if kind in self.paused_kinds:
                continue
            while lane and not self._ready(key, lane):
                heappop(lane)
            if not lane:
                del self._lanes[key]
                continue
            age, _, id = lane[0]
            best = min(best or (priority, age, id), (priority, age, id))
        return None if best is None else self._records[best[2]]

    def _ready(self, key: tuple[int, str, str | None], lane: list[tuple[str, int, str]]) -> bool:
        """Whether the lane's first entry can be claimed; one whose resource is in use is parked until that is free."""
        record = self._current(lane[0], State.TODO)
        taken = None if record is None or not record.draft.uses else self.holder(record)
        if taken is not None:
            self._parked.setdefault(taken[0], []).append((key, lane[0]))
        return record is not None and taken is None

    def overdue(self, now: int, limit: int) -> list[Record]:
        """Return tasks whose lease has ended or whose time has come; they stay on the heap until they are moved."""
        found: list[Record] = []
        while self._alarms and self._alarms[0][0] < now and len(found) < limit:
            entry = heappop(self._alarms)
            record = self._current(entry, State.WAITING) or self._current(entry, State.PROCESSING)
            if record is None:
                continue
            if record.until < now:
                found.append(record)
            else:  # renewed since the alarm was set
                heappush(self._alarms, (record.until, *entry[1:]))
        for record in found:
            heappush(self._alarms, (record.until, record.standing.fence, record.standing.id))
        return found

    def alarm(self) -> int | None:
        """Return the moment after which something may be overdue, or None."""
        return self._alarms[0][0] if self._alarms else None

    def _current(self, entry: tuple[Any, int, str], state: State) -> Record | None:
        record = self._records.get(entry[2])
        if record is None:
            return None  # pruned
        return record if record.standing.state is state and record.standing.fence == entry[1] else None

    def named(self, pattern: str) -> Record:
        """Return the one task that fits this pattern."""
        record = self._records.get(pattern)
        if record is not None:
            return record
        begin, end = ids.ends(pattern)
        matches = [id for id in self._beginning(begin) if id.endswith(end)]
        if not matches:
            raise task_names.unknown(pattern)
        if len(matches) > 1:
            raise task_names.ambiguous(pattern, matches)
        return self._records[matches[0]]

    def shorten(self, wanted: Sequence[str]) -> list[str]:
        """Return the short names of these ids."""
        segments = {id[: ids.SEGMENT] for id in wanted}
        return ids.shorten(wanted, (id for segment in segments for id in self._beginning(segment)))

    def _beginning(self, begin: str) -> list[str]:
        """Return the ids that begin so, which are those of one segment at most."""
        start = bisect_left(self._ids, begin)
        return self._ids[start : bisect_left(self._ids, f"{begin}{{", start)]

    def audit(self) -> Iterator[tuple[str, str, str]]:
        """Yield what is inconsistent: a code, the task, and what is wrong."""
        for key, (id, _) in self.keys.items():
            if id not in self._records:
                yield "key_without_task", id, f"the key {key!a} is that of a task that is nowhere"
        for id, record in self._records.items():
            at = record.standing
            if record.draft.key is not None and self.keys.get(record.draft.key, ("",))[0] != id:
                yield "key_missing", id, f"its key {record.draft.key!a} does not lead to it"
            if (at.state is State.PROCESSING) != (at.nonce is not None) and not at.state.ended:
                yield "name_illegal", id, f"it is {at.state}, and its claim is {at.nonce}"
            if record.needs and at.state not in (State.BLOCKED, State.CANCELLED):
                yield "need_open", id, f"it is {at.state}, and it needs {min(record.needs)}"
            if at.state is State.BLOCKED and not record.needs:
                yield "need_met", id, "it is blocked by nothing"
            for other in record.needs:
                if id not in self.followers.get(other, ()):
                    yield "edge_half", id, f"it needs {other}, whose end would not tell it"

    def prune(self, before: int | None, count: int | None, apply: bool) -> dict[str, Any]:
        """Remove tasks that ended before `before`, or beyond the newest `count`; without `apply`, only return what would go."""
        ended = sorted((record for record in self._records.values() if record.standing.state.ended), key=_until)
        surplus = max(0, len(ended) - count) if count is not None else 0
        old = [] if before is None else [record for record in ended[surplus:] if record.until < before]
        chosen = self._unneeded(ended[:surplus] + old)
        oldest = min((ids.created(record.standing.id) for record in chosen), default=None)
        if apply:
            for record in chosen:
                del self._records[record.standing.id]
                if record.draft.key is not None:
                    self.keys.pop(record.draft.key, None)
                for other in record.needs:
                    self.followers.get(other, set()).discard(record.standing.id)
                self.followers.pop(record.standing.id, None)
            self._ids = [id for id in self._ids if id in self._records]
        return {"tasks": len(chosen), "events": 0, "oldest": oldest, "archives": [], "applied": apply}

    def _unneeded(self, chosen: list[Record]) -> list[Record]:
        """Return those of them that no remaining task could still wait for."""
        going = {record.standing.id for record in chosen}
        # A task is younger than all that it waits for, so the youngest are judged first.
        for record in sorted(chosen, key=lambda record: ids.age_key(record.standing.id), reverse=True):
            if not self.followers.get(record.standing.id, set()) <= going:
                going.discard(record.standing.id)
        return [record for record in chosen if record.standing.id in going]

    def oldest_first(self, cursor: str | None = None) -> Iterator[Record]:
        """Yield every task in the order of age, or those after the cursor."""
        start = 0 if cursor is None else bisect_right(self._ids, ids.age_key(cursor), key=ids.age_key)
        return (self._records[self._ids[at]] for at in range(start, len(self._ids)))


def _until(record: Record) -> int:
    return record.until
