"""The rule about claims that nobody was told of: each was made by an asking that can have made it.

One asking makes claims under one nonce, or under as many as it asks for tasks, and tells of one of each at the most. Whoever is stopped between winning a task
and being told of it may have lost it by then: so it goes on, and is told of the next one that it wins, or that nothing is
ready. What it lost on the way ended without a word of its holder, and before the answer. What got no answer may have made a
claim that holds still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.proof.task_history import TAKINGS, fence_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.history import History, Operation
    from taskyard.proof.task_history import Story

_BY_OTHERS = frozenset(("crash", "cancelled", "resumed"))  # how a claim ends of which its holder does not know


class Untold:
    """A claim that a task tells of, and nobody was told to have."""

    __slots__ = ("claim", "fence", "nonce", "outcome", "resumes", "story", "worker")

    def __init__(self, story: Story, claim: str, fence: int, worker: str | None, outcome: str | None) -> None:
        self.story = story
        self.claim = claim
        self.fence = fence
        self.worker = worker
        self.outcome = outcome
        """How it ended; None if it holds still."""
        self.nonce = claim if outcome is None else claim.rpartition(".")[2]
        assert story.final is not None
        self.resumes = any(
            entry["outcome"] == "resumed" and entry["worker"] == worker and fence_of(entry["claim"]) == fence - 1
            for entry in story.final.history
        )
        """Whether it goes on with the one before it, as only a resume does."""

    def may_be_of(self, op: Operation) -> bool:
        """Whether this asking can have made it."""
        if op.worker != self.worker or (op.verb == "resume") != self.resumes:
            return False
        takings = self.story.takings
        if any(taking.fence > self.fence and taking.operation.precedes(op) for taking in takings):
            return False
        if op.unknown:
            return True
        if self.outcome not in _BY_OTHERS:
            return False
        return not any(taking.fence < self.fence and op.precedes(taking.operation) for taking in takings)


def claimed(history: History, stories: dict[str, Story]) -> Iterator[Violation]:
    """Every claim that a task tells of was made by somebody: by one who was told so, or by one who can have lost it unheard."""
    groups: dict[tuple[str | None, str], list[Untold]] = {}
    for story in stories.values():
        for claim in _untold(story):
            groups.setdefault((claim.worker, claim.nonce), []).append(claim)
    askings = [op for op in history if op.verb in TAKINGS]
    told = {handle.rpartition(".")[2]: op for op in askings if op.verb == "claim" for handle in _handles(op)}
    makers: dict[int, list[list[Untold]]] = {}
    for (_, nonce), group in groups.items():
        known = told.get(nonce)
        if known is not None:
            found = all(claim.may_be_of(known) for claim in group)
        else:
            found = _is_made(group, askings, makers, set())
        if not found:
            text = f"task {group[0].story.id} tells of a claim of {group[0].worker} ({group[0].claim}) that nobody made"
            yield Violation("unclaimed", group[0].story.id, text, [] if known is None else [known])


def _untold(story: Story) -> Iterator[Untold]:
    final = story.final
    if final is None:
        return
    told = {taking.handle for taking in story.takings}
    for entry in final.history:
        if entry["claim"] not in told:
            yield Untold(story, entry["claim"], fence_of(entry["claim"]), entry["worker"], entry["outcome"])
    if final.state == "processing" and final.fence not in {taking.fence for taking in story.takings}:
        yield Untold(story, f"fence {final.fence} of {story.id}", final.fence, final.worker, None)


def _is_made(
    group: list[Untold], askings: list[Operation], makers: dict[int, list[list[Untold]]], tried: set[int]
) -> bool:
    """Whether there is an asking for these, after giving others another one if need be: each has made only so many groups."""
    for at, op in enumerate(askings):
        room = _room(op)
        if at in tried or not room or not all(claim.may_be_of(op) for claim in group):
            continue
        tried.add(at)
        made = makers.setdefault(at, [])
        if op.verb == "resume" or len(made) < room:
            made.append(group)
            return True
        for place, other in enumerate(made):
            if _is_made(other, askings, makers, tried):
                made[place] = group
                return True
    return False


def _room(op: Operation) -> int:
    """Under how many nonces that nobody knows it may have made claims; a resume has one for each."""
    return 1 if op.verb == "resume" else int(op.given.get("number", 1)) - len(_handles(op))


def _handles(op: Operation) -> list[str]:
    """What an asking was told that it has."""
    return [] if op.told is None else list(op.told.get("claims", ()))
