"""Why nothing is ready: facts from a bounded number of reads, however many tasks there are. Nothing is written.

Of each state at most `SAMPLE` tasks are read, oldest first; a count that ends there has `at_least`.
"""

from __future__ import annotations

from collections import Counter

from taskyard.core import plan, reasons, task_reasons, times
from taskyard.core.errors import Unavailable
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.yard import chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.store import Store

SAMPLE = 100  # tasks of one state that are read
ENTRIES_MOST = 10  # of one list of facts
UNSERVED = 3600.0  # seconds after which a kind that no claim asked for counts as unserved


class Facts:
    """Gathers the facts about what these kinds, this mission and this worker wait for."""

    def __init__(self, store: Store, kinds: frozenset[str] | None, mission: str | None, worker: str) -> None:
        self._store = store
        self._kinds = kinds
        self._mission = mission
        self._worker = worker
        self._refused: list[str] = []
        self._everything, self._paused = store.settings.paused()

    def gathered(self) -> dict[str, Any]:
        """Return every fact that applies, the sentence (`message`), and what to do (`next`)."""
        ready, more = self._read(State.TODO, self._kinds, self._worker)
        todo, more_todo = self._read(State.TODO, self._kinds)
        others = [] if self._kinds is None else self._read(State.TODO, None, self._worker)[0]
        running, _ = self._read(State.PROCESSING, self._kinds)
        waiting = self._read(State.WAITING, self._kinds)
        facts: dict[str, Any] = {
            "paused": self._pause(),
            "ready": _counted(len(ready), more),
            "in_use": self._in_use(todo, more_todo),
            "limits": self._limits(todo, more_todo),
            "team": self._team(todo, more_todo),
            "unserved": self._unserved(todo, others, {task.kind for task in running}),
            "other_kinds": _entries(Counter(task.kind for task in others if not self._wants(task)), "kind"),
            "assigned": self._assigned(todo, more_todo),
            "review": self._review(*waiting),
            "due": self._due(*waiting),
            "running": len(running),
            "blocked": self._blocked(),
            "schedules": self._schedules(),
        }
        if not (ready or todo or running or facts["due"] or facts["review"] or facts["blocked"]):
            facts |= self._nothing_open()
        facts |= self._dropped()
        facts["full"] = full(self._store)
        facts["unusable"] = [*([] if self._store.files is None else self._store.files.unusable()), *self._refused]
        found = {name: fact for name, fact in facts.items() if fact}
        return {"message": reasons.sentence(found), "next": reasons.way_out(found), **found}

    def _wants(self, task: Task) -> bool:
        return self._kinds is None or task.kind in self._kinds

    def _read(
        self, state: State, kinds: frozenset[str] | None, taker: str | None = None, limit: int | None = None
    ) -> tuple[list[Task], bool]:
        """Return the oldest tasks of a state, and whether there are more; none, and the reason, if they cannot be read."""
        query = Query(frozenset((state,)), kinds, self._mission, taker=taker, limit=limit or SAMPLE, whole=True)
        try:
            page, cursor = chains.whole(self._store, query)
        except Unavailable as error:
            if taker is None and error.message not in self._refused and not self._skips_folders():
                self._refused.append(error.message)
            return [], False
        return page, cursor is not None

    def _skips_folders(self) -> bool:
        """Whether claims have named the folders that cannot be read themselves."""
        return self._store.files is not None and bool(self._store.files.unusable())

    def _pause(self) -> dict[str, Any] | None:
        """Return the part of the pause that concerns these kinds."""
        some = sorted(self._paused if self._kinds is None else self._paused & self._kinds)
        return {"yard": self._everything, "kinds": some} if self._everything or some else None

    def _is_open_to_others(self, task: Task) -> bool:
        return task.assignee in (None, self._worker) and not self._everything and task.kind not in self._paused

    def _limits(self, todo: list[Task], more: bool) -> list[dict[str, Any]]:
        """Return the limits that hold tasks back, each with how many."""
        waiting = Counter(task.kind for task in todo if self._is_open_to_others(task))
        if not waiting:
            return []
        now, reached = self._store.reasons.now(), self._store.reasons.reached()
        return [{**one.fact(now), **(_counted(waiting[one.kind], more) or {})} for one in reached if waiting[one.kind]]

    def _team(self, todo: list[Task], more: bool) -> list[dict[str, Any]]:
        """Return the quotas of the yard's team that hold tasks back, with how many."""
        teams = self._store.teams
        waiting = sum(self._is_open_to_others(task) for task in todo)
        if not waiting or teams is None:
            return []
        now = self._store.reasons.now()
        return [{**one.fact(now), **(_counted(waiting, more) or {})} for one in teams.reached()]

    def _in_use(self, todo: list[Task], more: bool) -> list[dict[str, Any]]:
        wanting = [task for task in todo if task.uses and self._is_open_to_others(task)]
        if not wanting:
            return []
        holders = self._store.reasons.using(sorted({name for task in wanting for name in task.uses}))
        waits = Counter(next((name for name in task.uses if name in holders), None) for task in wanting)
        del waits[None]
        found = _entries(waits, "resource", more)
        shorts = dict(zip(holders, self._store.shorten([id for id, _, _ in holders.values()]), strict=True))
        for entry in found:
            id, worker, held = holders[entry["resource"]]
            entry |= {"task": id, "short": shorts[entry["resource"]], "by": worker, "held": held}
        return found

    def _assigned(self, todo: list[Task], more: bool) -> list[dict[str, Any]]:
        waiting = Counter(task.assignee for task in todo if task.assignee not in (None, self._worker))
        return _entries(waiting, "worker", more)

    def _unserved(self, todo: list[Task], others: list[Task], served: set[str]) -> list[dict[str, Any]]:
        """Return the kinds of tasks in todo that no claim has asked for in the last hour, and no worker works on."""
        open_tasks = {task.id: task for task in (*todo, *others) if self._is_open_to_others(task)}
        kinds = Counter(task.kind for task in open_tasks.values() if task.kind not in served)
        if not kinds:
            return []
        asked, now = self._store.reasons.asked(), self._store.reasons.now()
        found = []
        for entry in _entries(kinds, "kind", len(open_tasks) >= SAMPLE):
            since = max((asked[name] for name in (None, entry["kind"]) if name in asked), default=None)
            gone = None if since is None else (now - since) / 1000
            if gone is None or gone >= UNSERVED:
                found.append({**entry, "since": None if since is None else times.rfc3339(since), "for": gone})
        return found

    def _review(self, waiting: list[Task], more: bool) -> dict[str, Any] | None:
        pending = [task for task in waiting if task.review == "pending"]
        if not pending:
            return None
        [short] = self._store.shorten([pending[0].id])
        return {**(_counted(len(pending), more) or {}), "task": pending[0].id, "short": short}

    def _due(self, waiting: list[Task], more: bool) -> dict[str, Any] | None:
        waiting = [task for task in waiting if task.review != "pending"]
        moments = [times.moment(task.not_before, "not_before") for task in waiting if task.not_before is not None]
        if more and self._mission is None:  # the page has the oldest, which need not be the soonest
            soonest = self._store.reasons.next_due(self._kinds)
            moments += [] if soonest is None or not waiting else [soonest]
        if not moments:
            return None
        left = (min(moments) - self._store.reasons.now()) / 1000
        return {**(_counted(len(waiting), more) or {}), "next_at": times.rfc3339(min(moments)), "in": round(left, 1)}

    def _schedules(self) -> list[dict[str, Any]]:
        """Return the schedules that add such tasks, the soonest first, and those that are paused last."""
        found = []
        now = self._store.reasons.now()
        for each in sorted(self._store.schedules.all(), key=lambda each: (each.paused, each.due)):
            task = each.said["task"]
            if (self._kinds is None or task["kind"] in self._kinds) and self._mission in (None, task.get("mission")):
                entry = {"schedule": each.name, "kind": task["kind"], "paused": each.paused}
                left = None if each.paused else round((each.due - now) / 1000, 1)
                found.append({**entry, "next_at": None if each.paused else times.rfc3339(each.due), "in": left})
        return found[:ENTRIES_MOST]

    def _blocked(self) -> list[dict[str, Any]]:
        """Return what holds blocked tasks up, with how many: tasks that failed or were cancelled first."""
        blocked, more = self._read(State.BLOCKED, self._kinds)
        chain = chains.Chains(self._store, blocked)
        behind: dict[str, Task] = {}
        counts: Counter[str] = Counter()
        for task in blocked:
            cause = chain.root(task) or chain.front(task)
            if cause is not None:
                behind[cause.id] = cause
                counts[cause.id] += 1
        named = sorted(behind, key=lambda one: (not behind[one].state.ended, -counts[one], one))[:ENTRIES_MOST]
        shorts = self._store.shorten(named)
        return [
            {"behind": id, "short": short, "state": str(behind[id].state), **(_counted(counts[id], more) or {})}
            for id, short in zip(named, shorts, strict=True)
        ]

    def _nothing_open(self) -> dict[str, Any]:
        failed, _ = self._read(State.FAILED, self._kinds)
        cancelled, _ = self._read(State.CANCELLED, self._kinds)
        if failed or cancelled or self._read(State.DONE, self._kinds, limit=1)[0]:
            return {"done": True, "failed": len(failed), "cancelled": len(cancelled)}
        missions = [] if self._mission is None else [self._mission]
        return {"empty": {"kinds": sorted(self._kinds or ()), "missions": missions}}

    def _dropped(self) -> dict[str, Any]:
        dropbox = self._store.dropbox
        if dropbox is None:
            return {}
        dropped = dropbox.dropped()
        return {
            "dropped": dropped,
            "set_aside": len(dropbox.set_aside()),
            "not_tasks": dropbox.outside().others[:ENTRIES_MOST],
        }


def full(store: Store) -> list[dict[str, Any]]:
    """Return the bounds (`max_todo`) that are reached: that of the team first, then that of the whole yard."""
    found = sorted(store.reasons.backlog().items(), key=lambda entry: entry[0] or "")
    own = [{"kind": kind, "count": count, "max_todo": most} for kind, (count, most) in found if count >= most]
    return [*_full_team(store), *own]


def _full_team(store: Store) -> list[dict[str, Any]]:
    team = None if store.teams is None else store.teams.own()
    if team is None or store.teams is None or team["max_todo"] is None:
        return []
    count, most = store.teams.fill(team["name"])["todo"], team["max_todo"]
    return [{"kind": None, "team": team["name"], "count": count, "max_todo": most}] if count >= most else []


def _counted(count: int, more: bool) -> dict[str, Any] | None:
    """Return a count, with `at_least` if there may be more; None for no task."""
    return ({"count": count, "at_least": True} if more else {"count": count}) if count else None


def _entries(counts: Counter[Any], name: str, more: bool = False) -> list[dict[str, Any]]:
    """Return the counts as entries, the largest first."""
    return [{name: key, **(_counted(count, more) or {})} for key, count in counts.most_common(ENTRIES_MOST)]


def stuck(store: Store, blocked: Iterable[Task]) -> dict[str, Any] | None:
    """Return which of these tasks can never end by itself, and behind which failed or cancelled task; None if all can."""
    waiting = list(blocked)
    chain = chains.Chains(store, waiting) if waiting else None
    for task in waiting:
        assert chain is not None  # there are tasks
        circle = chain.cycle(task)
        if circle:
            shorts = store.shorten([one.id for one in circle])
            message = f"{shorts[0]} can never end by itself: it comes after itself ({plan.shown(shorts)})"
            way = task_reasons.way_out(shorts[0], [task_reasons.cycle([one.id for one in circle], shorts)])
            return {"message": message, "next": way, "task": task.id, "cycle": [one.id for one in circle]}
        cause = chain.root(task)
        if cause is not None:
            task_short, short = store.shorten([task.id, cause.id])
            entry = {"behind": cause.id, "short": short, "state": str(cause.state), "count": 1}
            facts = {"blocked": [entry]}
            message = f"{task_short} can never end by itself: it is blocked behind {short}, which {reasons.state(cause.state)}"
            return {"message": message, "next": reasons.way_out(facts), "task": task.id, **facts}
    return None
