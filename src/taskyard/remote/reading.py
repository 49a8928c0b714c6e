"""Reading a yard through a gateway: tasks, counts, missions and the log."""

from __future__ import annotations

from taskyard.core import times, words
from taskyard.core.errors import TimedOut
from taskyard.core.retry import Policy
from taskyard.core.store_records import Outside, Report
from taskyard.remote import wire
from taskyard.remote.waiter import RemoteWaiter
from taskyard.yard import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.remote.request import Requests
    from taskyard.remote.waiter import Bell

_PAGE = 1000  # events of one look


class RemoteReading:
    """The verbs of a far yard that read."""

    _requests: Requests
    _bell: Bell
    _facts: dict[str, Any] | None

    def _ask(self, verb: str, /, **given: Any) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The URL of this yard."""
        return self._requests.address.url

    @property
    def label(self) -> str:
        """The URL for people to read: it never has a secret."""
        return self._requests.address.url

    def _known(self) -> dict[str, Any]:
        if self._facts is None:
            self._facts = self._ask("facts")
        return self._facts

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases; asked for once."""
        return Policy(**self._known()["policy"])

    @property
    def checks(self) -> dict[str, list[str]]:
        """The yard's own checks by name, as they were when this was first asked."""
        return dict(self._known()["checks"])

    @property
    def batch(self) -> int:
        """The number of claims or endings in one request that costs less than one request for each."""
        return int(self._known()["batch"])

    # Tasks

    def get(self, id: str) -> Task:
        """Return the whole task with this id, unique beginning of an id, or short name."""
        return self.report(id).task

    def get_many(self, ids: Iterable[str] = (), *, keys: Iterable[str] = ()) -> list[Task]:
        """Return the whole tasks of these whole ids, and those that were added under these keys, oldest first."""
        named, keyed = words.several(ids, "ids"), words.several(keys, "keys")
        if not named and not keyed:
            return []
        return [wire.task(task) for task in self._ask("get_many", ids=named, keys=keyed)["tasks"]]

    def report(self, id: str) -> Report:
        """Return the task with its history, notes and stale results."""
        answer = self._ask("report", id=id)
        return Report(
            wire.task(answer["task"]),
            answer["history"],
            answer["notes"],
            answer["stale_results"],
            lambda: None,
            lambda most: list(answer["dependents"][:most]),
            lambda most: list(answer["children"][:most]),
        )

    def output(self, id: str, most: int = 16_384) -> list[dict[str, Any]]:
        """Return the end of what the commands of the task's last attempt have printed."""
        return list(self._ask("output", id=id, most=most)["output"])

    def inputs(self, task: str | Task) -> arguments.Inputs:
        """Return the results of the tasks that this one comes after and that are done, by id, up to 4 MiB as JSON."""
        if not isinstance(task, str) and not task.after:
            return arguments.Inputs()
        answer = self._ask("inputs", task=task if isinstance(task, str) else task.id)
        inputs = arguments.Inputs(answer["inputs"])
        inputs.left_out = answer["left_out"]
        return inputs

    def dependencies(self, task: str | Task) -> list[dict[str, Any]]:
        """Return id, short name, state and `on_failure` of each task that this one comes after."""
        return list(self._ask("dependencies", task=task if isinstance(task, str) else task.id)["dependencies"])

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
        filters = {
            "state": several(state, "state"),
            "kind": several(kind, "kind"),
            "mission": mission,
            "worker": worker,
        }
        return _page(self._ask("find", **filters, limit=limit, cursor=cursor))

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """Return the tasks that this worker could claim now, in the order in which claims would hand them out."""
        given = {"kind": several(kind, "kind"), "mission": mission, "worker": worker}
        return _page(self._ask("ready", **given, limit=limit, cursor=cursor))

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
        """Return which task comes after which, with the critical path."""
        given = {"mission": mission, "kind": several(kind, "kind"), "state": several(state, "state"), "limit": limit}
        return dict(
            self._ask("graph", ids=several(ids, "ids"), **given, fold="auto" if fold is None else fold)["graph"]
        )

    def shorten(self, ids: Iterable[str]) -> list[str]:
        """Return the short name of each id, just long enough to fit no other task now."""
        return list(self._ask("shorten", ids=list(ids))["names"])

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        return dict(self._ask("counts")["counts"])

    def stats(self, mission: str | None = None, *, exact: bool = False) -> dict[str, Any]:
        """Return tasks by state, in all and by kind, with ages and rates, what is set aside, dropped and paused."""
        return dict(self._ask("stats", mission=mission, exact=exact)["stats"])

    def overview(self) -> dict[str, Any]:
        """Return what waits for a person, in all and by sort, with counts, rates and pauses."""
        return dict(self._ask("overview")["overview"])

    def lanes(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        assignee: str | None = None,
        text: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Return the tasks of each state that match: some of them with what a card shows, and how many there are."""
        filters = {
            "state": several(state, "state"),
            "kind": several(kind, "kind"),
            "mission": mission,
            "worker": worker,
        }
        return self._ask("lanes", **filters, assignee=assignee, text=text, limit=limit, cursor=cursor)

    def agents(self) -> dict[str, Any]:
        """Return each worker of the last hour: what it holds, its claims, mishaps and rates."""
        return dict(self._ask("agents")["agents"])

    def series(self) -> dict[str, Any]:
        """Return the last hour by the minute."""
        return dict(self._ask("series")["series"])

    def full(self) -> list[dict[str, Any]]:
        """Return the bounds (`max_todo`) that are reached."""
        return [*self._ask("full")["full"]]

    def paused(self) -> dict[str, Any]:
        """Return what is paused: the whole `yard` (true or false), and which `kinds`."""
        return self._ask("paused")

    def why(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> dict[str, Any]:
        """Return why nothing is ready for this worker; or with an id, why that task is where it is."""
        return dict(self._ask("why", id=id, kinds=several(kinds, "kinds"), mission=mission, worker=worker)["why"])

    def unusable(self) -> list[str]:
        """Return what the last claims skipped because the system refuses access, each with the reason."""
        return list(self._ask("unusable")["unusable"])

    def outside(self) -> Outside:
        """Return what other programs hold or have done in the yard's folders, and dropped files that are no tasks."""
        return Outside(**self._ask("outside"))

    def set_aside(self) -> list[dict[str, str | None]]:
        """Return the files from the drop box that are no tasks."""
        return list(self._ask("set_aside")["files"])

    def settings(self) -> dict[str, Any]:
        """Return the yard's settings, each as it was set or by default."""
        return dict(self._ask("settings")["settings"])

    def remains(self, kinds: frozenset[str] | None, mission: str | None = None) -> bool:
        """Whether a task of these kinds, and of this mission, is in todo, is held by a worker, or waits for a retry."""
        return bool(self._ask("remains", kinds=None if kinds is None else sorted(kinds), mission=mission)["remains"])

    def missions(self) -> list[dict[str, Any]]:
        """Return every mission that was made or that a task names."""
        return list(self._ask("missions")["missions"])

    def mission(self, name: str) -> dict[str, Any]:
        """Return all about one mission."""
        return dict(self._ask("mission", name=name)["mission"])

    def schedules(self) -> list[dict[str, Any]]:
        """Return every schedule, by name."""
        return [*self._ask("schedules")["schedules"]]

    def schedule(self, name: str) -> dict[str, Any]:
        """Return one schedule, with its next ticks."""
        return dict(self._ask("schedule", name=name)["schedule"])

    def teams(self, *, fill: bool = False) -> list[dict[str, Any]]:
        """Return every team by name, with its quotas and projects; with `fill` also how full it is now."""
        return list(self._ask("teams", fill=fill or None)["teams"])

    def team(self) -> dict[str, Any] | None:
        """Return the team of this yard with its quotas, and how full it is now; None if it has none."""
        found = self._ask("team")["team"]
        return None if found is None else dict(found)

    def team_tokens(self, team: str) -> list[dict[str, Any]]:
        """Return every token of a team by name, without secrets."""
        return list(self._ask("team_tokens", team=team)["tokens"])

    # Waiting

    def wait(
        self,
        *ids: str,
        timeout: float | None = None,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
    ) -> list[Task]:
        """Wait until all these tasks, or all that match, have ended, and return them; raise `TimedOut` after `timeout` seconds."""
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        end = times.ticks() + (float("inf") if seconds is None else seconds)
        given = {
            "ids": list(ids),
            "state": several(state, "state"),
            "kind": several(kind, "kind"),
            "mission": mission,
            "worker": worker,
        }
        while True:
            left = max(0.0, min(end - times.ticks(), wire.LONGEST_POLL))
            try:
                return [wire.task(task) for task in self._waited("wait", {**given, "timeout": left}, left)["tasks"]]
            except TimedOut as error:
                if times.ticks() >= end:
                    raise
                if error.ids:  # those that a filter chose when the wait began
                    given = {"ids": error.ids}

    def _waited(self, verb: str, given: dict[str, Any], wait: float) -> dict[str, Any]:
        return self._requests.ask(verb, given, wait=wait)

    def waiter(self, seconds: float | None, stopped: Callable[[], bool] | None = None) -> RemoteWaiter:
        """Return an object that waits until something may have changed, for at most `seconds`."""
        return RemoteWaiter(self._changed, self._bell, seconds, stopped)

    def claim_waiter(
        self,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        *,
        kinds: Iterable[str] | str | None = None,  # noqa: ARG002  the gateway reports all changes
        mission: str | None = None,  # noqa: ARG002
    ) -> RemoteWaiter:
        """Return the same for a caller that waits for a task to claim."""
        return self.waiter(seconds, stopped)

    def _changed(self, seen: str | None, seconds: float) -> str:
        answer = self._requests.ask(
            "changes", {"seen": seen, "seconds": seconds}, wait=seconds, woken=self._bell.descriptor
        )
        return str(answer["seen"])

    def wake(self) -> None:
        """Wake every wait of this process on this yard now; a signal handler may call this too."""
        self._bell.ring()

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
        """Return events as dicts, oldest first; the result's `cursor` is where to go on from."""
        given = {
            "task": task,
            "worker": worker,
            "kind": kind,
            "since": wire.plain(since),
            "cursor": cursor,
            "mission": mission,
        }
        answer = self._ask("events", **given, event=several(event, "event"), limit=limit, newest=newest or None)
        events = arguments.Events(answer["events"])
        events.cursor = answer["cursor"]
        return events

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
        """Yield events as they come, in lists: after the cursor ("" is before all), else from now on."""
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        given = {"task": task, "worker": worker, "kind": kind, "event": event, "since": since, "mission": mission}
        self.events(
            **given, limit=1 if limit is None else limit, cursor=cursor or None
        )  # raises what is wrong with them
        return self._pages(given, cursor, limit, seconds, until)

    def _pages(
        self,
        given: dict[str, Any],
        cursor: str | None,
        left: int | None,
        timeout: float | None,
        until: Callable[[], bool] | None,
    ) -> Iterator[arguments.Events]:
        at = self.log_end() if cursor is None else cursor
        waiter = self.waiter(timeout, until)
        while not waiter.is_stopped():
            last = waiter.is_over()
            most = _PAGE if left is None else min(left, _PAGE)
            events = self.events(**given, cursor=at or None, limit=most)
            at = events.cursor
            if events:
                left = None if left is None else left - len(events)
                yield events
                if left == 0:
                    return
                if timeout is not None:
                    waiter.renew(timeout)
            elif last:
                raise TimedOut(
                    f"nothing of the kind happened in {timeout:.10g} s", hint="wait longer, or watch for more"
                )
            if len(events) < most:
                waiter.nap()

    def log_end(self) -> str:
        """Return the cursor of the log's end: only later events come after it."""
        return str(self._ask("log_end")["cursor"])

    show = report
    list = find
    log = events


def several(value: Iterable[str] | str | None, name: str) -> list[str] | None:
    """Return one text or several as a list."""
    if value is None:
        return None
    texts = words.several(value, name)
    return sorted(texts) if isinstance(value, set | frozenset) else texts


def _page(answer: dict[str, Any]) -> arguments.Page:
    page = arguments.Page(wire.task(line) for line in answer["tasks"])
    page.next = answer["next"]
    return page
