"""What a claim's verbs do: each a compare-and-swap on the handle, with the same answer to the same ending said again.

`Claim` is the public side of these.
"""

from __future__ import annotations

from taskyard.core import draft, moves, times
from taskyard.core.errors import ClaimLost, Conflict, Invalid, NotFound
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.task import Handle, Standing
    from taskyard.store import Report, Store
    from taskyard.yard import Yard
    from taskyard.yard.claim import Claim

_ENDINGS = {"done": State.DONE, "fail": State.FAILED}
GIVEN_UP = {"release": "released", "fail": "error"}
_SLIPS = (
    2  # characters of a nonce that are taken for mistyped; two claims of one task and fence share none but by chance
)


def renew(yard: Yard, claim: Claim, progress: float | None, note: str | None) -> str:
    """Begin the lease anew and give its end."""
    handle = claim._parsed()
    current = claim._standing or yard._store.stand(handle.id)
    if current.is_under(handle) and current.state is State.PROCESSING:
        until = yard._store.renew(current, progress, note)
        if until is not None:
            yard._tend()  # after the renewal: a holder that slept past its lease must not reap its own claim
            return times.rfc3339(until)
        current = yard._store.stand(handle.id)
    _refuse_mistyped(yard._store.get(handle.id), handle, current)
    raise _refused(yard, handle, "heartbeat" if note is None else "note", None)


def settle(yard: Yard, claim: Claim, verb: str, decide: Callable[[Standing], Move], connection: Any = None) -> State:
    """End the claim as decided, if it still holds its task, and give the task's state; on a connection, within its transaction."""
    store, standing = yard._store, claim._standing
    if connection is not None:
        store = store.within(connection)
    if standing is None:
        handle = claim._parsed()
        standing = _stand(yard, store, handle)
        if not standing.is_under(handle) or standing.state is not State.PROCESSING:
            return _repeat(yard, store, handle, standing, verb, decide)
    move = decide(standing)
    if store.shift(standing, move, yard.worker):
        if connection is None and (claim._has_workdir or claim._standing is None):
            store.tidy(claim._parsed())
            yard._tend()  # after the ending, for the same reason; a worker in a loop does its share when it claims
        return move.to
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
) -> State:
    """Answer a verb on a claim that is over: the same answer to the same ending, a refusal to all else.

    What is refused is told and kept by the yard itself, whatever becomes of a transaction that `store` may be in.
    """
    report = _report(yard, store, handle.id)
    _refuse_mistyped(report, handle, current)
    move = decide(_as_held(current, handle))
    if _is_said_again(report, handle, current, verb, move):
        store.confirm(current)
        return current.state
    if verb in _ENDINGS and current.is_under(handle):
        yard._store.refuse(handle, verb, move, yard.worker)
        raise _ended_otherwise(yard, current, verb)
    raise _refused(yard, handle, verb, move if verb in _ENDINGS else None)


def _report(yard: Yard, store: Store, id: str) -> Report:
    try:
        return store.get(id)
    except NotFound:  # in a transaction that began before the task was added
        return yard._store.get(id)


def _is_said_again(report: Report, handle: Handle, current: Standing, verb: str, move: Move) -> bool:
    """Whether this claim ended so before, with the same result or reason: then a reply was lost, and nothing is new."""
    if verb == "done":
        ended = current.is_under(handle) and current.state is State.DONE
        return ended and draft.kept(move.result) == report.task.result
    return any(
        entry["claim"] == str(handle)
        and entry["outcome"] == GIVEN_UP.get(verb)
        and (verb == "release" or entry["reason"] == move.reason)
        for entry in report.history
    )


def _ended_otherwise(yard: Yard, ended: Standing, verb: str) -> Conflict:
    """The refusal of a second ending that brings something else; most often a handle that was kept too long."""
    same = ended.state is _ENDINGS[verb]
    how = f", with another {'result' if verb == 'done' else 'reason'}" if same else ""
    hint = f"the first ending stands; what came now is kept as a stale result ('taskyard show {ended.id}')"
    workers = dict.fromkeys((yard.worker, ended.worker))
    held = [one for name in workers if name is not None for one in yard._store.held(name)]
    if held:
        now = ", ".join(f"task {one.id} under {one.id}.{one.fence}.{one.nonce}" for one in held[:3])
        hint += (
            f". {held[0].worker} holds {now}{', ...' if len(held) > 3 else ''}: name that handle if you mean that task"
        )
    return Conflict(f"this claim has ended task {ended.id} already: it is {ended.state}{how}", hint=hint)


def _refuse_mistyped(report: Report, handle: Handle, current: Standing) -> None:
    """Raise `Invalid` if the task has had a claim of this fence whose nonce differs in a character or two.

    It is nobody's late verb, so nothing is logged or kept.
    """
    nonces = {entry["claim"].rpartition(".")[2] for entry in report.history if entry["fence"] == handle.fence}
    if current.fence == handle.fence and current.nonce is not None:
        nonces.add(current.nonce)
    if handle.nonce not in nonces and any(_slips(nonce, handle.nonce) <= _SLIPS for nonce in nonces):
        raise Invalid(
            f"the handle {handle} is mistyped: the last part of that claim's handle differs from it a little",
            hint="copy the whole handle from where 'taskyard claim' printed it; nothing was changed",
        )


def _slips(one: str, other: str) -> int:
    """How many characters have to be put in, left out or replaced to make one of the other."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, its in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != its))
    return row[-1]


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
