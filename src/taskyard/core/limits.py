"""The limits of a kind, or of a team: how many can be worked on at a time, and how many can be claimed in any minute. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CONCURRENCY, RATE, MAX_RUNNING = "concurrency", "rate", "max_running"
WINDOW = 60_000
"""Milliseconds in which no more than `rate` tasks of a kind are claimed."""


class Reached:
    """A limit that holds tasks back now."""

    __slots__ = ("due", "kind", "limit", "number", "team")

    def __init__(self, kind: str, limit: str, number: int, due: int | None = None, team: str | None = None) -> None:
        self.kind = kind
        """The kind that is limited; empty where all kinds of a team are."""
        self.team = team
        self.limit = limit
        """`concurrency` or `rate` of a kind; `max_running` or `rate` of a team."""
        self.number = number
        """How many the limit allows, and has allowed."""
        self.due = due
        """When the next task can be claimed, in milliseconds since 1970; None if that hangs on the tasks that run."""

    def fact(self, now: int) -> dict[str, Any]:
        """Return it as plain JSON; `in` are the seconds until the next claim."""
        wait = None if self.due is None else round(max(0, self.due - now) / 1000, 1)
        whose = {"kind": self.kind} if self.team is None else {"team": self.team}
        return {**whose, "limit": self.limit, "number": self.number, "in": wait}


def sentence(fact: Mapping[str, Any]) -> str:
    """Return the limit as a clause."""
    if "team" in fact:
        return _of_team(fact)
    kind, number = fact["kind"], fact["number"]
    if fact["limit"] == CONCURRENCY:
        return f"the limit of kind {kind} is reached: {number} of {number} are held"
    return f"the rate of kind {kind} is reached: {number} a minute, the next in {max(1, round(fact['in'] or 0))} s"


def _of_team(fact: Mapping[str, Any]) -> str:
    team, number = fact["team"], fact["number"]
    if fact["limit"] == MAX_RUNNING:
        return f"the max_running of the team {team} is reached: {number} of {number} are held"
    return f"the rate of the team {team} is reached: {number} a minute, the next in {max(1, round(fact['in'] or 0))} s"
