"""What a card shows of a task, and what the newest events of the log tell of it. No I/O but one look at what is held."""

from __future__ import annotations

from taskyard.core import ids, task_reasons, times
from taskyard.core.store_records import Query, Trail
from taskyard.core.task import State
from taskyard.yard import chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.task import Standing, Task
    from taskyard.store import Store

    Event = dict[str, Any]
    Name = Callable[[Sequence[Task]], None]
    """Sets the short names of tasks."""

NEWEST_FEW = 2000  # events that are read for what happened last: about 10 ms
_ENDINGS = {State.DONE: "done", State.FAILED: "failed", State.CANCELLED: "cancelled"}
_NO_MOVES = ("noted", "refused", "edited")
_ERROR_MOST = 300  # characters


def newest_events(store: Store, limit: int = NEWEST_FEW) -> list[Event]:
    """Return the newest events of the log, oldest first."""
    return store.log.read(Trail(limit=limit, newest=True))[0]


def line(task: Task) -> dict[str, Any]:
    """Return the fields of a list, with the fence and when the task was added."""
    return {**task.as_line(), "fence": task.fence, "created_at": task.created_at}


def error(task: Task) -> str | None:
    """Return the beginning of the task's last error; the end of a Python traceback."""
    text = None if task.error is None else task_reasons.gist(task.error)
    return text if text is None or len(text) <= _ERROR_MOST else f"{text[:_ERROR_MOST]}..."


def last_at(newest: Sequence[Event]) -> dict[str, str]:
    """Return when each task last moved, as far as these events show."""
    return {str(event["task"]): str(event["at"]) for event in newest if event["event"] not in _NO_MOVES}


def ended_last(store: Store, state: State, newest: Sequence[Event], most: int) -> list[Task]:
    """Return the tasks that came into this state last, the last one first, as far as these events show."""
    wanted = dict.fromkeys(
        str(event["task"])
        for event in reversed(newest)
        if event["event"] == _ENDINGS[state] and (state is not State.FAILED or event.get("final"))
    )
    tasks = chains.by_ids(store, [id for id in [*wanted][: 2 * most] if ids.is_id(id)])
    return [tasks[id] for id in wanted if id in tasks and tasks[id].state is state][:most]


def done_lately(store: Store, mission: str) -> dict[str, dict[str, int]]:
    """Return how many tasks of a mission were done in the last minute and hour, as far as the newest events show."""
    now = store.reasons.now()
    minute, hour = times.rfc3339(now - 60_000), times.rfc3339(now - 3_600_000)
    done = {
        str(event["task"]): event["at"]
        for event in newest_events(store)
        if event["event"] == "done" and event["at"] >= hour
    }
    own = [task.id for task in store.find(Query(ids=[*done]))[0] if task.mission == mission] if done else []
    return {"minute": {"done": sum(done[id] >= minute for id in own)}, "hour": {"done": len(own)}}


def cards(store: Store, tasks: Sequence[Task], newest: Sequence[Event]) -> list[dict[str, Any]]:
    """Return what a card shows of each of these whole tasks."""
    held = [task.id for task in tasks if task.state is State.PROCESSING]
    standings = store.upkeep.stand_all(held) if held else {}
    since = last_at(newest)
    return [_card(task, standings.get(task.id), since.get(task.id)) for task in tasks]


def _card(task: Task, standing: Standing | None, since: str | None) -> dict[str, Any]:
    """Return one card; `since` is when the task came into its state, if that is known."""
    lease = None if standing is None else standing.lease
    beat = None if lease is None or task.lease_ends is None else times.rfc3339(task.lease_ends - round(lease * 1000))
    return {
        **line(task),
        "assignee": task.assignee,
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "not_before": None if task.review == "pending" else task.not_before,
        "review": task.review,
        "progress": task.progress,
        "lease": lease,
        "lease_until": task.lease_until,
        "heartbeat_at": beat,
        "error": error(task),
        "since": since,
    }
