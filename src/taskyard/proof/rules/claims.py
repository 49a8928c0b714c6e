"""Rules about who holds a task: one winner a claim, fences that rise, and nothing for those who lost theirs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from taskyard.proof.task_history import BEATS, ENDINGS, fence_of, task_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.history import Operation
    from taskyard.proof.task_history import Story, Taking


def fenced(story: Story) -> Iterator[Violation]:
    """No fence and no handle is given twice, and fences rise with time."""
    by_fence: dict[int, Taking] = {}
    by_handle: dict[str, Taking] = {}
    for taking in story.takings:
        both = [by_handle.get(taking.handle), by_fence.get(taking.fence)]
        if both[0] is not None:
            text = f"the handle {taking.handle} was given twice"
            yield Violation("handle_repeated", story.id, text, [both[0].operation, taking.operation])
        elif both[1] is not None:
            text = f"the fence {taking.fence} of task {story.id} was given twice"
            yield Violation("fence_repeated", story.id, text, [both[1].operation, taking.operation])
        by_fence.setdefault(taking.fence, taking)
        by_handle.setdefault(taking.handle, taking)
    for position, lower in enumerate(story.takings):
        for higher in story.takings[position + 1 :]:
            if lower.fence < higher.fence and higher.operation.precedes(lower.operation):
                text = (
                    f"task {story.id} was handed out under fence {lower.fence} after it had been under {higher.fence}"
                )
                yield Violation("fence_fell", story.id, text, [higher.operation, lower.operation])
    if story.final is not None and story.takings and story.final.fence < story.takings[-1].fence:
        text = f"task {story.id} is at fence {story.final.fence}, and {story.takings[-1].fence} was given already"
        yield Violation("fence_fell", story.id, text, [story.takings[-1].operation])


def served(story: Story, stories: dict[str, Story]) -> Iterator[Violation]:
    """A worker gets what it asked for, what is meant for it, and what nothing stands before."""
    final = story.final
    if final is None:
        return
    for taking in story.takings:
        op = taking.operation
        if op.verb != "claim":
            continue
        kinds, id = op.given.get("kinds"), op.given.get("id")
        if (kinds is not None and final.kind not in kinds) or (id is not None and not story.id.startswith(id)):
            yield Violation("served_wrongly", story.id, f"{op.worker} asked for something else than {story.id}", [op])
        if final.assignee not in (None, op.worker) and not story.altered:
            text = f"task {story.id} is {final.assignee}'s, and {op.worker} got it"
            yield Violation("served_wrongly", story.id, text, [op])
        for need in final.after:
            before = stories[need].possible("done") if need in stories else []
            if all(op.precedes(done) for done in before):
                text = f"task {story.id} was handed out before task {need} could have been done"
                yield Violation("served_wrongly", story.id, text, [op, *before[:1]])


def kept(story: Story) -> Iterator[Violation]:
    """What succeeds under a handle does so while its claim holds: before a newer one, and before it is over."""
    refusals: dict[str, list[Operation]] = {}
    endings: dict[str, list[Operation]] = {}
    for (handle, verb), ops in story.said.items():
        refusals.setdefault(handle, []).extend(op for op in ops if op.refused == "claim_lost")
        if verb in ENDINGS:
            endings.setdefault(handle, []).extend(op for op in ops if op.told is not None)
    for (handle, verb), ops in story.said.items():
        for op, worlds in _effects(verb, ops):
            newer = [taking for taking in story.takings if taking.fence > fence_of(handle)]
            for taking in newer:
                if all(taking.operation.precedes(world) for world in worlds):
                    text = f"{verb} under {handle} succeeded after {taking.handle} had been given"
                    yield Violation("held_by_two", story.id, text, [taking.operation, op])
                    break
            over = refusals[handle] + (endings.get(handle, []) if verb in BEATS else [])
            for end in over:
                if all(end.precedes(world) for world in worlds):
                    text = f"{verb} under {handle} succeeded after the claim was over"
                    yield Violation("revived", story.id, text, [end, op])
                    break


def _effects(verb: str, ops: list[Operation]) -> Iterator[tuple[Operation, list[Operation]]]:
    """Each success, with the operations that may have brought it about.

    An ending that is said again gets the first one's answer, so any of those that may have counted can be the cause.
    """
    told = [op for op in ops if op.told is not None]
    if verb in BEATS:
        yield from ((op, [op]) for op in told)
    elif told:
        yield told[0], [op for op in ops if op.possible]


def exclusive(stories: dict[str, Story]) -> Iterator[Violation]:
    """What a task uses it has to itself, as far as it is sure to have run: from its claim to the last verb that succeeded."""
    runs: dict[tuple[str, str], list[tuple[int, int, Taking]]] = {}
    for story in stories.values():
        for name in story.final.uses if story.final is not None else ():
            for taking in story.takings:
                begin, end = taking.operation.end, _held_until(story, taking)
                if begin is not None and end is not None and begin < end:
                    runs.setdefault((name, taking.operation.clock), []).append((begin, end, taking))
    for (name, _), spans in runs.items():
        spans.sort(key=lambda span: span[:2])
        for before, after in pairwise(spans):
            if after[0] < before[1]:
                both = (before[2], after[2])
                text = f"{name!r} was used by {both[0].handle} and by {both[1].handle} at the same time"
                yield Violation("used_by_two", task_of(both[1].handle), text, [taking.operation for taking in both])


def _held_until(story: Story, taking: Taking) -> int | None:
    """The latest moment at which the claim is sure to have held, by the clock of its claimer; None if nobody can tell."""
    moments = []
    for verb in (*BEATS, *ENDINGS):
        for _, worlds in _effects(verb, story.ops(taking.handle, verb)):
            begins = [world.begin for world in worlds if world.begin and world.clock == taking.operation.clock]
            moments += [min(begins)] if len(begins) == len(worlds) else []
    return max(moments, default=None)
