"""Rules about keys: a key has one task, however often and by however many processes it is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.proof.rules.adds import requested_content
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.proof.final_state import FinalState
    from taskyard.proof.history import History, Operation
    from taskyard.proof.rules.adds import Content


class _Key:
    """All requests under one key."""

    __slots__ = ("contents", "creators", "ids", "name", "requests")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[Operation] = []
        self.ids: set[str] = set()
        self.creators: list[Operation] = []
        """Operations that created the task, by their answers."""
        self.contents: set[Content] = set()

    def append(self, op: Operation, position: int, draft: dict[str, Any]) -> None:
        """Add a request; `position` is the draft's among the drafts of its operation."""
        self.requests.append(op)
        self.contents.add(requested_content(draft))
        if op.verb == "add" and op.answer is not None:
            self.ids.add(op.answer["ids"][position])
            if op.answer["created"] == len(op.arguments["drafts"]):
                self.creators.append(op)


def unique(history: History, final_state: FinalState) -> Iterator[Violation]:
    """A key has one task, created once, and only a request for another content is refused."""
    keys: dict[str, _Key] = {}
    for op in history:
        for position, draft in enumerate(op.arguments.get("drafts", ())):
            name = draft.get("key")
            if name is not None:
                keys.setdefault(name, _Key(name)).append(op, position, draft)
    for final in final_state.tasks.values():
        if final.key in keys:
            keys[final.key].ids.add(final.id)
    for key in keys.values():
        yield from _one(key)


def _one(key: _Key) -> Iterator[Violation]:
    if len(key.ids) > 1:
        text = f"the key {key.name!r} has {len(key.ids)} tasks: {', '.join(sorted(key.ids))}"
        yield Violation("key_doubled", min(key.ids), text, key.requests)
    elif len(key.creators) > 1:
        yield Violation("key_doubled", min(key.ids), f"the task of the key {key.name!r} was made twice", key.creators)
    refused = [op for op in key.requests if op.error == "conflict" and len(op.arguments["drafts"]) == 1]
    if refused and len(key.contents) == 1:
        text = f"the key {key.name!r} was refused, and everybody asked for the same task under it"
        yield Violation("key_refused", None, text, refused)
