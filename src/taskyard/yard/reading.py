"""Reading a yard: tasks and counts. This is the part of the Yard that moves no task.

A list, and `ready`, may take in dropped files and wake tasks that are due; everything else here only reads.
"""

from __future__ import annotations

from taskyard.core import ids, words
from taskyard.core.activity import EVENTS
from taskyard.core.errors import Ambiguous, Invalid, NotFound, Unavailable
from taskyard.core.store_records import Outside, Query
from taskyard.core.task import State
from taskyard.yard import arguments, janitor
from taskyard.yard.tending import Tending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Task

_AGED = (State.TODO, State.PROCESSING, State.BLOCKED)  # states whose oldest task every store finds at once


class Reading(Tending):
    """The verbs of a yard that read."""

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

    def _kinds_of(self, mission: str) -> dict[str, dict[str, int]]:
        """Return how many tasks of the mission there are, by kind and state."""
        raise NotImplementedError

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


class CommandNames(Reading):
    """The same verbs under the names that the command line has for them."""

    show = Reading.report
    list = Reading.find


def _by_state(guests: list[dict[str, str | None]]) -> dict[str, int]:
    states = [str(entry["state"]) for entry in guests]
    return {state: states.count(state) for state in sorted(set(states))}


def _in_all(kinds: dict[str, dict[str, int]]) -> dict[str, int]:
    return {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}


def _age(id: str | None, now: int) -> float | None:
    """Return the seconds since the task was made, or None without a task."""
    return None if id is None else max(0, now - ids.created(id)) / 1000
