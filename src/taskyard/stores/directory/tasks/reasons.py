"""What a directory knows about why nothing is ready, beside its tasks: this only reads."""

from __future__ import annotations

from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import Token, begun, due_of, is_minute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.core.limits import Reached
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.asked import Asked
    from taskyard.stores.directory.tasks.claims import Claims

_ENOUGH = 2000  # names of one bucket that are read before it counts to the minute


class DirectoryReasons:
    """The `Reasons` part of the directory store."""

    def __init__(self, context: Context, asked: Asked, claims: Claims) -> None:
        self._context = context
        self._asked = asked
        self._claims = claims
        self.url = context.root

    @explains_errors
    def now(self) -> int:
        """Return the file server's time."""
        return self._context.clock.now()

    @explains_errors
    def asked(self) -> dict[str | None, int]:
        """Return when a claim last asked for each kind, and under None for any."""
        return self._asked.read()

    @explains_errors
    def using(self, resources: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """Return the running task, its worker and what it uses, for each of these resources that is not free."""
        taken = self._claims.uses.taken()
        found = {name: clash for name in resources if (clash := taken.conflict(name)) is not None}
        tokens = {name: (Token.parse(holder), key) for name, (key, holder) in found.items()}
        return {name: (token.id, token.worker or "", key) for name, (token, key) in tokens.items() if token is not None}

    @explains_errors
    def backlog(self) -> dict[str | None, tuple[int, int]]:
        """Return for each bound how many tasks wait for a worker, and how many may."""
        from taskyard.stores.directory.tasks.backlog import Backlog

        part = Backlog(self._context)
        counts: dict[str | None, int] = {kind: row[0] for kind, row in part.count().items()} if part.bounds else {}
        counts[None] = sum(counts.values())
        return {kind: (counts.get(kind, 0), most) for kind, most in part.bounds.items()}

    @explains_errors
    def reached(self) -> list[Reached]:
        """Return the limits that are reached now."""
        return self._claims.limits.reached() if self._context.kinds else []

    @explains_errors
    def next_due(self, kinds: frozenset[str] | None) -> int | None:
        """Return when the first waiting task of these kinds is due; to the minute, if very many are.

        A coarse bucket may begin before a fine one and end after it: so all are looked at that begin before the soonest found.
        """
        folder, soonest = f"{self._context.root}/waiting", None
        for bucket in sorted(self._context.locator.names(folder)):
            if soonest is not None and not begun(bucket, soonest):
                break
            soonest = self._soonest(f"{folder}/{bucket}", kinds, soonest)
        return soonest

    def _soonest(self, bucket: str, kinds: frozenset[str] | None, soonest: int | None) -> int | None:
        seen = 0
        for segment in self._context.locator.names(bucket):
            if seen > _ENOUGH and soonest is not None and is_minute(bucket.rpartition("/")[2]):
                break  # so it is right to the minute
            names = self._context.locator.names(f"{bucket}/{segment}")
            seen += len(names)
            for name in names:
                due = due_of(name)
                if due is None or (soonest is not None and due >= soonest):
                    continue  # a bucket may have a hundred thousand names: most need not be parsed
                token = Token.parse(name)
                if token is not None and (kinds is None or token.lane.kind in kinds):
                    soonest = due
        return soonest
