"""Every change of a task's state, as pure functions from where it stands to the move to make.

A move that the state does not allow is refused with `Conflict`. Two rules hold for all of them and make late workers
harmless: a claim's own ending keeps its fence and nonce, so the ended task names the claim that ended it; every other
move raises the fence by one, so no name or number comes twice.
"""

from __future__ import annotations

from taskyard.core import ids, retry
from taskyard.core.errors import Conflict
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.retry import Policy
    from taskyard.core.task import Standing

_PROCESSING, _DONE = State.PROCESSING, State.DONE  # looked up once: the hot path pays for every enum's member


class Move:
    """One change of state, decided: what the store has to make atomic, and what it writes down beside it."""

    __slots__ = (
        "crashes",
        "delay",
        "draft",
        "due_anew",
        "errors",
        "event",
        "fence",
        "if_lapsed",
        "outcome",
        "reason",
        "result",
        "to",
    )

    def __init__(
        self,
        event: str,
        to: State,
        fence: int,
        errors: int,
        crashes: int,
        delay: float = 0.0,
        outcome: str | None = None,
        reason: str | None = None,
        result: Any = None,
    ) -> None:
        self.event = event
        self.to = to
        self.fence = fence
        self.errors = errors
        self.crashes = crashes
        self.delay = delay
        """Seconds from the store's now until the task is due; only where `to` is waiting."""
        self.outcome = outcome
        """How the claim ended (done, error, crash, released, cancelled, resumed), or None where no claim ends."""
        self.reason = reason
        self.result = result
        self.if_lapsed = False
        """Make it only if the claim's lease is over at that moment, or its process dead."""
        self.draft: Draft | None = None
        """What the task asks for from now on, where the move is an edit."""
        self.due_anew = False
        """Whether that draft also says when the task is due; else its time stays as it was."""

    def details(self) -> dict[str, Any]:
        """What the event of this move says beyond who did what to which task."""
        details: dict[str, Any] = {} if self.reason is None else {"reason": self.reason}
        if self.event in ("failed", "reaped"):
            details = {"final": self.to is State.FAILED, "reason": self.reason}
        return details

    @property
    def keeps_claim(self) -> bool:
        """Whether this is the claim's own ending, whose name stays with the task."""
        return self.outcome in ("done", "error") and self.to.ended


def done(standing: Standing, result: Any = None) -> Move:
    """The holder is finished."""
    if standing.state is not _PROCESSING:
        _held(standing, "be done")
    return Move("done", _DONE, standing.fence, standing.errors, standing.crashes, 0.0, "done", None, result)


def failed(standing: Standing, policy: Policy, reason: str, again: bool = True) -> Move:
    """The holder gives up with an error: back with a delay while attempts are left, else failed."""
    _held(standing, "fail")
    errors = standing.errors + 1
    delay = retry.after_error(policy, errors, standing.max_attempts) if again else None
    if delay is None:
        return Move("failed", State.FAILED, standing.fence, errors, standing.crashes, outcome="error", reason=reason)
    return _back("failed", standing, delay, errors, standing.crashes, "error", reason)


def released(standing: Standing, delay: float = 0.0, reason: str | None = None) -> Move:
    """The holder hands the task back, for now or for later; nothing is counted."""
    _held(standing, "be released")
    return _back("released", standing, delay, standing.errors, standing.crashes, "released", reason)


def reaped(standing: Standing, policy: Policy) -> Move:
    """The holder has not been seen for a lease, or is dead, or another program gave its task back: only if that still holds."""
    if standing.returned:
        move = released(standing, reason="another program gave it back before its lease was over")
    else:
        why = f"the lease of {standing.lease:g} s ended without a heartbeat from {standing.worker}"
        move = crashed(standing, policy, f"the worker {standing.worker} died" if standing.dead else why)
    move.if_lapsed = True
    return move


def crashed(standing: Standing, policy: Policy, reason: str) -> Move:
    """The holder is gone: back at once the first time, with a delay later, failed at the cap."""
    _held(standing, "be reaped")
    crashes = standing.crashes + 1
    delay = retry.after_crash(policy, crashes)
    if delay is None:
        return Move(
            "reaped", State.FAILED, standing.fence + 1, standing.errors, crashes, outcome="crash", reason=reason
        )
    return _back("reaped", standing, delay, standing.errors, crashes, "crash", reason)


def woken(standing: Standing) -> Move:
    """The task is due."""
    if standing.state is not State.WAITING:
        raise Conflict(f"task {standing.short} is {standing.state}, not waiting")
    return Move("due", State.TODO, standing.fence + 1, standing.errors, standing.crashes)


def unblocked(standing: Standing, later: bool) -> Move:
    """All that must be done before the task is done: it is ready, or waits until it is due."""
    if standing.state is not State.BLOCKED:
        raise Conflict(f"task {standing.short} is {standing.state}, not blocked")
    to = State.WAITING if later else State.TODO
    return Move("unblocked", to, standing.fence + 1, standing.errors, standing.crashes)


def cancelled(standing: Standing, reason: str | None = None) -> Move:
    """Somebody calls the task off; a claim that holds it is lost."""
    if standing.state.ended:
        raise Conflict(f"task {standing.short} has ended already: it is {standing.state}")
    outcome = "cancelled" if standing.state is State.PROCESSING else None
    return Move(
        "cancelled",
        State.CANCELLED,
        standing.fence + 1,
        standing.errors,
        standing.crashes,
        outcome=outcome,
        reason=reason,
    )


def retried(standing: Standing) -> Move:
    """Somebody wants the task tried now: an ended one starts over with its counters at zero, a waiting one is due."""
    if standing.state is State.WAITING:
        return Move("retried", State.TODO, standing.fence + 1, standing.errors, standing.crashes)
    if standing.state in (State.FAILED, State.CANCELLED):
        # Called off while it was blocked, it is so still: what must be done before it is not.
        return Move("retried", State.BLOCKED if standing.unmet else State.TODO, standing.fence + 1, 0, 0)
    hints = {
        State.DONE: "it is done; add a new task to do it once more",
        State.TODO: "it is in todo already and will be handed out",
        State.PROCESSING: "a worker holds it; it comes back by itself if that worker fails",
        State.BLOCKED: _waits_for(standing),
    }
    raise Conflict(
        f"task {standing.short} is {standing.state}: only failed, cancelled and waiting tasks can be retried",
        hint=hints[standing.state],
    )


def editable(standing: Standing) -> None:
    """Raise `Conflict` unless the task is one that can be edited."""
    if standing.state not in (State.TODO, State.WAITING, State.BLOCKED):
        hints = {
            State.PROCESSING: "a worker holds it; it can be edited if it comes back to todo",
            State.DONE: "it is done; add another task",
            State.FAILED: "'taskyard retry' puts it back into todo; then it can be edited",
            State.CANCELLED: "'taskyard retry' puts it back into todo; then it can be edited",
        }
        raise Conflict(
            f"task {standing.short} is {standing.state}: only tasks that nobody holds and that have not ended can be edited",
            hint=hints[standing.state],
        )


def edited(standing: Standing, draft: Draft, timed: bool) -> Move:
    """Somebody changes a task that no worker holds; `timed` says that its time was changed too."""
    editable(standing)
    to = standing.state
    if timed and to is not State.BLOCKED:
        to = State.WAITING if draft.delay or draft.not_before is not None else State.TODO
    move = Move("edited", to, standing.fence + 1, standing.errors, standing.crashes)
    move.draft, move.due_anew = draft, timed
    return move


def resumed(standing: Standing) -> Move:
    """The worker of this name is back without its memory, and takes its claim again; the old one is shut out."""
    _held(standing, "be resumed")
    return Move("claimed", State.PROCESSING, standing.fence + 1, standing.errors, standing.crashes, outcome="resumed")


def claimed(standing: Standing, worker: str | None) -> int:
    """The fence of a claim of this very task by this worker."""
    if standing.state is State.PROCESSING and standing.worker == worker:
        raise Conflict(
            f"task {standing.short} is processing: you hold it already, as {worker}", hint=lost_handle(standing)
        )
    if standing.state is not State.TODO:
        raise Conflict(
            f"task {standing.short} is {standing.state}, and only a task in todo can be claimed",
            hint=_waits_for(standing) if standing.state is State.BLOCKED else None,
        )
    if standing.assignee is not None and standing.assignee != worker:
        raise Conflict(
            f"task {standing.short} is assigned to {standing.assignee!r}",
            hint="only that worker can claim it (--worker)",
        )
    return standing.fence + 1


def lost_handle(standing: Standing) -> str:
    """How its worker gets on with a held task whose handle it has lost."""
    return (
        f"use the handle that its claim printed; if that is lost, 'taskyard resume --worker {standing.worker}' "
        f"gives {standing.worker}'s claims new handles, and the old ones are over then"
    )


def paused(standing: Standing, whole: bool) -> Conflict:
    """The refusal to hand out this very task while its kind, or the whole yard, is paused."""
    what, words = ("the yard", "") if whole else (f"the kind {standing.kind!r}", f" {standing.kind}")
    return Conflict(
        f"task {standing.short} is not handed out while {what} is paused",
        hint=f"'taskyard unpause{words}' ends the pause",
    )


def in_use(standing: Standing, resource: str, holder: Standing) -> Conflict:
    """The refusal to hand out this very task while another one that runs has to itself what both use."""
    return Conflict(
        f"task {standing.short} uses {resource!r}, and so does task {holder.short}, which runs",
        hint=f"{holder.worker} has {resource!r} until task {holder.short} ends or is given back; claim it again then",
    )


def _waits_for(standing: Standing) -> str:
    if not standing.unmet:
        return "it waits for other tasks to be done"
    some = ", ".join(map(ids.short, standing.unmet[:3])) + (
        f" and {len(standing.unmet) - 3} more" if len(standing.unmet) > 3 else ""
    )
    return f"it waits for {some} to be done"


def _held(standing: Standing, verb: str) -> None:
    if standing.state is not State.PROCESSING:
        raise Conflict(f"task {standing.short} is {standing.state}: nobody holds it, so it cannot {verb}")


def _back(
    event: str, standing: Standing, delay: float, errors: int, crashes: int, outcome: str, reason: str | None
) -> Move:
    to = State.WAITING if delay > 0 else State.TODO
    return Move(event, to, standing.fence + 1, errors, crashes, delay, outcome, reason)
