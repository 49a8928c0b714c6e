"""Is a history legal? Everything that was asked for and told, and the yard at the end, against every rule of the promise.

What got no answer may have been done at any moment after it was asked, or not at all: it explains what is found, and
proves nothing. The rules hold for a yard whose machine has not lost power: a claim that a power cut undoes may have its
fence given again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from taskyard.proof.rules import adds, claims, endings, keys, log, unreported_claims
from taskyard.proof.task_history import TAKINGS, stories
from taskyard.proof.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.final_state import FinalState
    from taskyard.proof.history import History
    from taskyard.proof.task_history import Story
    from taskyard.proof.verdict import Violation


def check(history: History, picture: FinalState) -> Verdict:
    """Whether all of it together is legal, for any store."""
    found = stories(history, picture.tasks)
    violations = [*_overall(history, picture, found)]
    moves = None if picture.events is None else log.by_task(picture.events)
    for story in found.values():
        violations += _of(story, picture, found)
        if moves is not None:
            violations += log.whole(story, moves.get(story.id, []))
            violations += log.agrees(story, moves.get(story.id, []))
    return Verdict(violations, _figures(history, picture))


def _overall(history: History, picture: FinalState, found: dict[str, Story]) -> Iterator[Violation]:
    yield from adds.asked(history, picture, found)
    yield from keys.unique(history, picture)
    yield from unreported_claims.claimed(history, found)
    yield from claims.exclusive(found)


def _of(story: Story, picture: FinalState, found: dict[str, Story]) -> Iterator[Violation]:
    yield from adds.there(story, picture)
    yield from adds.as_asked(story)
    yield from claims.fenced(story)
    yield from claims.served(story, found)
    yield from claims.kept(story)
    yield from endings.published(story)
    yield from endings.there(story)
    yield from endings.settled(story)
    yield from endings.accounted(story)
    yield from endings.steered(story)
    yield from endings.finished(story, picture)


def _figures(history: History, picture: FinalState) -> dict[str, int]:
    verbs = Counter(op.verb for op in history if op.told is not None)
    states = Counter(final.state for final in picture.tasks.values())
    return {
        "operations": len(history.operations),
        "unanswered": sum(op.unknown for op in history),
        "tasks": len(picture.listed),
        "claims": sum(len(op.told["claims"]) for op in history if op.told is not None and op.verb in TAKINGS),
        "executions": sum(len(final.history) for final in picture.tasks.values()),
        "refused_late": sum(op.refused == "claim_lost" for op in history),
        "resumes": verbs["resume"],
        **{state: states[state] for state in ("done", "failed", "cancelled", "blocked")},
    }
