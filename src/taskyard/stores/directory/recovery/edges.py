"""Edges that the dead have left: tasks that nothing blocks any more, needs that are met, edges without a task."""

from __future__ import annotations

import itertools

from taskyard.core import ids
from taskyard.core.errors import NotFound
from taskyard.core.task import State
from taskyard.stores.directory.names import UNREADABLE
from taskyard.stores.directory.recovery.segments import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.recovery.missing import Missing
    from taskyard.stores.directory.tasks.edges import Edges

_PER_ROUND = 5_000  # milliseconds: the next segment's turn comes with the next sweep
_EMPTY = 200  # folders that the end of a task with many followers has left, and that one round removes
_LOOKUPS = 50  # tasks that one round looks up because a need for them may be left over


class EdgeRecovery:
    """Goes after what a dead process meant to do, and through one segment at a time."""

    def __init__(self, context: Context, edges: Edges, missing: Missing) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._names = context.locator.names
        self._edges = edges
        self._missing = missing

    def after(self, intent: dict[str, Any], by: str) -> None:
        """Do what should have followed the move that a dead process was about to make, or had just made."""
        tasks = [*intent.get("tasks", [intent.get("task")]), intent.get("freed_by")]
        for id in tasks:
            if not isinstance(id, str) or not ids.is_id(id):
                continue
            try:
                state = self._context.locator.find(id).state
            except NotFound:
                continue
            if state is State.DONE and self._disk.exists(f"{self._root}/followers/{id[: ids.SEGMENT]}/{id}"):
                self._edges.settle(id, by)
            elif state is State.BLOCKED:
                self._edges.look_again(id, by)

    def walk(self, now: int, by: str) -> int:
        """Put right what is wrong with the edges of one segment that has any, chosen by the clock; how many tasks went on."""
        segments = sorted(
            {
                name
                for place in ("blocked", "needs", "followers")
                for name in self._names(f"{self._root}/{place}")
                if ids.is_segment(name)
            }
        )
        if not segments:
            return 0
        segment = segments[now // _PER_ROUND % len(segments)]
        try:
            freed = self._needs(segment, now, by)
            self._followers(segment, now, by)
        except PermissionError:
            return 0  # another user's folder: what is in it cannot be told, so nobody is let go
        for place in ("needs", "followers"):
            self._context.mover.drop(f"{self._root}/{place}/{segment}")
        return freed

    def _needs(self, segment: str, now: int, by: str) -> int:
        """Let go whoever's needs are met, and forget the needs of tasks that never came."""
        folder = f"{self._root}/blocked/{segment}"
        blocked = {name[: ids.LENGTH]: name for name in self._names(folder)}
        listed = set(filter(ids.is_id, self._names(f"{self._root}/needs/{segment}")))
        needs = {id: set(self._edges.needs(id)) for id in filter(ids.is_id, blocked.keys() | listed)}
        gone = self._gone(self._edges.unmet({other for some in needs.values() for other in some}), now)
        empty = itertools.count()
        for id, some in needs.items():
            if id not in blocked:
                self._forget(id, now)
                if not some and next(empty) < _EMPTY:
                    self._context.mover.drop(f"{self._root}/needs/{segment}/{id}")
            for other in some & gone:
                # What is needed is never pruned unless it is done.
                self._context.links.remove(f"{self._root}/needs/{segment}/{id}/{other}")
        free = {
            id: some - gone
            for id, some in needs.items()
            if id in blocked and (some or self._is_free((folder, blocked[id]), now))
        }
        return len(self._edges.look(free, by))

    def _is_free(self, place: tuple[str, str], now: int) -> bool:
        """Whether one without needs had them met: if it has lost them, it must not run before what it comes after."""
        try:
            unmet = self._edges.unmet(self._edges.comes_after(place))
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return False  # moved on; or what it comes after cannot be told
        return not unmet - self._gone(unmet, now)

    def _gone(self, unmet: set[str], now: int) -> set[str]:
        """Those of these tasks that are gone, a few at a time: a needed task that is gone was done."""
        some = set(sorted(unmet, key=lambda _: ids.chance(16))[:_LOOKUPS])
        return {id for id in some - self._edges.done(some) if self._is_gone(id, now)}

    def _is_gone(self, id: str, now: int) -> bool:
        """Whether a task that was not done a moment ago is in no state now, and has not been for long."""
        try:
            return not self._context.locator.knows(id) and self._missing.is_gone(id, now, PATIENCE)
        except PermissionError:
            return False  # it may be where we cannot look

    def _forget(self, id: str, now: int) -> None:
        """A task that was never published, or is gone: what it needed is nobody's business any more."""
        if not self._is_left(f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}", now):
            return
        if not self._disk.exists(f"{self._root}/tmp/{id}.json") and self._is_gone(id, now):
            self._edges.withdraw(id)

    def _followers(self, segment: str, now: int, by: str) -> None:
        """Followers of what is done or gone, edges that have no need at their other end, and marks of a prune that was not made."""
        listed = set(filter(ids.is_id, self._names(f"{self._root}/followers/{segment}")))
        done = self._edges.done(listed)
        for id in listed:
            folder = f"{self._root}/followers/{segment}/{id}"
            if id in done:
                self._edges.settle(id, by)
                continue
            for name in self._names(folder):
                need = f"{self._root}/needs/{name[: ids.SEGMENT]}/{name}/{id}"
                if not (ids.is_id(name) and self._disk.exists(need)) and self._is_left(f"{folder}/{name}", now):
                    self._context.links.remove(f"{folder}/{name}")
            self._context.mover.drop(folder)

    def _is_left(self, path: str, now: int) -> bool:
        try:
            return now - self._disk.changed_at(path) > PATIENCE
        except FileNotFoundError:
            return False
