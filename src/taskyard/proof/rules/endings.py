"""Rules about endings: a task is done once, by the acknowledged claim and with its result, and no task is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.core import needs
from taskyard.core.task import State
from taskyard.proof.task_history import ENDINGS, fence_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.final_state import FinalState, FinalTask
    from taskyard.proof.history import Operation
    from taskyard.proof.task_history import TaskHistory


def published_once(task: TaskHistory) -> Iterator[Violation]:
    """A task is done once, and is not claimed after that."""
    handles = sorted({*task.acknowledged("done"), *task.published()})
    if len(handles) > 1 or len(task.published()) > 1:
        ops = [op for handle in handles for op in task.operations(handle, "done") if op.answer is not None]
        text = f"task {task.id} was done {max(len(handles), len(task.published()))} times"
        yield Violation("published_twice", task.id, text, ops)
    for handle in handles:
        for claim in task.claims:
            if claim.fence > fence_of(handle):
                ops = [op for op in task.operations(handle, "done") if op.possible]
                text = f"task {task.id} was done under {handle}, and was handed out after that as {claim.handle}"
                yield Violation("reopened", task.id, text, [*ops, claim.operation])
                break


def done_is_kept(task: TaskHistory) -> Iterator[Violation]:
    """A task whose done was acknowledged is done at the end, with the result of that claim."""
    final = task.final
    if final is None:
        return
    for handle in task.acknowledged("done"):
        ops = [op for op in task.operations(handle, "done") if op.answer is not None]
        if final.state != "done" or handle not in task.published():
            text = (
                f"{handle} got the answer that task {task.id} is done, and it is {final.state} at fence {final.fence}"
            )
            yield Violation("ending_lost", task.id, text, ops)
    if final.state == "done":
        yield from _published_by(task, final)


def _published_by(task: TaskHistory, final: FinalTask) -> Iterator[Violation]:
    publishers = task.published()
    if not publishers:
        yield Violation("unsaid", task.id, f"task {task.id} is done, and no claim of it is")
    for handle in publishers[:1]:
        causes = [op for op in task.operations(handle, "done") if op.possible]
        if not causes:
            text = f"task {task.id} is done by {handle}, which never said so"
            yield Violation("unsaid", task.id, text, task.operations(handle, "done"))
        elif final.result not in _results(causes):
            text = f"task {task.id} has the result {final.result}, which {handle} did not give first"
            yield Violation("wrong_result", task.id, text, causes)
        replaced = [op for op in causes if op.answer is not None and op.arguments["result"] != final.result]
        if replaced:
            text = f"{handle} got the answer that task {task.id} is done with what it brought, and the result is {final.result}"
            yield Violation("wrong_result", task.id, text, replaced)


def _results(causes: list[Operation]) -> set[str]:
    """Return the results that may have been published: those of a done after an acknowledged done were too late."""
    return {
        op.arguments["result"]
        for op in causes
        if not any(other.answer is not None and other.precedes(op) for other in causes)
    }


def ended_once(task: TaskHistory) -> Iterator[Violation]:
    """A claim ends in one way, a repeated ending gets the same answer, and a refused one has no effect."""
    handles = {handle for handle, _ in task.claim_operations} | {claim.handle for claim in task.claims}
    for handle in sorted(handles):
        verbs = [verb for verb in ENDINGS if any(op.answer is not None for op in task.operations(handle, verb))]
        if len(verbs) > 1:
            ops = [op for verb in verbs for op in task.operations(handle, verb)]
            yield Violation(
                "ended_twice", task.id, f"the claim {handle} ended in several ways: {', '.join(verbs)}", ops
            )
        for verb, outcome in ENDINGS.items():
            ops = task.operations(handle, verb)
            yield from _answers(task, handle, verb)
            lost = [op for op in ops if op.error == "claim_lost" and not _has_other_ending(op, ops)]
            if lost and outcome in task.outcomes(handle):
                text = f"{verb} under {handle} was refused, and counted all the same"
                yield Violation("refused_yet_done", task.id, text, lost[:1])


def _has_other_ending(refused: Operation, ops: list[Operation]) -> bool:
    """Return whether the claim sent the same verb with another result or reason, which may have been carried out."""
    return any(not op.error and _ending_of(op) != _ending_of(refused) for op in ops)


def _answers(task: TaskHistory, handle: str, verb: str) -> Iterator[Violation]:
    """A repeated ending gets the same answer; one with another result or reason is never acknowledged."""
    ops = task.operations(handle, verb)
    for first in ops:
        if first.answer is None:
            continue
        again = [op for op in ops if first.precedes(op) and not op.unknown]
        for op in again:
            if op.error and _ending_of(op) == _ending_of(first):
                text = f"{verb} under {handle} was acknowledged, and refused when it was said again"
                yield Violation("answer_changed", task.id, text, [first, op])
                return
            if op.answer is not None and _ending_of(op) != _ending_of(first):
                text = f"{verb} under {handle} was acknowledged, and again with something else"
                yield Violation("ended_twice", task.id, text, [first, op])
                return


def _ending_of(op: Operation) -> tuple[object, object]:
    return op.arguments.get("result"), op.arguments.get("reason")


def recorded(task: TaskHistory) -> Iterator[Violation]:
    """The task's history has one outcome for each claim, and it agrees with the answers."""
    final = task.final
    if final is None:
        return
    for claim in task.claims:
        outcomes = task.outcomes(claim.handle)
        holds = final.state == "processing" and final.fence == claim.fence
        if len(outcomes) != (0 if holds else 1):
            how = " and ".join(outcomes) or "not at all"
            text = f"the claim {claim.handle} ended {how}, as task {task.id} tells it; it is {final.state}"
            yield Violation("unaccounted", task.id, text, [claim.operation])
    for (handle, verb), ops in task.claim_operations.items():
        acknowledged = [op for op in ops if op.answer is not None]
        if verb in ("fail", "release") and acknowledged and not _is_recorded(task, handle, verb, acknowledged):
            how = " and ".join(task.outcomes(handle)) or "not at all"
            text = f"{verb} under {handle} was acknowledged, and task {task.id} tells that the claim ended {how}"
            yield Violation("unaccounted", task.id, text, acknowledged)


def _is_recorded(task: TaskHistory, handle: str, verb: str, acknowledged: list[Operation]) -> bool:
    """Return whether the task's history has this ending, or a cancel at the same time in place of a release."""
    outcomes = task.outcomes(handle)
    if ENDINGS[verb] in outcomes:
        return True
    meanwhile = [op for op in task.changes("cancel") if not any(ending.precedes(op) for ending in acknowledged)]
    return verb == "release" and outcomes == ["cancelled"] and bool(meanwhile)


def cancelled_stays(task: TaskHistory) -> Iterator[Violation]:
    """A cancelled task stays cancelled, unless it is retried."""
    cancels = [op for op in task.changes("cancel") if op.answer is not None]
    if cancels and task.final is not None and task.final.state != "cancelled" and not task.changes("retry"):
        text = f"task {task.id} was cancelled, and is {task.final.state}"
        yield Violation("undone", task.id, text, cancels)


def not_stuck(task: TaskHistory, final_state: FinalState) -> Iterator[Violation]:
    """After a drain every task has ended, or is blocked by one that is not done."""
    final = task.final
    if final is None or final.ended:
        return
    unmet = [
        need
        for need in final.after
        if need not in final_state.tasks
        or needs.verdict(needs.on_failure(need), State(final_state.tasks[need].state)) is None
    ]
    if final.state == "blocked" and not unmet:
        text = f"task {task.id} is blocked, and nothing that it waits for holds it"
        yield Violation("left_open", task.id, text, task.adds[:1])
    elif final_state.drained and final.state != "blocked":
        text = f"task {task.id} is {final.state}, and everything else has ended"
        yield Violation("left_open", task.id, text, task.adds[:1])
