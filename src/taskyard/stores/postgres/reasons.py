"""What the database knows about why nothing is ready, beside its tasks; and the notes of what claims ask for."""

from __future__ import annotations

import time

from taskyard.core.errors import TaskyardError
from taskyard.core.limits import Reached
from taskyard.stores.postgres import driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.stores.postgres.context import Context

EVERY = 60.0  # seconds between two notes of the same kinds by one process
_SORTS_MOST = 1000  # sets of kinds that one process remembers
_ANY = ""  # the kind that stands for any in the table: no task has it


class PostgresReasons:
    """The `Reasons` part of the PostgreSQL store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._noted: dict[frozenset[str] | None, float] = {}

    def note(self, kinds: frozenset[str] | None) -> None:
        """Note that a claim asks for these kinds, or for any; a database that refuses is no reason to fail."""
        now = time.monotonic()
        if now - self._noted.get(kinds, -EVERY) < EVERY or self._context.pool.is_full:
            return
        if len(self._noted) >= _SORTS_MOST:
            self._noted.clear()
        self._noted[kinds] = now
        try:
            self._context.run("reasons", "note_asked", {"kinds": [_ANY] if kinds is None else sorted(kinds)})
        except (TaskyardError, *driver.errors()):
            return

    def now(self) -> int:
        """Return the database's time."""
        [(now,)] = self._context.run("reasons", "now")
        return int(now)

    def asked(self) -> dict[str | None, int]:
        """Return when a claim last asked for each kind, and under None for any."""
        return {None if kind == _ANY else kind: at for kind, at in self._context.run("reasons", "asked")}

    def using(self, resources: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """Return the running task, its worker and what it uses, for each of these resources that is not free."""
        found = self._context.run("claims", "holder", {"uses": list(resources)})
        return {resource: (id, worker, held) for resource, id, worker, held in found}

    def backlog(self) -> dict[str | None, tuple[int, int]]:
        """Return for each bound how many tasks wait for a worker, and how many may."""
        bounds = self._context.bounds
        counts: dict[str | None, int] = dict(self._context.run("reasons", "backlog")) if bounds else {}
        counts[None] = sum(counts.values())
        return {kind: (counts.get(kind, 0), most) for kind, most in bounds.items()}

    def reached(self) -> list[Reached]:
        """Return the limits that are reached now."""
        found = {row[0]: Reached(*row) for row in reversed(self._context.run("reasons", "reached"))}
        return list(found.values())

    def next_due(self, kinds: frozenset[str] | None) -> int | None:
        """Return when the first waiting task of these kinds is due."""
        found = self._context.run("reasons", "next_due", {"kinds": None if kinds is None else sorted(kinds)})
        return found[0][0] if found else None
