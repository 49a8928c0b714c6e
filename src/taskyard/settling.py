"""What a claim's verbs do: each a compare-and-swap on the handle, with the same answer to the same ending said again.

`Claim` is the public side of these.
"""

from __future__ import annotations

from taskyard import draft, moves, times
from taskyard.errors import ClaimLost, Conflict, NotFound
from taskyard.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.claim import Claim
    from taskyard.moves import Move
    from taskyard.store import Store
    from taskyard.task import Handle, Standing
    from taskyard.yard import Yard

_ENDINGS = {"done": State.DONE, "fail": State.FAILED}
GIVEN_UP = {"release": "released", "fail": "error"}


def renew(yard: Yard, claim: Claim, progress: float | None, note: str | None) -> str:
    """Begin the lease anew and give its end."""
    handle = claim._parsed()
    current = claim._standing or yard._store.stand(handle.id)
    if current.is_under(handle) and current.state is State.PROCESSING:
        until = yard._store.renew(current, progress, note)
        if until is not None:
            yard._tend()  # after the renewal: a holder that slept past its lease must not reap its own claim
            return times.rfc3339(until)
    raise _refused(yard, handle, "heartbeat" if note is None else "note", None)


def settle(yard: Yard, claim: Claim, verb: str, decide: Callable[[Standing], Move], connection: Any = None) -> None:
    """End the claim as decided, if it still holds its task; on a connection, as part of the transaction there."""
    store, standing = yard._store, claim._standing
    if connection is not None:
        store = store.within(connection)
    if standing is None:
        handle = claim._parsed()
        standing = _stand(yard, store, handle)
        if not standing.is_under(handle) or standing.state is not State.PROCESSING:
            return _repeat(yard, store, handle, standing, verb, decide)
    if store.shift(standing, decide(standing), yard.worker):
        if connection is None and (claim._has_workdir or claim._standing is None):
            store.tidy(claim._parsed())
            yard._tend()  # after the ending, for the same reason; a worker in a loop does its share when it claims
        return None
    handle = claim._parsed()
    return _repeat(yard, store, handle, _stand(yard, store, handle), verb, decide)


def finish(yard: Yard, ended: Sequence[tuple[Claim, Any]]) -> list[bool]:
    """Which of these claims are done now with these results; to say it of the others alone tells why they are not."""
    shifts = []
    for claim, result in ended:
        assert claim._standing is not None  # it was won here
        shifts.append((claim._standing, moves.done(claim._standing, result)))
    made = yard._store.shift_many(shifts, yard.worker)
    for (claim, _), done in zip(ended, made, strict=True):
        if done:
            claim._over = True
            if claim._has_workdir:
                yard._store.tidy(claim._parsed())
    return made


def _stand(yard: Yard, store: Store, handle: Handle) -> Standing:
    """How the task stands where `store` looks; `Conflict` if that is a transaction which cannot see the claim yet."""
    try:
        current = store.stand(handle.id)
        if store is yard._store or current.is_under(handle):
            return current
    except NotFound:
        if store is yard._store:
            raise
    current = yard._store.stand(handle.id)
    if current.is_under(handle) and current.state is State.PROCESSING:
        raise Conflict(
            f"the transaction sees only what was there before the claim {handle}, which holds its task",
            hint="roll back, and say it again in a transaction that begins after the claim, or is READ COMMITTED",
        )
    return current


def _repeat(
    yard: Yard, store: Store, handle: Handle, current: Standing, verb: str, decide: Callable[[Standing], Move]
) -> None:
    """Answer a verb on a claim that is over: the same answer to the same ending, a refusal to all else.

    What is refused is told and kept by the yard itself, whatever becomes of a transaction that `store` may be in.
    """
    move = decide(_as_held(current, handle))
    if current.is_under(handle):
        if _ENDINGS.get(verb) is current.state:
            if move.result is not None and draft.kept(move.result) != store.get(handle.id).task.result:
                yard._store.refuse(handle, verb, move, yard.worker)
            return
        if verb in _ENDINGS:
            yard._store.refuse(handle, verb, move, yard.worker)
            raise Conflict(
                f"this claim has ended task {handle.id} already: it is {current.state}",
                hint="the first ending stands; what came now is kept as a stale result ('taskyard show')",
            )
    elif any(
        entry["claim"] == str(handle) and GIVEN_UP.get(verb) == entry["outcome"]
        for entry in store.get(handle.id).history
    ):
        return
    raise _refused(yard, handle, verb, move if verb in _ENDINGS else None)


def _refused(yard: Yard, handle: Handle, verb: str, move: Move | None) -> ClaimLost:
    yard._store.refuse(handle, verb, move, yard.worker)
    task = yard._store.get(handle.id).task
    by = f" by {task.worker} under fence {task.fence}" if task.state is State.PROCESSING else ""
    kept = "; what this claim brought is kept as a stale result" if move is not None else ""
    return ClaimLost(f"the claim {handle} is over: the task is {task.state}{by} now{kept}")


def _as_held(standing: Standing, handle: Handle) -> Standing:
    """The standing as this handle last knew it, for deciding what its late verb would have brought."""
    held = standing.copy()
    held.state, held.fence, held.nonce = State.PROCESSING, handle.fence, handle.nonce
    return held
