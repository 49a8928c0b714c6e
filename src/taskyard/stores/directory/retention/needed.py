"""Which ended tasks others still need: one that is not done stays as long as a task waits for it."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.tasks.edges import FAILURES, by_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.locate import Found


class Needed:
    """Keeps a prune from removing what a task waits for, and removes the edges of what goes."""

    def __init__(self, context: Context, edges: Edges) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._names = context.locator.names
        self._edges = edges

    def leaving(self, going: list[tuple[int, Found]]) -> list[tuple[int, Found]]:
        """Return these ended tasks without those that are not done and that a remaining task needs.

        Tasks that are not done and have followers come last, each behind its followers, so that these are gone by then.
        """
        goes = {found.token.id: found.state for _, found in going}
        followed: dict[str, list[str]] = {}
        for segment in by_segment(id for id, state in goes.items() if state is not State.DONE):
            noted = {*self._names(f"{self._root}/followers/{segment}"), *self._edges.sheets.followed(segment)}
            for id in sorted(noted):
                if id in goes and goes[id] is not State.DONE:
                    followed[id] = self._edges.followers(id)
        kept = _kept(followed, goes)
        turn = {id: place for place, id in enumerate(_behind_followers(followed))}
        last = sorted(
            (pair for pair in going if pair[1].token.id in followed.keys() - kept),
            key=lambda pair: turn[pair[1].token.id],
        )
        return [pair for pair in going if pair[1].token.id not in followed] + last

    def mark(self, id: str, state: State) -> None:
        """Note before its file goes to dead/ that the task is not done: a task added after it at this moment must not run."""
        folder = self._edges.folder_of_followers(id)
        if state is not State.DONE:
            self._edges.put(folder, state, sync=False)
        elif self._disk.exists(folder):
            for other in FAILURES:
                self._context.links.remove(f"{folder}/{other}")

    def bury(self, name: str, by: str) -> bool:
        """Return whether the task in dead/ may go, with its edges; one that was not done and is needed after all goes back."""
        id = name[: ids.LENGTH]
        followers = self._edges.folder_of_followers(id)
        listed = self._names(followers) if self._disk.exists(followers) else []
        marks = [State(mark) for mark in listed if mark in FAILURES]
        if marks and self._edges.followers(id):
            folder = f"{self._root}/{marks[0]}/{id[: ids.SEGMENT]}"
            if self._context.mover.move(f"{self._root}/dead/{name}", folder, name):
                self._context.links.remove(f"{followers}/{marks[0]}")
            return False
        if not marks and self._edges.is_followed(id):
            self._edges.settle(id, by)
        for mark in marks:
            self._context.links.remove(f"{followers}/{mark}")
        if listed:
            self._context.mover.drop(followers)
        self._edges.withdraw(id)
        return True


def _kept(followed: dict[str, list[str]], goes: Collection[str]) -> set[str]:
    """Return the followed tasks that a task which stays comes after, directly or by way of others."""
    needs: dict[str, list[str]] = {}
    for id, followers in followed.items():
        for follower in followers:
            needs.setdefault(follower, []).append(id)
    staying = [follower for follower in needs if follower not in goes]
    kept: set[str] = set()
    while staying:
        fresh = set(needs.get(staying.pop(), ())) - kept
        kept |= fresh
        staying += fresh
    return kept


def _behind_followers(followed: dict[str, list[str]]) -> list[str]:
    """Return the followed tasks in an order in which each stands behind those of its followers that are followed too."""
    order: dict[str, None] = {}
    seen: set[str] = set()
    for start in followed:
        path = [start]
        while path:
            id = path[-1]
            left = () if id in seen else [other for other in followed[id] if other in followed and other not in seen]
            seen.add(id)
            if left:
                path += left
            else:
                order.setdefault(path.pop())
    return list(order)
