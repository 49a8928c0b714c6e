"""The settings and pauses of a memory yard."""

from __future__ import annotations

import json

from taskyard.core import backlog, settings
from taskyard.core.retry import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.memory.open_tasks import OpenTasks
    from taskyard.stores.memory.tasks import MemoryTasks


class MemorySettings:
    """The settings that one store works by; all openers of the yard share what is written."""

    def __init__(self, tasks: OpenTasks) -> None:
        self._tasks = tasks
        self._heeded: dict[str, Any] = {}
        self.policy = Policy()
        self.checks: dict[str, list[str]] = {}
        self.bounds: dict[str | None, int] = {}

    def read(self) -> dict[str, Any]:
        """Return the settings that were set."""
        with self._tasks() as shelf:
            return dict(json.loads(json.dumps(shelf.settings)))

    def change(self, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the settings by what `changed` makes of them, and return them."""
        with self._tasks() as shelf:
            shelf.settings = changed(shelf.settings)
            self.heed(shelf)
            shelf.ring()
            return self.read()

    def heed(self, shelf: MemoryTasks) -> None:
        """Work by the settings that another opener has changed since they were read here."""
        if self._heeded is shelf.settings:
            return
        self._heeded = shelf.settings
        given = settings.parse(self._heeded, self._tasks.url)
        self.policy.become(given.policy)
        self.checks = given.checks
        self.bounds = backlog.bounds(given.max_todo, given.kinds)
        shelf.kinds = given.kinds

    def pause(self, kind: str | None, on: bool) -> None:
        """Pause this kind, or with None the whole yard; with `on` false, end that pause."""
        with self._tasks() as shelf:
            if kind is None:
                shelf.paused = on
            elif on:
                shelf.paused_kinds.add(kind)
            else:
                shelf.paused_kinds.discard(kind)
            shelf.reconsider()
            shelf.ring()

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        with self._tasks() as shelf:
            return shelf.paused, frozenset(shelf.paused_kinds)
