"""Which agents are at work, by the log and the held tasks: the kinds that each takes, and how many tasks it holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from taskyard.core import times

if TYPE_CHECKING:
    from taskyard.port import YardPort

LIVE = 120.0  # seconds since an agent was last heard of, after which it counts as gone unless it holds a task
_BEFORE = 300_000  # milliseconds that a new leader reads back
_PAGE = 1000
_PAGES_MOST = 20  # of the log, and of held tasks, in one round
_SIGNS = ("claimed", "done", "failed", "released", "noted")


class Agent:
    """One agent: its name, the kinds that it has taken, when it was last heard of, and how many tasks it holds."""

    __slots__ = ("heard_at", "held", "kinds", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kinds: set[str] = set()
        self.heard_at = 0.0
        self.held = 0


class Agents:
    """The agents of one yard, followed through its log."""

    def __init__(self, yard: YardPort) -> None:
        self._yard = yard
        self._known: dict[str, Agent] = {}
        self._cursor: str | None = None
        self.lapsed: list[tuple[str, str]] = []
        """The agents whose claims were reaped since the look before, each with the task's id."""

    def look(self) -> list[Agent]:
        """Return the agents that are at work now, by name."""
        now = time.monotonic()
        self._read_log(now)
        for agent in self._known.values():
            agent.held = 0
        self._count_held(now)
        self._known = {name: one for name, one in self._known.items() if now - one.heard_at < LIVE}
        return [self._known[name] for name in sorted(self._known)]

    def _read_log(self, now: float) -> None:
        self.lapsed = []
        is_first = self._cursor is None
        since = times.rfc3339(time.time_ns() // 1_000_000 - _BEFORE) if is_first else None
        for _ in range(_PAGES_MOST):
            events = self._yard.events(event=(*_SIGNS, "reaped"), since=since, cursor=self._cursor, limit=_PAGE)
            self._cursor = events.cursor
            for event in events:
                name = event["worker"]
                if name is None:
                    continue
                if event["event"] == "reaped":
                    self._known.pop(name, None)
                    if not is_first:
                        self.lapsed.append((name, event["task"]))
                else:
                    self._hear(name, event["kind"], now)
            if len(events) < _PAGE:
                return

    def _count_held(self, now: float) -> None:
        cursor = None
        for _ in range(_PAGES_MOST):
            page = self._yard.find(state="processing", limit=_PAGE, cursor=cursor)
            for task in page:
                if task.worker is not None:
                    self._hear(task.worker, task.kind, now).held += 1
            cursor = page.next
            if cursor is None:
                return

    def _hear(self, name: str, kind: str, now: float) -> Agent:
        agent = self._known.setdefault(name, Agent(name))
        agent.kinds.add(kind)
        agent.heard_at = now
        return agent
