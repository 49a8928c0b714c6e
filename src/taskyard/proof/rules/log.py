"""Rules about the log: it has each move of a task once, and agrees with the answers that the processes got."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from taskyard.proof.task_history import TaskHistory

_NO_MOVES = frozenset(("noted", "refused", "blocked"))  # events of a task that stays in its state


def moves_by_task(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the moves of each task, in the log's order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["event"] not in _NO_MOVES:
            found.setdefault(event["task"], []).append(event)
    return found


def has_every_move(
    task: TaskHistory, moves: list[dict[str, Any]], limited: Collection[str] = ()
) -> Iterator[Violation]:
    """Every fence from 0 to the task's own is logged once; a claim's own ending has the fence of its claim.

    `limited` are the kinds that have a limit.
    """
    final = task.final
    if final is None:
        return
    logged = ", ".join(f"{event['fence']} {event['event']}" for event in moves)
    raised = [event["fence"] for event in moves if not _keeps_fence(event)]
    if raised != sorted(raised):
        yield Violation("log_differs", task.id, f"the log tells of task {task.id} out of order: {logged}")
    twice = [fence for fence, number in Counter(raised).items() if number > 1]
    ends = Counter((event["event"], event["fence"]) for event in moves if _keeps_fence(event))
    if twice or any(number > 1 for number in ends.values()):
        yield Violation("log_doubled", task.id, f"the log tells a move of task {task.id} twice: {logged}")
    # A claim that gave way, because of what another uses or of a limit of its kind, raises the fence and is not logged.
    missing = sorted(set(range(final.fence + 1)) - set(raised))
    if missing and not final.uses and final.kind not in limited:
        state = f"{final.state} at {final.fence}"
        text = f"the log leaves out the moves {missing} of task {task.id}, which is {state}: {logged}"
        yield Violation("log_gap", task.id, text)


def agrees_with_answers(task: TaskHistory, moves: list[dict[str, Any]]) -> Iterator[Violation]:
    """Every reported claim is logged with its worker, and a done is logged if and only if the task is done."""
    final = task.final
    if final is None:
        return
    workers = {event["fence"]: event["worker"] for event in moves if event["event"] == "claimed"}
    for claim in task.claims:
        if workers.get(claim.fence) != claim.operation.worker:
            text = f"the log tells that {workers.get(claim.fence)} got task {task.id} under fence {claim.fence}"
            yield Violation("log_differs", task.id, text, [claim.operation])
    done = [event["fence"] for event in moves if event["event"] == "done"]
    if done != ([final.fence] if final.state == "done" else []):
        text = f"task {task.id} is {final.state} at fence {final.fence}, and the log tells of a done at {done}"
        yield Violation("log_differs", task.id, text)


def _keeps_fence(event: dict[str, Any]) -> bool:
    """Return whether this is a claim's own ending, which does not raise the fence."""
    return event["event"] == "done" or (event["event"] == "failed" and bool(event.get("final")))
