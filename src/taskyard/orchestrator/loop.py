"""The loop: lead, sweep, hand on what was spooled, watch agents, and assign, a round at a time.

Any number of orchestrators may run on a yard. The one that leads does the work; the others wait until it no longer renews its lead. Every step is a move that any process may make at any time, so a leader that was stopped and goes on does no harm.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import Conflict, NotFound, TaskyardError, Unavailable
from taskyard.orchestrator import choice
from taskyard.orchestrator.agents import Agents
from taskyard.orchestrator.reservations import Reservations

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.port import YardPort

LEASE = 3.0  # seconds that a leader leads without renewing it: the next one leads within this and a round
EVERY, EVERY_MOST = 1.0, 2.0  # seconds between two rounds
ACCEPT = 30.0  # seconds that an assigned task waits for its agent
LOAD = 2  # tasks of one agent, held and reserved: one that it does, and the next
_SHARE = 1000  # moves of one round's sweep, so that a leader renews its leadership in time
_READY = 100  # ready tasks that one round looks at
_BLOCKED = 1000  # blocked tasks that count for the length of chains


class Orchestrator:
    """Keeps one yard going."""

    def __init__(self, yard: YardPort, *, assign: bool = False, accept: float = ACCEPT, load: int = LOAD) -> None:
        self._yard = yard
        self._assigns = assign
        self._load = load
        self._agents = Agents(yard)
        self._reservations = Reservations(yard, accept)

    def round(self) -> dict[str, Any]:
        """Do one round; return who leads, and what was done if it is this process."""
        lead = self._yard.lead(LEASE)
        if not lead["leads"]:
            self._reservations.forget()
            return lead
        self._yard.tend_spool()
        report: dict[str, Any] = {**lead, "swept": self._yard.sweep(_SHARE).as_dict(), "refilled": self._yard.refill()}
        agents = self._agents.look()
        report["agents"] = len(agents)
        report["lapsed"] = [{"agent": name, "task": id} for name, id in self._agents.lapsed]
        self._reservations.recover()
        returned, reserved = self._reservations.take_back({agent.name for agent in agents})
        report["returned"] = [{"task": id, "agent": name} for id, name in returned]
        report["assigned"] = self._assign(agents, reserved) if self._assigns else []
        return report

    def _assign(self, agents: list[Any], reserved: dict[str, int]) -> list[dict[str, str]]:
        if not agents:
            return []
        ready = self._yard.ready(limit=_READY)
        behind = choice.lengths(
            self._yard.get_many(task.id for task in self._yard.find(state="blocked", limit=_BLOCKED))
        )
        pairs = choice.chosen(ready, agents, behind, reserved, self._load)
        return [{"task": task.id, "agent": name} for task, name in pairs if self._reservations.assign(task, name)]

    def run(
        self,
        every: float,
        stopped: Callable[[float], bool],
        tell: Callable[[dict[str, Any]], None],
        warn: Callable[[str], None],
    ) -> None:
        """Do a round every `every` seconds until `stopped`, which waits, returns True; then resign.

        `tell` is called for each round that did something, and where the leader changed; `warn` when the yard is away.
        """
        before: dict[str, Any] = {}
        while True:
            began = time.monotonic()
            try:
                report = self.round()
            except (Unavailable, Conflict, NotFound) as error:
                # The server may come back, and a task that has moved is in the next round's look: an orchestrator runs unattended.
                warn(f"{error.message}; trying again")
            else:
                if did(report) or (report["leads"], report["leader"]) != (before.get("leads"), before.get("leader")):
                    tell(report)
                before = report
            if stopped(max(0.0, every - (time.monotonic() - began))):
                break
        if before.get("leads"):
            self._hand_back()
        self.resign()

    def _hand_back(self) -> None:
        """Give back to the pool what no agent has accepted: perhaps no other orchestrator comes after this one."""
        try:
            self._reservations.take_back(())
        except TaskyardError:
            return  # the next leader finds them

    def resign(self) -> None:
        """Let another one lead at once."""
        try:
            self._yard.resign()
        except TaskyardError:
            return  # the leadership ends by itself


def did(report: dict[str, Any]) -> bool:
    """Whether a round has done anything."""
    return bool(
        any(report.get("swept", {}).values())
        or report.get("lapsed")
        or report.get("returned")
        or report.get("assigned")
    )
