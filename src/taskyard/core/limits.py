"""The limits of a kind: how many can be worked on at a time, and how many can be claimed in any minute. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CONCURRENCY, RATE = "concurrency", "rate"
WINDOW = 60_000
"""Milliseconds in which no more than `rate` tasks of a kind are claimed."""


class Reached:
    """A limit that holds tasks back now."""

    __slots__ = ("due", "kind", "limit", "number")

    def __init__(self, kind: str, limit: str, number: int, due: int | None = None) -> None:
        self.kind = kind
        self.limit = limit
        """`concurrency` or `rate`."""
        self.number = number
        """How many the limit allows, and has allowed."""
        self.due = due
        """When the next task can be claimed, in milliseconds since 1970; None if that hangs on the tasks that run."""

    def fact(self, now: int) -> dict[str, Any]:
        """Return it as plain JSON; `in` are the seconds until the next claim."""
        wait = None if self.due is None else round(max(0, self.due - now) / 1000, 1)
        return {"kind": self.kind, "limit": self.limit, "number": self.number, "in": wait}


def sentence(fact: Mapping[str, Any]) -> str:
    """Return the limit as a clause."""
    kind, number = fact["kind"], fact["number"]
    if fact["limit"] == CONCURRENCY:
        return f"the limit of kind {kind} is reached: {number} of {number} are held"
    return f"the rate of kind {kind} is reached: {number} a minute, the next in {max(1, round(fact['in'] or 0))} s"
