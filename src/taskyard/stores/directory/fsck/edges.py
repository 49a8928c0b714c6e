"""Check edges: each has both halves, no task is blocked without a need or behind itself, and none is free although it has one."""

from __future__ import annotations

from itertools import pairwise

from taskyard.core import ids, needs, plan
from taskyard.core.task import State
from taskyard.stores.directory.recovery.segments import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.locate import Found

    Seen = dict[str, list[Found]]

_MARKS = (State.FAILED, State.CANCELLED)
_SETTLED = 2_000  # milliseconds after which the process that ended a task has updated its edges, or is dead


class EdgeAudit:
    """Checks the edges of one segment at a time."""

    def __init__(self, audit: AuditContext, edges: Edges) -> None:
        self._audit = audit
        self._root = audit.root
        self._edges = edges
        self._backward: list[str] = []

    def check(self, segment: str, seen: Seen) -> None:
        """Compare needs with tasks, needs with followers, and followers with needs."""
        noted = self._read("needs", segment)
        for id, others in noted.items():
            if id not in seen:
                self._orphan("needs", segment, id)
                continue
            found = seen[id][-1]
            noted[id] = self._named(found, others)
            self._must_be_blocked(found, noted[id])
            for other in noted[id]:
                self._half(found, other)
        self._sheets(segment, seen, noted)
        for id, several in seen.items():
            if several[-1].state is State.BLOCKED:
                self._blocked(several[-1], noted.get(id, []))
                # Tasks come after older ones, unless an edit or a hand said otherwise: every cycle has a step to a younger one.
                if any(ids.age_key(other) >= ids.age_key(id) for other in noted.get(id, [])):
                    self._backward.append(id)
        for id, followers in self._read("followers", segment).items():
            self._followers(segment, id, followers)

    def cycles(self) -> None:
        """Add a suspect for every cycle of blocked tasks; to be called after all segments were checked."""
        for path in plan.cycles(self._backward, self._edges.needs):
            place = (f"{self._root}/needs/{path[0][: ids.SEGMENT]}", path[0])
            self._audit.suspect("cycle", place, plan.shown(path), self._still_cycle(path), path[0])

    def _still_cycle(self, path: list[str]) -> Callable[[], bool]:
        return lambda: (
            all(other in self._edges.needs(id) for id, other in pairwise(path))
            and self._edges.states(path, State.BLOCKED).keys() == set(path)
        )

    def _read(self, place: str, segment: str) -> dict[str, list[str]]:
        top = f"{self._root}/{place}/{segment}"
        edges = {}
        for id in self._audit.folders(top, lambda name: ids.is_id(name) and name.startswith(segment)):
            legal = ids.is_id if place == "needs" else _is_follower
            edges[id] = [
                name
                for name in self._audit.folders(f"{top}/{id}", legal)
                if ids.is_id(name) and self._audit.is_plain(f"{top}/{id}", name)
            ]
            self._audit.count(place, len(edges[id]))
        return edges

    def _sheets(self, segment: str, seen: Seen, noted: dict[str, list[str]]) -> None:
        """Add the needs of this segment's tasks that are in sheets; check that each of these tasks is there, and blocked."""
        folder = f"{self._root}/sheets/{segment}"
        for name in self._audit.folders(folder, ids.is_id):
            self._audit.count("sheets", self._audit.is_plain(folder, name))
        for id, path in self._edges.sheets.waiting(segment).items():
            if id in seen:
                others: list[str] = sorted(self._edges.open(self._edges.sheets.needs(id)))
                self._must_be_blocked(seen[id][-1], others)
                noted[id] = [*noted.get(id, []), *others]
            elif self._audit.age(path) > PATIENCE:
                place = (folder, path.rpartition("/")[2])
                self._audit.suspect("orphan", place, f"it has {id}, which is nowhere", self._still_nowhere(id), id)

    def _still_nowhere(self, id: str) -> Callable[[], bool]:
        def still_holds() -> bool:
            waits = self._audit.has(f"{self._root}/tmp/{id}.json")
            return not waits and self._audit.is_nowhere(id) and id in self._edges.sheets.waiting(id[: ids.SEGMENT])

        return still_holds

    def _must_be_blocked(self, found: Found, others: list[str]) -> None:
        """Check that a task with needs is blocked, or was cancelled or failed by a repair while it was blocked."""
        if found.state in (State.BLOCKED, State.CANCELLED, State.FAILED) or not others:
            return

        def still_holds() -> bool:
            noted = self._audit.has(found.path) and others[0] in self._edges.needs(found.token.id)
            return noted and self._audit.has(found.path)

        what = f"in {found.state}, and it needs {others[0]}"
        self._audit.suspect("need_open", found.place, what, still_holds, found.token.id, found.token)

    def _named(self, found: Found, others: list[str]) -> list[str]:
        """Return those of these needs that the task's content names; one that it does not name was left by an edit."""
        try:
            after = self._edges.comes_after(found.place)
        except OSError:
            return []  # it has moved, or is reported as unreadable
        folder = f"{self._root}/needs/{found.token.id[: ids.SEGMENT]}/{found.token.id}"
        for other in others:
            path = f"{folder}/{other}"
            if other not in after and self._audit.age(path) > PATIENCE:
                what = f"the content of {found.token.id} does not name it"
                still_holds = self._unnamed(found, path, other)
                self._audit.suspect("orphan", (folder, other), what, still_holds, found.token.id)
        return [needs.Need(other, after[other]) for other in others if other in after]

    def _unnamed(self, found: Found, path: str, other: str) -> Callable[[], bool]:
        return lambda: (
            self._audit.has(found.path) and other not in self._edges.comes_after(found.place) and self._audit.has(path)
        )

    def _half(self, found: Found, other: str) -> None:
        """Check that a need of a blocked task has its follower: both exist before it is blocked, and the need is removed first."""
        if found.state is not State.BLOCKED:
            return
        id = found.token.id
        need = f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}/{other}"
        follower = (f"{self._root}/followers/{other[: ids.SEGMENT]}/{other}", id)

        def still_holds() -> bool:
            there = self._audit.has(need) and self._audit.has(found.path)
            return (
                there
                and not self._audit.has("/".join(follower))
                and self._audit.has(need)
                and self._audit.has(found.path)
            )

        if still_holds():
            self._audit.suspect("edge_half", follower, f"missing, and {id} needs {other}", still_holds, id, found.token)

    def _blocked(self, found: Found, others: list[str]) -> None:
        """Check that a blocked task needs a task that is not done; after that is done, a process has `_SETTLED` to unblock it."""
        owed = self._edges.owed(found.place, others)
        for other in owed:
            self._missing_need(found, other)
        if owed:
            return

        doomed = self._edges.states((other for other in others if _cancels(other)), *_MARKS)

        def still_holds() -> bool:
            if self._audit.age(found.path) < _SETTLED:
                return False
            waits = [needs.Need(other, policies.get(other, needs.BLOCK)) for other in self._edges.needs(found.token.id)]
            return not self._edges.open(waits) and self._audit.has(found.path)

        def still_doomed() -> bool:
            there = self._audit.age(found.path) >= _SETTLED and self._audit.has(found.path)
            return there and bool(self._edges.states(doomed, *_MARKS)) and self._audit.has(found.path)

        policies = {str(other): needs.on_failure(other) for other in others}
        if doomed:
            what = f"{min(doomed)}, which it comes after and is cancelled with, is {doomed[min(doomed)]}"
            self._audit.suspect("need_failed", found.place, what, still_doomed, found.token.id, found.token)
        elif not others or not self._edges.unmet(others) or not self._edges.open(others):
            what = "nothing that it comes after is open" if others else "it needs nothing"
            self._audit.suspect("need_met", found.place, what, still_holds, found.token.id, found.token)

    def _missing_need(self, found: Found, other: str) -> None:
        """Add a suspect for a missing need. It is removed only after the other task is done, so that task is read last."""
        id = found.token.id
        need = (f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}", other)

        def still_holds() -> bool:
            lost = self._audit.has(found.path) and other not in self._edges.needs(id)
            return lost and bool(self._edges.open([other])) and self._audit.has(found.path)

        self._audit.suspect(
            "need_missing", need, f"missing, and {id} comes after {other}", still_holds, id, found.token
        )

    def _followers(self, segment: str, id: str, followers: list[str]) -> None:
        folder = f"{self._root}/followers/{segment}/{id}"
        for follower in followers:
            path = f"{folder}/{follower}"
            need = f"{self._root}/needs/{follower[: ids.SEGMENT]}/{follower}/{id}"
            if self._audit.has(need) or self._audit.age(path) <= PATIENCE:
                continue
            self._audit.suspect("orphan", (folder, follower), "no such need", self._unowned_edge(path, need), follower)

    def _unowned_edge(self, path: str, need: str) -> Callable[[], bool]:
        return lambda: self._audit.has(path) and not self._audit.has(need)

    def _orphan(self, place: str, segment: str, id: str) -> None:
        path = f"{self._root}/{place}/{segment}/{id}"
        if self._audit.age(path) <= PATIENCE:
            return

        def still_holds() -> bool:
            waits = self._audit.has(f"{self._root}/tmp/{id}.json")
            return not waits and self._audit.is_nowhere(id) and self._audit.has(path)

        self._audit.suspect("orphan", (path.rpartition("/")[0], id), "needs of a task that is nowhere", still_holds, id)


def _is_follower(name: str) -> bool:
    """Return whether this is a task's id, or the mark of a pruned task that was not done."""
    return ids.is_id(name) or name in _MARKS


def _cancels(need: str) -> bool:
    return needs.on_failure(need) == needs.CANCEL
