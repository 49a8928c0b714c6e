"""Bulk actions of a board: the count first, then the action in a thread, whose progress can be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskyard.core import ids
from taskyard.core.errors import Invalid, NotFound, TaskyardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.port import YardPort

FILTERS = ("state", "kind", "mission", "worker")
_NARROWS = ("assignee", "text")  # filters of lanes that `bulk` does not have: their tasks are named one by one
_PAGE = 1000
_KEPT = 50  # actions whose outcome is remembered
_SHOWN = 20  # refusals that are named


class Job:
    """One action under way, or over."""

    def __init__(self) -> None:
        self.id = ids.base32(ids.chance(60), 12)
        self.done = self.total = 0
        self.answer: dict[str, Any] | None = None
        self.error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return how far it is."""
        fields: dict[str, Any] = {"job": self.id, "done": self.done, "total": self.total, "error": self.error}
        if self.answer is not None:
            refused = self.answer["refused"]
            fields |= {"changed": self.answer["changed"], "refused": len(refused), "reasons": refused[:_SHOWN]}
        return {**fields, "over": self.answer is not None or self.error is not None}


class Jobs:
    """The bulk actions of one yard's boards."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def new(self) -> Job:
        """Return an action that is about to begin; the oldest is forgotten if there are too many."""
        job = Job()
        self._jobs[job.id] = job
        if len(self._jobs) > _KEPT:
            del self._jobs[next(iter(self._jobs))]
        return job

    def get(self, id: str) -> Job:
        """Return an action by its id."""
        job = self._jobs.get(id)
        if job is None:
            raise NotFound("this action is not known here", hint="the log has what it did")
        return job


def chosen(yard: YardPort, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the yard's `bulk` for these filters: a choice that it does not know is named one by one."""
    verb, filters = str(given.get("verb")), {name: given[name] for name in FILTERS if given.get(name)}
    if not filters.get("state"):
        raise Invalid("a bulk action needs a state", hint="say which state the tasks are in")
    narrows = {name: given[name] for name in _NARROWS if given.get(name)}
    reason = {"reason": given["reason"]} if given.get("reason") else {}
    if not narrows:
        return {"verb": verb, **filters, **reason}
    return {"verb": verb, "ids": list(_named(yard, {**filters, **narrows})), **reason}


def _named(yard: YardPort, filters: dict[str, Any]) -> Iterator[str]:
    """Yield the ids of all tasks that match."""
    states = filters.pop("state")
    for state in [states] if isinstance(states, str) else states:
        cursor = None
        while True:
            lane = yard.lanes(state=state, **filters, limit=_PAGE, cursor=cursor)["lanes"][state]
            yield from (card["id"] for card in lane["tasks"])
            cursor = lane["next"]
            if cursor is None:
                break


def count(yard: YardPort, given: dict[str, Any]) -> dict[str, Any]:
    """Return how many tasks an action would be about, and the first of them."""
    wanted = chosen(yard, given)
    if wanted.get("ids") == []:
        return {"count": 0, "tasks": []}
    found = yard.bulk(**wanted)
    return {"count": found["count"], "tasks": found["tasks"]}


def run(job: Job, yard: YardPort, given: dict[str, Any]) -> None:
    """Carry an action out, and keep how far it is in the job."""

    def progress(done: int, total: int) -> None:
        job.done, job.total = done, total

    try:
        wanted = chosen(yard, given)
        job.answer = (
            {"changed": 0, "refused": []}
            if wanted.get("ids") == []
            else yard.bulk(**wanted, apply=True, progress=progress)
        )
    except TaskyardError as error:
        job.error = error.message
    except Exception as error:
        job.error = f"unexpected {type(error).__name__}: {error}"
