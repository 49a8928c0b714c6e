"""One task's part of a history: who asked for it, who took it, and what they said then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.proof.final_state import Final
    from taskyard.proof.history import Operation

ENDINGS = {"done": "done", "fail": "error", "release": "released"}
"""Verbs that end a claim, and the outcome that its task's history tells then."""
BEATS = ("heartbeat", "note")
TAKINGS = ("claim", "resume")


class Taking:
    """A claim that somebody was told to have."""

    __slots__ = ("fence", "handle", "operation")

    def __init__(self, handle: str, operation: Operation) -> None:
        self.handle = handle
        self.fence = fence_of(handle)
        self.operation = operation


class Story:
    """All about one task."""

    __slots__ = ("adds", "final", "id", "said", "steered", "takings")

    def __init__(self, id: str, final: Final | None) -> None:
        self.id = id
        self.final = final
        self.adds: list[Operation] = []
        """Adds that were told that they made the task, or found it."""
        self.takings: list[Taking] = []
        self.said: dict[tuple[str, str], list[Operation]] = {}
        """What was said, by handle and verb."""
        self.steered: list[Operation] = []

    def ops(self, handle: str, verb: str) -> list[Operation]:
        """Every time that this was said under this handle."""
        return self.said.get((handle, verb), [])

    def told(self, verb: str) -> list[str]:
        """The handles under which this was said and acknowledged."""
        return [
            handle
            for (handle, said), ops in self.said.items()
            if said == verb and any(op.told is not None for op in ops)
        ]

    def possible(self, verb: str) -> list[Operation]:
        """Every time that this was said and may have counted, under any handle."""
        return [op for (_, said), ops in self.said.items() if said == verb for op in ops if op.possible]

    def outcomes(self, handle: str) -> list[str]:
        """How the claim ended, as the task's history tells it: once, or there is something wrong."""
        return [] if self.final is None else [e["outcome"] for e in self.final.history if e["claim"] == handle]

    def published(self) -> list[str]:
        """The claims that ended the task as done, as its history tells it."""
        return [] if self.final is None else [e["claim"] for e in self.final.history if e["outcome"] == "done"]

    def steers(self, verb: str) -> list[Operation]:
        """Every time that somebody asked for this and may have got it."""
        return [op for op in self.steered if op.verb == verb and op.possible]

    @property
    def altered(self) -> bool:
        """Whether somebody may have changed what the task asks for."""
        return any({"data", "assignee"} & set(op.given["fields"]) for op in self.steers("edit"))

    def add(self, op: Operation) -> None:
        """Something that was asked for about this task."""
        if op.verb == "add":
            self.adds.append(op)
        elif op.verb in ("cancel", "retry", "edit"):
            self.steered.append(op)
        else:
            self.said.setdefault((op.given["claim"], op.verb), []).append(op)


def stories(operations: Iterable[Operation], finals: dict[str, Final]) -> dict[str, Story]:
    """The history by task; a task that only the picture has gets one too."""
    found = {id: Story(id, final) for id, final in finals.items()}
    for op in operations:
        for id in dict.fromkeys(_about(op)):
            found.setdefault(id, Story(id, None)).add(op)
        if op.verb in TAKINGS and op.told is not None:
            for handle in op.told["claims"]:
                found.setdefault(task_of(handle), Story(task_of(handle), None)).takings.append(Taking(handle, op))
    for story in found.values():
        story.takings.sort(key=lambda taking: taking.fence)
    return found


def _about(op: Operation) -> list[str]:
    """The tasks that it speaks of by name, once it is known which."""
    if op.verb == "add":
        return [] if op.told is None else op.told["ids"]
    if op.verb in TAKINGS:
        return []
    if "claim" in op.given:
        return [task_of(op.given["claim"])]
    return [op.given["id"]] if "id" in op.given else []


def task_of(handle: str) -> str:
    """The id of the task that a handle's claim is of."""
    return handle.split(".", maxsplit=1)[0]


def fence_of(handle: str) -> int:
    """The handle's fence."""
    return int(handle.split(".")[1])
