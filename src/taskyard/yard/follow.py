"""The log as it is read and as it grows: checked queries, and pages of events as they come."""

from __future__ import annotations

import time

from taskyard.core import draft, ids, times, words
from taskyard.core.errors import NotFound, TimedOut
from taskyard.core.store_records import Query, Trail
from taskyard.yard import arguments
from taskyard.yard.waiter import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from taskyard.store import Store

PAGE = 1000
_NEWEST = 10_000  # events that are looked through for the last ones that match
_RECENT = 3_600_000  # milliseconds: the clocks of two machines differ by less


def trail(
    store: Store,
    task: str | None,
    worker: str | None,
    kind: str | None,
    event: str | Iterable[str] | None,
    since: Any,
    cursor: str | None,
    limit: int,
) -> Trail:
    """Return a query to the log, checked."""
    return Trail(
        None if task is None else store.stand(task).id,
        None if worker is None else words.worker(worker),
        None if kind is None else words.kind(kind),
        None if since is None else times.moment(since, "since"),
        cursor,
        draft.integer(limit, "limit", 1, arguments.EVENTS_MOST),
        None if event is None else arguments.events(event),
    )


def page(store: Store, wanted: Trail, members: Members | None = None) -> arguments.Events:
    """Return the events of a query, and the cursor to go on from; with `members`, only those about a mission's tasks."""
    found, after = store.log.read(wanted) if members is None else _of_mission(store, wanted, members)
    events = arguments.Events(map(_named, found))
    events.cursor = after
    return events


def newest(store: Store, wanted: Trail, members: Members | None = None) -> arguments.Events:
    """Return the last events that match, among the newest of all, and the cursor of the log's end before they were read."""
    narrows = members is not None or any((wanted.task, wanted.worker, wanted.kind, wanted.events))
    most = max(_NEWEST, wanted.limit) if narrows else wanted.limit
    found, end = store.log.read(Trail(limit=most, newest=True))  # the cursor is from before they were read
    since = "" if wanted.since is None else times.rfc3339(wanted.since)
    fitting = [event for event in found if event["at"] >= since and _fits(wanted, event)]
    events = arguments.Events(_named(event) for event in fitting if members is None or members.holds(event["task"]))
    del events[: -wanted.limit]
    events.cursor = end
    return events


def _fits(wanted: Trail, event: dict[str, Any]) -> bool:
    return (
        wanted.task in (None, event["task"])
        and wanted.worker in (None, event.get("worker"), event.get("by"))
        and wanted.kind in (None, event.get("kind"))
        and (wanted.events is None or event["event"] in wanted.events)
    )


class Members:
    """Knows whether a task belongs to a mission: no event names one, and a task never changes its mission."""

    def __init__(self, store: Store, mission: str) -> None:
        self._store = store
        self._mission = mission
        self._ids: set[str] | None = None
        self._others: set[str] = set()
        self._since = 0

    def holds(self, id: object) -> bool:
        """Whether the task is one of the mission's; each is looked up once."""
        if not isinstance(id, str) or not ids.is_id(id):
            return False
        if self._ids is None:
            self._since = time.time_ns() // 1_000_000 - _RECENT
            self._ids = set(self._load())
        if id in self._ids or id in self._others or ids.created(id) < self._since:
            return id in self._ids
        (self._ids if self._is_member(id) else self._others).add(id)
        return id in self._ids

    def _load(self) -> Iterator[str]:
        cursor = None
        while True:
            tasks, cursor = self._store.find(Query(mission=self._mission, limit=arguments.LIST_MOST, cursor=cursor))
            yield from (task.id for task in tasks)
            if cursor is None:
                return

    def _is_member(self, id: str) -> bool:
        try:
            return self._store.get(id).task.mission == self._mission
        except NotFound:
            return False  # pruned


def members(store: Store, mission: str | None) -> Members | None:
    """Return the test for the events of a mission; None if all are wanted."""
    return None if mission is None else Members(store, words.text(mission, "mission"))


def _of_mission(store: Store, wanted: Trail, members: Members) -> tuple[list[dict[str, Any]], str]:
    """Read on until there are enough events of the mission, or the log has no more."""
    most, kept = wanted.limit, list[dict[str, "Any"]]()
    while True:
        wanted.limit = max(PAGE, most)
        found, after = store.log.read(wanted)
        places = [place for place, event in enumerate(found, 1) if members.holds(event["task"])]
        rest = most - len(kept)
        if len(places) >= rest:
            wanted.limit = places[rest - 1]
            found, after = store.log.read(wanted)  # once more, for the cursor right behind the last event that fits
            places = places[:rest]
        is_end = len(found) < wanted.limit
        kept += [found[place - 1] for place in places]
        wanted.limit = most
        if is_end or len(kept) >= most:
            return kept, after
        wanted.cursor = after


def _named(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with its task's shortest possible short name: this looks nothing up."""
    task = event["task"]
    return {**event, "short": ids.short(task)} if isinstance(task, str) and ids.is_id(task) else event


def pages(
    store: Store,
    wanted: Trail,
    tend: Callable[[], None],
    timeout: float | None = None,
    left: int | None = None,
    until: Callable[[], bool] | None = None,
    members: Members | None = None,
) -> Iterator[arguments.Events]:
    """Yield events as they come, after the query's cursor or from now on; call `tend` after each pause."""
    if wanted.cursor is None:
        wanted.cursor = store.log.read(Trail(at_end=True))[1]
    waiter = Waiting(store.wakeup, timeout, until)
    while not waiter.is_stopped():
        last = waiter.is_over()
        wanted.limit = PAGE if left is None else min(left, PAGE)
        events = page(store, wanted, members)
        wanted.cursor = events.cursor
        if events:
            if left is not None:
                left -= len(events)
            yield events
            if left == 0:
                return
            if timeout is not None:
                waiter.renew(timeout)
        elif last:
            raise TimedOut(f"nothing of the kind happened in {timeout:.10g} s", hint="wait longer, or watch for more")
        if len(events) < wanted.limit:
            waiter.nap(store.policy.sweep_every)
            tend()
