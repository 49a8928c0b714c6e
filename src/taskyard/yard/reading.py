"""Reading a yard: tasks, counts and the log. This is the part of the Yard that moves no task.

A list, and `ready`, may take in dropped files and wake tasks that are due; everything else here only reads.
"""

from __future__ import annotations

from taskyard.core import ids, times, words
from taskyard.core.errors import Ambiguous, Invalid, NotFound, TimedOut, Unavailable
from taskyard.core.store_records import Outside, Query, Trail
from taskyard.core.task import State
from taskyard.yard import arguments, janitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Task
    from taskyard.store import Store
    from taskyard.yard.waiter import Waiting

_WAIT_PAUSE = 1.0  # seconds between two fruitless looks at many tasks, at most


class Reading:
    """The verbs of a yard that read."""

    _store: Store
    worker: str

    def tend(self) -> None:
        """Do a share of the janitor's work, if it is due."""
        raise NotImplementedError

    # Tasks

    def get(self, id: str) -> Task:
        """Return the whole task with this id, unique beginning of an id, or short name."""
        return self.report(id).task

    def report(self, id: str) -> Report:
        """Return the task with its history, notes and stale results."""
        report = self._store.get(self._task_id(id))
        self._name([report.task])
        return report

    def find(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """Return tasks by state, kind, mission and holder, oldest first; compact fields only."""
        self._look()
        states = (
            None if state is None else frozenset(map(arguments.state, [state] if isinstance(state, str) else state))
        )
        return self._page(
            Query(
                states,
                None if kind is None else arguments.kinds(kind),
                None if mission is None else words.text(mission, "mission"),
                None if worker is None else words.worker(worker),
                None,
                arguments.limit(limit),
                arguments.cursor(cursor),
            )
        )

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """Return the tasks that this worker could claim now, oldest first."""
        try:
            janitor.sweep(self._store, self.worker, intake=janitor.INTAKE)
        except Unavailable:
            pass  # a due task is listed once the yard can be written again
        taker = self.worker if worker is None else words.worker(worker)
        kinds = None if kind is None else arguments.kinds(kind)
        return self._page(
            Query(
                frozenset((State.TODO,)), kinds, mission, None, taker, arguments.limit(limit), arguments.cursor(cursor)
            )
        )

    def _page(self, query: Query) -> arguments.Page:
        tasks, cursor = self._store.find(query)
        page = arguments.Page(tasks)
        page.next = cursor
        self._name(page)
        return page

    def shorten(self, ids: Iterable[str]) -> list[str]:
        """Return the short name of each id, just long enough to fit no other task now."""
        return self._store.shorten([self._task_id(id) for id in ids])

    def _name(self, tasks: Sequence[Task]) -> None:
        """Set short names on these tasks that fit no other task."""
        try:
            names = self._store.shorten([task.id for task in tasks])
        except Unavailable:
            return  # a folder that cannot be listed must not hide the tasks; they keep the shortest names
        for task, short in zip(tasks, names, strict=True):
            task.short = short

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        counts: dict[str, int] = self.stats()["counts"]
        return counts

    def stats(self) -> dict[str, Any]:
        """Return tasks by state, in all and by kind; how many files are set aside or dropped; and what is paused."""
        counted, outside = self._store.counts(), self.outside()
        kinds, dropbox = counted.kinds, self._store.dropbox
        counts = {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}
        rows = {
            kind: {str(state): row[state] for state in State if row.get(state)} for kind, row in sorted(kinds.items())
        }
        return {
            "counts": counts,
            "kinds": rows,
            "set_aside": len(self.set_aside()),
            "guests": _by_state(outside.guests),
            "not_tasks": outside.others,
            "paused": self.paused(),
            "lost_races": counted.lost_races,
            "dropped": 0 if dropbox is None else dropbox.dropped(),
        }

    def unusable(self) -> list[str]:
        """Return what the last claims or `ready` skipped because the system refuses access, each with the reason."""
        return [] if self._store.files is None else self._store.files.unusable()

    def wait(self, *ids: str, timeout: float | None = None) -> list[Task]:
        """Wait until all these tasks have ended, and return them; raise `TimedOut` after `timeout` seconds."""
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        self.tend()
        tasks = {id: self.get(id) for id in ids}
        open_ids = [id for id, task in tasks.items() if not task.state.ended]
        patience = self.waiter(seconds, pause=_WAIT_PAUSE) if open_ids and seconds != 0 else None
        while open_ids:
            last = patience is None or patience.is_over()
            for id in open_ids:
                if self._store.stand(tasks[id].id).state.ended:
                    tasks[id] = self.get(tasks[id].id)
            open_ids = [id for id in open_ids if not tasks[id].state.ended]
            if not open_ids:
                break
            if patience is None or last:
                raise TimedOut(
                    f"{len(open_ids)} of {len(tasks)} tasks have not ended in time: {', '.join(open_ids[:5])}"
                )
            patience.nap(self._store.policy.sweep_every)
            self.tend()
        return [tasks[id] for id in ids]

    def outside(self) -> Outside:
        """Return what other programs hold or have done in the yard's folders, and dropped files that are no tasks."""
        return Outside() if self._store.dropbox is None else self._store.dropbox.outside()

    def set_aside(self) -> list[dict[str, str | None]]:
        """Return the files from the drop box that are no tasks: name, reason and time of each."""
        return [] if self._store.dropbox is None else self._store.dropbox.set_aside()

    def paused(self) -> dict[str, Any]:
        """Return what is paused: the whole `yard` (true or false), and which `kinds`."""
        everything, some = self._store.paused()
        return {"yard": everything, "kinds": sorted(some)}

    # The log

    def events(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int = 1000,
        event: str | Iterable[str] | None = None,
    ) -> arguments.Events:
        """Return events as dicts, oldest first; the result's `cursor` is where to go on from."""
        if cursor == "":
            raise Invalid("the cursor is empty", hint="give the 'cursor' of the answer before, or none")
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        return follow.page(self._store, follow.trail(self._store, named, worker, kind, event, since, cursor, limit))

    def watch(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> arguments.Events:
        """Wait for the first event that matches, from now on or after the cursor, and return it; else raise `TimedOut`."""
        return next(self.follow(task, worker, kind, event, cursor=cursor, limit=1, timeout=timeout))

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
    ) -> Iterator[arguments.Events]:
        """Yield events as they come, in lists: after the cursor ("" is before all), else from now on.

        It ends after `limit` events, or once `until` is true. It raises `TimedOut` if nothing matches for `timeout` seconds.
        """
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        trail = follow.trail(self._store, named, worker, kind, event, since, cursor, 1 if limit is None else limit)
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        return follow.pages(self._store, trail, self.tend, seconds, limit, until)

    def log_end(self) -> str:
        """Return the cursor of the log's end: only later events come after it."""
        return self._store.events(Trail(at_end=True))[1]

    # Waiting

    def waiter(
        self, seconds: float | None, stopped: Callable[[], bool] | None = None, pause: float | None = None
    ) -> Waiting:
        """Return an object that waits until something may have changed, for at most `seconds`."""
        from taskyard.yard import waiter

        return waiter.Waiting(self._store.wakeup, seconds, stopped, waiter.PAUSE if pause is None else pause)

    def alarm(self) -> float | None:
        """Return seconds until the next lease ends or the next task is due, as the last sweep saw; None if there is none."""
        return self._store.upkeep.alarm()

    def wake(self) -> None:
        """Wake every wait of this process on this yard now; a signal handler may call this too."""
        self._store.wakeup.wake()

    # Names

    def _task_id(self, id: object) -> str:
        """Return the whole id for an id, its beginning, a short name, or the name under which one task was dropped."""
        try:
            wanted = arguments.task_id(id)
            return wanted if ids.is_id(wanted) else self._store.stand(wanted).id
        except Ambiguous:
            raise
        except NotFound:
            found = self._dropped_under(id) if isinstance(id, str) else None
            if found is None:
                raise
            return found

    def _dropped_under(self, name: str) -> str | None:
        """Return the id of the one task that was dropped under this name; raise `NotFound` if a file that is no task has it."""
        stem = name.removesuffix(".json")
        tasks = self._ids_dropped_as(name) or self._ids_dropped_as(stem)
        if len(tasks) == 1:
            return tasks[0]
        if tasks:
            some = ", ".join(tasks[-5:])
            raise Ambiguous(f"{len(tasks)} tasks were dropped as {words.shown(name)}: {some}", hint="give the id")
        for entry in self.outside().guests:
            if entry["name"] in (name, stem):
                who = "another program" if entry["worker"] is None else str(entry["worker"])
                what = "is done" if entry["state"] == State.DONE else "is held"
                raise NotFound(
                    f"{words.shown(name)} {what} by {who}, which works on the files alone, since {entry['at']}",
                    hint=f"it is a file in {entry['state']}/ and no task of the yard; 'taskyard list' shows it",
                )
        for entry in self.set_aside():
            if entry["name"] in (name, stem):
                why = "" if entry["reason"] is None else f": {entry['reason']}"
                raise NotFound(
                    f"{words.shown(name)} is no task: it is a file that lies aside in failed/{why}",
                    hint=f"put failed/{entry['name']}.json right, then 'taskyard retry {entry['name']}'",
                )
        return None

    def _ids_dropped_as(self, name: str) -> list[str]:
        return [task.id for task in self._store.find(Query(dropped_as=name))[0]]

    def _look(self) -> None:
        """Take in recently dropped files before the whole yard is read, if that is possible."""
        try:
            if self._store.dropbox is not None:
                self._store.dropbox.intake(self.worker, janitor.INTAKE)
        except Unavailable:
            pass  # a yard that cannot be written can still be read
        self.tend()


class CommandNames(Reading):
    """The same verbs under the names that the command line has for them."""

    show = Reading.report
    list = Reading.find
    log = Reading.events


def _by_state(guests: list[dict[str, str | None]]) -> dict[str, int]:
    states = [str(entry["state"]) for entry in guests]
    return {state: states.count(state) for state in sorted(set(states))}
