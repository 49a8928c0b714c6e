"""Check a history and the yard's final state against every rule of the promise.

A request without an answer may have been carried out at any later moment, or never. So it can explain what is found, but
proves nothing. The rules hold for a machine that has not lost power: a power cut may undo a claim and repeat its fence.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from taskyard.proof.rules import adds, claims, endings, keys, log, unreported_claims
from taskyard.proof.task_history import CLAIMING, by_task
from taskyard.proof.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.final_state import FinalState
    from taskyard.proof.history import History
    from taskyard.proof.task_history import TaskHistory
    from taskyard.proof.verdict import Violation


def check(history: History, final_state: FinalState) -> Verdict:
    """Return every violation of a rule, for any store."""
    tasks = by_task(history, final_state.tasks)
    violations = [*_over_all_tasks(history, final_state, tasks)]
    moves = None if final_state.events is None else log.moves_by_task(final_state.events)
    for task in tasks.values():
        violations += _of_one_task(task, final_state, tasks)
        if moves is not None:
            violations += log.has_every_move(task, moves.get(task.id, []), final_state.limited)
            violations += log.agrees_with_answers(task, moves.get(task.id, []))
    return Verdict(violations, _figures(history, final_state))


def _over_all_tasks(history: History, final_state: FinalState, tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    yield from adds.requested(history, final_state, tasks)
    yield from keys.unique(history, final_state)
    yield from unreported_claims.explained(history, tasks)
    yield from claims.exclusive(tasks)


def _of_one_task(task: TaskHistory, final_state: FinalState, tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    yield from adds.present(task, final_state)
    yield from adds.unaltered(task)
    yield from claims.fences_rise(task)
    yield from claims.as_requested(task, tasks)
    yield from claims.valid_when_used(task)
    yield from endings.published_once(task)
    yield from endings.done_is_kept(task)
    yield from endings.ended_once(task)
    yield from endings.recorded(task)
    yield from endings.cancelled_stays(task)
    yield from endings.not_stuck(task, final_state)


def _figures(history: History, final_state: FinalState) -> dict[str, int]:
    verbs = Counter(op.verb for op in history if op.answer is not None)
    states = Counter(task.state for task in final_state.tasks.values())
    return {
        "operations": len(history.operations),
        "unanswered": sum(op.unknown for op in history),
        "tasks": len(final_state.listed),
        "claims": sum(len(op.answer["claims"]) for op in history if op.answer is not None and op.verb in CLAIMING),
        "executions": sum(len(task.history) for task in final_state.tasks.values()),
        "refused_late": sum(op.error == "claim_lost" for op in history),
        "resumes": verbs["resume"],
        **{state: states[state] for state in ("done", "failed", "cancelled", "blocked")},
    }
