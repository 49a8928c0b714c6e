"""A yard at rest, as it tells of itself: every task with its history, and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core.errors import NotFound
from taskyard.core.task import State
from taskyard.core.transfer import in_order
from taskyard.proof.recorder import word

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.yard import Yard

_PAGE = 1000
_LOOKS = 5  # at a task that is not where it was listed; one that still is not is in two places
_LOG_PAGE = 10_000


class Final:
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
        self.data = word(task.data)
        self.after = task.after
        self.assignee = task.assignee
        self.uses = task.uses
        self.fence = task.fence
        self.worker = task.worker
        self.result = word(task.result)
        self.history = [
            {"claim": entry["claim"], "outcome": entry["outcome"], "worker": entry["worker"]}
            for entry in report.history
        ]

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return State(self.state).ended

    def __repr__(self) -> str:
        return f"<{self.id} {self.state} fence={self.fence}>"


class FinalState:
    """All tasks at the end; nobody may be at work while it is taken."""

    def __init__(
        self,
        tasks: dict[str, Final],
        listed: dict[str, list[str]],
        events: list[dict[str, Any]] | None = None,
        *,
        drained: bool = False,
    ) -> None:
        self.tasks = tasks
        self.listed = listed
        """In which states each task was listed."""
        self.events = events
        """The whole log; None where it need not be whole."""
        self.drained = drained
        """Whether everything that could be ended has been."""

    @classmethod
    def of(
        cls, yard: Yard, *, log: bool = True, drained: bool = False, tick: Callable[[], object] = lambda: None
    ) -> FinalState:
        """The yard as it is now; `tick` is called after each task, because there may be many."""
        listed, tasks = _listed(yard), {}
        ahead = list(listed)
        for _ in range(_LOOKS):
            for id in ahead:
                tick()
                try:
                    tasks[id] = Final(yard.report(id))
                except NotFound:
                    tasks.pop(id, None)  # listed and not there: the checker says so
            # Whoever looks does a janitor's share, so that a lease may have ended between the list and the look.
            ahead = [id for id in listed if id not in tasks or listed[id] != [tasks[id].state]]
            if not ahead:
                break
            listed = _listed(yard)
            ahead += [id for id in listed if id not in tasks]
        return cls(tasks, listed, _log(yard) if log else None, drained=drained)


def _listed(yard: Yard) -> dict[str, list[str]]:
    """Every task, with the states that it is listed in."""
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


def _log(yard: Yard) -> list[dict[str, Any]]:
    """The whole log. It is in order as far as it is read at once: a move is logged after it is made, and the next may be quicker."""
    events: list[dict[str, Any]] = []
    seen: set[str] = set()
    parted: set[str] = set()
    """Tasks of which more than one page tells."""
    cursor = None
    while True:
        page = yard.events(limit=_LOG_PAGE, cursor=cursor)
        events += page
        tasks = {event["task"] for event in page}
        parted |= tasks & seen
        seen |= tasks
        if len(page) < _LOG_PAGE:
            break
        cursor = page.cursor
    places = [place for place, event in enumerate(events) if event["task"] in parted]
    for place, event in zip(places, in_order([events[place] for place in places]), strict=True):
        events[place] = event
    return events
