"""Rules about keys: however often and by whomever a task is asked for under a key, there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskyard.proof.rules.adds import wish
from taskyard.proof.verdict import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.proof.final_state import FinalState
    from taskyard.proof.history import History, Operation


class Key:
    """All that was asked for under one key."""

    __slots__ = ("asked", "ids", "made", "name", "wishes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Operation] = []
        self.ids: set[str] = set()
        self.made: list[Operation] = []
        self.wishes: set[tuple[str, str, str | None]] = set()

    def take(self, op: Operation, position: int, draft: dict[str, Any]) -> None:
        """Somebody asked for it."""
        self.asked.append(op)
        self.wishes.add(wish(draft))
        if op.verb == "add" and op.told is not None:
            self.ids.add(op.told["ids"][position])
            if op.told["created"] == len(op.given["drafts"]):
                self.made.append(op)


def unique(history: History, picture: FinalState) -> Iterator[Violation]:
    """A key has one task, which was made once, and is refused only to those who ask for another one."""
    keys: dict[str, Key] = {}
    for op in history:
        for position, draft in enumerate(op.given.get("drafts", ())):
            name = draft.get("key")
            if name is not None:
                keys.setdefault(name, Key(name)).take(op, position, draft)
    for final in picture.tasks.values():
        if final.key in keys:
            keys[final.key].ids.add(final.id)
    for key in keys.values():
        yield from _one(key)


def _one(key: Key) -> Iterator[Violation]:
    if len(key.ids) > 1:
        text = f"the key {key.name!r} has {len(key.ids)} tasks: {', '.join(sorted(key.ids))}"
        yield Violation("key_doubled", min(key.ids), text, key.asked)
    elif len(key.made) > 1:
        yield Violation("key_doubled", min(key.ids), f"the task of the key {key.name!r} was made twice", key.made)
    refused = [op for op in key.asked if op.refused == "conflict" and len(op.given["drafts"]) == 1]
    if refused and len(key.wishes) == 1:
        text = f"the key {key.name!r} was refused, and everybody asked for the same task under it"
        yield Violation("key_refused", None, text, refused)
