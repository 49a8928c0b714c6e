"""A yard at rest: every task with its history, and the log, as the yard itself reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core.errors import NotFound
from taskyard.core.limits import CONCURRENCY, RATE
from taskyard.core.task import State
from taskyard.core.transfer import in_order
from taskyard.proof.recorder import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.yard import Yard

_PAGE = 1000
_READS = 5  # of a task that is not in the state it was listed in; after that it counts as being in two states
_LOG_PAGE = 10_000


class FinalTask:
    """One task at the end."""

    __slots__ = (
        "after",
        "assignee",
        "data",
        "fence",
        "history",
        "id",
        "key",
        "kind",
        "result",
        "state",
        "uses",
        "worker",
    )

    def __init__(self, report: Report) -> None:
        task = report.task
        self.id = task.id
        self.kind = task.kind
        self.state = str(task.state)
        self.key = task.key
        self.data = fingerprint(task.data)
        self.after = task.after
        self.assignee = task.assignee
        self.uses = task.uses
        self.fence = task.fence
        self.worker = task.worker
        self.result = fingerprint(task.result)
        self.history = [
            {"claim": entry["claim"], "outcome": entry["outcome"], "worker": entry["worker"]}
            for entry in report.history
        ]

    @property
    def ended(self) -> bool:
        """Whether the task's state is an ending."""
        return State(self.state).ended

    def __repr__(self) -> str:
        return f"<{self.id} {self.state} fence={self.fence}>"


class FinalState:
    """All tasks at the end; no worker may be running while it is read."""

    def __init__(
        self,
        tasks: dict[str, FinalTask],
        listed: dict[str, list[str]],
        events: list[dict[str, Any]] | None = None,
        *,
        drained: bool = False,
        limited: Collection[str] = (),
    ) -> None:
        self.tasks = tasks
        self.listed = listed
        """The states in which each task was listed."""
        self.events = events
        """The whole log; None if it may be incomplete."""
        self.drained = drained
        """Whether every task that could end has ended."""
        self.limited = limited
        """The kinds that have a limit: a claim beyond it raises the fence, and is not logged."""

    @classmethod
    def of(
        cls, yard: Yard, *, log: bool = True, drained: bool = False, tick: Callable[[], object] = lambda: None
    ) -> FinalState:
        """Read the yard as it is now; `tick` is called before each task, because there may be many."""
        listed, tasks = _listed(yard), {}
        unread = list(listed)
        for _ in range(_READS):
            for id in unread:
                tick()
                try:
                    tasks[id] = FinalTask(yard.report(id))
                except NotFound:
                    tasks.pop(id, None)  # listed and not found: the checker reports it
            # Each read also does a share of the janitor's work, so a lease may have ended between list and read.
            unread = [id for id in listed if id not in tasks or listed[id] != [tasks[id].state]]
            if not unread:
                break
            listed = _listed(yard)
            unread += [id for id in listed if id not in tasks]
        return cls(tasks, listed, _log(yard) if log else None, drained=drained, limited=_limited(yard))


def _listed(yard: Yard) -> dict[str, list[str]]:
    """List every task, with the states that it is listed in."""
    listed: dict[str, list[str]] = {}
    for state in State:
        cursor = None
        while True:
            page = yard.find(state=state, limit=_PAGE, cursor=cursor)
            for task in page:
                listed.setdefault(task.id, []).append(str(task.state))
            cursor = page.next
            if cursor is None:
                break
    return listed


def _limited(yard: Yard) -> frozenset[str]:
    return frozenset(
        kind
        for kind, limits in yard.settings()["kinds"].items()
        if limits.get(CONCURRENCY) is not None or limits.get(RATE) is not None
    )


def _log(yard: Yard) -> list[dict[str, Any]]:
    """Read the whole log, and sort the events of tasks that are on more than one page.

    A page is sorted by itself. Between pages two moves of a task may be in the wrong order, because a move is logged only after
    it is made.
    """
    events: list[dict[str, Any]] = []
    seen: set[str] = set()
    on_several_pages: set[str] = set()
    cursor = None
    while True:
        page = yard.events(limit=_LOG_PAGE, cursor=cursor)
        events += page
        tasks = {event["task"] for event in page}
        on_several_pages |= tasks & seen
        seen |= tasks
        if len(page) < _LOG_PAGE:
            break
        cursor = page.cursor
    positions = [position for position, event in enumerate(events) if event["task"] in on_several_pages]
    for position, event in zip(positions, in_order([events[position] for position in positions]), strict=True):
        events[position] = event
    return events
