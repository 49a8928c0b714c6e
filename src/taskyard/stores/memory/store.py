"""The store without a disk: one process's tasks, kept in plain Python. Other stores are compared with this one."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from weakref import WeakValueDictionary

from taskyard.core import backlog, draft, moves, needs, times
from taskyard.core.errors import Conflict, NotFound, Unavailable
from taskyard.core.ids import short
from taskyard.core.store_records import STALE_MOST, Counts, Grant, Report, holds
from taskyard.core.task import State, Task
from taskyard.stores.memory import edges
from taskyard.stores.memory.leadership import MemoryLeadership
from taskyard.stores.memory.log import MemoryLog
from taskyard.stores.memory.missions import MemoryMissions
from taskyard.stores.memory.open_tasks import OpenTasks
from taskyard.stores.memory.read import MemoryReader, is_chosen
from taskyard.stores.memory.reasons import MemoryReasons
from taskyard.stores.memory.record import Record
from taskyard.stores.memory.schedules import MemorySchedules
from taskyard.stores.memory.settings import MemorySettings
from taskyard.stores.memory.tasks import MemoryTasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.store_records import Heard, Query, Want
    from taskyard.core.task import Handle, Standing

_shelves: WeakValueDictionary[str, MemoryTasks] = WeakValueDictionary()
_naming = threading.Lock()


def system_clock() -> int:
    """Return the machine's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class MemoryStore:
    """A yard that lives while this process has it open. It is also its own `upkeep` and `wakeup`."""

    batch = 1
    one_process = True
    dropbox = None
    files = None
    liveness = None
    resends = None
    transactions = None
    hints = None
    teams = None  # no other yard is in the same place

    def __init__(
        self, name: str = "", clock: Callable[[], int] = system_clock, shelf: MemoryTasks | None = None
    ) -> None:
        self.url = self.label = f"memory:{name}"
        self._clock = clock
        # The parts that are kept refer to this and not to the store: a yard in a cycle would outlive its last user.
        self._open = OpenTasks(MemoryTasks() if shelf is None else shelf, self.url)
        self.settings = MemorySettings(self._open)
        self.policy = self.settings.policy
        self._reader = MemoryReader(self._open, clock, self.policy)
        self.log = MemoryLog(self._open, clock)
        self.missions = MemoryMissions(self._open, clock)
        self.leadership = MemoryLeadership(self._open)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return a store on the tasks that all openers of this name in this process share; they are new if none has it open."""
        with _naming:
            shelf = _shelves.get(name)
            if shelf is None:
                shelf = _shelves[name] = MemoryTasks()
        store = cls(name, shelf=shelf)
        store.settings.heed(shelf)
        return store

    @property
    def upkeep(self) -> Self:
        """The store itself: there is little upkeep."""
        return self

    @property
    def wakeup(self) -> Self:
        """The store itself: waiters wait on the tasks' own lock."""
        return self

    @property
    def schedules(self) -> MemorySchedules:
        """Which tasks are added again and again, and when."""
        return MemorySchedules(self._open, self.add)

    @property
    def reasons(self) -> MemoryReasons:
        """What explains why nothing is ready."""
        return MemoryReasons(self._open(), self._clock, self.settings.bounds)

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Add new tasks, in this order; a draft whose key is known returns the task that has it."""
        with self._open() as shelf:
            now = self._clock()
            _check_keys(shelf, drafts)
            self._make_sure_of_room(shelf, drafts)
            ids = _resolved(shelf, drafts, now)
            tasks = []
            for draft, id in zip(drafts, ids, strict=True):
                known = shelf.under_key(draft.key)
                record = known or Record(id, draft, self.policy, now, shelf.unmet(draft.after))
                if known is None:
                    shelf.keep(record)
                    shelf.tell(now, "added", record.standing, by)
                    if record.needs:
                        shelf.tell(now, "blocked", record.standing, by, after=sorted(record.needs))
                        edges.settle_blocked(shelf, record, now, by)
                tasks.append(record.task())
                tasks[-1].created = known is None
            return tasks

    def _make_sure_of_room(self, shelf: MemoryTasks, drafts: Sequence[Draft]) -> None:
        """Raise `Full` if the settings do not allow so many more tasks."""
        self.settings.heed(shelf)
        if not self.settings.bounds:
            return
        new = {draft.key or id(draft): draft for draft in drafts if shelf.under_key(draft.key) is None}
        counts = {kind: shelf.backlog.get(kind, 0) for kind in self.settings.bounds}
        full = backlog.refused(self.settings.bounds, counts, backlog.wanted(self.settings.bounds, new.values()))
        if full is not None:
            raise full

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the most urgent, oldest tasks that fit, or the one that `want` names or takes over."""
        grants: list[Grant] = []
        for nonce in nonces:
            try:
                grant = self._claim(want, nonce) if want.over is None else self._take_over(want, nonce)
            except Unavailable:
                if not grants:
                    raise
                break  # the tasks won so far must reach their worker; the next claim meets the error
            if grant is None:
                break
            grants.append(grant)
        return grants

    def _claim(self, want: Want, nonce: str) -> Grant | None:
        with self._open() as shelf:
            now = self._clock()
            if want.id is None:
                shelf.note(want.kinds, now)
            record = shelf.named(want.id) if want.id is not None else shelf.first(want, self.policy.ageing, now)
            while want.id is None and record is not None and record.is_expired(now):
                self._expire(record, want.by)
                record = shelf.first(want, self.policy.ageing, now)
            if record is None:
                return None
            if record.is_expired(now):
                raise moves.too_late(record.standing, record.deadline or 0)
            standing = record.standing.copy()
            standing.unmet = tuple(sorted(record.needs))
            standing.fence = moves.claimed(standing, want.worker)
            if shelf.is_paused(standing.kind):
                raise moves.paused(standing, whole=shelf.paused)
            now = self._clock()
            reached = shelf.reached(standing.kind, now)
            if reached is not None:
                raise moves.limited(standing, reached, now)
            taken = shelf.holder(record)
            if taken is not None:
                raise moves.in_use(standing, taken[0], taken[1], taken[2].standing)
            standing.state, standing.worker, standing.nonce = State.PROCESSING, want.worker, nonce
            standing.lease = want.terms.lease(record.draft.lease, self.policy.lease)
            record.standing = standing
            record.until = self._lease_end(standing)
            record.progress = None
            shelf.place(record)
            shelf.tell(now, "claimed", standing, want.by)
            shelf.pace(standing.kind, now)
            return Grant(standing.copy(), record.task(), record.until)

    def stand(self, name: str | Handle) -> Standing:
        """Return the standing of the one task that fits this pattern, or of the task of this claim."""
        with self._open() as shelf:
            record = shelf.named(name if isinstance(name, str) else name.id)
            standing = record.standing.copy()
            standing.unmet = tuple(sorted(record.needs))
            standing.expires = record.deadline
            return standing

    def stand_all(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Return the standings of those of these whole ids that are tasks."""
        found = {}
        for id in ids:
            with suppress(NotFound):
                found[id] = self.stand(id)
        return found

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Return for each claim whether it still holds its task."""
        return [holds(self.stand, handle) for handle in handles]

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Make each move if its task still stands exactly there, and record how its claim ended; return which were made."""
        return [self._shift(standing, move, by) for standing, move in shifts]

    def _shift(self, standing: Standing, move: Move, by: str) -> bool:
        if move.draft is not None:
            return self._rewrite(standing, move.draft, move, by)
        with self._open() as shelf:
            record = shelf.named(standing.id)
            now = self._clock()
            if not record.stands(standing) or (move.if_lapsed and now <= record.until):
                return False
            _note_outcome(record, move, now)
            claim = moves.reviewed(record.standing, move)
            record.cancel_reason = move.reason if move.to is State.CANCELLED else None
            after = record.standing.copy()
            after.state, after.fence, after.errors, after.crashes = move.to, move.fence, move.errors, move.crashes
            after.lease = record.lease
            after.worker, after.nonce = (claim.worker, claim.nonce) if move.keeps_claim else (None, None)
            record.standing = after
            record.bound = record.bound and moves.keeps_deadline(standing, move)
            record.until = now + round(move.delay * 1000)
            shelf.place(record)
            shelf.tell(now, move.event, after, by, worker=claim.worker, **_details(move, record.until))
            if move.to is State.BLOCKED:
                shelf.tell(now, "blocked", after, by, after=sorted(record.needs))
                edges.settle_blocked(shelf, record, now, by)
            if move.to.ended:
                edges.settle_followers(shelf, record, now, by)
            return True

    def _rewrite(self, standing: Standing, draft: Draft, move: Move, by: str) -> bool:
        """Replace the task's draft, if it still stands exactly there; return whether it did."""
        with self._open() as shelf:
            record = shelf.named(standing.id)
            if not record.stands(standing) or (move.unmet and shelf.crosses(standing.id, draft.after)):
                return False
            now = self._clock()
            after = record.standing.copy()
            after.state, after.fence = move.to, move.fence
            after.priority, after.assignee = draft.priority, draft.assignee
            after.max_attempts = self.policy.max_attempts if draft.max_attempts is None else draft.max_attempts
            draft.set_deadline(now)
            record.standing, record.draft = after, draft
            record.bound = draft.expires is not None and (record.bound or move.expires_anew)
            if move.due_anew:
                due = draft.due(now)
                record.not_before = due if draft.not_before is None else draft.not_before
                record.until = record.not_before or 0
            shelf.place(record)
            later = move.due_anew and move.to is State.WAITING
            shelf.tell(now, move.event, after, by, **({"due": times.rfc3339(record.until)} if later else {}))
            if move.unmet is not None:
                edges.follow_others(shelf, record, standing.state, move.unmet, now, by)
            return True

    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds, oldest task first."""
        with self._open() as shelf:
            return [
                record.standing.copy()
                for record in shelf.oldest_first()
                if record.standing.state is State.PROCESSING and record.standing.worker == worker
            ]

    def _take_over(self, want: Want, nonce: str) -> Grant | None:
        """Return the same claim under the move's fence and a new nonce, or None if it is over."""
        standing, move, by = want.over, want.move, want.by
        assert standing is not None  # the caller checks this
        assert move is not None
        with self._open() as shelf:
            record = shelf.named(standing.id)
            if not record.stands(standing):
                return None
            now = self._clock()
            _note_outcome(record, move, now)
            after = record.standing.copy()
            after.fence, after.nonce = move.fence, nonce
            record.standing = after
            record.until = self._lease_end(after)
            record.progress = None
            shelf.place(record)
            shelf.tell(now, move.event, after, by, resumed=True)
            return Grant(after.copy(), record.task(), record.until)

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Keep the output of a late verb as stale, once for the same output."""
        with self._open() as shelf:
            record = shelf.named(handle.id)
            worker = next((entry["worker"] for entry in record.history if entry["claim"] == str(handle)), by)
            shelf.tell(self._clock(), "refused", record.standing, by, fence=handle.fence, worker=worker, verb=verb)
            if move is None:
                return
            late = {
                "claim": str(handle),
                "fence": handle.fence,
                "worker": worker,
                "outcome": move.outcome,
                "result": draft.payload(move.result, "result"),
                "reason": move.reason,
            }
            known = record.stale
            if len(known) >= STALE_MOST or any(entry.items() >= late.items() for entry in known):
                return
            record.stale.append({**late, "at": times.rfc3339(self._clock())})

    def renew(
        self, standing: Standing, progress: float | None = None, note: str | None = None, by: str | None = None
    ) -> int | None:
        """Start the lease anew and return its end, or None if the claim is over."""
        with self._open() as shelf:
            record = shelf.named(standing.id)
            held = record.standing
            if not record.stands(standing) or held.state is not State.PROCESSING:
                return None
            record.until = self._lease_end(held)  # the alarm for the old end finds the new one
            if progress is not None:
                record.progress = float(progress)
            if note is not None:
                now = self._clock()
                record.notes.append({**record.claim(), "text": note, "at": times.rfc3339(now)})
                shelf.tell(now, "noted", held, by or held.worker or "", text=note)
            return record.until

    def get(self, id: str) -> Report:
        """Return all about the one task that fits this pattern."""
        return self._reader.get(id)

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks, oldest first, or in the order of claims, and the cursor of the next."""
        return self._reader.find(query)

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """Return the short name of each whole id."""
        return self._reader.shorten(ids)

    def counts(self, *, exact: bool = True) -> Counts:  # noqa: ARG002  the seam's words
        """Return tasks by kind and state."""
        return self._reader.counts()

    def overdue(self, limit: int) -> list[Standing]:
        """Return claims whose lease is over and waiting tasks that are due."""
        with self._open() as shelf:
            return [record.standing.copy() for record in shelf.overdue(self._clock(), limit)]

    def expire(self, by: str, limit: int) -> int:
        """Cancel open tasks whose deadline has passed; return how many."""
        with self._open() as shelf:
            return sum(self._expire(record, by) for record in shelf.expired(self._clock(), limit))

    def _expire(self, record: Record, by: str) -> bool:
        standing = record.standing.copy()
        return self._shift(standing, moves.expired(standing, record.deadline or 0), by)

    def mend(self, by: str) -> int:  # noqa: ARG002  the seam's words
        """Return 0: nothing here outlives its process, so nothing is left to repair."""
        return 0

    def prune(
        self,
        age: float | None,
        count: int | None,
        by: str,  # noqa: ARG002  the seam's words
        *,
        apply: bool,
        only: Query | None = None,
    ) -> dict[str, Any]:
        """Remove ended tasks that are too old or too many; without `apply`, only return how many."""
        with self._open() as shelf:
            before = None if age is None else self._clock() - round(age * 1000)
            return shelf.prune(before, count, apply, lambda record: only is None or is_chosen(record, only))

    def audit(
        self,
        by: str,  # noqa: ARG002  the seam's words
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,  # noqa: ARG002  it takes no time
    ) -> dict[str, Any]:
        """Check that the tasks agree with each other; there are no files that could be wrong, and nothing to heal."""
        from collections import Counter

        if sweep is not None:
            sweep()
        with self._open() as shelf:
            began = time.monotonic()
            found = [
                {"code": code, "class": "damage", "where": self.url, "task": id, "what": what, "repaired": False}
                for code, id, what in shelf.audit()
            ]
            tasks = sum(1 for _ in shelf.oldest_first())
        hint = "this is a bug of Taskyard; please report it"
        return {
            "verdict": "damaged" if found else "clean",
            "checked": {"tasks": tasks, "seconds": round(time.monotonic() - began, 3)},
            "counts": dict(Counter(str(entry["code"]) for entry in found)),
            "findings": [{**entry, "hint": hint, "did": None} for entry in found],
        }

    def turn(self, every: float) -> bool:
        """Return whether it is the caller's turn to sweep."""
        with self._open() as shelf:
            self.settings.heed(shelf)
            now = self._clock()
            if shelf.swept is not None and 0 <= now - shelf.swept < every * 1000:
                return False
            shelf.swept = now
            return True

    def alarm(self) -> float | None:
        """Return seconds until the next lease ends or the next task is due."""
        with self._open() as shelf:
            now = self._clock()
            due = [at for at in (shelf.alarm(), shelf.next_slot(now)) if at is not None]
            return max(0, min(due) - now + 1) / 1000 if due else None

    def floor(self) -> float:
        """Return half a minute, as the other stores do."""
        return 30.0

    def is_hinted(self) -> bool:
        """Return False: every change wakes all who wait."""
        return False

    def listen(self, want: Want | None = None) -> Heard:  # noqa: ARG002  every change rings for all
        """Return how many changes there were so far."""
        with self._open() as shelf:
            return shelf.rings, 0

    def wait(self, seconds: float, heard: Heard, want: Want | None = None) -> Heard:  # noqa: ARG002
        """Return after a change since `heard`, or after `seconds`."""
        with self._open() as shelf:
            shelf.changed.wait_for(lambda: shelf.rings != heard[0], seconds)
            return shelf.rings, 0

    def wake(self) -> None:
        """Wake every wait on these tasks."""
        with suppress(Unavailable), self._open() as shelf:  # closed: no thread waits on it
            shelf.ring()

    def close(self) -> None:
        """Release the tasks; they vanish when the last store that has them open is closed."""
        self._open.close()

    def _lease_end(self, held: Standing) -> int:
        return self._clock() + round(held.lease * 1000)


def _check_keys(shelf: MemoryTasks, drafts: Sequence[Draft]) -> None:
    """Raise `Conflict` for a key of another task, or of a different earlier draft, before anything is added."""
    meant: dict[str, tuple[str, Draft]] = {}
    for new in drafts:
        if new.key is None:
            continue
        known = shelf.keys.get(new.key)
        owner, first = (
            (short(known[0]), known[1]) if known else meant.setdefault(new.key, ("that is added with it", new))
        )
        if new.kind != first.kind or not draft.same(json.loads(first.payload), json.loads(new.payload)):
            raise Conflict(
                f"the key {new.key!r} belongs to task {owner}, which is not the same",
                hint="the same key must come with the same kind and data; use another key for another task",
            )


def _resolved(shelf: MemoryTasks, drafts: Sequence[Draft], now: int) -> list[str]:
    """Return the id of each draft, known or new, and put ids into its needs; raise before anything is added."""
    minted: dict[str, str] = {}
    ids = []
    for new in drafts:
        known = shelf.under_key(new.key)
        id = shelf.new_id(now) if known is None else known.standing.id
        ids.append(id if new.key is None else minted.setdefault(new.key, id))
    for new in drafts:
        if new.after and shelf.under_key(new.key) is None:
            parsed = [needs.parse(need) for need in new.after]
            new.after = needs.unique(
                need.named(shelf.named(need).standing.id if need.position is None else ids[need.position])
                for need in parsed
            )
    return ids


def _details(move: Move, until: int) -> dict[str, Any]:
    """Return the fields of an event beyond actor, act and task."""
    due = move.event in ("failed", "reaped") and move.to is State.WAITING
    return {**move.details(), "due": times.rfc3339(until)} if due else move.details()


def _note_outcome(record: Record, move: Move, now: int) -> None:
    if move.outcome is None:
        return
    entry = {**record.claim(move), "outcome": move.outcome, "reason": move.reason, "at": times.rfc3339(now)}
    record.history.append({**entry, "workdir": None})
    if move.submits:
        record.history[-1]["result"] = draft.kept(move.result)
    if move.outcome == "done":
        record.result = draft.payload(move.result, "result")
