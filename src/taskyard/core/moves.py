"""Every change of a task's state, as pure functions from its standing to the move to make.

Each raises `Conflict` if the state does not allow the move. Two rules hold for all moves and make late workers
harmless. A claim's own ending keeps its fence and nonce, so the ended task names the claim that ended it. Every other
move raises the fence by one, so no name or number comes twice.
"""

from __future__ import annotations

from taskyard.core import ids, retry
from taskyard.core.errors import Conflict
from taskyard.core.task import SUBMITTED, State
from taskyard.core.times import LONGEST, rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.limits import Reached
    from taskyard.core.retry import Policy
    from taskyard.core.task import Standing

_REJECTED = "rejected: "
_PROCESSING, _DONE = State.PROCESSING, State.DONE  # looked up once: an enum's member costs time on the hot path


class Move:
    """One decided change of state: what the store must make atomic, and what it records with it."""

    __slots__ = (
        "crashes",
        "delay",
        "draft",
        "due_anew",
        "errors",
        "event",
        "expires_anew",
        "fence",
        "if_lapsed",
        "outcome",
        "reason",
        "result",
        "reviewer",
        "submits",
        "to",
        "unmet",
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
        """Seconds from the store's now until the task is due; only if `to` is waiting."""
        self.outcome = outcome
        """How the claim ended (done, error, crash, released, cancelled, resumed), or None if no claim ends."""
        self.reason = reason
        self.result = result
        self.submits = False
        """Whether the claim brings a result that another one must accept; its record keeps that, also if it is None."""
        self.reviewer: Reviewer | None = None
        """Whose claim begins and ends with this move, under the standing's own fence."""
        self.if_lapsed = False
        """Make the move only if the claim's lease is over at that moment, or its process dead."""
        self.draft: Draft | None = None
        """The task's new draft, if the move is an edit."""
        self.due_anew = False
        """Whether that draft also sets when the task is due; otherwise its time stays."""
        self.expires_anew = False
        """Whether that draft also sets the task's deadline; otherwise it applies, or not, as before."""
        self.unmet: tuple[str, ...] | None = None
        """The needs of that draft that were unmet when it was decided; None if what the task comes after stays."""

    def details(self) -> dict[str, Any]:
        """Return the fields of this move's event beyond actor, act and task."""
        details: dict[str, Any] = {} if self.reason is None else {"reason": self.reason}
        if self.event in ("failed", "reaped"):
            details = {"final": self.to is State.FAILED, "reason": self.reason}
        return details

    @property
    def keeps_claim(self) -> bool:
        """Whether the claim itself ended the task, so that its fence and nonce stay with the task."""
        return self.outcome in ("done", "error") and self.to.ended


class Reviewer:
    """One judgement of what was submitted: the reviewer, the submission's nonce, and a word that no other judgement has."""

    __slots__ = ("nonce", "word", "worker")

    def __init__(self, worker: str, nonce: str, word: str) -> None:
        self.worker = worker
        self.nonce = nonce
        self.word = word


def done(standing: Standing, result: Any = None) -> Move:
    """The holder finishes the task."""
    if standing.state is not _PROCESSING:
        _held(standing, "be done")
    return Move("done", _DONE, standing.fence, standing.errors, standing.crashes, 0.0, "done", None, result)


def submitted(standing: Standing, result: Any = None) -> Move:
    """The holder finishes a task that another one must accept: it waits, and is not handed out meanwhile."""
    _held(standing, "be done")
    move = _back("released", standing, LONGEST, standing.errors, standing.crashes, "released", SUBMITTED)
    move.result, move.submits = result, True
    return move


def accepted(standing: Standing, reviewer: Reviewer, result: Any) -> Move:
    """A reviewer accepts what was submitted: the task is done, under the fence that it waited with."""
    _submitted(standing, "be accepted")
    move = Move("done", _DONE, standing.fence, standing.errors, standing.crashes, 0.0, "done", None, result)
    move.reviewer = reviewer
    return move


def rejected(standing: Standing, reviewer: Reviewer, note: str) -> Move:
    """A reviewer rejects what was submitted: the task is ready again at once, with the note; no error is counted."""
    _submitted(standing, "be rejected")
    fence = standing.fence + 1
    move = Move("released", State.TODO, fence, standing.errors, standing.crashes, 0.0, "released", rejection(note))
    move.reviewer = reviewer
    return move


def adopted(move: Move, worker: str, reason: str | None) -> Move:
    """Return a reviewer's move as another one has recorded it first."""
    first = Move(move.event, move.to, move.fence, move.errors, move.crashes, 0.0, move.outcome, reason, move.result)
    if move.reviewer is not None:
        first.reviewer = Reviewer(worker, move.reviewer.nonce, "")
    return first


def rejection(note: str) -> str:
    """Return the reason of a rejection, as the history has it."""
    return f"{_REJECTED}{note}"


def is_rejection(reason: object) -> bool:
    """Whether this is the reason of a rejection."""
    return isinstance(reason, str) and reason.startswith(_REJECTED)


def reviewed(standing: Standing, move: Move) -> Standing:
    """Return the standing of the claim that a move ends: the reviewer's, if the move is a review, else the task's own."""
    if move.reviewer is None:
        return standing
    claim = standing.copy()
    claim.worker, claim.nonce = move.reviewer.worker, move.reviewer.nonce
    return claim


def failed(standing: Standing, policy: Policy, reason: str, again: bool = True) -> Move:
    """The holder fails with an error: the task waits for a retry while attempts are left, else it is failed."""
    _held(standing, "fail")
    errors = standing.errors + 1
    delay = retry.after_error(policy, errors, standing.max_attempts) if again else None
    if delay is None:
        return Move("failed", State.FAILED, standing.fence, errors, standing.crashes, outcome="error", reason=reason)
    return _back("failed", standing, delay, errors, standing.crashes, "error", reason)


def released(standing: Standing, delay: float = 0.0, reason: str | None = None) -> Move:
    """The holder gives the task back, at once or after `delay` seconds; this counts as no attempt."""
    _held(standing, "be released")
    return _back("released", standing, delay, standing.errors, standing.crashes, "released", reason)


def reaped(standing: Standing, policy: Policy) -> Move:
    """Give back a task if its lease is over, its holder dead, or another program returned it, and that still holds."""
    if standing.returned:
        move = released(standing, reason="another program gave it back before its lease was over")
    else:
        why = f"the lease of {standing.lease:.10g} s ended without a heartbeat from {standing.worker}"
        move = crashed(standing, policy, f"the worker {standing.worker} died" if standing.dead else why)
    move.if_lapsed = True
    return move


def crashed(standing: Standing, policy: Policy, reason: str) -> Move:
    """The claim ends in a crash: the task is ready at once the first time, waits for a retry later, and fails at the cap."""
    _held(standing, "be reaped")
    crashes = standing.crashes + 1
    delay = retry.after_crash(policy, crashes)
    if delay is None:
        return Move(
            "reaped", State.FAILED, standing.fence + 1, standing.errors, crashes, outcome="crash", reason=reason
        )
    return _back("reaped", standing, delay, standing.errors, crashes, "crash", reason)


def woken(standing: Standing) -> Move:
    """The waiting task is due."""
    if standing.state is not State.WAITING:
        raise Conflict(f"task {standing.short} is {standing.state}, not waiting")
    return Move("due", State.TODO, standing.fence + 1, standing.errors, standing.crashes)


def unblocked(standing: Standing, later: bool) -> Move:
    """All tasks in `after` are done: the task is ready, or with `later` waits until it is due."""
    if standing.state is not State.BLOCKED:
        raise Conflict(f"task {standing.short} is {standing.state}, not blocked")
    to = State.WAITING if later else State.TODO
    return Move("unblocked", to, standing.fence + 1, standing.errors, standing.crashes)


def cancelled(standing: Standing, reason: str | None = None) -> Move:
    """Cancel the task; a claim that holds it is lost."""
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


def expired(standing: Standing, deadline: int) -> Move:
    """No worker has started the task by its deadline: cancel it."""
    if standing.state not in (State.TODO, State.WAITING, State.BLOCKED):
        raise Conflict(f"task {standing.short} is {standing.state}: only a task that no worker holds can expire")
    return cancelled(standing, f"expired: no worker had started it by {rfc3339(deadline)}")


def keeps_deadline(standing: Standing, move: Move) -> bool:
    """Whether the task's deadline applies after this move, if it did before.

    A deadline ends with the first start: neither a task that comes back after an error or a crash, nor a retried one, keeps it.
    """
    return not standing.state.ended and not move.errors and not move.crashes and not move.submits


def too_late(standing: Standing, deadline: int) -> Conflict:
    """Make the error for a claim by id of a task whose deadline has passed."""
    return Conflict(
        f"task {standing.short} expired at {rfc3339(deadline)}",
        hint=f"the next sweep cancels it; 'taskyard retry {standing.short}' then puts it back without a deadline",
    )


def cancelled_with(standing: Standing, other: str, state: State) -> Move:
    """A task that this one comes after is failed or cancelled, and by its need this one is cancelled with it."""
    if standing.state is not State.BLOCKED:
        raise Conflict(f"task {standing.short} is {standing.state}, not blocked")
    from taskyard.core import needs

    return cancelled(standing, needs.cancel_reason(other, state))


def retried(standing: Standing) -> Move:
    """Retry the task now: an ended one starts over with its counters at zero, a waiting one is due."""
    if standing.state is State.WAITING:
        return Move("retried", State.TODO, standing.fence + 1, standing.errors, standing.crashes)
    if standing.state in (State.FAILED, State.CANCELLED):
        # A task that was cancelled while blocked is blocked again: what must be done before it still is not.
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
    """Raise `Conflict` unless the task can be edited."""
    if standing.state not in (State.TODO, State.WAITING, State.BLOCKED):
        hints = {
            State.PROCESSING: "a worker holds it; it can be edited if it comes back to todo",
            State.DONE: "it is done; add another task",
            State.FAILED: "'taskyard retry' puts it back into todo; then it can be edited",
            State.CANCELLED: "'taskyard retry' puts it back into todo; then it can be edited",
        }
        raise Conflict(
            f"task {standing.short} is {standing.state}: only tasks that no worker holds and that have not ended can be edited",
            hint=hints[standing.state],
        )


def edited(
    standing: Standing,
    draft: Draft,
    timed: bool,
    unmet: tuple[str, ...] | None = None,
    later: bool = False,
    expires: bool = False,
) -> Move:
    """Edit a task that no worker holds; `timed` is set if its time was changed too, `expires` if its deadline was.

    `unmet` are the needs still open, if what it comes after was changed. With any the task is blocked. With none it is ready,
    or waits if `later`.
    """
    editable(standing)
    to = standing.state
    if unmet is not None:
        free = to if to is not State.BLOCKED else State.WAITING if later else State.TODO
        to = State.BLOCKED if unmet else free
    if timed and to is not State.BLOCKED:
        to = State.WAITING if draft.delay or draft.not_before is not None else State.TODO
    move = Move("edited", to, standing.fence + 1, standing.errors, standing.crashes)
    move.draft, move.due_anew, move.unmet, move.expires_anew = draft, timed, unmet, expires
    return move


def resumed(standing: Standing) -> Move:
    """A worker of the same name takes its claim again after it lost its memory; the old claim is lost."""
    _held(standing, "be resumed")
    return Move("claimed", State.PROCESSING, standing.fence + 1, standing.errors, standing.crashes, outcome="resumed")


def claimed(standing: Standing, worker: str | None) -> int:
    """Return the fence for a claim of this task by id; raise `Conflict` if this worker cannot claim it."""
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
    """Return the hint for a worker that has lost the handle of a task that it holds."""
    return (
        f"use the handle that its claim printed; if that is lost, 'taskyard resume --worker {standing.worker}' "
        f"gives {standing.worker}'s claims new handles, and the old ones are over then"
    )


def paused(standing: Standing, whole: bool) -> Conflict:
    """Make the error for a claim by id while the task's kind, or the whole yard, is paused."""
    what, words = ("the yard", "") if whole else (f"the kind {standing.kind!r}", f" {standing.kind}")
    return Conflict(
        f"task {standing.short} is not handed out while {what} is paused",
        hint=f"'taskyard unpause{words}' ends the pause",
    )


def limited(standing: Standing, reached: Reached, now: int) -> Conflict:
    """Make the error for a claim by id while a limit of the task's kind is reached."""
    from taskyard.core import limits

    fact = reached.fact(now)
    soon = "when one of them ends" if fact["in"] is None else f"in {fact['in']:g} s"
    return Conflict(
        f"task {standing.short} is not handed out now: {limits.sentence(fact)}", hint=f"claim it again {soon}"
    )


def in_use(standing: Standing, resource: str, held: str, holder: Standing) -> Conflict:
    """Make the error for a claim by id while `holder` runs and uses the same resource, or a folder around it or in it."""
    its = "and so does" if held == resource else f"and {held!r} is used by"
    return Conflict(
        f"task {standing.short} uses {resource!r}, {its} task {holder.short}, which runs",
        hint=f"{holder.worker} has {held!r} until task {holder.short} ends or is given back; claim it again then",
    )


def _waits_for(standing: Standing) -> str:
    if not standing.unmet:
        return "it waits for other tasks to be done"
    some = ", ".join(map(ids.short, standing.unmet[:3])) + (
        f" and {len(standing.unmet) - 3} more" if len(standing.unmet) > 3 else ""
    )
    return f"it waits for {some} to be done"


def _submitted(standing: Standing, verb: str) -> None:
    if standing.state is not State.WAITING:
        raise Conflict(f"task {standing.short} is {standing.state}: nothing waits for review, so it cannot {verb}")


def _held(standing: Standing, verb: str) -> None:
    if standing.state is not State.PROCESSING:
        raise Conflict(f"task {standing.short} is {standing.state}: no worker holds it, so it cannot {verb}")


def _back(
    event: str, standing: Standing, delay: float, errors: int, crashes: int, outcome: str, reason: str | None
) -> Move:
    to = State.WAITING if delay > 0 else State.TODO
    return Move(event, to, standing.fence + 1, errors, crashes, delay, outcome, reason)
