"""Check what depends on time: expired leases, buckets of waiting tasks, and the locks of claims."""

from __future__ import annotations

from taskyard.core.task import State
from taskyard.core.times import rfc3339
from taskyard.core.words import encoded
from taskyard.stores.directory.names import bucket
from taskyard.stores.directory.recovery.liveness import INCARNATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.tasks.locate import Found

LONG = 60_000  # milliseconds, added to twelve sweeps: what is overdue for longer shows that no sweep runs
_HOUR, _DAY = 3_600_000, 86_400_000


def problems(audit: AuditContext, found: Found, moved_at: int) -> Iterator[tuple[str, str]]:
    """Check a held or waiting task."""
    if found.state is State.PROCESSING:
        yield from _held(audit, found, moved_at)
    elif found.state is State.WAITING:
        yield from _waiting(audit, found)


def _late(audit: AuditContext) -> float:
    return LONG + 12_000 * audit.context.policy.sweep_every


def _held(audit: AuditContext, found: Found, moved_at: int) -> Iterator[tuple[str, str]]:
    token = found.token
    over = audit.now - moved_at - (token.lease or 0)
    if over > _late(audit):
        yield "lapsed", f"held by {token.worker}, whose lease ended at {rfc3339(audit.now - over)}"
    if token.vouched:
        lock = f"{audit.root}/workers/{encoded(token.worker or '')}-{(token.nonce or '')[:INCARNATION]}"
        if not audit.has(lock):
            yield "unlocked_claim", f"held by {token.worker}, whose file in workers/ is gone"


def _waiting(audit: AuditContext, found: Found) -> Iterator[tuple[str, str]]:
    due = found.token.due
    if due is None:
        return  # the check of names reports it
    late = audit.now - due
    own = [bucket(due, due - ahead) for ahead in (0, 3 * _HOUR, 3 * _DAY)]
    actual = found.place[0].rsplit("/", 2)[1]
    if actual > own[0]:
        yield "bucket_late", f"due in {own[0]}, in bucket {actual}"
    elif actual not in own:
        yield "bucket_early", f"due in {own[0]}, in bucket {actual}"
    elif late > _late(audit):
        yield "overdue", f"due since {rfc3339(due)}"
