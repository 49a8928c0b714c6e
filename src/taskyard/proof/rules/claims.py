"""Rules about claims: one worker wins each claim, fences rise, and a verb under a lost claim is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core import needs, resources
from taskyard.proof.task_history import ENDINGS, HEARTBEATS, fence_of, task_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from taskyard.proof.history import Operation
    from taskyard.proof.task_history import ReportedClaim, TaskHistory


def fences_rise(task: TaskHistory) -> Iterator[Violation]:
    """No fence and no handle is reported twice, and fences rise with time."""
    by_fence: dict[int, ReportedClaim] = {}
    by_handle: dict[str, ReportedClaim] = {}
    for claim in task.claims:
        same_handle, same_fence = by_handle.get(claim.handle), by_fence.get(claim.fence)
        if same_handle is not None:
            text = f"the handle {claim.handle} was given twice"
            yield Violation("handle_repeated", task.id, text, [same_handle.operation, claim.operation])
        elif same_fence is not None:
            text = f"the fence {claim.fence} of task {task.id} was given twice"
            yield Violation("fence_repeated", task.id, text, [same_fence.operation, claim.operation])
        by_fence.setdefault(claim.fence, claim)
        by_handle.setdefault(claim.handle, claim)
    for position, lower in enumerate(task.claims):
        for higher in task.claims[position + 1 :]:
            if lower.fence < higher.fence and higher.operation.precedes(lower.operation):
                text = f"task {task.id} was handed out under fence {lower.fence} after it had been under {higher.fence}"
                yield Violation("fence_fell", task.id, text, [higher.operation, lower.operation])
    if task.final is not None and task.claims and task.final.fence < task.claims[-1].fence:
        text = f"task {task.id} is at fence {task.final.fence}, and {task.claims[-1].fence} was given already"
        yield Violation("fence_fell", task.id, text, [task.claims[-1].operation])


def as_requested(task: TaskHistory, tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    """A worker gets a task of the requested kind and id, that is not assigned to another, and whose needs are done."""
    final = task.final
    if final is None:
        return
    for claim in task.claims:
        op = claim.operation
        if op.verb != "claim":
            continue
        kinds, id = op.arguments.get("kinds"), op.arguments.get("id")
        if (kinds is not None and final.kind not in kinds) or (id is not None and not task.id.startswith(id)):
            yield Violation("served_wrongly", task.id, f"{op.worker} asked for something else than {task.id}", [op])
        if final.assignee not in (None, op.worker) and not task.edited:
            text = f"task {task.id} is {final.assignee}'s, and {op.worker} got it"
            yield Violation("served_wrongly", task.id, text, [op])
        for need in final.after if not task.edited else ():
            if needs.on_failure(need) == needs.RUN:
                continue  # a failure lets it go as well, and by a crash that may be no request's
            before = tasks[need].possible("done") if need in tasks else []
            if all(op.precedes(done) for done in before):
                text = f"task {task.id} was handed out before task {need} could have been done"
                yield Violation("served_wrongly", task.id, text, [op, *before[:1]])


def valid_when_used(task: TaskHistory) -> Iterator[Violation]:
    """A verb succeeds only while its claim holds: before a newer claim, and before the claim has ended."""
    refusals: dict[str, list[Operation]] = {}
    endings: dict[str, list[Operation]] = {}
    for (handle, verb), ops in task.claim_operations.items():
        refusals.setdefault(handle, []).extend(op for op in ops if op.error == "claim_lost")
        if verb in ENDINGS:
            endings.setdefault(handle, []).extend(op for op in ops if op.answer is not None)
    for (handle, verb), ops in task.claim_operations.items():
        for op, causes in _successes(verb, ops):
            newer = [claim for claim in task.claims if claim.fence > fence_of(handle)]
            for claim in newer:
                if all(claim.operation.precedes(cause) for cause in causes):
                    text = f"{verb} under {handle} succeeded after {claim.handle} had been given"
                    yield Violation("held_by_two", task.id, text, [claim.operation, op])
                    break
            over = refusals[handle] + (endings.get(handle, []) if verb in HEARTBEATS else [])
            for end in over:
                if all(end.precedes(cause) for cause in causes):
                    text = f"{verb} under {handle} succeeded after the claim was over"
                    yield Violation("revived", task.id, text, [end, op])
                    break


def _successes(verb: str, ops: list[Operation]) -> Iterator[tuple[Operation, list[Operation]]]:
    """Yield each success with the operations that may have caused it.

    A repeated ending gets the answer of the first one, so each of those that may have been carried out can be the cause.
    """
    acknowledged = [op for op in ops if op.answer is not None]
    if verb in HEARTBEATS:
        yield from ((op, [op]) for op in acknowledged)
    elif acknowledged:
        yield acknowledged[0], [op for op in ops if op.possible]


def exclusive(tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    """Two tasks that use the same thing never run at the same time.

    A task is certain to run from the answer to its claim to the last verb that succeeded.
    """
    runs: dict[str, list[tuple[int, int, ReportedClaim, tuple[str, ...]]]] = {}
    for task in tasks.values():
        uses = tuple(task.final.uses) if task.final is not None else ()
        for claim in task.claims if uses else ():
            begin, end = claim.operation.end, _held_until(task, claim)
            if begin is not None and end is not None and begin < end:
                runs.setdefault(claim.operation.clock, []).append((begin, end, claim, uses))
    for spans in runs.values():
        for one, other, names in overlaps((begin, end, uses, claim) for begin, end, claim, uses in spans):
            text = f"{names[0]!r} was used by {one.handle}, and {names[1]!r} by {other.handle}, at the same time"
            yield Violation("used_by_two", task_of(other.handle), text, [one.operation, other.operation])


def overlaps(spans: Iterable[tuple[int, int, tuple[str, ...], Any]]) -> Iterator[tuple[Any, Any, tuple[str, str]]]:
    """Yield each two spans (begin, end, uses, whose) that overlap although they use what conflicts, with those names."""
    running: list[tuple[int, int, tuple[str, ...], Any]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        running = [other for other in running if other[1] > span[0]]
        for other in running:
            both = next(((a, b) for a in other[2] for b in span[2] if resources.conflict(a, b)), None)
            if both is not None:
                yield other[3], span[3], both
        running.append(span)


def _held_until(task: TaskHistory, claim: ReportedClaim) -> int | None:
    """Return the latest time at which the claim is certain to have held, by its worker's clock; None if it is unknown."""
    moments = []
    for verb in (*HEARTBEATS, *ENDINGS):
        for _, causes in _successes(verb, task.operations(claim.handle, verb)):
            begins = [cause.begin for cause in causes if cause.begin and cause.clock == claim.operation.clock]
            moments += [min(begins)] if len(begins) == len(causes) else []
    return max(moments, default=None)
