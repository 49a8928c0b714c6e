"""Reading a yard: tasks, counts and the log. This is the part of the Yard that moves no task.

A list, and `ready`, may take in dropped files and wake tasks that are due; everything else here only reads.
"""

from __future__ import annotations

from taskyard.core import ids, times, words
from taskyard.core.abandonment import Shielded
from taskyard.core.activity import EVENTS
from taskyard.core.errors import Ambiguous, Invalid, NotFound, Stuck, TimedOut, Unavailable
from taskyard.core.store_records import Outside, Query, Trail
from taskyard.core.task import State
from taskyard.yard import arguments, janitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeGuard

    from taskyard.core.store_records import Report, Want
    from taskyard.core.task import Task
    from taskyard.store import Store
    from taskyard.yard.janitor import Swept
    from taskyard.yard.ticks import Ticks
    from taskyard.yard.waiter import Waiting

_AGED = (State.TODO, State.PROCESSING, State.BLOCKED)  # states whose oldest task every store finds at once
_WAIT_PAUSE = 1.0  # seconds between two fruitless looks at many tasks, at most


class Reading:
    """The verbs of a yard that read."""

    _store: Store
    _ticks: Ticks
    worker: str
    by: str

    def tend(self) -> None:
        """Do a share of the janitor's work, if it is due."""
        raise NotImplementedError

    def _sweep(
        self, limit: int = janitor.SHARE, *, mend: bool = False, intake: int | None = None, asked: bool = False
    ) -> Swept:
        """Add what schedules ask for, then do the janitor's work."""
        with Shielded():
            ticked = self._ticks.add_due(self._store, asked=asked)
            swept = janitor.sweep(self._store, self.by, limit, mend=mend, intake=intake)
        swept.ticked, swept.ticks_left = ticked, self._ticks.left
        return swept

    # Tasks

    def get(self, id: str) -> Task:
        """Return the whole task with this id, unique beginning of an id, or short name."""
        return self.report(id).task

    def get_many(self, ids: Iterable[str] = (), *, keys: Iterable[str] = ()) -> list[Task]:
        """Return the whole tasks of these whole ids, and those that were added under these keys, each once, oldest first.

        What is unknown, or was pruned, is left out.
        """
        named = [arguments.whole_id(id) for id in words.several(ids, "ids")]
        keyed = [words.text(key, "key") for key in words.several(keys, "keys")]
        if not named and not keyed:
            return []
        found = self._store.find(Query(ids=named, keys=keyed, whole=True))[0]
        self._name(found)
        return found

    def report(self, id: str) -> Report:
        """Return the task with its history, notes and stale results."""
        report = self._store.get(self._task_id(id))
        self._name([report.task])
        return report

    def inputs(self, task: str | Task) -> arguments.Inputs:
        """Return the results of the tasks that this one comes after and that are done, by id, up to 4 MiB as JSON.

        Its `left_out` is the number of tasks that were left out because of that bound.
        """
        after = (self.get(task) if isinstance(task, str) else task).after
        if not after:
            return arguments.Inputs()
        from taskyard.yard import dependencies

        return dependencies.inputs(self._store, after)

    def dependencies(self, task: str | Task) -> list[dict[str, Any]]:
        """Return id, short name, state and `on_failure` of each task that this one comes after; no state if it was pruned."""
        from taskyard.yard import dependencies

        return dependencies.dependencies(self._store, (self.get(task) if isinstance(task, str) else task).after)

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
        query = arguments.query(state, kind, mission, worker)
        query.limit, query.cursor = arguments.limit(limit), arguments.cursor(cursor)
        return self._page(query)

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """Return the tasks that this worker could claim now, in the order in which claims would hand them out."""
        try:
            self._sweep(intake=janitor.INTAKE)
        except Unavailable:
            pass  # a due task is listed once the yard can be written again
        taker = self.worker if worker is None else words.worker(worker)
        kinds = None if kind is None else arguments.kinds(kind)
        return self._page(
            Query(
                frozenset((State.TODO,)),
                kinds,
                None if mission is None else words.text(mission, "mission"),
                None,
                taker,
                arguments.limit(limit),
                arguments.ready_cursor(cursor),
            )
        )

    def _page(self, query: Query) -> arguments.Page:
        tasks, cursor = self._store.find(query)
        page = arguments.Page(tasks)
        page.next = cursor
        self._name(page)
        return page

    def graph(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        mission: str | None = None,
        kind: str | Iterable[str] | None = None,
        state: str | Iterable[str] | None = None,
        limit: int = arguments.LIST_MOST,
        fold: str | None = "none",
    ) -> dict[str, Any]:
        """Return which task comes after which: `nodes`, `edges`, the `critical_path`, how it is `folded`, and how many are `left_out`.

        With `ids`: these tasks, all that they come after, and all that comes after them. Else those that match, or all that
        have not ended, each with what it comes after. `fold` is `mission`, `kind`, `none`, or None: if there are too many.
        """
        from taskyard.yard import task_graph

        way = task_graph.fold(fold)
        self._look()
        wanted = [self._task_id(id) for id in ([ids] if isinstance(ids, str) else ids or ())]
        everything = mission is None and kind is None and state is None
        query = arguments.query(state, kind, mission, None, states=task_graph.OPEN if everything else None)
        query.limit, query.whole = task_graph.PAGE, True
        if wanted and not everything:
            raise Invalid(
                "a graph is of tasks that are named, or of those that match", hint="leave out the ids, or the filters"
            )
        found = task_graph.gathered(self._store, wanted, query, arguments.limit(limit))
        return task_graph.described(found, way, self._name)

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
        return _in_all(self._store.counts().kinds)

    def stats(self, mission: str | None = None, *, exact: bool = False) -> dict[str, Any]:
        """Return tasks by state, in all and by kind, with ages and rates, what is set aside, dropped and paused.

        `approximate` names the figures that are estimates. With `exact`, every task is counted, however many there are. With a
        mission, only its tasks are counted; ages and rates are those of the yard.
        """
        counted, outside, activity = self._store.counts(exact=exact), self.outside(), self._store.log.activity()
        kinds, dropbox = counted.kinds if mission is None else self._kinds_of(mission), self._store.dropbox
        rows = {
            kind: {str(state): row[state] for state in State if row.get(state)} for kind, row in sorted(kinds.items())
        }
        rates, extrapolated = activity.rates(EVENTS)
        ages = {str(state): _age(counted.oldest.get(state), activity.now) for state in _AGED}
        approximate = [f"counts.{state}" for state in State if mission is None and state in counted.estimated]
        return {
            "counts": _in_all(kinds),
            "kinds": rows,
            "oldest_ready": self._oldest_ready(counted.oldest.get(State.TODO), activity.now),
            "ages": ages,
            "rates": rates,
            "approximate": approximate + [f"rates.{span}" for span in extrapolated],
            "set_aside": len(self.set_aside()),
            "guests": _by_state(outside.guests),
            "not_tasks": outside.others,
            "paused": self.paused(),
            "lost_races": counted.lost_races,
            "dropped": 0 if dropbox is None else dropbox.dropped(),
            "full": self.full(),
        }

    def full(self) -> list[dict[str, Any]]:
        """Return the bounds (`max_todo`) that are reached: kind (None for the whole yard), count and max_todo of each."""
        from taskyard.yard import why

        return why.full(self._store)

    def why(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> dict[str, Any]:
        """Return why nothing is ready for this worker; or with an id, why that task is where it is. It writes nothing.

        `message` is the reason in one sentence, `next` what would move things; docs/why.md has the other keys.
        """
        taker = self.worker if worker is None else words.worker(worker)
        if id is not None:
            return self._why_one(id, taker)
        from taskyard.yard import why

        named = None if mission is None else words.text(mission, "mission")
        return why.Facts(self._store, None if kinds is None else arguments.kinds(kinds), named, taker).gathered()

    def _why_one(self, id: str, worker: str) -> dict[str, Any]:
        from taskyard.yard import why_task

        try:
            report = self.report(id)
        except Ambiguous:
            raise
        except NotFound:
            found = why_task.of_file(self._store, id)
            if found is None:
                raise
            return found
        return why_task.TaskFacts(self._store, report, worker).gathered()

    def _oldest_ready(self, id: str | None, now: int) -> dict[str, Any] | None:
        if id is None:
            return None
        [short] = self._store.shorten([id])
        return {"id": id, "short": short, "age": _age(id, now)}

    def unusable(self) -> list[str]:
        """Return what the last claims or `ready` skipped because the system refuses access, each with the reason."""
        return [] if self._store.files is None else self._store.files.unusable()

    def wait_for_mission(self, name: str, timeout: float | None = None) -> list[Task]:
        """Wait until every task of the mission has ended, and return them."""
        raise NotImplementedError

    def _kinds_of(self, mission: str) -> dict[str, dict[str, int]]:
        """Return how many tasks of the mission there are, by kind and state."""
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

    def outside(self) -> Outside:
        """Return what other programs hold or have done in the yard's folders, and dropped files that are no tasks."""
        return Outside() if self._store.dropbox is None else self._store.dropbox.outside()

    def set_aside(self) -> list[dict[str, str | None]]:
        """Return the files from the drop box that are no tasks: name, reason and time of each."""
        return [] if self._store.dropbox is None else self._store.dropbox.set_aside()

    def paused(self) -> dict[str, Any]:
        """Return what is paused: the whole `yard` (true or false), and which `kinds`."""
        everything, some = self._store.settings.paused()
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

    # Waiting

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

    def alarm(self) -> float | None:
        """Return seconds until a lease ends, or a task or a tick is due, as the last sweep saw; None if there is none."""
        return min(filter(_is_known, (self._store.upkeep.alarm(), self._ticks.alarm())), default=None)

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
                with Shielded():
                    self._store.dropbox.intake(self.by, janitor.INTAKE)
        except Unavailable:
            pass  # a yard that cannot be written can still be read
        self.tend()


class CommandNames(Reading):
    """The same verbs under the names that the command line has for them."""

    show = Reading.report
    list = Reading.find
    log = Reading.events


def _is_known(seconds: float | None) -> TypeGuard[float]:
    return seconds is not None


def _by_state(guests: list[dict[str, str | None]]) -> dict[str, int]:
    states = [str(entry["state"]) for entry in guests]
    return {state: states.count(state) for state in sorted(set(states))}


def _in_all(kinds: dict[str, dict[str, int]]) -> dict[str, int]:
    return {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}


def _age(id: str | None, now: int) -> float | None:
    """Return the seconds since the task was made, or None without a task."""
    return None if id is None else max(0, now - ids.created(id)) / 1000
