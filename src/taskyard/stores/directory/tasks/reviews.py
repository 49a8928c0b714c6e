"""Judgements of what was submitted: the first record of an outcome is the review, and any reviewer may make its move.

All reviewers of one submission name the same claim, so only one of them creates the record of an outcome. A reviewer that
finds another's record there makes that one's move, because its author may be dead, and has not judged itself. So the
record, the task's name and the log name the same reviewer, and only that one is answered that it has judged.
"""

from __future__ import annotations

from taskyard.core import ids, moves
from taskyard.core.errors import NotFound
from taskyard.core.task import Handle, State
from taskyard.stores.directory import names
from taskyard.stores.directory.names import Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.moves import Move, Reviewer
    from taskyard.core.task import Standing
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.shifts import Shifts


class Reviews:
    """Accepts and rejects."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        self._context = context
        self._shifts = shifts
        self._disk = context.disk
        self._log = context.log

    def judge(self, standing: Standing, move: Move, reviewer: Reviewer, by: str) -> bool:
        """Record the judgement and make its move; return whether the task was moved by this very judgement."""
        if not self._disk.exists("/".join(standing.place)):
            return False
        at = self._context.clock.now()
        handle = Handle(standing.id, standing.fence, reviewer.nonce)
        first = self._context.records.write_review(handle, move, reviewer, by, at, self._context.durable)
        is_own: bool = first["review"] == reviewer.word
        if not is_own:
            move, by = moves.adopted(move, str(first["worker"]), first["reason"]), str(first["by"])
        while not self._made(standing, move, by, at):
            again = self._waiting(standing)
            if again is None:
                return is_own and self._counts(handle, move)
            standing = again
        return is_own

    def _made(self, standing: Standing, move: Move, by: str, at: int) -> bool:
        """Make the move if the task still waits there, log it, and do what follows from it."""
        context = self._context
        folder, name = standing.place
        path = f"{folder}/{name}"
        claim = moves.reviewed(standing, move)
        if move.to is State.DONE:
            folder = f"{context.root}/done/{standing.id[: ids.SEGMENT]}"
            target = names.reviewed_name(name, standing, claim.worker or "", claim.nonce or "")
        else:
            folder, target, _ = self._shifts.target(standing, move, name, at, Lane.at(standing))
        line = self._shifts.line(claim, move, by, at, None)
        if not context.mover.move(path, folder, target):
            self._log.forget()
            return False
        try:
            if context.durable:
                context.sync_move(folder, target)
        finally:
            self._log.append(line)
        self._shifts.arrive(standing, move, (folder, target), by)
        return True

    def _waiting(self, standing: Standing) -> Standing | None:
        """Return where the task waits now, if nothing but its bucket has changed; else None."""
        try:
            found = self._context.locator.find(standing.id)
        except NotFound:
            return None
        if (found.state, found.token.fence) != (State.WAITING, standing.fence) or found.place == standing.place:
            return None
        return found.token.standing(found.state, found.place, self._context.policy)

    def _counts(self, handle: Handle, move: Move) -> bool:
        """Whether another reviewer has made the move of this record."""
        records = self._context.records
        try:
            found = self._context.locator.find(handle.id)
        except NotFound:
            return False
        history: list[dict[str, Any]] = records.history(found.token, found.state, 0, records.all(handle.id))[0]
        return any((entry["claim"], entry["outcome"]) == (str(handle), move.outcome) for entry in history)
