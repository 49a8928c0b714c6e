"""Rules about the log: it tells each move of a task once, and tells it as those say who made it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.proof.task_history import Story

_NO_MOVES = frozenset(("noted", "refused", "blocked"))  # told of a task that stays where it is


def by_task(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The moves of each task, in the log's order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["event"] not in _NO_MOVES:
            found.setdefault(event["task"], []).append(event)
    return found


def whole(story: Story, moves: list[dict[str, Any]]) -> Iterator[Violation]:
    """Every number from nought to the task's own is told once; a claim's own ending has its claim's."""
    final = story.final
    if final is None:
        return
    told = ", ".join(f"{event['fence']} {event['event']}" for event in moves)
    raised = [event["fence"] for event in moves if not _keeps_fence(event)]
    if raised != sorted(raised):
        yield Violation("log_differs", story.id, f"the log tells of task {story.id} out of order: {told}")
    twice = [fence for fence, number in Counter(raised).items() if number > 1]
    ends = Counter((event["event"], event["fence"]) for event in moves if _keeps_fence(event))
    if twice or any(number > 1 for number in ends.values()):
        yield Violation("log_doubled", story.id, f"the log tells a move of task {story.id} twice: {told}")
    # A claim that stood back for another that uses the same was none, and is not told of.
    missing = sorted(set(range(final.fence + 1)) - set(raised))
    if missing and not final.uses:
        text = f"the log leaves out the moves {missing} of task {story.id}, which is {final.state} at {final.fence}: {told}"
        yield Violation("log_gap", story.id, text)


def agrees(story: Story, moves: list[dict[str, Any]]) -> Iterator[Violation]:
    """Each claim and each done that somebody was told of is in the log, and no done that is none."""
    final = story.final
    if final is None:
        return
    claims = {event["fence"]: event["worker"] for event in moves if event["event"] == "claimed"}
    for taking in story.takings:
        if claims.get(taking.fence) != taking.operation.worker:
            text = f"the log tells that {claims.get(taking.fence)} got task {story.id} under fence {taking.fence}"
            yield Violation("log_differs", story.id, text, [taking.operation])
    done = [event["fence"] for event in moves if event["event"] == "done"]
    if done != ([final.fence] if final.state == "done" else []):
        text = f"task {story.id} is {final.state} at fence {final.fence}, and the log tells of a done at {done}"
        yield Violation("log_differs", story.id, text)


def _keeps_fence(event: dict[str, Any]) -> bool:
    """Whether this is a claim's own ending, which raises no number."""
    return event["event"] == "done" or (event["event"] == "failed" and bool(event.get("final")))
