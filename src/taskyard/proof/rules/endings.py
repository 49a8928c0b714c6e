"""Rules about endings: published once, by the claim that was told so, with its result; and nothing is left lying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.proof.task_history import ENDINGS, fence_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.final_state import Final, FinalState
    from taskyard.proof.history import Operation
    from taskyard.proof.task_history import Story


def published(story: Story) -> Iterator[Violation]:
    """A done task was published once, and nobody was given it after that."""
    handles = sorted({*story.told("done"), *story.published()})
    if len(handles) > 1 or len(story.published()) > 1:
        ops = [op for handle in handles for op in story.ops(handle, "done") if op.told is not None]
        text = f"task {story.id} was done {max(len(handles), len(story.published()))} times"
        yield Violation("published_twice", story.id, text, ops)
    for handle in handles:
        for taking in story.takings:
            if taking.fence > fence_of(handle):
                ops = [op for op in story.ops(handle, "done") if op.possible]
                text = f"task {story.id} was done under {handle}, and was handed out after that as {taking.handle}"
                yield Violation("reopened", story.id, text, [*ops, taking.operation])
                break


def there(story: Story) -> Iterator[Violation]:
    """An acknowledged done is what the task tells at the end, with the result that was given."""
    final = story.final
    if final is None:
        return
    for handle in story.told("done"):
        ops = [op for op in story.ops(handle, "done") if op.told is not None]
        if final.state != "done" or handle not in story.published():
            text = f"{handle} was told that task {story.id} is done, and it is {final.state} at fence {final.fence}"
            yield Violation("ending_lost", story.id, text, ops)
    if final.state == "done":
        yield from _by_whom(story, final)


def _by_whom(story: Story, final: Final) -> Iterator[Violation]:
    publishers = story.published()
    if not publishers:
        yield Violation("unsaid", story.id, f"task {story.id} is done, and no claim of it is")
    for handle in publishers[:1]:
        causes = [op for op in story.ops(handle, "done") if op.possible]
        if not causes:
            text = f"task {story.id} is done by {handle}, which never said so"
            yield Violation("unsaid", story.id, text, story.ops(handle, "done"))
        elif final.result not in _results(causes):
            text = f"task {story.id} has the result {final.result}, which {handle} did not give first"
            yield Violation("wrong_result", story.id, text, causes)
        lied = [op for op in causes if op.told is not None and op.given["result"] != final.result]
        if lied:
            text = (
                f"{handle} was told that task {story.id} is done with what it brought, and the result is {final.result}"
            )
            yield Violation("wrong_result", story.id, text, lied)


def _results(causes: list[Operation]) -> set[str]:
    """What may have been published: what was said after an acknowledged done came too late for that."""
    return {
        op.given["result"]
        for op in causes
        if not any(other.told is not None and other.precedes(op) for other in causes)
    }


def settled(story: Story) -> Iterator[Violation]:
    """A claim ends in one way; said again it gets the same answer; and what was refused did not count."""
    handles = {handle for handle, _ in story.said} | {taking.handle for taking in story.takings}
    for handle in sorted(handles):
        told = [verb for verb in ENDINGS if any(op.told is not None for op in story.ops(handle, verb))]
        if len(told) > 1:
            ops = [op for verb in told for op in story.ops(handle, verb)]
            yield Violation(
                "ended_twice", story.id, f"the claim {handle} ended in several ways: {', '.join(told)}", ops
            )
        for verb, outcome in ENDINGS.items():
            ops = story.ops(handle, verb)
            yield from _answers(story, handle, verb)
            lost = [op for op in ops if op.refused == "claim_lost" and not _is_second(op, ops)]
            if lost and outcome in story.outcomes(handle):
                text = f"{verb} under {handle} was refused, and counted all the same"
                yield Violation("refused_yet_done", story.id, text, lost[:1])


def _is_second(refused: Operation, ops: list[Operation]) -> bool:
    """Whether the same verb was said under the claim with something else, which may be what counted."""
    return any(not op.refused and _brought(op) != _brought(refused) for op in ops)


def _answers(story: Story, handle: str, verb: str) -> Iterator[Violation]:
    """The same ending said again gets the same answer; one that brings something else is never acknowledged."""
    ops = story.ops(handle, verb)
    for first in ops:
        if first.told is None:
            continue
        again = [op for op in ops if first.precedes(op) and not op.unknown]
        for op in again:
            if op.refused and _brought(op) == _brought(first):
                text = f"{verb} under {handle} was acknowledged, and refused when it was said again"
                yield Violation("answer_changed", story.id, text, [first, op])
                return
            if op.told is not None and _brought(op) != _brought(first):
                text = f"{verb} under {handle} was acknowledged, and again with something else"
                yield Violation("ended_twice", story.id, text, [first, op])
                return


def _brought(op: Operation) -> tuple[object, object]:
    return op.given.get("result"), op.given.get("reason")


def accounted(story: Story) -> Iterator[Violation]:
    """The task's history tells once how each claim ended, as its holder was told."""
    final = story.final
    if final is None:
        return
    for taking in story.takings:
        outcomes = story.outcomes(taking.handle)
        holds = final.state == "processing" and final.fence == taking.fence
        if len(outcomes) != (0 if holds else 1):
            how = " and ".join(outcomes) or "not at all"
            text = f"the claim {taking.handle} ended {how}, as task {story.id} tells it; it is {final.state}"
            yield Violation("unaccounted", story.id, text, [taking.operation])
    for (handle, verb), ops in story.said.items():
        told = [op for op in ops if op.told is not None]
        if verb in ("fail", "release") and told and not _is_told(story, handle, verb, told):
            how = " and ".join(story.outcomes(handle)) or "not at all"
            text = f"{verb} under {handle} was acknowledged, and task {story.id} tells that the claim ended {how}"
            yield Violation("unaccounted", story.id, text, told)


def _is_told(story: Story, handle: str, verb: str, told: list[Operation]) -> bool:
    """Whether the task's history has this ending; who cancelled it in the same moment may stand in its place there."""
    outcomes = story.outcomes(handle)
    if ENDINGS[verb] in outcomes:
        return True
    meanwhile = [op for op in story.steers("cancel") if not any(said.precedes(op) for said in told)]
    return verb == "release" and outcomes == ["cancelled"] and bool(meanwhile)


def steered(story: Story) -> Iterator[Violation]:
    """What was cancelled stays so, unless somebody wants it tried anew."""
    cancels = [op for op in story.steers("cancel") if op.told is not None]
    if cancels and story.final is not None and story.final.state != "cancelled" and not story.steers("retry"):
        text = f"task {story.id} was cancelled, and is {story.final.state}"
        yield Violation("undone", story.id, text, cancels)


def finished(story: Story, picture: FinalState) -> Iterator[Violation]:
    """At the end of a drain every task has ended, or stands behind one that will not be done."""
    final = story.final
    if final is None or final.ended:
        return
    unmet = [need for need in final.after if need not in picture.tasks or picture.tasks[need].state != "done"]
    if final.state == "blocked" and not unmet:
        text = f"task {story.id} is blocked, and all that it waits for is done"
        yield Violation("left_open", story.id, text, story.adds[:1])
    elif picture.drained and final.state != "blocked":
        text = f"task {story.id} is {final.state}, and everything else has ended"
        yield Violation("left_open", story.id, text, story.adds[:1])
