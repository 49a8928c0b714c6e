"""The verbs on a claim, by its handle: each is a compare-and-swap, and a repeated ending returns the same answer.

This is the part of the Yard that ends claims; `Claim` is the object that a worker holds. Both name a claim by its handle,
or by the standing that its yard granted it with, which saves a lookup.
"""

from __future__ import annotations

import os

from taskyard.core import draft, moves, times, words
from taskyard.core.errors import ClaimLost, Conflict, Invalid, NotFound
from taskyard.core.store_records import Query
from taskyard.core.task import Handle, Standing, State
from taskyard.yard.tending import Tending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.store_records import Report
    from taskyard.port import ClaimRef
    from taskyard.store import Store

TEXT_MOST = 65_536  # characters of a reason or a note
_ENDINGS = {"done": State.DONE, "fail": State.FAILED}
_GIVEN_UP = {"release": "released", "fail": "error"}  # verb to outcome, as the records have it
_SLIPS = 2  # characters of a nonce that count as mistyped; nonces of two claims are this alike only by chance


class ClaimVerbs(Tending):
    """What a yard does with claims that a worker holds."""

    # The verbs

    def heartbeat(self, claim: ClaimRef, progress: float | None = None, note: str | None = None) -> str:
        """Start the lease anew, and return its end."""
        share = None if progress is None else _share(progress)
        text = None if note is None else legal_text(note, "note")
        handle = handle_of(claim)
        current = claim if isinstance(claim, Standing) else self._store.stand(handle)
        if current.is_under(handle) and current.state is State.PROCESSING:
            until = self._store.renew(current, share, text, self.by)
            if until is not None:
                self.tend()  # after the renewal: a holder that slept past its lease must not reap its own claim
                return times.rfc3339(until)
            current = self._store.stand(handle)
        _refuse_mistyped(self._store.get(handle.id), handle, current)
        raise self._refused(handle, "heartbeat" if note is None else "note", None)

    def done(self, claim: ClaimRef, result: Any = None, *, conn: Any = None, verified: bool = False) -> None:
        """End the task with a result; a repeated call changes nothing.

        A task that names a check is done only if that passes; with `verified` the caller has run it. With `conn`, a psycopg
        connection, a yard in PostgreSQL ends it in the caller's transaction: it is done once that commits.
        """
        if result is None:
            self._settle(claim, "done", moves.done, conn, verified)
            return
        draft.payload(result, "result")
        self._settle(claim, "done", lambda standing: moves.done(standing, result), conn, verified)

    def done_many(self, ended: Sequence[tuple[ClaimRef, Any]]) -> list[bool]:
        """End these claims as done with these results; return for each whether it is done now. `done` raises why one is not.

        No check runs here: a task that may name one is left to `done`.
        """
        for _, result in ended:
            draft.payload(result, "result")
        standings = self._without_check([self._held_by(claim) for claim, _ in ended])
        shifts = [
            (standing, moves.done(standing, result))
            for standing, (_, result) in zip(standings, ended, strict=True)
            if standing is not None
        ]
        made = iter(self._store.shift(shifts, self.by))
        return [standing is not None and next(made) for standing in standings]

    def _held_by(self, claim: ClaimRef) -> Standing | None:
        """Return the standing of the task that this claim holds; None if it no longer does."""
        if isinstance(claim, Standing):
            return claim if claim.verified is False else None
        handle = handle_of(claim)
        try:
            standing = self._store.stand(handle)
        except NotFound:
            return None
        return standing if standing.is_under(handle) and standing.state is State.PROCESSING else None

    def _without_check(self, standings: list[Standing | None]) -> list[Standing | None]:
        """Replace each standing whose task needs a check or a review by None; read the unknown ones in one query."""
        unknown = [one.id for one in standings if one is not None and one.verified is None]
        tasks = self._store.find(Query(ids=unknown, whole=True))[0] if unknown else []
        free = {task.id for task in tasks if task.verify is None and not task.needs_review}
        return [one if one is not None and (one.verified is False or one.id in free) else None for one in standings]

    def fail(self, claim: ClaimRef, reason: str = "no reason was given", retry: bool = True) -> State:
        """End the claim with an error; the task is retried later if attempts are left and `retry` is set. Return its state."""
        text, policy = legal_text(reason, "reason"), self._store.policy
        return self._settle(claim, "fail", lambda standing: moves.failed(standing, policy, text, retry))

    def release(self, claim: ClaimRef, after: float = 0.0, reason: str | None = None) -> None:
        """Give the task back; it is ready again after `after` seconds, and this counts as no attempt."""
        delay = times.seconds(after, "after") if after else 0.0
        text = None if reason is None else legal_text(reason, "reason")
        self._settle(claim, "release", lambda standing: moves.released(standing, delay, text))

    def crash(self, claim: ClaimRef, reason: str) -> State:
        """End the claim as if this worker had died with it. Return the task's state."""
        text, policy = legal_text(reason, "reason"), self._store.policy
        return self._settle(claim, "crash", lambda standing: moves.crashed(standing, policy, text))

    # Looking

    def holding(self, claims: Sequence[ClaimRef]) -> list[bool]:
        """Return for each claim whether it still holds its task; this only reads: it renews nothing and logs nothing."""
        return self._store.holding([handle_of(claim) for claim in claims])

    def settled(self, claim: ClaimRef) -> State | None:
        """Return the state that the claim's holder put the task into: done, failed for good, or todo; else None. Only reads.

        Raise `Invalid` for a handle that is mistyped.
        """
        handle = handle_of(claim)
        standing = self._store.stand(handle)
        if standing.is_under(handle):
            return None if standing.state is State.PROCESSING else standing.state
        report = self._store.get(handle.id)
        _refuse_mistyped(report, handle, standing)
        given_up = (
            entry["claim"] == str(handle) and entry["outcome"] in _GIVEN_UP.values() for entry in report.history
        )
        return State.TODO if any(given_up) else None

    def lease(self, claim: ClaimRef) -> float:
        """Return how long the claim lasts without a heartbeat, in seconds."""
        return claim.lease if isinstance(claim, Standing) else self._store.stand(handle_of(claim)).lease

    # A claim's folder

    def workdir(self, claim: ClaimRef, *, make: bool = False) -> str | None:
        """Return the folder for the files of this attempt; None if the yard has no files."""
        files = self._store.files
        if files is None:
            return None
        return files.make_workdir(handle_of(claim)) if make else files.workdir(handle_of(claim))

    def tidy(self, claim: ClaimRef) -> None:
        """Remove the claim's folder if it is empty."""
        if self._store.files is not None:
            self._store.files.tidy(handle_of(claim))

    # How a claim ends

    def _settle(
        self,
        claim: ClaimRef,
        verb: str,
        decide: Callable[[Standing], Move],
        connection: Any = None,
        verified: bool = False,
    ) -> State:
        """End the claim by the move that `decide` makes, if it still holds its task, and return the task's state."""
        store = self._store if connection is None else self._within(connection)
        granted = isinstance(claim, Standing)
        if granted:
            standing: Standing = claim  # type: ignore[assignment]
        else:
            handle = handle_of(claim)
            standing = self._seen(store, handle)
            if not standing.is_under(handle) or standing.state is not State.PROCESSING:
                return self._repeat(store, handle, standing, verb, decide)
        move = decide(standing)
        checked = verb != "done" or verified or standing.verified is False or self._passes(standing, move.result)
        if verb == "done" and standing.verified is not False and self._store.get(standing.id).task.needs_review:
            move = moves.submitted(standing, move.result)
        if checked and store.shift(((standing, move),), self.by)[0]:
            if not granted and connection is None:
                if os.environ.get("TASKYARD_CLAIM") != str(
                    handle
                ):  # else the folder is in use by the command of a worker
                    self.tidy(handle)
                self.tend()  # after the ending, for the same reason; a worker in a loop does its share when it claims
            return move.to
        handle = handle_of(claim)
        return self._repeat(store, handle, self._seen(store, handle), verb, decide)

    def _within(self, connection: Any) -> Store:
        transactions = self._store.transactions
        if transactions is None:
            raise Invalid(
                f"the yard {self._store.label} is not in a database, so there is no transaction to be part of",
                hint="conn= is for yards in PostgreSQL; leave it out here",
            )
        return transactions.within(connection)

    def _passes(self, standing: Standing, result: Any) -> bool:
        """Run the check that the task names, if any; raise `Conflict` if it fails, return False if the claim is over."""
        task = self._store.get(standing.id).task
        if task.verify is None:
            return True
        from taskyard.yard import verify

        handle = handle_of(standing)
        if not self._store.holding([handle])[0]:
            return False  # no check is worth running, and a repeated done needs none
        try:
            verify.check(task, handle, result, self._store.settings.checks)
        except Conflict:
            if self._store.holding([handle])[0]:
                raise
            return False  # lost while the check ran: that is the answer, not what the check found
        return True

    def _seen(self, store: Store, handle: Handle) -> Standing:
        """Return the standing that `store` sees; raise `Conflict` if it is a transaction that cannot see the claim yet."""
        own = self._store
        try:
            current = store.stand(handle)
            if store is own or current.is_under(handle):
                return current
        except NotFound:
            if store is own:
                raise
        current = own.stand(handle)
        if current.is_under(handle) and current.state is State.PROCESSING:
            raise Conflict(
                f"the transaction sees only what was there before the claim {handle}, which holds its task",
                hint="roll back, and repeat it in a transaction that begins after the claim, or is READ COMMITTED",
            )
        return current

    def _repeat(
        self, store: Store, handle: Handle, current: Standing, verb: str, decide: Callable[[Standing], Move]
    ) -> State:
        """Return the first answer if the claim ended in the same way; else log the refusal, keep its output, and raise.

        The yard itself logs and keeps what it refuses, also if `store` is in a transaction that is rolled back.
        """
        report = self._report_in(store, handle.id)
        _refuse_mistyped(report, handle, current)
        move = decide(_as_held(current, handle))
        if _is_said_again(report, handle, current, verb, move):
            if store.files is not None:
                store.files.confirm(current)
            return current.state
        if verb in _ENDINGS and current.is_under(handle):
            self._store.refuse(handle, verb, move, self.by)
            raise self._ended_otherwise(current, verb)
        raise self._refused(handle, verb, move if verb in _ENDINGS else None)

    def _report_in(self, store: Store, id: str) -> Report:
        try:
            return store.get(id)
        except NotFound:  # in a transaction that began before the task was added
            return self._store.get(id)

    def _ended_otherwise(self, ended: Standing, verb: str) -> Conflict:
        """Make the error for a second, different ending; its usual cause is a handle that was kept too long."""
        same = ended.state is _ENDINGS[verb]
        how = f", with another {'result' if verb == 'done' else 'reason'}" if same else ""
        hint = f"the first ending stands; what came now is kept as a stale result ('taskyard show {ended.id}')"
        workers = dict.fromkeys((self.worker, ended.worker))
        held = [one for name in workers if name is not None for one in self._store.held(name)]
        if held:
            now = ", ".join(f"task {one.id} under {handle_of(one)}" for one in held[:3])
            hint += f". {held[0].worker} holds {now}{', ...' if len(held) > 3 else ''}: name that handle if you mean that task"
        return Conflict(f"this claim has ended task {ended.id} already: it is {ended.state}{how}", hint=hint)

    def _refused(self, handle: Handle, verb: str, move: Move | None) -> ClaimLost:
        self._store.refuse(handle, verb, move, self.by)
        task = self._store.get(handle.id).task
        by = f" by {task.worker} under fence {task.fence}" if task.state is State.PROCESSING else ""
        kept = "; what this claim brought is kept as a stale result" if move is not None else ""
        return ClaimLost(f"the claim {handle} is over: the task is {task.state}{by} now{kept}")


def handle_of(claim: ClaimRef) -> Handle:
    """Return the handle of a claim; raise `Invalid` if a text is none."""
    if isinstance(claim, Standing):
        return Handle(claim.id, claim.fence, claim.nonce or "")
    return claim if isinstance(claim, Handle) else Handle.parse(claim)


def _is_said_again(report: Report, handle: Handle, current: Standing, verb: str, move: Move) -> bool:
    """Whether this claim ended so before, with the same result or reason: then only a reply was lost."""
    if verb == "done":
        ended = current.is_under(handle) and current.state is State.DONE
        if ended:
            return bool(draft.kept(move.result) == report.task.result)
        submitted = [entry for entry in report.history if entry["claim"] == str(handle) and "result" in entry]
        return any(entry["result"] == draft.kept(move.result) for entry in submitted)
    return any(
        entry["claim"] == str(handle)
        and entry["outcome"] == _GIVEN_UP.get(verb)
        and (verb == "release" or entry["reason"] == move.reason)
        for entry in report.history
    )


def _refuse_mistyped(report: Report, handle: Handle, current: Standing) -> None:
    """Raise `Invalid` if the task had a claim of this fence whose nonce differs in one or two characters.

    Such a handle belongs to no claim, so nothing is logged or kept.
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
    """Return how many characters must be inserted, removed or replaced to turn one text into the other."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, its in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != its))
    return row[-1]


def _as_held(standing: Standing, handle: Handle) -> Standing:
    """Return the standing as this handle last knew it, to decide what its late verb would have done."""
    held = standing.copy()
    held.state, held.fence, held.nonce = State.PROCESSING, handle.fence, handle.nonce
    return held


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Invalid(f"progress must be a number between 0 and 1, not {words.shown(value)}")
    return float(value)


def legal_text(value: object, name: str) -> str:
    """Return a reason or note that any store can keep; a long one loses its middle, because causes stand at the ends."""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {type(value).__name__}")
    if not value.strip():
        raise Invalid(f"{name} is empty")
    text = value.encode("utf-8", "replace").decode()
    if len(text) <= TEXT_MOST:
        return text
    half = TEXT_MOST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
