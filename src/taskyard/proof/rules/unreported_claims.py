"""The rule about unreported claims, which a task's history has but no answer reported: an operation can have made each.

An operation makes its claims under one nonce for each task that it asks for, and reports at most one claim for each nonce.

- A process that is stopped between winning a task and the answer may lose the task. Then the operation goes on, and reports
  the next task that it wins, or that nothing is ready. The lost claim was ended by another process, before the answer.
- An operation without an answer may have made a claim that still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.proof.task_history import CLAIMING, fence_of
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.proof.history import History, Operation
    from taskyard.proof.task_history import TaskHistory

_BY_OTHERS = frozenset(("crash", "cancelled", "resumed"))  # outcomes that another process gives a claim


class UnreportedClaim:
    """A claim that a task's history has, and that no answer reported."""

    __slots__ = ("fence", "name", "nonce", "outcome", "resumes", "task", "worker")

    def __init__(self, task: TaskHistory, name: str, fence: int, worker: str | None, outcome: str | None) -> None:
        self.task = task
        self.name = name
        self.fence = fence
        self.worker = worker
        self.outcome = outcome
        """How the claim ended; None if it still holds."""
        self.nonce = name if outcome is None else name.rpartition(".")[2]
        assert task.final is not None
        self.resumes = any(
            entry["outcome"] == "resumed" and entry["worker"] == worker and fence_of(entry["claim"]) == fence - 1
            for entry in task.final.history
        )
        """Whether it continues the claim before it, as only a resume does."""

    def can_be_made_by(self, op: Operation) -> bool:
        """Return whether this operation can have made the claim."""
        if op.worker != self.worker or (op.verb == "resume") != self.resumes:
            return False
        reported = self.task.claims
        if any(claim.fence > self.fence and claim.operation.precedes(op) for claim in reported):
            return False
        if op.unknown:
            return True
        if self.outcome not in _BY_OTHERS:
            return False
        return not any(claim.fence < self.fence and op.precedes(claim.operation) for claim in reported)


def explained(history: History, tasks: dict[str, TaskHistory]) -> Iterator[Violation]:
    """An operation can have made every unreported claim."""
    groups: dict[tuple[str | None, str], list[UnreportedClaim]] = {}
    for task in tasks.values():
        for claim in _unreported(task):
            groups.setdefault((claim.worker, claim.nonce), []).append(claim)
    operations = [op for op in history if op.verb in CLAIMING]
    reported = {handle.rpartition(".")[2]: op for op in operations if op.verb == "claim" for handle in _handles(op)}
    assigned: dict[int, list[list[UnreportedClaim]]] = {}
    for (_, nonce), group in groups.items():
        known = reported.get(nonce)
        if known is not None:
            found = all(claim.can_be_made_by(known) for claim in group)
        else:
            found = _assign(group, operations, assigned, set())
        if not found:
            first = group[0]
            text = f"task {first.task.id} tells of a claim of {first.worker} ({first.name}) that no process made"
            yield Violation("unclaimed", first.task.id, text, [] if known is None else [known])


def _unreported(task: TaskHistory) -> Iterator[UnreportedClaim]:
    final = task.final
    if final is None:
        return
    reported = {claim.handle for claim in task.claims}
    for entry in final.history:
        if entry["claim"] not in reported:
            yield UnreportedClaim(task, entry["claim"], fence_of(entry["claim"]), entry["worker"], entry["outcome"])
    if final.state == "processing" and final.fence not in {claim.fence for claim in task.claims}:
        yield UnreportedClaim(task, f"fence {final.fence} of {task.id}", final.fence, final.worker, None)


def _assign(
    group: list[UnreportedClaim],
    operations: list[Operation],
    assigned: dict[int, list[list[UnreportedClaim]]],
    tried: set[int],
) -> bool:
    """Return whether an operation can have made the group, whose claims share a nonce.

    This is a bipartite matching: if an operation has no room left, one of its groups is moved to another operation.
    """
    for index, op in enumerate(operations):
        room = _room(op)
        if index in tried or not room or not all(claim.can_be_made_by(op) for claim in group):
            continue
        tried.add(index)
        groups = assigned.setdefault(index, [])
        if op.verb == "resume" or len(groups) < room:
            groups.append(group)
            return True
        for position, other in enumerate(groups):
            if _assign(other, operations, assigned, tried):
                groups[position] = group
                return True
    return False


def _room(op: Operation) -> int:
    """Return for how many unreported nonces the operation can have made claims; for a resume only whether it can."""
    return 1 if op.verb == "resume" else int(op.arguments.get("number", 1)) - len(_handles(op))


def _handles(op: Operation) -> list[str]:
    """Return the claims that the answer reported."""
    return [] if op.answer is None else list(op.answer.get("claims", ()))
