"""Reading the tasks of a memory yard: one, a page of many, and how many there are."""

from __future__ import annotations

import json

from taskyard.core import order
from taskyard.core.ids import age_key
from taskyard.core.store_records import Counts, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Query
    from taskyard.core.task import State, Task
    from taskyard.stores.memory.open_tasks import OpenTasks
    from taskyard.stores.memory.record import Record


class MemoryReader:
    """Reads what one store has open."""

    def __init__(self, tasks: OpenTasks, clock: Callable[[], int], policy: Policy) -> None:
        self._open = tasks
        self._clock = clock
        self._policy = policy

    def get(self, id: str) -> Report:
        """Return all about the one task that fits this pattern."""
        with self._open() as shelf:
            record = shelf.named(id)
            stale = [{**entry, "result": json.loads(entry["result"])} for entry in record.stale]
            asked = record.draft.changed(
                {"data": json.loads(record.draft.payload)}
            )  # data that no other caller can change
            asked.delay, asked.not_before = 0.0, record.not_before
            history, notes = [dict(entry) for entry in record.history], [dict(note) for note in record.notes]
            followers = sorted(shelf.followers.get(record.standing.id, ()), key=age_key)
            children = list(shelf.children.get(record.standing.id, ()))
            return Report(
                record.task(),
                history,
                notes,
                stale,
                lambda: asked,
                lambda most: followers[:most],
                lambda most: children[:most],
            )

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of tasks, oldest first, or in the order of claims, and the cursor of the next."""
        if query.dropped_as is not None:
            return [], None
        if query.taker is not None:
            return self._ready(query)
        with self._open() as shelf:
            page: list[Task] = []
            for record in shelf.asked_for(query):
                if not _answers(record, query):
                    continue
                if len(page) == query.limit and query.ids is None and query.keys is None:
                    return page, page[-1].id
                page.append(record.task() if query.whole else record.line())
            return page, None

    def _ready(self, query: Query) -> tuple[list[Task], str | None]:
        """Return one page of what the taker could claim, in the order of claims, and the cursor of the next."""
        ageing, last = self._policy.ageing, order.position(query.cursor)
        passed = None if last is None else order.rank(last[1], last[0], ageing)
        with self._open() as shelf:
            now = self._clock()
            found = []
            for record in shelf.oldest_first():
                rank = order.rank(record.standing.priority, record.standing.id, ageing)
                if not _answers(record, query) or (passed is not None and rank <= passed):
                    continue
                if shelf.reached(record.standing.kind, now) is not None:
                    continue
                if not shelf.is_paused(record.standing.kind) and shelf.missing(record, ageing, now) is None:
                    found.append((rank, record))
            found.sort(key=lambda entry: entry[0])
            page = [record.line() for _, record in found[: query.limit]]
        return page, order.cursor(page[-1].id, page[-1].priority) if len(found) > query.limit else None

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """Return the short name of each whole id."""
        with self._open() as shelf:
            return shelf.shorten(ids)

    def counts(self) -> Counts:
        """Return tasks by kind and state; one lock orders all claims, so none ever loses a race."""
        with self._open() as shelf:
            rows: dict[str, dict[str, int]] = {}
            oldest: dict[State, str] = {}
            for record in shelf.oldest_first():
                at = record.standing
                row = rows.setdefault(at.kind, {})
                row[at.state] = row.get(at.state, 0) + 1
                oldest.setdefault(at.state, at.id)
            return Counts(rows, 0, oldest)


def is_chosen(record: Record, query: Query) -> bool:
    """Whether this task answers the query, and is one of its ids if it has any."""
    return _answers(record, query) and (query.ids is None or record.standing.id in query.ids)


def _answers(record: Record, query: Query) -> bool:
    at = record.standing
    return (
        (query.states is None or at.state in query.states)
        and (query.kinds is None or at.kind in query.kinds)
        and (query.mission is None or record.draft.mission == query.mission)
        and (query.worker is None or at.worker == query.worker)
        and (query.taker is None or at.assignee in (None, query.taker))
    )
