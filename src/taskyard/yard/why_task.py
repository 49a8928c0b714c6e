"""Why one task is where it is, and what would move it: right for every state. Nothing is written."""

from __future__ import annotations

from taskyard.core import ids, needs, task_reasons, times
from taskyard.core.errors import Unavailable
from taskyard.core.store_records import Query, Trail
from taskyard.core.task import State
from taskyard.yard import arguments, chains, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Task
    from taskyard.core.task_reasons import Reason
    from taskyard.store import Store

_NEEDS_MOST = 10  # that are named one by one


class TaskFacts:
    """Gathers the reasons of one task."""

    def __init__(self, store: Store, report: Report, worker: str) -> None:
        self._store = store
        self._report = report
        self._task = report.task
        self._worker = worker
        self._now = store.reasons.now()

    def gathered(self) -> dict[str, Any]:
        """Return the task, its reasons, the first of them as a sentence, and what would move it."""
        task = self._task
        found = {
            State.WAITING: self._waiting,
            State.BLOCKED: self._blocked,
            State.TODO: self._todo,
            State.PROCESSING: self._processing,
        }.get(task.state, self._ended)()
        if task.expires is not None and not task.state.ended:
            deadline = self._store.stand(task.id).expires
            found += [] if deadline is None else [task_reasons.expires(task.expires, (deadline - self._now) / 1000)]
        return {"task": task.as_line(), "state": str(task.state), **_answer(task.short, found)}

    def _waiting(self) -> list[Reason]:
        if self._task.review == "pending" and self._report.history:
            return [task_reasons.review(self._report.history[-1]["worker"])]
        at = self._task.not_before or times.rfc3339(self._now)
        found = [task_reasons.not_due(at, self._seconds(at))]
        if self._report.history and self._task.fence:
            last = self._report.history[-1]
            found.append(task_reasons.backoff(last["outcome"], last["reason"], last["worker"]))
        return found

    def _blocked(self) -> list[Reason]:
        chain = chains.Chains(self._store, [self._task])
        circle = chain.cycle(self._task)
        if circle:
            return [task_reasons.cycle([task.id for task in circle], self._shorten(circle))]
        path = chain.path(self._task)
        unmet = chain.unmet(self._task)[:_NEEDS_MOST]
        shorts = dict(zip([task.id for task in (*path, *unmet)], self._shorten([*path, *unmet]), strict=True))
        found = [
            task_reasons.behind_review(need.id, shorts[need.id])
            if need.review == "pending"
            else task_reasons.behind(need.id, shorts[need.id], str(need.state))
            for need in sorted(unmet, key=lambda need: need.review != "pending")
        ]
        if not path:
            return found
        root = path[-1]
        through = [shorts[task.id] for task in path[:-1]]
        return [task_reasons.stuck(root.id, shorts[root.id], str(root.state), through), *found]

    def _todo(self) -> list[Reason]:
        task, store = self._task, self._store
        everything, kinds = store.settings.paused()
        found = []
        if everything or task.kind in kinds:
            found.append(task_reasons.paused(None if everything else task.kind))
        of_kind = [one for one in store.reasons.reached() if one.kind == task.kind][:1]
        of_team = [] if store.teams is None else store.teams.reached()
        found += [task_reasons.limited(one.fact(self._now)) for one in (*of_team, *of_kind)]
        if task.assignee not in (None, self._worker):
            found.append(task_reasons.assigned(str(task.assignee)))
        holders = store.reasons.using(task.uses) if task.uses else {}
        for resource, (id, worker, held) in holders.items():
            found.append(task_reasons.in_use(resource, held, id, store.shorten([id])[0], worker))
        if not found:
            found += self._place_in_line()
        if task.assignee is None:
            found += self._unserved()
        return found

    def _place_in_line(self) -> list[Reason]:
        """Return how many tasks are before it; or that claims skip its folder."""
        task = self._task
        taker = task.assignee or self._worker
        page, more = self._store.find(
            Query(frozenset((State.TODO,)), frozenset((task.kind,)), taker=taker, limit=why.SAMPLE)
        )
        unusable = [] if self._store.files is None else self._store.files.unusable()
        if unusable and more is None and all(other.id != task.id for other in page):
            return [task_reasons.refused(unusable)]
        own = (task.priority, ids.age_key(task.id))
        before = sum((other.priority, ids.age_key(other.id)) < own for other in page)
        return [task_reasons.ready(task.kind, before, more is not None and before == len(page))]

    def _unserved(self) -> list[Reason]:
        asked, kind = self._store.reasons.asked(), self._task.kind
        since = max((asked[name] for name in (None, kind) if name in asked), default=None)
        gone = None if since is None else (self._now - since) / 1000
        if gone is not None and gone < why.UNSERVED:
            return []
        if self._store.find(Query(frozenset((State.PROCESSING,)), frozenset((kind,)), limit=1))[0]:
            return []  # a worker has one of its kind, which may be a client that notes nothing
        return [task_reasons.unserved(kind, None if since is None else times.rfc3339(since), gone)]

    def _processing(self) -> list[Reason]:
        task = self._task
        held = next((one for one in self._store.held(task.worker or "") if one.id == task.id), None)
        until = task.lease_until or times.rfc3339(self._now)
        began = self._event("claimed", task.fence)
        beat = None
        if held is not None and task.lease_ends is not None:
            at = times.rfc3339(task.lease_ends - round(held.lease * 1000))
            beat = (
                None
                if began is None or self._seconds(at) - self._seconds(began["at"]) < 1.0
                else (at, -self._seconds(at))
            )
        since = None if began is None else (began["at"], -self._seconds(began["at"]))
        found = [task_reasons.held(task.worker, since, beat, (until, self._seconds(until)))]
        if held is not None and held.dead:
            return [task_reasons.dead(task.worker), *found]
        return [task_reasons.lapsed(task.worker), *found] if self._seconds(until) < 0 else found

    def _ended(self) -> list[Reason]:
        task = self._task
        last = self._report.history[-1] if self._report.history else None
        at, worker, reason, ahead = None, task.worker, task.error, None
        if task.state is State.CANCELLED:
            event = self._event("cancelled")
            if event is not None:
                at, worker = event["at"], event["by"]
            ahead = self._cancels()
        elif last is not None:
            at, worker = last["at"], last["worker"]
        found = [task_reasons.ended(str(task.state), None if at is None else (at, -self._seconds(at)), worker, reason)]
        if ahead is not None:
            found.append(task_reasons.cancelled_with(ahead.id, self._shorten([ahead])[0], str(ahead.state)))
        return found

    def _cancels(self) -> Task | None:
        """Return a failed or cancelled task that cancels this one too, also after a retry, until it is retried itself; else None."""
        others = chains.by_ids(self._store, [str(need) for need in self._task.after])
        for need in self._task.after:
            other = others.get(str(need))
            if other is not None and needs.verdict(needs.on_failure(need), other.state) == needs.CANCEL:
                return other
        return None

    def _event(self, name: str, fence: int | None = None) -> dict[str, Any] | None:
        """Return the newest event of this name, and of this fence; None if the log does not have it any more."""
        trail = Trail(task=self._task.id, events=frozenset((name,)), limit=arguments.EVENTS_MOST)
        try:
            events, _ = self._store.log.read(trail)
        except Unavailable:
            return None
        return next((event for event in reversed(events) if fence in (None, event["fence"])), None)

    def _shorten(self, tasks: list[Task]) -> list[str]:
        return self._store.shorten([task.id for task in tasks])

    def _seconds(self, at: str) -> float:
        """Return the seconds until this moment; less than 0 if it is over."""
        return (times.moment(at, "at") - self._now) / 1000


def of_file(store: Store, name: str) -> dict[str, Any] | None:
    """Return why the file of this name is no task; None if there is no such file."""
    if store.dropbox is None:
        return None
    stem = name.removesuffix(".json")
    outside = store.dropbox.outside()
    for entry in store.dropbox.set_aside():
        if entry["name"] in (name, stem):
            reason = task_reasons.set_aside(str(entry["name"]), entry["reason"], entry["at"])
            return {"task": None, "state": "set_aside", **_answer(str(entry["name"]), [reason])}
    for entry in outside.others:
        if entry["name"] in (name, stem, f"{name}.json"):
            reason = task_reasons.not_a_task(str(entry["name"]), entry["reason"])
            return {"task": None, "state": "not_a_task", **_answer(str(entry["name"]), [reason])}
    for entry in outside.guests:
        if entry["name"] in (name, stem):
            state = str(entry["state"])
            reason = task_reasons.guest(str(entry["name"]), state, entry["worker"], entry["at"])
            return {"task": None, "state": state, **_answer(str(entry["name"]), [reason])}
    return None


def _answer(short: str, found: list[Reason]) -> dict[str, Any]:
    chosen = found[:1] if found[0]["code"] == "stuck" else found[:2]
    message = "; ".join(reason["message"] for reason in chosen)
    return {"message": message, "reasons": found, "next": task_reasons.way_out(short, found)}
