"""Which task waits for which, in a memory yard: what an ending, an add or an edit does to the tasks that wait."""

from __future__ import annotations

from collections import deque

from taskyard.core import moves, needs, times
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.core.moves import Move
    from taskyard.stores.memory.record import Record
    from taskyard.stores.memory.tasks import MemoryTasks


def settle_followers(shelf: MemoryTasks, ended: Record, now: int, by: str) -> None:
    """Free or cancel the tasks that wait for this one, which has ended, and those that wait for the cancelled ones."""
    ahead = deque([ended])
    while ahead:
        other = ahead.popleft()
        id, state = other.standing.id, other.standing.state
        for follower in sorted(shelf.followers.get(id, ())):
            record = shelf.named(follower)
            verdict = needs.verdict(record.needs[id], state)
            if verdict == needs.MET:
                del record.needs[id]
                shelf.unfollow(id, follower)
                if not record.needs and record.standing.state is State.BLOCKED:
                    _free(shelf, record, now, by, id)
            elif verdict == needs.CANCEL and record.standing.state is State.BLOCKED:
                _cancel(shelf, record, other, now, by)
                ahead.append(record)


def settle_blocked(shelf: MemoryTasks, record: Record, now: int, by: str) -> None:
    """Cancel a task that is blocked now, if one that it needs has ended before, and says so."""
    other = shelf.doom(record)
    if other is not None:
        _cancel(shelf, record, other, now, by)
        settle_followers(shelf, record, now, by)


def follow_others(shelf: MemoryTasks, record: Record, before: State, unmet: Sequence[str], now: int, by: str) -> None:
    """The edited task waits for these needs from now on, and for no other; those that were met since count no more."""
    old, record.needs = record.needs, shelf.unmet(unmet)
    shelf.follow(record, old)
    if unmet:
        shelf.tell(now, "blocked", record.standing, by, after=sorted(unmet))
        if not record.needs:
            _free(shelf, record, now, by, max(unmet))
        settle_blocked(shelf, record, now, by)
    elif before is State.BLOCKED:
        shelf.tell(now, "unblocked", record.standing, by)


def _free(shelf: MemoryTasks, record: Record, now: int, by: str, other: str) -> None:
    move = moves.unblocked(record.standing, record.until > now)
    _make(shelf, record, move)
    due = {"due": times.rfc3339(record.until)} if move.to is State.WAITING else {}
    shelf.tell(now, move.event, record.standing, by, **due, freed_by=other)


def _cancel(shelf: MemoryTasks, record: Record, other: Record, now: int, by: str) -> None:
    move = moves.cancelled_with(record.standing, other.standing.id, other.standing.state)
    record.cancel_reason, record.until = move.reason, now
    _make(shelf, record, move)
    shelf.tell(now, move.event, record.standing, by, **move.details(), cancelled_by=other.standing.id)


def _make(shelf: MemoryTasks, record: Record, move: Move) -> None:
    after = record.standing.copy()
    after.state, after.fence = move.to, move.fence
    record.standing = after
    shelf.place(record)
