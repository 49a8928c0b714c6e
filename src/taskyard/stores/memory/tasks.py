"""The tasks of a memory yard: by id, by lane in the order of claims, and by the moment when they fall due."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from threading import Condition

from taskyard.core import ids, needs, order, plan, resources, task_names, times
from taskyard.core.limits import CONCURRENCY, RATE, WINDOW, Reached
from taskyard.core.task import Standing, State
from taskyard.stores.memory.record import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.mission import Cancelled, Mission
    from taskyard.core.schedule import Schedule
    from taskyard.core.settings import KindLimits
    from taskyard.core.store_records import Query, Want
    from taskyard.stores.memory.record import Record

    LaneKey = tuple[int, str, str | None, str | None]
    """Priority, kind, assignee and mission: what a claim chooses by."""

SEGMENT_HOLDS = 1024


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
        self.asked: dict[str | None, int] = {}
        """When a claim last asked for each kind, and under None for any."""
        self.events: list[dict[str, Any]] = []
        self.keys: dict[str, tuple[str, Draft]] = {}
        """For each key its task, and the draft as it was added: an edit changes the task, not what the key stands for."""
        self.followers: dict[str, set[str]] = {}
        """For each task that is waited for, the tasks that wait for it."""
        self.children: dict[str, dict[str, None]] = {}
        """For each task, the tasks that were added as parts of it."""
        self.in_use = resources.InUse()
        """The resources that running tasks use, each with the task that uses it."""
        self.settings: dict[str, Any] = {}
        """As they are written: replaced as a whole by every change."""
        self.kinds: dict[str, KindLimits] = {}
        """The limits of kinds that have some."""
        self._held: dict[str, set[str]] = {}
        """The running tasks of each kind."""
        self._claimed_at: dict[str, list[int]] = {}
        """When tasks of a kind with a rate were claimed, in the last minute."""
        self.missions: dict[str, Mission] = {}
        """What was said about missions, by name."""
        self.cancelled_missions: dict[str, Cancelled] = {}
        self.schedules: dict[str, Schedule] = {}
        self.leader: tuple[str, str, float] | None = None
        """Worker and incarnation of the leader, and when it renewed that, by the monotonic clock."""
        self.terms = 0
        self._parked: dict[str, list[tuple[LaneKey, tuple[str, int, str]]]] = {}
        self._overtaken: set[str] = set()
        """Tasks that use several things or a folder, and that a claim has passed over because one of them was in use."""
        self._records: dict[str, Record] = {}
        self._ids: list[str] = []  # sorted by age and by name alike: segments and the mint's tails both rise
        self._lanes: dict[LaneKey, list[tuple[str, int, str]]] = {}
        self._alarms: list[tuple[int, int, str]] = []
        self._deadlines: list[tuple[int, str]] = []
        self.backlog: dict[str | None, int] = {None: 0}
        """How many tasks of each kind, and under None of all, wait for a worker."""
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
        if record.draft.parent is not None:
            self.children.setdefault(record.draft.parent, {})[record.standing.id] = None
        self.follow(record, {})
        self.place(record)

    def follow(self, record: Record, before: dict[str, str]) -> None:
        """Register the task with those that it needs, in place of those that it needed before."""
        for other in before.keys() - record.needs.keys():
            self.unfollow(other, record.standing.id)
        for other in record.needs:
            self.followers.setdefault(other, set()).add(record.standing.id)

    def unfollow(self, other: str, id: str) -> None:
        """The task `id` waits for `other` no more."""
        waiting = self.followers.get(other, set())
        waiting.discard(id)
        if not waiting:
            self.followers.pop(other, None)

    def unmet(self, after: Sequence[str]) -> dict[str, str]:
        """Return those of these needs that are not met, each with what a failure means."""
        return {
            str(need): needs.on_failure(need)
            for need in after
            if needs.verdict(needs.on_failure(need), self._records[need].standing.state) != needs.MET
        }

    def doom(self, record: Record) -> Record | None:
        """Return a task that is failed or cancelled and cancels this one with it, or None."""
        for other, policy in record.needs.items():
            if needs.verdict(policy, self._records[other].standing.state) == needs.CANCEL:
                return self._records[other]
        return None

    def under_key(self, key: str | None) -> Record | None:
        """Return the task that was added under this key, or None."""
        known = None if key is None else self.keys.get(key)
        return None if known is None else self._records[known[0]]

    def tell(self, at: int, event: str, standing: Standing, by: str, **more: Any) -> None:
        """Append an event about the task with this standing to the log; `more` adds fields, and may replace some."""
        event_fields = {"at": times.rfc3339(at), "event": event, "task": standing.id, "fence": standing.fence}
        self.events.append({**event_fields, "kind": standing.kind, "worker": standing.worker, "by": by, **more})
        self.ring()

    def ring(self) -> None:
        """Wake all waiters: something has changed."""
        self.rings += 1
        self.changed.notify_all()

    def is_paused(self, kind: str) -> bool:
        """Whether no task of this kind can be claimed."""
        return self.paused or kind in self.paused_kinds

    def note(self, kinds: frozenset[str] | None, now: int) -> None:
        """Note that a claim asks for these kinds, or for any."""
        for kind in (None,) if kinds is None else kinds:
            self.asked[kind] = now

    def place(self, record: Record) -> None:
        """Put a task that has moved into the heap of its new state."""
        at = record.standing
        if at.state is State.TODO:
            lane = self._lanes.setdefault((at.priority, at.kind, at.assignee, record.draft.mission), [])
            heappush(lane, (ids.age_key(at.id), at.fence, at.id))
        elif at.state in (State.WAITING, State.PROCESSING):
            heappush(self._alarms, (record.until, at.fence, at.id))
        if record.counted != (at.state in OPEN):
            record.counted = not record.counted
            for kind in (None, at.kind):
                self.backlog[kind] = self.backlog.get(kind, 0) + (1 if record.counted else -1)
        if record.bound and record.deadline is not None:
            heappush(self._deadlines, (record.deadline, at.id))
        if at.id in self._overtaken:
            self._overtaken.discard(at.id)
            self.reconsider()
        if at.state is State.PROCESSING:
            self._held.setdefault(at.kind, set()).add(at.id)
        else:
            self._held.get(at.kind, set()).discard(at.id)
        if record.draft.uses:
            self._reserve(record)

    def _reserve(self, record: Record) -> None:
        """Reserve the resources of a running task, or free them and put the tasks that wait for them back into their lanes."""
        id, running = record.standing.id, record.standing.state is State.PROCESSING
        for resource in record.draft.uses:
            if running:
                self.in_use.add(resource, id)
            elif self.in_use.remove(resource, id):
                self._unpark(resources.key(resource))

    def reached(self, kind: str, now: int) -> Reached | None:
        """Return the limit of this kind that is reached, or None."""
        limits = self.kinds.get(kind)
        if limits is None:
            return None
        if limits.concurrency is not None and len(self._held.get(kind, ())) >= limits.concurrency:
            return Reached(kind, CONCURRENCY, limits.concurrency)
        recent = self._claimed_at[kind] = [at for at in self._claimed_at.get(kind, ()) if now - at <= WINDOW]
        if limits.rate is not None and len(recent) >= limits.rate:
            return Reached(kind, RATE, limits.rate, recent[-limits.rate] + WINDOW + 1)
        return None

    def pace(self, kind: str, now: int) -> None:
        """Count a claim of this kind, if it has limits."""
        if kind in self.kinds:
            self._claimed_at.setdefault(kind, []).append(now)

    def next_slot(self, now: int) -> int | None:
        """Return when the first rate that is reached allows one more, or None."""
        found = (self.reached(kind, now) for kind in self.kinds)
        return min((one.due for one in found if one is not None and one.due is not None), default=None)

    def _unpark(self, resource: str) -> None:
        """Put the tasks that wait for what has this key back into their lanes."""
        for key, entry in self._parked.pop(resource, ()):
            heappush(self._lanes.setdefault(key, []), entry)

    def reconsider(self) -> None:
        """Have the next claim look again at every task that waits for a resource: some may be kept for no task any more."""
        for resource in list(self._parked):
            self._unpark(resource)

    def holder(self, record: Record) -> tuple[str, str, Record] | None:
        """Return a resource that this task uses, what is in its way, and the running task that uses that; None if all are free."""
        taken = self.in_use.first(record.draft.uses) if record.draft.uses else None
        return None if taken is None else (taken[0], taken[1], self._records[taken[2]])

    def missing(self, record: Record, ageing: float | None, now: int) -> str | None:
        """Return the key of what stands in this task's way, in use or kept for an older task; None if it can have all."""
        taken = self.in_use.first(record.draft.uses)
        if taken is not None or ageing is None or not record.draft.uses:
            return None if taken is None else taken[1]
        kept = [
            resource
            for id in self._overtaken
            if ids.age_key(id) < ids.age_key(record.standing.id) and order.is_old(id, now, ageing)
            if not self.is_paused(self._records[id].standing.kind)
            for resource in self._records[id].draft.uses
        ]
        found = (other for name in record.draft.uses for other in kept if resources.conflict(name, other))
        return next(map(resources.key, found), None)

    def first(self, want: Want, ageing: float | None, now: int) -> Record | None:
        """Return the first task in the order of claims that is in todo and fits, or None."""
        while True:
            record = self._first(want, ageing, now)
            # A lane that was looked at later may have had an old task that this one's resources are kept for.
            if record is None or not record.draft.uses or self.missing(record, ageing, now) is None:
                return record

    def _first(self, want: Want, ageing: float | None, now: int) -> Record | None:
        best: tuple[order.Rank, str] | None = None
        if self.paused:
            return None
        for key, lane in list(self._lanes.items()):
            priority, kind, assignee, mission = key
            if (want.kinds is not None and kind not in want.kinds) or assignee not in (None, want.worker):
                continue
            if kind in self.paused_kinds or want.mission not in (None, mission):
                continue
            if self.kinds and self.reached(kind, now) is not None:
                continue
            while lane and not self._ready(key, lane, ageing, now):
                heappop(lane)
            if not lane:
                self._lanes.pop(key, None)
                continue
            id = lane[0][2]
            found = (order.rank(priority, id, ageing), id)
            best = found if best is None else min(best, found)
        return None if best is None else self._records[best[1]]

    def _ready(self, key: LaneKey, lane: list[tuple[str, int, str]], ageing: float | None, now: int) -> bool:
        """Whether the lane's first entry can be claimed; one whose resource is in use is parked until that is free."""
        record = self._current(lane[0], State.TODO)
        missing = None if record is None or not record.draft.uses else self.missing(record, ageing, now)
        if record is not None and missing is not None:
            self._parked.setdefault(missing, []).append((key, lane[0]))
            if resources.may_starve(record.draft.uses):
                self._overtaken.add(record.standing.id)
        return record is not None and missing is None

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

    def expired(self, now: int, limit: int) -> list[Record]:
        """Return open tasks whose deadline has passed; every move of a task with a deadline puts it on the heap again."""
        found: list[Record] = []
        while self._deadlines and self._deadlines[0][0] <= now and len(found) < limit:
            record = self._records.get(heappop(self._deadlines)[1])
            if record is not None and record.is_expired(now) and record not in found:
                found.append(record)
        return found

    def alarm(self) -> int | None:
        """Return the moment after which something may be overdue, or None."""
        heads = [heap[0][0] for heap in (self._alarms, self._deadlines) if heap]
        return min(heads, default=None)

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

    def crosses(self, id: str, after: Sequence[str]) -> bool:
        """Whether this task would come after itself, if it came after these."""

        def find_after(some: Sequence[str]) -> dict[str, Sequence[str]]:
            return {other: self._records[other].draft.after for other in some if other in self._records}

        return plan.path(id, after, find_after) is not None

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
            yield from self._audit_needs(id, record)

    def _audit_needs(self, id: str, record: Record) -> Iterator[tuple[str, str, str]]:
        at = record.standing
        if record.needs and at.state not in (State.BLOCKED, State.CANCELLED):
            yield "need_open", id, f"it is {at.state}, and it needs {min(record.needs)}"
        if at.state is State.BLOCKED and not record.needs:
            yield "need_met", id, "it is blocked by nothing"
        for other, policy in record.needs.items():
            if id not in self.followers.get(other, ()):
                yield "edge_half", id, f"it needs {other}, whose end would not tell it"
            state = self._records[other].standing.state
            if at.state is State.BLOCKED and needs.verdict(policy, state) is not None:
                yield "need_met", id, f"it waits for {other}, which is {state}"

    def prune(
        self, before: int | None, count: int | None, apply: bool, wanted: Callable[[Record], bool]
    ) -> dict[str, Any]:
        """Remove wanted tasks that ended before `before`, or beyond the newest `count`; without `apply`, only return what would go."""
        all_ended = (record for record in self._records.values() if record.standing.state.ended)
        ended = sorted(filter(wanted, all_ended), key=_until)
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
                    self.unfollow(other, record.standing.id)
                self.followers.pop(record.standing.id, None)
                self.children.pop(record.standing.id, None)
                self.children.get(record.draft.parent or "", {}).pop(record.standing.id, None)
            self._ids = [id for id in self._ids if id in self._records]
        return {"tasks": len(chosen), "events": 0, "oldest": oldest, "archives": [], "applied": apply}

    def _unneeded(self, chosen: list[Record]) -> list[Record]:
        """Return those of them that no remaining task could still wait for."""
        going = {record.standing.id for record in chosen}
        staying = [id for id in going if not self.followers.get(id, set()) <= going]
        while staying:  # what a task that stays needs must stay too
            id = staying.pop()
            if id in going:
                going.discard(id)
                staying += self._records[id].needs
        return [record for record in chosen if record.standing.id in going]

    def asked_for(self, query: Query) -> Iterator[Record]:
        """Yield the tasks that the query names by id or by key, or else all behind its cursor, oldest first."""
        if query.ids is None and query.keys is None:
            return self.oldest_first(query.cursor)
        named = set(query.ids or ()) | {self.keys[key][0] for key in query.keys or () if key in self.keys}
        return (self._records[id] for id in sorted(named & self._records.keys(), key=ids.age_key))

    def oldest_first(self, cursor: str | None = None) -> Iterator[Record]:
        """Yield every task in the order of age, or those after the cursor."""
        start = 0 if cursor is None else bisect_right(self._ids, ids.age_key(cursor), key=ids.age_key)
        return (self._records[self._ids[at]] for at in range(start, len(self._ids)))


def _until(record: Record) -> int:
    return record.until
