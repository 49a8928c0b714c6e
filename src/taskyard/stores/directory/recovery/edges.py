"""Repairs edges that dead processes have left: blocked tasks that nothing blocks, needs that are met, edges without a task."""

from __future__ import annotations

import itertools

from taskyard.core import ids
from taskyard.core.errors import NotFound
from taskyard.core.needs import Need
from taskyard.core.task import State
from taskyard.stores.directory.names import UNREADABLE
from taskyard.stores.directory.recovery.segments import PATIENCE
from taskyard.stores.directory.tasks.cascade import causes
from taskyard.stores.directory.tasks.edges import FAILURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.recovery.missing import Missing
    from taskyard.stores.directory.tasks.edges import Edges

_PER_ROUND = 5_000  # milliseconds: each sweep takes the next segment
_EMPTY = 200  # empty folders of followers that one round removes
_LOOKUPS = 50  # needed tasks that one round looks up, because they may be gone


class EdgeRecovery:
    """Finishes what dead processes began, and repairs one segment at a time."""

    def __init__(self, context: Context, edges: Edges, missing: Missing) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._names = context.locator.names
        self._edges = edges
        self._missing = missing

    def finish(self, intent: dict[str, Any], by: str) -> None:
        """Do what should have followed the move that a dead process was about to make, or had just made."""
        tasks = [*intent.get("tasks", [intent.get("task")]), intent.get("freed_by")]
        for id in tasks:
            if not isinstance(id, str) or not ids.is_id(id):
                continue
            try:
                state = self._context.locator.find(id).state
            except NotFound:
                continue
            if intent.get("event") == "edited":
                self._edges.tidy(id, by)
            if state is State.DONE and self._edges.is_followed(id):
                self._edges.settle(id, by)
            elif state is State.BLOCKED:
                self._edges.look_again(id, by)
            elif state in FAILURES:
                self._edges.judge(causes(self._edges, id), by, thorough=True)

    def walk(self, now: int, by: str) -> int:
        """Repair the edges of one segment that has any, chosen by the clock; return how many tasks were unblocked."""
        segments = sorted(
            {
                name
                for place in ("blocked", "needs", "followers", "sheets")
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
            return 0  # another user's folder: its content is unknown, so no task is unblocked
        for place in ("needs", "followers", "sheets"):
            self._context.mover.drop(f"{self._root}/{place}/{segment}")
        return freed

    def _needs(self, segment: str, now: int, by: str) -> int:
        """Unblock tasks whose needs are met, and remove the needs of tasks that were never added."""
        folder = f"{self._root}/blocked/{segment}"
        blocked = {name[: ids.LENGTH]: name for name in self._names(folder)}
        listed = set(filter(ids.is_id, self._names(f"{self._root}/needs/{segment}")))
        in_sheets = self._edges.sheets.waiting(segment)
        needs = {id: set(self._edges.needs(id)) for id in filter(ids.is_id, blocked.keys() | listed | in_sheets.keys())}
        moved = self._judge(needs, by) | self._tidied(needs, now, by)
        gone = self._gone(self._edges.unmet({other for some in needs.values() for other in some}), now)
        empty = itertools.count()
        for id, some in needs.items():
            if id not in blocked:
                self._forget(id, in_sheets.get(id), now)
                if not some and next(empty) < _EMPTY:
                    self._context.mover.drop(f"{self._root}/needs/{segment}/{id}")
            for other in some & gone:
                # A needed task is never pruned unless it is done, or its failure has been applied.
                self._context.links.remove(f"{self._root}/needs/{segment}/{id}/{other}")
                self._edges.sheets.meet(other)
        free = {
            id: {Need(other) for other in some - gone}
            for id, some in needs.items()
            if id in blocked and id not in moved and (some or self._is_free((folder, blocked[id]), now))
        }
        return len(moved) + len(self._edges.look(free, by))

    def _tidied(self, needs: dict[str, set[str]], now: int, by: str) -> dict[str, State]:
        """Remove needs that an edit has left, of some tasks whose needs have not changed for long; return those moved."""
        some = sorted((id for id, others in needs.items() if others), key=lambda _: ids.chance(16))[:_LOOKUPS]
        moved: dict[str, State] = {}
        for id in some:
            try:
                if self._is_left(f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}", now):
                    moved |= self._edges.tidy(id, by)
            except NotFound:
                continue  # it was never published, or is gone
        return moved

    def _judge(self, needs: dict[str, set[str]], by: str) -> dict[str, State]:
        """Apply the failures of needed tasks to these followers, whose content says what they mean; return those moved."""
        followers: dict[str, list[str]] = {}
        for id, some in needs.items():
            for other in some:
                followers.setdefault(other, []).append(id)
        failed = self._edges.states(followers, *FAILURES)
        return self._edges.judge([(other, state, followers[other]) for other, state in failed.items()], by)

    def _is_free(self, place: tuple[str, str], now: int) -> bool:
        """Whether a task without needs had them met: if they were lost, it must not run before its `after` tasks."""
        try:
            after = self._edges.comes_after(place)
            unmet = self._edges.unmet(Need(other, policy) for other, policy in after.items())
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return False  # moved on; or its `after` is unknown
        return not unmet - self._gone(unmet, now)

    def _gone(self, unmet: set[str], now: int) -> set[str]:
        """Return those of these tasks that are gone, a few at a time: a needed task that is gone was done."""
        some = set(sorted(unmet, key=lambda _: ids.chance(16))[:_LOOKUPS])
        return {id for id in some - self._edges.done(some) if self._is_gone(id, now)}

    def _is_gone(self, id: str, now: int) -> bool:
        """Whether a task that was not done a moment ago is in no state now, and has not been for long."""
        try:
            return not self._context.locator.knows(id) and self._missing.is_gone(id, now, PATIENCE)
        except PermissionError:
            return False  # it may be in a folder that is not readable

    def _forget(self, id: str, sheet: str | None, now: int) -> None:
        """Remove the needs of a task that was never published, or is gone; those in a sheet have its path."""
        if not self._is_left(sheet or f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}", now):
            return
        if not self._disk.exists(f"{self._root}/tmp/{id}.json") and self._is_gone(id, now):
            self._edges.withdraw(id)

    def _followers(self, segment: str, now: int, by: str) -> None:
        """Remove followers of tasks that are done or gone, edges without a need, marks of an undone prune, and sheets that are over."""
        for id in self._edges.done(self._edges.sheets.followed(segment)):
            self._edges.settle(id, by)
        for sheet in self._edges.sheets.of(segment):
            if self._is_left(sheet.path, now):
                self._edges.sheets.complete(sheet)
            self._edges.sheets.drop(sheet)
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
