"""What follows from a task that failed or was cancelled: each task that comes after it does as its own need says.

A need that says `run` is met, as by a done. One that says `cancel` has the task cancelled, which goes on to those that come
after that one. What a need says stands in the follower's own content, which the name that is moved selects: so an edit that
changes it at the same moment wins or loses as a whole.

A task that is cancelled so keeps its needs: if it is retried, it is blocked again. So whatever a killed process has left
undone is found from the last task that it has cancelled, by way of the edges.
"""

from __future__ import annotations

from collections import deque

from taskyard.core import ids, moves, needs
from taskyard.core.task import State
from taskyard.stores.directory.names import UNREADABLE, Token
from taskyard.stores.directory.tasks.edges import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.shifts import Shifts

    Place = tuple[State, str, str]
    """State, folder and name of a follower."""
    Cause = tuple[str, State, Iterable[str] | None]
    """A task, how it ended, and those that come after it; None for all of them."""

_FEW = 4  # moves that are synced one by one; for more the whole filesystem is


class Cascade:
    """Applies failures to followers, once, and without recursion: a chain may be as long as the yard."""

    def __init__(self, context: Context, edges: Edges, shifts: Shifts, by: str, thorough: bool = False) -> None:
        """With `thorough`, go on behind tasks that are cancelled already: a process may have died before it came there."""
        self._context = context
        self._thorough = thorough
        self._seen: set[str] = set()
        self._root = context.root
        self._edges = edges
        self._shifts = shifts
        self._by = by
        self._listed: dict[str, dict[str, Place]] = {}
        self._pending: deque[Cause] = deque()
        self._moved: dict[str, State] = {}
        self._to_sync: list[tuple[str, str]] = []

    def judge(self, causes: Iterable[Cause]) -> dict[str, State]:
        """Apply these failures to their followers, and to what comes after those; return the tasks that were moved."""
        self._pending.extend(causes)
        while self._pending:
            other, state, some = self._pending.popleft()
            met = [
                id
                for id in (self._edges.followers(other) if some is None else some)
                if self._judged(id, other, state) == needs.MET
            ]
            if met:
                self._moved.update(dict.fromkeys(self._edges.meet(other, met, self._by), State.TODO))
        self._sync()
        return self._moved

    def _judged(self, id: str, other: str, state: State) -> str | None:
        """Return what the follower's need means now, and cancel the follower if it means that.

        One that is neither blocked nor cancelled is about to be added, and its adder looks. One that moves meanwhile is looked
        for once more; after that its mover looks.
        """
        for anew in (False, True):
            place = self._place(id, anew)
            if place is None:
                continue
            try:
                after = self._edges.comes_after(place[1:])
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue
            verdict = needs.verdict(after.get(other, needs.BLOCK), state)
            if verdict != needs.CANCEL or self._cancel(place, other, state):
                return verdict
        return None

    def _place(self, id: str, anew: bool) -> Place | None:
        """Return where the task is blocked or cancelled; a segment is listed once, and again for what is not there."""
        segment = id[: ids.SEGMENT]
        if anew or segment not in self._listed:
            self._listed[segment] = {
                name[: ids.LENGTH]: (state, folder, name)
                for state in (State.CANCELLED, State.BLOCKED)
                for folder in (f"{self._root}/{state}/{segment}",)
                for name in self._context.locator.names(folder)
            }
        return self._listed[segment].get(id)

    def _cancel(self, place: Place, other: str, state: State) -> bool:
        """Cancel the task if it is still blocked there; return whether it is cancelled now."""
        held, folder, name = place
        token = Token.parse(name)
        if token is None:
            return False
        if held is State.BLOCKED:
            standing = token.standing(State.BLOCKED, (folder, name), self._context.policy)
            move = moves.cancelled_with(standing, other, state)
            sync = self._context.durable and len(self._to_sync) < _FEW
            target = self._shifts.cancel_follower(standing, move, self._by, other, sync)
            if target is None:
                return False
            self._moved[token.id] = State.CANCELLED
            self._to_sync.append(target)
        if (held is State.BLOCKED or self._thorough) and token.id not in self._seen:
            self._seen.add(token.id)
            self._pending.append((token.id, State.CANCELLED, None))
        return True

    def _sync(self) -> None:
        if self._context.durable and len(self._to_sync) > _FEW:
            self._context.disk.sync_all(self._root)
        elif self._context.durable:
            for place in self._to_sync:
                self._context.sync_move(*place)


def causes(edges: Edges, id: str) -> list[Cause]:
    """Return this task, and all above it, that failed or were cancelled and may have followers left to be judged."""
    found: dict[str, State] = {}
    level = {id}
    while level:
        ended = edges.states(level, *FAILURES)
        found |= ended
        level = {other for id in ended for other in edges.needs(id)} - found.keys()
    return [(id, state, None) for id, state in reversed(found.items())]
