"""What each worker holds and did in the last hour, and the hour in figures."""

from __future__ import annotations

from taskyard.core import draft, spans, times
from taskyard.core import series as figures
from taskyard.core.mission import open_tasks
from taskyard.core.store_records import Query
from taskyard.core.task import Handle, State
from taskyard.yard import cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.spans import WorkerHistory
    from taskyard.core.store_records import Report
    from taskyard.store import Files, Store
    from taskyard.yard.cards import Event, Name

_NEWEST = 10_000  # events that are read for an hour: about 100 ms on a busy machine
_RUNNING_MOST = 1000  # held tasks that an answer names
_SPANS_MOST = 2000  # claims that an answer names
_OUTPUT_MOST = 1 << 20  # bytes of one log
_ATTEMPTS_MOST = 3  # the last ones, in which a log is looked for
_HOUR = 3_600_000


class Hour:
    """The events of the last hour, or the newest of them if there are too many to read."""

    def __init__(self, store: Store) -> None:
        self.now = store.reasons.now()
        newest: list[Event] = cards.newest_events(store, _NEWEST)
        self.begin = times.rfc3339(self.now - _HOUR)
        self.events = [event for event in newest if event["at"] >= self.begin]
        self.complete = len(newest) < _NEWEST or len(self.events) < len(newest)

    @property
    def since(self) -> str:
        """From when on every event was read."""
        return self.begin if self.complete or not self.events else str(self.events[0]["at"])


def agents(store: Store, name: Name) -> dict[str, Any]:
    """Return each worker that holds a task or did something in the last hour."""
    hour = Hour(store)
    histories = spans.by_worker(hour.events)
    running = store.find(Query(frozenset((State.PROCESSING,)), limit=_RUNNING_MOST, whole=True))[0]
    name(running)
    held: dict[str, list[dict[str, Any]]] = {}
    for card in cards.cards(store, running, hour.events):
        held.setdefault(str(card["worker"]), []).append(card)
    names = sorted({*held, *histories})
    most = _SPANS_MOST // max(1, len(names))
    found = [_agent(one, held.get(one, []), histories.get(one) or spans.WorkerHistory(), most) for one in names]
    return {"now": times.rfc3339(hour.now), "begin": hour.begin, "since": hour.since, "agents": found}


def _agent(worker: str, held: list[dict[str, Any]], history: WorkerHistory, most: int) -> dict[str, Any]:
    running = {card["id"] for card in held}
    known = [span.as_dict() for span in history.spans if span.how is not None or span.task in running]
    begun = {span["task"] for span in known if span["how"] is None}
    earlier = [
        {"task": card["id"], "kind": card["kind"], "begin": None, "end": None, "how": None}
        for card in held
        if card["id"] not in begun
    ]  # claimed before the first event that was read
    beats = [card["heartbeat_at"] for card in held if card["heartbeat_at"] is not None]
    return {
        "worker": worker,
        "tasks": held,
        "heartbeat_at": max(beats, default=None),
        "last_at": max((at for at in (history.last_at, *beats) if at is not None), default=None),
        "hour": history.counts,
        "spans": (earlier + known)[-most:],
        "marks": history.marks[-most:],
    }


def output(store: Store, files: Files, report: Report, most: int) -> list[dict[str, Any]]:
    """Return the end of each log of the last attempt that has kept one."""
    number = draft.integer(most, "most", 1, _OUTPUT_MOST)
    standing = store.stand(report.task.id)
    handles = [Handle.parse(entry["claim"]) for entry in report.history]
    if standing.nonce is not None:
        handles.append(Handle(standing.id, standing.fence, standing.nonce))
    for handle in reversed(handles[-_ATTEMPTS_MOST:]):
        found = files.logs(handle, number)
        if found:
            return [
                {"name": name, "fence": handle.fence, "size": size, "text": content.decode("utf-8", "replace")}
                for name, size, content in found
            ]
    return []


def series(store: Store) -> dict[str, Any]:
    """Return the last hour by the minute."""
    hour = Hour(store)
    kinds = store.counts().kinds
    in_all = {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}
    return figures.described(hour.events, hour.now, open_tasks(in_all), hour.since)
