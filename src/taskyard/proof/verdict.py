"""The result of a check: violations, each with its code, a sentence, and the lines of the history that show it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from taskyard.proof.history import Operation

# Every way in which a yard can break the promise.
CODES = {
    "lost": "a task that was added is not there",
    "doubled": "a task is in two places",
    "altered": "a task is not what was asked for",
    "unasked": "a task is there that no process asked for",
    "key_doubled": "a key has two tasks",
    "key_refused": "an add was refused though the key stands for the same task",
    "fence_repeated": "a fence was given twice",
    "fence_fell": "a fence did not rise",
    "handle_repeated": "a handle was given twice",
    "served_wrongly": "a worker was given what it must not get",
    "held_by_two": "a verb succeeded after a newer claim had the task",
    "used_by_two": "two tasks that use the same thing ran at the same time",
    "revived": "a verb succeeded after the claim was over",
    "ended_twice": "one claim ended in two ways",
    "reopened": "a task was claimed after it was done",
    "published_twice": "a task was published twice",
    "ending_lost": "an acknowledged ending is not there",
    "wrong_result": "the published result is not the one that was given",
    "unsaid": "a task ended in a way that its claim never asked for",
    "refused_yet_done": "a claim was refused and its verb counted all the same",
    "answer_changed": "the same ending got another answer",
    "unaccounted": "how a claim ended is missing, or wrong",
    "unclaimed": "a claim is recorded that no process made",
    "undone": "a task that was cancelled went on",
    "left_open": "a task is stuck",
    "log_gap": "the log leaves a move out",
    "log_doubled": "the log tells a move twice",
    "log_differs": "the log tells it differently",
}


class Violation:
    """One broken rule of the promise."""

    __slots__ = ("code", "lines", "task", "text")

    def __init__(self, code: str, task: str | None, text: str, operations: Iterable[Operation] = ()) -> None:
        assert code in CODES
        self.code = code
        self.task = task
        self.text = text
        self.lines = [line for operation in operations for line in operation.shown()]

    def as_dict(self) -> dict[str, Any]:
        """Return the violation as a JSON object."""
        return {"code": self.code, "task": self.task, "text": self.text, "lines": self.lines}

    def __str__(self) -> str:
        return "\n".join([f"{self.code}: {self.text}", *(f"    {line}" for line in self.lines)])


class Verdict:
    """The violations of a history, and its figures."""

    __slots__ = ("figures", "violations")

    def __init__(self, violations: list[Violation], figures: dict[str, int]) -> None:
        self.violations = violations
        self.figures = figures

    @property
    def legal(self) -> bool:
        """Whether there is no violation."""
        return not self.violations

    @property
    def codes(self) -> Counter[str]:
        """The number of violations by code."""
        return Counter(violation.code for violation in self.violations)

    def __str__(self) -> str:
        return "\n".join(map(str, self.violations)) or "legal"
