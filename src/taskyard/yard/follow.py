"""The log as it is read and as it grows: checked queries, and pages of events as they come."""

from __future__ import annotations

from taskyard.core import draft, ids, times, words
from taskyard.core.errors import TimedOut
from taskyard.core.store_records import Trail
from taskyard.yard import arguments
from taskyard.yard.waiter import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from taskyard.store import Store

PAGE = 1000


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


def page(store: Store, wanted: Trail) -> arguments.Events:
    """Return the events of a query, and the cursor to go on from."""
    found, after = store.events(wanted)
    events = arguments.Events(map(_named, found))
    events.cursor = after
    return events


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
) -> Iterator[arguments.Events]:
    """Yield events as they come, after the query's cursor or from now on; call `tend` after each pause."""
    if wanted.cursor is None:
        wanted.cursor = store.events(Trail(at_end=True))[1]
    waiter = Waiting(store.wakeup, timeout, until)
    while not waiter.is_stopped():
        last = waiter.is_over()
        wanted.limit = PAGE if left is None else min(left, PAGE)
        events = page(store, wanted)
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
            raise TimedOut(f"nothing of the kind happened in {timeout:g} s", hint="wait longer, or watch for more")
        if len(events) < wanted.limit:
            waiter.nap(store.policy.sweep_every)
            tend()
