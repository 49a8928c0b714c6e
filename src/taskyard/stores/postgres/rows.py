"""Turns rows into records; every statement names the columns in the same order."""

from __future__ import annotations

from taskyard.core import json_codec, needs, times
from taskyard.core.store_records import Grant, Report
from taskyard.core.task import Standing, State, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.retry import Policy

    Row = tuple[Any, ...]

_STATES = {str(state): state for state in State}  # a lookup: calling the enum takes five times as long
WIDE = 28  # columns of a whole task


def standing(row: Row, policy: Policy) -> Standing:
    """Make a standing from the first columns of any row about a task."""
    id, kind, priority, assignee, state, fence, errors, crashes, most, own_lease, worker, nonce, lease = row[:13]
    attempts = policy.max_attempts if most is None else most
    return Standing(
        id, kind, priority, assignee, _STATES[state], fence, errors, crashes, attempts,
        lease or own_lease or policy.lease, worker, nonce,
    )  # fmt: skip


def task(row: Row, policy: Policy) -> Task:
    """Make a whole task from a wide row."""
    (
        id, kind, priority, assignee, state, fence, errors, crashes, most, _, worker, _, _, lease_ends, progress, due, uses, _,
        title, mission, key, after, verify, not_before, data, error, result, relation,
    ) = row[:WIDE]  # fmt: skip
    parent, discovered_from, policies, expires, timeout = origin(relation)
    begins = due if state == "waiting" else not_before
    return Task(
        id=id,
        kind=kind,
        title=title,
        state=_STATES[state],
        priority=priority,
        data=json_codec.read(data),
        not_before=None if begins is None else times.rfc3339(begins),
        after=comes_after(after, policies),
        parent=parent,
        discovered_from=discovered_from,
        expires=None if expires is None else times.rfc3339(expires),
        timeout=timeout,
        key=key,
        verify=verify,
        mission=mission,
        assignee=assignee,
        uses=tuple(uses or ()),
        attempts=errors + crashes,
        max_attempts=policy.max_attempts if most is None else most,
        fence=fence,
        worker=worker,
        lease_ends=lease_ends if state == "processing" else None,
        progress=progress if state == "processing" else None,
        result=None if result is None else json_codec.read(result),
        error=None if error is None or state == "done" else json_codec.read(error),
    )


def origin(relation: str | None) -> tuple[Any, Any, Any, Any, Any]:
    """Return a task's row of `relation`: parent, discovered_from, policies, expires and timeout."""
    if relation is None:
        return None, None, None, None, None
    parent, discovered_from, policies, expires, timeout = json_codec.read(relation)
    return parent, discovered_from, policies, expires, None if timeout is None else float(timeout)


def comes_after(after: list[str] | None, policies: str | None) -> tuple[str, ...]:
    """Return what a task comes after; `policies` is JSON, by the ids of those that do not block."""
    if policies is None:
        return tuple(after or ())
    given = json_codec.read(policies)
    return tuple(needs.Need(id, given.get(id, needs.BLOCK)) for id in after or ())


_VERIFY = 22  # the column of a wide row that names a task's check
NOT_BEFORE = 23  # and the one of the time that the task was given


class Won(Grant):
    """A claim that was won, from a wide row; its task is made when it is first used."""

    __slots__ = ("_policy", "_row", "_task")

    def __init__(self, row: Row, policy: Policy) -> None:
        self.standing = standing(row, policy)
        self.standing.verified = row[_VERIFY] is not None
        self.lease_until = row[13]
        self._row = row
        self._policy = policy
        self._task: Task | None = None

    @property
    def task(self) -> Task:  # type: ignore[override]
        """The task, as it was when it was claimed."""
        if self._task is None:
            self._task = task(self._row, self._policy)
        return self._task


def report(row: Row, policy: Policy) -> Report:
    """Make a report from a wide row and the records at its end."""
    id, fence, worker, nonce = row[0], row[5], row[10], row[11]
    history: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    stale: list[dict[str, Any]] = []
    whole = task(row, policy)
    for sort, of, by_nonce, holder, at, outcome, content, result in row[WIDE + 1] or ():
        claim = {"claim": f"{id}.{of}.{by_nonce}", "fence": of, "worker": holder}
        text = None if content is None else json_codec.read(content)
        moment = {"at": times.rfc3339(at)}
        if sort == "name":
            whole.dropped_as = text
        elif sort == "outcome":
            history.append({**claim, "outcome": outcome, "reason": text, **moment, "workdir": None})
            if result is not None:
                history[-1]["result"] = json_codec.read(result)  # submitted, to be accepted by another one
        elif sort == "note":
            notes.append({**claim, "text": text, **moment})
        else:
            kept = None if result is None else json_codec.read(result)
            stale.append({**claim, "outcome": outcome, "result": kept, "reason": text, **moment})
    if row[4] == "done":
        claim = {"claim": f"{id}.{fence}.{nonce}", "fence": fence, "worker": worker}
        history.append({**claim, "outcome": "done", "reason": None, "at": times.rfc3339(row[17]), "workdir": None})
    return Report(whole, history, notes, stale, lambda: None)
