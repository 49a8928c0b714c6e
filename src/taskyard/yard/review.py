"""Reviews: what a worker has submitted is accepted, and the task is done with it; or rejected, and it is done again.

A submitted task waits. Accepting and rejecting are one move each, from exactly there: of two reviewers one wins.
"""

from __future__ import annotations

from taskyard.core import moves
from taskyard.core.errors import Conflict
from taskyard.core.task import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.store_records import Report
    from taskyard.core.task import Standing, Task
    from taskyard.store import Store

_TRIES = 100
_KEPT = "your note is kept among its stale results: 'taskyard show {}'"
_LOSING = ("delay", "not_before", "expires", "after")  # edits that would take a submitted task from where it waits


def review(store: Store, id: str, worker: str, by: str, note: str | None, word: str) -> Standing:
    """Accept what was submitted, or with a note reject it; return where the task stood. Raise `Conflict` if nothing waits.

    The log names `by` as the asker. `word` is unique to this judgement, so that a store can tell two of one worker apart.
    """
    whole = store.stand(id).id
    late: tuple[Handle, Move] | None = None
    for _ in range(_TRIES):
        standing, report = store.stand(whole), store.get(whole)
        if report.task.fence != standing.fence:
            continue  # it has moved between the two looks
        try:
            entry = _submitted(report, worker)
        except Conflict as error:
            if late is None or note is None:
                raise
            store.refuse(late[0], "reject", late[1], by)  # another one was quicker: what this one wrote is kept
            raise Conflict(error.message, hint=f"{error.hint}; {_KEPT.format(report.task.short)}") from None
        # Every reviewer of one submission names the same claim: so a store keeps one word of them for each outcome.
        reviewer = moves.Reviewer(worker, Handle.parse(entry["claim"]).nonce, word)
        if note is None:
            move = moves.accepted(standing, reviewer, entry["result"])
        else:
            move = moves.rejected(standing, reviewer, note)
        if store.shift([(standing, move)], by)[0]:
            return standing
        late = Handle(standing.id, standing.fence, word), move  # no claim: the log names the reviewer
    raise Conflict(f"task {id} keeps moving under other hands", hint="try again")


def refuse_loss(task: Task, changes: Iterable[str]) -> None:
    """Raise `Conflict` if an edit of a task that waits for review would lose what was submitted."""
    losing = [name for name in _LOSING if name in changes]
    if losing:
        raise Conflict(
            f"task {task.short} waits for review, and an edit of {' and '.join(losing)} would lose what was submitted",
            hint=f"judge it first: 'taskyard accept {task.short}', or reject; retry has it done anew, cancel ends it",
        )


def _submitted(report: Report, worker: str) -> dict[str, Any]:
    """Return the claim that brought what waits for review; raise `Conflict` if none does, or it was this worker's own."""
    task, entry = report.task, report.history[-1] if report.history else {}
    if task.review != "pending" or "result" not in entry:
        raise Conflict(f"nothing of task {task.short} waits for review: it is {task.state}", hint=_hint(report))
    if entry["worker"] == worker:
        raise Conflict(
            f"{worker} did task {task.short}, and another one reviews it",
            hint="a person or another worker says this: leave --worker out, or give another name",
        )
    return entry


def _hint(report: Report) -> str:
    task = report.task
    if not task.needs_review:
        return "only tasks that were added with --review wait for one"
    if task.review == "accepted":
        return "it was accepted before"
    if task.state.ended:
        return f"it ended without a review; 'taskyard retry {task.short}' has it done again"
    last = report.history[-1] if report.history else {}
    if moves.is_rejection(last.get("reason")):
        return f"{last['worker']} has rejected it before; a review comes after its worker has said done again"
    return "a review comes after its worker has said done"
