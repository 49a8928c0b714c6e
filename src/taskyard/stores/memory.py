"""The store without a disk: one process's tasks, kept in plain Python. Other stores are compared with this one."""

from __future__ import annotations

import json
import threading
import time
from weakref import WeakValueDictionary

from taskyard import draft, moves, times
from taskyard.errors import Unavailable
from taskyard.retry import Policy
from taskyard.store import Grant, Report
from taskyard.stores.shelf import Record, Shelf
from taskyard.task import State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from taskyard.draft import Draft
    from taskyard.moves import Move
    from taskyard.store import Query, Want
    from taskyard.task import Handle, Standing

_shelves: WeakValueDictionary[str, Shelf] = WeakValueDictionary()
_naming = threading.Lock()


def system_clock() -> int:
    """The machine's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class MemoryStore:
    """A yard that lives as long as somebody in this process has it open."""

    def __init__(self, name: str = "", clock: Callable[[], int] = system_clock, shelf: Shelf | None = None) -> None:
        self.url = f"memory:{name}"
        self.policy = Policy()
        self._clock = clock
        self._shelf: Shelf | None = Shelf() if shelf is None else shelf

    @classmethod
    def named(cls, name: str) -> Self:
        """The yard that whoever opens this name in this process shares; a fresh one if nobody has it open."""
        with _naming:
            shelf = _shelves.get(name)
            if shelf is None:
                shelf = _shelves[name] = Shelf()
        return cls(name, shelf=shelf)

    def _open(self) -> Shelf:
        if self._shelf is None:
            raise Unavailable(
                f"the yard {self.url} was closed here",
                hint="open it again; what was in it lives while somebody else has it open",
            )
        return self._shelf

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:  # noqa: ARG002  memory keeps no events
        """Keep new tasks, in this order."""
        with self._open() as shelf:
            now = self._clock()
            records = [Record(shelf.new_id(now), draft, self.policy, now) for draft in drafts]
            for record in records:
                shelf.keep(record)
            return [record.task() for record in records]

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or the one that is named."""
        with self._open() as shelf:
            record = shelf.first(want) if want.id is None else shelf.named(want.id)
            if record is None:
                return None
            standing = record.standing.copy()
            standing.fence = moves.claimed(standing, want.worker)
            standing.state, standing.worker, standing.nonce = State.PROCESSING, want.worker, nonce
            standing.lease = record.lease if want.lease is None else want.lease
            record.standing = standing
            record.until = self._lease_end(standing)
            record.progress = None
            shelf.place(record)
            return Grant(standing.copy(), record.task(), record.until)

    def stand(self, id: str) -> Standing:
        """Where the task of this id, or of this unique prefix, stands now."""
        with self._open() as shelf:
            return shelf.named(id).standing.copy()

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:  # noqa: ARG002  memory keeps no events
        """Make the move if the task still stands exactly there, and write down how its claim ended."""
        with self._open() as shelf:
            record = shelf.named(standing.id)
            now = self._clock()
            if not record.stands(standing) or (lapsed and now <= record.until):
                return False
            _note_outcome(record, move, now)
            after = record.standing.copy()
            after.state, after.fence, after.errors, after.crashes = move.to, move.fence, move.errors, move.crashes
            after.lease = record.lease
            if not move.keeps_claim:
                after.worker = after.nonce = None
            record.standing = after
            record.until = now + round(move.delay * 1000)
            shelf.place(record)
            return True

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:  # noqa: ARG002  memory keeps no events
        """Put the output of a verb that came too late aside, once however often it comes."""
        with self._open() as shelf:
            record = shelf.named(handle.id)
            if move is None:
                return
            worker = next((entry["worker"] for entry in record.history if entry["claim"] == str(handle)), by)
            late = {
                "claim": str(handle),
                "fence": handle.fence,
                "worker": worker,
                "outcome": move.outcome,
                "result": draft.payload(move.result, "result"),
                "reason": move.reason,
            }
            if any(known.items() >= late.items() for known in record.stale):
                return
            record.stale.append({**late, "at": times.rfc3339(self._clock())})

    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""
        with self._open() as shelf:
            record = shelf.named(standing.id)
            held = record.standing
            if not record.stands(standing) or held.state is not State.PROCESSING:
                return None
            record.until = self._lease_end(held)  # the alarm set for the old end finds the new one
            if progress is not None:
                record.progress = float(progress)
            if note is not None:
                record.notes.append({**record.claim(), "text": note, "at": times.rfc3339(self._clock())})
            shelf.changed.notify_all()
            return record.until

    def workdir(self, handle: Handle) -> None:
        """Nothing here is a file."""

    def tidy(self, handle: Handle) -> None:
        """Nothing here needs it."""

    def get(self, id: str) -> Report:
        """All about the task of this id or unique prefix."""
        with self._open() as shelf:
            record = shelf.named(id)
            stale = [{**entry, "result": json.loads(entry["result"])} for entry in record.stale]
            return Report(
                record.task(), [dict(entry) for entry in record.history], [dict(note) for note in record.notes], stale
            )

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks, oldest first, and the cursor of the next."""
        with self._open() as shelf:
            page: list[Task] = []
            for record in shelf.oldest_first(query.cursor):
                if not _answers(record, query):
                    continue
                if len(page) == query.limit:
                    return page, page[-1].id
                page.append(record.line())
            return page, None

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""
        with self._open() as shelf:
            return [shelf.shortest(id) for id in ids]

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        with self._open() as shelf:
            rows: dict[str, dict[str, int]] = {}
            for record in shelf.oldest_first():
                row = rows.setdefault(record.standing.kind, {})
                row[record.standing.state] = row.get(record.standing.state, 0) + 1
            return rows

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        with self._open() as shelf:
            return [record.standing.copy() for record in shelf.overdue(self._clock(), limit)]

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep."""
        with self._open() as shelf:
            now = self._clock()
            if shelf.swept is not None and 0 <= now - shelf.swept < every * 1000:
                return False
            shelf.swept = now
            return True

    def wait(self, seconds: float) -> None:
        """Return when something has changed, or after so many seconds."""
        with self._open() as shelf:
            shelf.changed.wait(seconds)

    def close(self) -> None:
        """Let go of the tasks; they vanish with the last one who has them open."""
        self._shelf = None

    def _lease_end(self, held: Standing) -> int:
        return self._clock() + round(held.lease * 1000)


def _note_outcome(record: Record, move: Move, now: int) -> None:
    if move.outcome is None:
        return
    record.history.append({**record.claim(), "outcome": move.outcome, "reason": move.reason, "at": times.rfc3339(now)})
    if move.outcome == "done":
        record.result = draft.payload(move.result, "result")


def _answers(record: Record, query: Query) -> bool:
    at = record.standing
    return (
        (query.states is None or at.state in query.states)
        and (query.kinds is None or at.kind in query.kinds)
        and (query.mission is None or record.draft.mission == query.mission)
        and (query.worker is None or at.worker == query.worker)
        and (query.taker is None or at.assignee in (None, query.taker))
    )
