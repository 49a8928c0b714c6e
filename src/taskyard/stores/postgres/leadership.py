"""Which orchestrator leads a project: one row, with a lease on the database's time."""

from __future__ import annotations

from taskyard.core.store_records import Lead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.postgres.context import Context


class PostgresLeadership:
    """Hands out the leadership of one project."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def lead(self, worker: str, incarnation: str, seconds: float) -> Lead:
        """Lead if this incarnation does already, or no other has renewed the leadership for `seconds`; return who leads."""
        values = {"worker": worker, "incarnation": incarnation, "lease": round(seconds * 1000)}
        found = self._context.run("leadership", "lead", values)
        return Lead(*found[0]) if found else Lead(None, 0, False)

    def resign(self, incarnation: str) -> bool:
        """Whether this incarnation led, and does so no more."""
        return bool(self._context.run("leadership", "resign", {"incarnation": incarnation}))
