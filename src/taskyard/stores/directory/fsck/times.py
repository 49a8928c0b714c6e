"""What a task's name and its time say together: leases that are over, buckets, and whose lock a claim speaks of."""

from __future__ import annotations

from taskyard.core.task import State
from taskyard.core.times import rfc3339
from taskyard.core.words import encoded
from taskyard.stores.directory.names import bucket
from taskyard.stores.directory.recovery.liveness import INCARNATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.tasks.locate import Found

LONG = 60_000  # milliseconds and twelve sweeps: nobody looks after the yard if what is overdue is so late
_HOUR, _DAY = 3_600_000, 86_400_000


def judged(scene: Scene, found: Found, moved_at: int) -> Iterator[tuple[str, str]]:
    """What is late, and what lies in the wrong bucket."""
    if found.state is State.PROCESSING:
        yield from _held(scene, found, moved_at)
    elif found.state is State.WAITING:
        yield from _waiting(scene, found)


def _late(scene: Scene) -> float:
    return LONG + 12_000 * scene.context.policy.sweep_every


def _held(scene: Scene, found: Found, moved_at: int) -> Iterator[tuple[str, str]]:
    token = found.token
    over = scene.now - moved_at - (token.lease or 0)
    if over > _late(scene):
        yield "lapsed", f"held by {token.worker}, whose lease ended at {rfc3339(scene.now - over)}"
    if token.vouched:
        lock = f"{scene.root}/workers/{encoded(token.worker or '')}-{(token.nonce or '')[:INCARNATION]}"
        if not scene.has(lock):
            yield "unlocked_claim", f"held by {token.worker}, whose file in workers/ is gone"


def _waiting(scene: Scene, found: Found) -> Iterator[tuple[str, str]]:
    due = found.token.due
    if due is None:
        return  # told of as a name that is not legal
    late = scene.now - due
    own = [bucket(due, due - ahead) for ahead in (0, 3 * _HOUR, 3 * _DAY)]
    lies_in = found.place[0].rsplit("/", 2)[1]
    if lies_in > own[0]:
        yield "bucket_late", f"due in {own[0]}, in bucket {lies_in}"
    elif lies_in not in own:
        yield "bucket_early", f"due in {own[0]}, in bucket {lies_in}"
    elif late > _late(scene):
        yield "overdue", f"due since {rfc3339(due)}"
