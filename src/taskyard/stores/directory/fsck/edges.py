"""What waits for what: both halves of every edge, and nobody blocked by nothing, nor free although something is open."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.recovery.segments import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.locate import Found

    Seen = dict[str, list[Found]]

_MARKS = (State.FAILED, State.CANCELLED)
_SETTLED = 2_000  # milliseconds after which whoever published or ended a task has looked at its edges, or is dead


class Ties:
    """Looks at the edges of one segment after the other."""

    def __init__(self, scene: Scene, edges: Edges) -> None:
        self._scene = scene
        self._root = scene.root
        self._edges = edges

    def check(self, segment: str, seen: Seen) -> None:
        """Needs against tasks, needs against followers, followers against needs."""
        needs = self._read("needs", segment)
        for id, others in needs.items():
            if id not in seen:
                self._orphan("needs", segment, id)
                continue
            found = seen[id][-1]
            self._needy(found, others)
            for other in others:
                self._half(found, other)
        for id, several in seen.items():
            if several[-1].state is State.BLOCKED:
                self._blocked(several[-1], needs.get(id, []))
        for id, followers in self._read("followers", segment).items():
            self._followers(segment, id, followers)

    def _read(self, place: str, segment: str) -> dict[str, list[str]]:
        top = f"{self._root}/{place}/{segment}"
        edges = {}
        for id in self._scene.folders(top, lambda name: ids.is_id(name) and name.startswith(segment)):
            legal = ids.is_id if place == "needs" else _is_follower
            edges[id] = [
                name
                for name in self._scene.folders(f"{top}/{id}", legal)
                if ids.is_id(name) and self._scene.is_plain(f"{top}/{id}", name)
            ]
            self._scene.count(place, len(edges[id]))
        return edges

    def _needy(self, found: Found, others: list[str]) -> None:
        """Who has needs is blocked, or was called off or failed by a repair while it was."""
        if found.state in (State.BLOCKED, State.CANCELLED, State.FAILED) or not others:
            return
        need = f"{self._root}/needs/{found.token.id[: ids.SEGMENT]}/{found.token.id}/{others[0]}"

        def again() -> bool:
            return all(map(self._scene.has, (found.path, need, found.path)))

        what = f"in {found.state}, and it needs {others[0]}"
        self._scene.suspect("need_open", found.place, what, again, found.token.id, found.token)

    def _half(self, found: Found, other: str) -> None:
        """A need is made before its follower and removed before it, as long as its task has its place."""
        if found.state is not State.BLOCKED:
            return
        id = found.token.id
        need = f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}/{other}"
        follower = (f"{self._root}/followers/{other[: ids.SEGMENT]}/{other}", id)

        def again() -> bool:
            there = self._scene.has(need) and self._scene.has(found.path)
            return (
                there
                and not self._scene.has("/".join(follower))
                and self._scene.has(need)
                and self._scene.has(found.path)
            )

        if again():
            self._scene.suspect("edge_half", follower, f"missing, and {id} needs {other}", again, id, found.token)

    def _blocked(self, found: Found, others: list[str]) -> None:
        """Something must be there that is not done; whoever is about to let the task go has a moment for it."""
        owed = self._edges.owed(found.place, others)
        for other in owed:
            self._forgotten(found, other)
        if owed:
            return

        def again() -> bool:
            if self._scene.age(found.path) < _SETTLED:
                return False
            needs = self._edges.needs(found.token.id)
            return not self._edges.open(needs) and self._scene.has(found.path)

        if not others or not self._edges.unmet(others) or not self._edges.open(others):
            what = "nothing that it comes after is open" if others else "it needs nothing"
            self._scene.suspect("need_met", found.place, what, again, found.token.id, found.token)

    def _forgotten(self, found: Found, other: str) -> None:
        """A need goes only after the other one is done, so that is looked at after the need."""
        id = found.token.id
        need = (f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}", other)

        def again() -> bool:
            lost = self._scene.has(found.path) and not self._scene.has("/".join(need))
            return lost and bool(self._edges.open([other])) and self._scene.has(found.path)

        self._scene.suspect("need_missing", need, f"missing, and {id} comes after {other}", again, id, found.token)

    def _followers(self, segment: str, id: str, followers: list[str]) -> None:
        folder = f"{self._root}/followers/{segment}/{id}"
        for follower in followers:
            path = f"{folder}/{follower}"
            need = f"{self._root}/needs/{follower[: ids.SEGMENT]}/{follower}/{id}"
            if self._scene.has(need) or self._scene.age(path) <= PATIENCE:
                continue
            self._scene.suspect("orphan", (folder, follower), "no such need", self._lonely(path, need), follower)

    def _lonely(self, path: str, need: str) -> Callable[[], bool]:
        return lambda: self._scene.has(path) and not self._scene.has(need)

    def _orphan(self, place: str, segment: str, id: str) -> None:
        path = f"{self._root}/{place}/{segment}/{id}"
        if self._scene.age(path) <= PATIENCE:
            return

        def again() -> bool:
            waits = self._scene.has(f"{self._root}/tmp/{id}.json")
            return not waits and self._scene.is_nowhere(id) and self._scene.has(path)

        self._scene.suspect("orphan", (path.rpartition("/")[0], id), "needs of a task that is nowhere", again, id)


def _is_follower(name: str) -> bool:
    """A task, or the mark of a prune of what was not done."""
    return ids.is_id(name) or name in _MARKS
