"""What a yard answers about its spool: a yard without a server has none. `taskyard.spool` has the yards that do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.port import ClaimRef


class Unspooled:
    """A yard without a spool."""

    notices: Sequence[str] = ()
    """What became of spooled adds and endings that somebody should know: each for people to read."""

    def tend_spool(self) -> None:
        """Replay a share of the spool, if there is something in it and the server is there."""

    def is_spooled(self, claim: ClaimRef) -> bool:  # noqa: ARG002
        """Whether this yard has put the ending of this claim into its spool."""
        return False

    def spool(self) -> dict[str, Any]:
        """Return the `path` of the spool, None if there is none, and its `entries`, oldest first."""
        return {"path": None, "entries": []}

    def replay_spool(self, *, failed: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Say everything in the spool to the yard, now; with `failed`, also what it has refused before. Return what became of it."""
        return {"path": None, "entries": [], "replayed": 0, "stale": 0, "failed": 0, "left": 0}
