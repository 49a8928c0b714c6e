"""Waiting for what happens: for tasks to end, for events of the log, for anything to change."""

from __future__ import annotations

from taskyard.core import times
from taskyard.core.errors import Invalid, Stuck, TimedOut
from taskyard.core.store_records import Query, Trail
from taskyard.core.task import State
from taskyard.yard import arguments
from taskyard.yard.reading import Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from taskyard.core.store_records import Want
    from taskyard.core.task import Task
    from taskyard.yard.waiter import Waiting

_WAIT_PAUSE = 1.0  # seconds between two fruitless looks at many tasks, at most


class WaitingVerbs(Reading):
    """The verbs of a yard that wait, and those that read its log."""

    def wait_for_mission(self, name: str, timeout: float | None = None) -> list[Task]:
        """Wait until every task of the mission has ended, and return them."""
        raise NotImplementedError

    def wait(
        self,
        *ids: str,
        timeout: float | None = None,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> list[Task]:
        """Wait until all these tasks have ended, and return them; raise `TimedOut` after `timeout` seconds.

        With a filter in place of ids: all tasks that match now, and without a state those that have not ended. With a mission
        alone: all of its tasks, also later ones. Raise `Stuck` as soon as one of them is blocked behind a task that failed or
        was cancelled: it never ends by itself.
        """
        if mission is not None and not ids and (state, kind, worker) == (None, None, None):
            return self.wait_for_mission(mission, timeout)
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        filters = (state, kind, mission, worker)
        if ids and any(given is not None for given in filters):
            raise Invalid("wait takes ids or a filter", hint="wait for the one, then for the other")
        if any(given is not None for given in filters):
            from taskyard.yard import bulk

            self._look()
            wanted = bulk.matching(self._store, arguments.query(*filters, states=bulk.OPEN), None).ids
        else:
            self.tend()
            wanted = [self._task_id(id) for id in ids]
        tasks, _ = self._ended(wanted)
        left = [id for id in dict.fromkeys(wanted) if id not in tasks]
        patience = self.waiter(seconds, pause=_WAIT_PAUSE) if left and seconds != 0 else None
        while left:
            last = patience is None or patience.is_over()
            ended, blocked = self._ended(left)
            tasks |= ended
            left = [id for id in left if id not in tasks]
            self._refuse_stuck(wanted, blocked)
            if left and (patience is None or last):
                number = len(tasks) + len(left)
                raise TimedOut(
                    f"{len(left)} of {number} tasks have not ended in time: {', '.join(left[:5])}", ids=wanted
                )
            if left and patience is not None:
                patience.nap(self._store.policy.sweep_every)
                self.tend()
        found = [tasks[id] for id in wanted]
        self._name(found)
        return found

    def _ended(self, ids: Sequence[str]) -> tuple[dict[str, Task], list[str]]:
        """Return those of these tasks that have ended, each whole, and the blocked ones; raise `NotFound` if one is gone."""
        found = {task.id: task for task in self._store.find(Query(ids=ids))[0]} if ids else {}
        for id in ids:
            if id not in found:
                self._store.stand(id)
        ended = [id for id, task in found.items() if task.state.ended]
        whole = self._store.find(Query(ids=ended, whole=True))[0] if ended else []
        blocked = [id for id, task in found.items() if task.state is State.BLOCKED]
        return {task.id: task for task in whole}, blocked

    def _refuse_stuck(self, wanted: Sequence[str], blocked: Sequence[str]) -> None:
        """Raise `Stuck`, with the wanted tasks as they are, if one of the blocked ones can never end by itself."""
        if not blocked:
            return
        from taskyard.yard import chains, why

        facts = why.stuck(self._store, chains.by_ids(self._store, blocked).values())
        if facts is not None:
            now = {task.id: task for task in self._store.find(Query(ids=wanted, whole=True))[0]}
            tasks = [now[id] for id in dict.fromkeys(wanted) if id in now]
            raise Stuck(facts["message"], hint=facts["next"], why=facts, tasks=tasks)

    def events(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int = 1000,
        event: str | Iterable[str] | None = None,
        mission: str | None = None,
        newest: bool = False,
    ) -> arguments.Events:
        """Return events as dicts, oldest first; the result's `cursor` is where to go on from.

        With `newest`: the last `limit` that match, as far back as can be read in a moment; the cursor goes on from there.
        """
        if cursor == "":
            raise Invalid("the cursor is empty", hint="give the 'cursor' of the answer before, or none")
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        trail = follow.trail(self._store, named, worker, kind, event, since, cursor, limit)
        members = follow.members(self._store, mission)
        return (follow.newest if newest else follow.page)(self._store, trail, members)

    def watch(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
        mission: str | None = None,
    ) -> arguments.Events:
        """Wait for the first event that matches, from now on or after the cursor, and return it; else raise `TimedOut`."""
        return next(self.follow(task, worker, kind, event, cursor=cursor, limit=1, timeout=timeout, mission=mission))

    def follow(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        until: Callable[[], bool] | None = None,
        mission: str | None = None,
    ) -> Iterator[arguments.Events]:
        """Yield events as they come, in lists: after the cursor ("" is before all), else from now on.

        It ends after `limit` events, or once `until` is true. It raises `TimedOut` if nothing matches for `timeout` seconds.
        """
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        trail = follow.trail(self._store, named, worker, kind, event, since, cursor, 1 if limit is None else limit)
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        members = follow.members(self._store, mission)
        return follow.pages(self._store, trail, self.tend, seconds, limit, until, members)

    def log_end(self) -> str:
        """Return the cursor of the log's end: only later events come after it."""
        return self._store.log.read(Trail(at_end=True))[1]

    log = events

    def waiter(
        self,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        pause: float | None = None,
        want: Want | None = None,
    ) -> Waiting:
        """Return an object that waits until something may have changed, for at most `seconds`; with `want`, for a claim."""
        from taskyard.yard import waiter

        most = waiter.PAUSE if pause is None else pause
        return waiter.Waiting(self._store.wakeup, seconds, stopped, most, want)

    def wake(self) -> None:
        """Wake every wait of this process on this yard now; a signal handler may call this too."""
        self._store.wakeup.wake()
