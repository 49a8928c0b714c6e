"""What waits for a person: reviews, failures, pauses, and whatever else does not go on by itself."""

from __future__ import annotations

from taskyard.core import file_conflicts, times
from taskyard.core.activity import EVENTS
from taskyard.core.store_records import Query
from taskyard.core.task import SUBMITTED, State
from taskyard.yard import cards, chains, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from taskyard.core.store_records import Counts
    from taskyard.core.task import Task
    from taskyard.store import Store
    from taskyard.yard.cards import Event, Name

ENTRIES_MOST = 20  # of each sort
_HOUR = 3_600_000


def overview(store: Store, name: Name, set_aside: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what waits for a person, counts, rates and pauses."""
    counted, activity = store.counts(), store.log.activity()
    in_all = {str(state): sum(row.get(state, 0) for row in counted.kinds.values()) for state in State}
    needs = Attention(store, name, activity.now).gathered(counted, in_all[State.FAILED], set_aside)
    everything, some = store.settings.paused()
    return {
        "now": times.rfc3339(activity.now),
        "counts": in_all,
        "kinds": sorted(counted.kinds),
        "estimated": sorted(map(str, counted.estimated)),
        "rates": activity.rates(EVENTS)[0],
        "paused": {"yard": everything, "kinds": sorted(some)},
        "needs": needs,
        "count": sum(part["count"] for part in needs.values()),
    }


class Attention:
    """Gathers what waits for a person; of each sort some entries, and how many there are."""

    def __init__(self, store: Store, name: Name, now: int) -> None:
        self._store = store
        self._name = name
        self._now = now
        self._newest: list[Event] = cards.newest_events(store)

    def gathered(
        self, counted: Counts, failed: int, set_aside: Sequence[Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Return each sort with its `count` and `entries`."""
        return {
            "reviews": self._reviews(),
            "file_conflicts": self._file_conflicts(),
            "conflicts": self._conflicts(),
            "failed": self._failed(failed),
            "set_aside": _entries(set_aside),
            "unserved": self._unserved(counted),
            "paused": self._pauses(),
            "stuck": self._stuck(),
        }

    def _reviews(self) -> dict[str, Any]:
        """Return what was submitted: by the newest events, and among the oldest waiting tasks."""
        sent = {str(event["task"]): event for event in self._newest if event.get("reason") == SUBMITTED}
        waiting = self._store.find(Query(frozenset((State.WAITING,)), limit=why.SAMPLE, whole=True))[0]
        known = {task.id: task for task in waiting} | chains.by_ids(self._store, [*sent][-why.SAMPLE :])
        return self._lines([task for task in known.values() if task.review == "pending"], sent)

    def _conflicts(self) -> dict[str, Any]:
        """Return the tasks of the last hour for which a late worker brought a result that was not taken."""
        begin = times.rfc3339(self._now - _HOUR)
        late = {
            str(event["task"]): event
            for event in self._newest
            if event["event"] == "refused" and event.get("verb") in ("done", "fail") and event["at"] >= begin
        }
        return self._lines(list(chains.by_ids(self._store, [*late][-ENTRIES_MOST:]).values()), late)

    def _file_conflicts(self) -> dict[str, Any]:
        """Return the fields of open tasks that were edited both in a synced file and here, the last one reported first."""
        files = sorted(file_conflicts.kept(self._store.settings.read()).items(), key=lambda one: str(one[1].get("at")))
        reported = [(name, one, conflict) for name, one in reversed(files) for conflict in one["conflicts"]]
        tasks = chains.by_ids(self._store, list({str(conflict["task"]): None for *_, conflict in reported}))
        self._name(list(tasks.values()))
        found, more = [], 0
        for name, one in reversed(files):
            known = [
                {**cards.line(tasks[conflict["task"]]), **_conflict(name, one["at"], conflict)}
                for conflict in one["conflicts"]
                if conflict["task"] in tasks and not tasks[conflict["task"]].state.ended
            ]
            found += known
            more += one["count"] - len(one["conflicts"]) if known else 0
        return {**_entries(found), "count": len(found) + more}

    def _lines(self, tasks: list[Task], events: Mapping[str, Event]) -> dict[str, Any]:
        """Return one entry for each task: who made its last move, and when, by its event in the log."""
        self._name(tasks)
        found = []
        for task in tasks:
            event = events.get(task.id, {})
            found.append({**cards.line(task), "at": event.get("at"), "by": event.get("worker")})
        return _entries(found)

    def _failed(self, count: int) -> dict[str, Any]:
        """Return the tasks that failed for good, the last one first."""
        if not count:
            return _entries([])
        found = cards.ended_last(self._store, State.FAILED, self._newest, ENTRIES_MOST)
        if len(found) < min(count, ENTRIES_MOST):
            known = {task.id for task in found}
            older = self._store.find(Query(frozenset((State.FAILED,)), limit=ENTRIES_MOST, whole=True))[0]
            found += [task for task in older if task.id not in known][: ENTRIES_MOST - len(found)]
        ends = cards.last_at(self._newest)
        self._name(found)
        entries = [{**cards.line(task), "error": cards.error(task), "at": ends.get(task.id)} for task in found]
        return {"count": count, "entries": entries}

    def _unserved(self, counted: Counts) -> dict[str, Any]:
        """Return the kinds with tasks in todo that no claim has asked for in the last hour, and no worker works on."""
        everything, some = self._store.settings.paused()
        asked = self._store.reasons.asked()
        found = []
        for kind, row in sorted({} if everything else counted.kinds.items()):
            if not row.get(State.TODO) or row.get(State.PROCESSING) or kind in some:
                continue
            since = max((asked[name] for name in (None, kind) if name in asked), default=None)
            if since is None or self._now - since >= why.UNSERVED * 1000:
                moment = None if since is None else times.rfc3339(since)
                found.append({"kind": kind, "count": row[State.TODO], "since": moment})
        return _entries(found)

    def _pauses(self) -> dict[str, Any]:
        everything, some = self._store.settings.paused()
        return _entries([*([{"kind": None}] if everything else []), *({"kind": kind} for kind in sorted(some))])

    def _stuck(self) -> dict[str, Any]:
        """Return the failed or cancelled tasks that others stay blocked behind."""
        blocked = self._store.find(Query(frozenset((State.BLOCKED,)), limit=why.SAMPLE, whole=True))[0]
        chain = chains.Chains(self._store, blocked)
        behind: dict[str, tuple[Task, list[Task]]] = {}
        for task in blocked:
            cause = chain.root(task)
            if cause is not None:
                behind.setdefault(cause.id, (cause, []))[1].append(task)
        self._name([cause for cause, _ in behind.values()])
        return _entries([{**cards.line(cause), "blocked": len(tasks)} for cause, tasks in behind.values()])


def _conflict(file: str, at: str, conflict: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an entry says of one conflict: where it is, and the words of both sides."""
    own = {name: conflict.get(name) for name in ("row", "line", "field")}
    return {"file": file, "at": at, **own, "in_file": conflict.get("file"), "in_yard": conflict.get("yard")}


def _entries(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"count": len(found), "entries": [dict(one) for one in found[:ENTRIES_MOST]]}
