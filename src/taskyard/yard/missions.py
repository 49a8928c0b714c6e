"""Missions: make them, look at them, wait for them, cancel them. A mission's tasks are ordinary tasks that name it."""

from __future__ import annotations

import time

from taskyard.core import abandonment, moves, times, words
from taskyard.core.errors import Conflict, NotFound, TimedOut
from taskyard.core.store_records import Query
from taskyard.core.task import State
from taskyard.yard.claim_verbs import legal_text
from taskyard.yard.waiting import WaitingVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.mission import Mission, Tally
    from taskyard.core.task import Task

_PAGE = 1000
_NAMED = 20  # running and failed tasks that one answer names
_NEXT = 5  # ready tasks that one answer names
_PASSES = 20  # times that a cancel looks for tasks that others add or move meanwhile
_OPEN = frozenset(state for state in State if not state.ended)
_BLOCKED = frozenset((State.BLOCKED,))
_WAIT_PAUSE = 1.0  # seconds between two fruitless looks, at most


class MissionVerbs(WaitingVerbs):
    """The verbs of a yard about missions."""

    def new_mission(self, name: str, brief: str | None = None, owner: str | None = None) -> dict[str, Any]:
        """Make a mission, and return it as `mission` does; said again with the same words, it changes nothing.

        `created` in the answer is whether it is new. Other words about the same name raise `Conflict`.
        """
        from taskyard.core import mission as rules

        new = rules.Mission(
            rules.name(name),
            None if brief is None else rules.brief(brief),
            None if owner is None else words.worker(owner, "owner"),
        )
        known = self._store.missions.put(new)
        if known is None:
            self._store.log.write("mission_made", self.by, more={"mission": new.name})
        else:
            rules.same(known, new)
        return {**self.mission(name), "created": known is None}

    def missions(self) -> list[dict[str, Any]]:
        """Return every mission that was made or that a task names: name, owner, state, progress, counts and times."""
        self._look()
        said = {mission.name: mission for mission in self._store.missions.all()}
        tallies = self._store.missions.tally()
        return [_summary(name, said.get(name), tallies.get(name)) for name in sorted({*said, *tallies})]

    def mission(self, name: str) -> dict[str, Any]:
        """Return all about one mission: the same, with its brief, and what runs, has failed and comes next."""
        self._look()
        summary = self._summed(name)
        running, workers = self._running(name)
        failed = self._store.find(Query(frozenset((State.FAILED,)), mission=name, limit=_NAMED))[0]
        ready = self._store.find(Query(frozenset((State.TODO,)), mission=name, taker=self.worker, limit=_NEXT))[0]
        from taskyard.yard import cards

        return {
            **summary,
            "rates": cards.done_lately(self._store, name),
            "running": [_fields(task, "worker", "lease_until", "progress") for task in running],
            "workers": workers,
            "failed": [{**_fields(task), "reason": task.error} for task in self._whole(failed)],
            "blocked": summary["counts"][State.BLOCKED],
            "next": [_fields(task, "priority") for task in self._with_names(ready)],
        }

    def cancel_mission(self, name: str, reason: str | None = None) -> dict[str, Any]:
        """Cancel every task of a mission that has not ended; workers that hold one lose their claims.

        The answer is that of `mission`, with the number of tasks that this has `cancelled`, and how many of them ran.
        """
        from taskyard.core import mission as rules

        text = None if reason is None else legal_text(reason, "reason")
        self._summed(name)
        cancelled = ran = 0
        for _ in range(_PASSES):
            left = list(self._tasks(name, _OPEN))
            if not left:
                break
            for task in left:
                abandonment.check_between_moves()
                moved = self._cancelled(task, text or f"the mission {words.shown(name)} was cancelled")
                cancelled += moved is not None
                ran += moved is State.PROCESSING
        else:
            raise Conflict(
                f"tasks are still being added to {words.shown(name)}", hint="stop what adds them, and cancel again"
            )
        counts = self._tally(name).counts
        self._store.missions.cancel(name, rules.Cancelled(0, text, counts[State.DONE], counts[State.FAILED]))
        self._store.log.write("mission_cancelled", self.by, more={"mission": name, "cancelled": cancelled})
        return {**self.mission(name), "cancelled": cancelled, "ran": ran}

    def wait_for_mission(self, name: str, timeout: float | None = None) -> list[Task]:
        """Wait until every task of the mission has ended, and return them; raise `TimedOut` after `timeout` seconds."""
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        self._summed(name)
        waiter = self.waiter(seconds, pause=_WAIT_PAUSE)
        while True:
            last = waiter.is_over()
            if self._has_ended(name):
                return self._whole(list(self._tasks(name)))
            blocked = [task.id for task in self._tasks(name, _BLOCKED)]
            self._refuse_stuck(blocked, blocked)
            if last:
                counts = self._tally(name).counts
                left = sum(counts[state] for state in _OPEN)
                raise TimedOut(f"{left} of {sum(counts.values())} tasks of {words.shown(name)} have not ended in time")
            waiter.nap(self._store.policy.sweep_every)
            self.tend()

    def _has_ended(self, name: str) -> bool:
        """Whether two looks found no open task: one look may miss a task that moves meanwhile."""
        return not any(self._store.find(Query(_OPEN, mission=name, limit=1))[0] for _ in range(2))

    def _kinds_of(self, mission: str) -> dict[str, dict[str, int]]:
        self._summed(mission)
        return self._tally(mission).kinds

    def _summed(self, name: str) -> dict[str, Any]:
        """Return the mission with its numbers; raise `NotFound` if nothing is known of it."""
        from taskyard.core import mission as rules

        said = self._store.missions.get(rules.name(name))
        tally = self._store.missions.tally(name).get(name)
        if said is None and tally is None:
            raise rules.unknown(name)
        return _summary(name, said, tally)

    def _tally(self, name: str) -> Tally:
        from taskyard.core.mission import Tally

        return self._store.missions.tally(name).get(name) or Tally()

    def _tasks(self, name: str, states: frozenset[State] | None = None) -> Iterator[Task]:
        """Yield the tasks of a mission, compact, a page at a time."""
        cursor = None
        while True:
            page, cursor = self._store.find(Query(states, mission=name, limit=_PAGE, cursor=cursor))
            yield from page
            if cursor is None:
                return

    def _running(self, name: str) -> tuple[list[Task], list[str]]:
        """Return some of the running tasks, and the workers of all."""
        running = list(self._tasks(name, frozenset((State.PROCESSING,))))
        whole = [task for task in self._whole(running[:_NAMED]) if task.state is State.PROCESSING]
        return whole, sorted({task.worker for task in running if task.worker is not None})

    def _whole(self, tasks: list[Task]) -> list[Task]:
        """Return these tasks with all their fields; one that was pruned meanwhile is left out."""
        found = []
        for task in tasks:
            try:
                found.append(self._store.get(task.id).task)
            except NotFound:
                continue
        return self._with_names(found)

    def _with_names(self, tasks: list[Task]) -> list[Task]:
        self._name(tasks)
        return tasks

    def _cancelled(self, task: Task, reason: str) -> State | None:
        """Cancel one task and return the state that it was in; None if it has ended by itself, or keeps moving."""
        for _ in range(_PASSES):
            try:
                standing = self._store.stand(task.id)
                if self._store.shift([(standing, moves.cancelled(standing, reason))], self.by)[0]:
                    return standing.state
            except (Conflict, NotFound):
                return None
            time.sleep(0)  # let the process that moves it go on
        return None


def _summary(name: str, said: Mission | None, tally: Tally | None) -> dict[str, Any]:
    from taskyard.core import mission as rules

    found = tally or rules.Tally()
    counts = found.counts
    mark = None if said is None else said.cancelled
    over = sum(counts.values()) > 0 and not rules.open_tasks(counts)
    created = said.created_at if said is not None and said.created_at is not None else found.started_at
    state = rules.state(counts, mark)
    return {
        "name": name,
        "brief": None if said is None else said.brief,
        "owner": None if said is None else said.owner,
        "state": state,
        "reason": mark.reason if mark is not None and state == "cancelled" else None,
        "progress": rules.progress(counts),
        "counts": counts,
        "total": sum(counts.values()),
        "created_at": _moment(created),
        "started_at": _moment(found.started_at),
        "ended_at": _moment(found.ended_at if over else None),
    }


def _moment(at: int | None) -> str | None:
    return None if at is None else times.rfc3339(at)


def _fields(task: Task, *more: str) -> dict[str, Any]:
    return {name: getattr(task, name) for name in ("id", "short", "kind", "title", *more)}
