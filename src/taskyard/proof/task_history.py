"""The part of a history that concerns one task: its adds, its claims, and the verbs of those claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.proof.final_state import FinalTask
    from taskyard.proof.history import Operation

ENDINGS = {"done": "done", "fail": "error", "release": "released"}
"""Verbs that end a claim, and the outcome that the task's history has for each."""
HEARTBEATS = ("heartbeat", "note")
CLAIMING = ("claim", "resume")


class ReportedClaim:
    """A claim that the answer to an operation reported."""

    __slots__ = ("fence", "handle", "operation")

    def __init__(self, handle: str, operation: Operation) -> None:
        self.handle = handle
        self.fence = fence_of(handle)
        self.operation = operation


class TaskHistory:
    """All operations on one task, and the task at the end."""

    __slots__ = ("_changes", "adds", "claim_operations", "claims", "final", "id")

    def __init__(self, id: str, final: FinalTask | None) -> None:
        self.id = id
        self.final = final
        self.adds: list[Operation] = []
        """Adds whose answer named this task."""
        self.claims: list[ReportedClaim] = []
        """In the order of their fences."""
        self.claim_operations: dict[tuple[str, str], list[Operation]] = {}
        """The operations under a claim, by handle and verb."""
        self._changes: list[Operation] = []

    def operations(self, handle: str, verb: str) -> list[Operation]:
        """Return every operation with this verb under this handle."""
        return self.claim_operations.get((handle, verb), [])

    def acknowledged(self, verb: str) -> list[str]:
        """Return the handles under which this verb was acknowledged."""
        return [
            handle
            for (handle, other), ops in self.claim_operations.items()
            if other == verb and any(op.answer is not None for op in ops)
        ]

    def possible(self, verb: str) -> list[Operation]:
        """Return every operation with this verb that may have been carried out, under any handle."""
        return [op for (_, other), ops in self.claim_operations.items() if other == verb for op in ops if op.possible]

    def outcomes(self, handle: str) -> list[str]:
        """Return how the claim ended, by the task's own history; more than one outcome is a violation."""
        return [] if self.final is None else [e["outcome"] for e in self.final.history if e["claim"] == handle]

    def published(self) -> list[str]:
        """Return the claims that ended the task as done, by its own history."""
        return [] if self.final is None else [e["claim"] for e in self.final.history if e["outcome"] == "done"]

    def changes(self, verb: str) -> list[Operation]:
        """Return every cancel, retry or edit that may have been carried out."""
        return [op for op in self._changes if op.verb == verb and op.possible]

    @property
    def edited(self) -> bool:
        """Whether an edit may have changed the task's data or assignee."""
        return any({"data", "assignee"} & set(op.arguments["fields"]) for op in self.changes("edit"))

    def append(self, op: Operation) -> None:
        """Add an operation on this task."""
        if op.verb == "add":
            self.adds.append(op)
        elif op.verb in ("cancel", "retry", "edit"):
            self._changes.append(op)
        else:
            self.claim_operations.setdefault((op.arguments["claim"], op.verb), []).append(op)


def by_task(operations: Iterable[Operation], final_tasks: dict[str, FinalTask]) -> dict[str, TaskHistory]:
    """Sort a history by task; a task that is only in the final state has an empty one."""
    tasks = {id: TaskHistory(id, final) for id, final in final_tasks.items()}
    for op in operations:
        for id in dict.fromkeys(_tasks_of(op)):
            tasks.setdefault(id, TaskHistory(id, None)).append(op)
        if op.verb in CLAIMING and op.answer is not None:
            for handle in op.answer["claims"]:
                id = task_of(handle)
                tasks.setdefault(id, TaskHistory(id, None)).claims.append(ReportedClaim(handle, op))
    for task in tasks.values():
        task.claims.sort(key=lambda claim: claim.fence)
    return tasks


def _tasks_of(op: Operation) -> list[str]:
    """Return the ids that an operation or its answer names; the claims of `CLAIMING` verbs are kept apart."""
    if op.verb == "add":
        return [] if op.answer is None else op.answer["ids"]
    if op.verb in CLAIMING:
        return []
    if "claim" in op.arguments:
        return [task_of(op.arguments["claim"])]
    return [op.arguments["id"]] if "id" in op.arguments else []


def task_of(handle: str) -> str:
    """Return the task's id in a handle."""
    return handle.split(".", maxsplit=1)[0]


def fence_of(handle: str) -> int:
    """Return the fence in a handle."""
    return int(handle.split(".")[1])
