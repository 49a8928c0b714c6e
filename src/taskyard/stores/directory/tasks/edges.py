"""Which task must wait for which: a file for every unmet need, and one the other way round so that a done finds it.

    needs/<seg>/<task>/<other>        the task is blocked until the other one is done
    followers/<seg>/<other>/<task>    whoever is done with the other one looks here

All needs of a task are there before the first follower is, and both before the task is published in blocked/; then its
adder looks whether one of the others is done meanwhile. So either the adder or the done sees the edge. Each done removes
its own need; whoever finds the folder empty lets the task go. What is killed in between is found by the intents of the
dead, and by a walk through one segment after the other.
"""

from __future__ import annotations

from taskyard.core import ids, moves, task_names
from taskyard.core.errors import NotFound, TaskyardError
from taskyard.core.task import State
from taskyard.stores.directory.names import Token
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.shifts import Shifts

_MANY = (
    200  # followers whose empty folders a done removes itself: ext4 takes 1 ms for each, ten times what the rest does
)
_FEW = 4  # ids of one segment that are looked for one by one; more are found in one pass over it


class Edges:
    """Registers, meets and removes needs."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._names = context.locator.names
        self._shifts = shifts

    # Before a task is added

    def resolve(self, drafts: Sequence[Draft]) -> None:
        """Give every draft the whole ids of what it comes after; `NotFound` or `Ambiguous` if one names no single task."""
        wanted = {id for draft in drafts for id in draft.after}
        if not wanted:
            return
        known = self._matching(wanted)
        for draft in drafts:
            draft.after = tuple(dict.fromkeys(self._whole(id, known) for id in draft.after))

    def _whole(self, pattern: str, known: set[str]) -> str:
        matches = [pattern] if pattern in known else [id for id in known if ids.fits(pattern, id)]
        if len(matches) > 1:
            raise task_names.ambiguous(pattern, matches)
        return matches[0] if matches else self._context.locator.find(pattern).token.id

    def _matching(self, wanted: Iterable[str]) -> set[str]:
        """The ids of tasks that fit these patterns, as far as one pass shows them; others of their segments may be among them."""
        found: set[str] = set()
        for segment, some in _by_segment(wanted).items():
            for pattern in some if len(some) <= _FEW else [segment]:
                found.update(self._context.locator.matching(pattern))
        return found

    def unmet(self, after: Iterable[str]) -> set[str]:
        """Those of these tasks that are not done, by a fresh listing."""
        return set(after) - self.done(after)

    def done(self, after: Iterable[str]) -> set[str]:
        """Those of these tasks that are done."""
        met: set[str] = set()
        for segment, some in _by_segment(after).items():
            listed = {name[: ids.LENGTH] for name in self._names(f"{self._root}/done/{segment}")}
            met.update(some & listed)
        return met

    def open(self, after: Iterable[str]) -> set[str]:
        """Those of these tasks that are there and not done: what was needed once and is nowhere was done and pruned."""
        unmet = self.unmet(after)
        return {id for id in unmet if self._context.locator.knows(id)} if unmet else unmet

    def register(self, id: str, needs: Iterable[str], sync: bool) -> None:
        """Keep the edges of a task that is about to be published; `NotFound` if what it needs is gone by then.

        The last look is after the edges are there: whoever prunes what did not get done looks at them after its move.
        """
        ordered = sorted(needs)
        if not ordered:
            return
        few = sync and len(ordered) <= _FEW
        for other in ordered:
            self._put(self._needs(id), other, few)
        if few:
            self._disk.sync(self._needs(id))
        for other in ordered:
            self._put(self._followers(other), id, few)
            if few:
                self._disk.sync(self._followers(other))
        if sync and not few:
            self._disk.sync_all(self._root)
        missing = set(ordered) - self._matching(ordered)
        try:
            for other in missing:
                self._context.locator.find(other)
        except NotFound:
            self.withdraw(id)
            raise

    def owed(self, place: tuple[str, str], noted: Iterable[str]) -> set[str]:
        """What the task of this place comes after and is open, although none of these noted needs says so.

        A need is there before its task is, and goes only after the other one is done: so it was lost.
        """
        try:
            return self.open(self.comes_after(place).difference(noted))
        except OSError:
            return set()  # gone, or unreadable, which is told as such

    def comes_after(self, place: tuple[str, str]) -> set[str]:
        """What the task of this place was added after, by its own words; nothing, if it is broken and will be failed."""
        try:
            after = task_file.draft(self._context.edits.read(*place)).after
        except TaskyardError:
            return set()
        return set(filter(ids.is_id, after))

    def note(self, id: str, other: str) -> None:
        """Have the task need the other one, as it should all along."""
        self._put(self._needs(id), other, sync=True)
        self.tie(id, other)

    def tie(self, id: str, other: str) -> None:
        """Have a done of the other one find this task, which needs it."""
        self._put(self._followers(other), id, sync=True)

    def _put(self, folder: str, name: str, sync: bool) -> None:
        while True:
            self._context.links.keep(folder)
            try:
                return self._disk.create(f"{folder}/{name}", b"", sync=False)
            except FileExistsError:
                return None  # by somebody who finishes the same add
            except FileNotFoundError:
                self._context.mover.ensure(folder, sync)

    def withdraw(self, id: str) -> None:
        """Take all that the task needs back: it is not added after all, or is gone."""
        for other in self.needs(id):
            self._context.links.remove(f"{self._followers(other)}/{id}")
            self._context.mover.drop(self._followers(other))
            self._context.links.remove(f"{self._needs(id)}/{other}")
        self._context.mover.drop(self._needs(id))

    # After a task is published in blocked/, and after a task is done

    def needs(self, id: str) -> list[str]:
        """What the task waits for, oldest first."""
        return sorted(filter(ids.is_id, self._listed("needs", id)), key=ids.age_key)

    def look(self, needs: dict[str, set[str]], by: str) -> set[str]:
        """Let those of these tasks go whose needs are met by now; which ones went."""
        met = self.done({other for some in needs.values() for other in some})
        free: dict[str, str | None] = {}
        edges = []
        for id, some in needs.items():
            for other in sorted(some & met):
                edges.append(f"{self._followers(other)}/{id}")
                if self._meet(id, other):
                    free[id] = other
            if id not in free and not self._listed("needs", id):
                free[id] = None  # met by others, who came before the task was there to be let go
        freed = self._unblock(free, by)
        for edge in edges:
            self._context.links.remove(edge)
            self._context.mover.drop(edge.rpartition("/")[0])
        return freed

    def look_again(self, id: str, by: str) -> set[str]:
        """The same for a task that has got into blocked/ by another way."""
        return self.look({id: set(self.needs(id))}, by)

    def settle(self, id: str, by: str) -> int:
        """A task is done: meet the need of all who follow it; how many that were."""
        followers = sorted(filter(ids.is_id, self._listed("followers", id)))
        tidy = len(followers) <= _MANY or not self._context.local
        self._unblock({follower: id for follower in followers if self._meet(follower, id, tidy=tidy)}, by)
        for follower in followers:
            self._context.links.remove(f"{self._followers(id)}/{follower}")
        self._context.mover.drop(self._followers(id))
        return len(followers)

    def _meet(self, id: str, other: str, *, tidy: bool = True) -> bool:
        """Whether this was the last thing that the task needed; its folder goes too, if it is to be tidied up at once.

        On a network the server's word is asked for, which is what becomes of the folder: a listing may be a moment old.
        """
        folder = self._needs(id)
        self._context.links.remove(f"{folder}/{other}")
        if not tidy:
            return not self._names(folder)
        try:
            if self._context.links.holds(folder.rpartition("/")[0]):
                self._disk.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # others are left
        return True

    def _unblock(self, free: dict[str, str | None], by: str) -> set[str]:
        """Move these tasks out of blocked/; one that is not there was called off, or is on its way in and looked after."""
        freed = set()
        for segment, wanted in _by_segment(free).items():
            folder = f"{self._root}/blocked/{segment}"
            for name in self._names(folder):
                token = Token.parse(name) if name[: ids.LENGTH] in wanted else None
                if token is None:
                    continue
                standing = token.standing(State.BLOCKED, (folder, name), self._context.policy)
                move = moves.unblocked(standing, later=(token.due or 0) > self._context.clock.now())
                cause = free[token.id]
                if self._shifts.shift(standing, move, by, more=None if cause is None else {"freed_by": cause}):
                    freed.add(token.id)
        return freed

    def _needs(self, id: str) -> str:
        return f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}"

    def _followers(self, id: str) -> str:
        return f"{self._root}/followers/{id[: ids.SEGMENT]}/{id}"

    def _listed(self, place: str, id: str) -> list[str]:
        """What is in the folder of this task; an error where that cannot be told, because nothing there sets tasks free."""
        own = f"{self._root}/{place}/{id[: ids.SEGMENT]}/{id}"
        # Most tasks have no edges: a look is less than a listing.
        return self._names(own) if self._disk.exists(own) else []

    # Before and after a task is pruned

    def leaving(self, going: list[tuple[int, Found]]) -> list[tuple[int, Found]]:
        """These ended tasks without those that are not done and that a task which stays needs.

        What is not done and has followers comes last, the youngest first, so that its followers are gone by then.
        """
        goes = {found.token.id: found.state for _, found in going}
        kept: set[str] = set()
        followed: dict[str, list[str]] = {}
        for segment in _by_segment(id for id, state in goes.items() if state is not State.DONE):
            for id in self._names(f"{self._root}/followers/{segment}"):
                if id in goes and goes[id] is not State.DONE:
                    followed[id] = [name for name in self._names(self._followers(id)) if ids.is_id(name)]
        # A task is younger than all it comes after, so the youngest are judged first.
        for id in sorted(followed, key=ids.age_key, reverse=True):
            if any(follower not in goes or follower in kept for follower in followed[id]):
                kept.add(id)
        last = sorted(
            (pair for pair in going if pair[1].token.id in followed.keys() - kept),
            key=lambda pair: ids.age_key(pair[1].token.id),
            reverse=True,
        )
        return [pair for pair in going if pair[1].token.id not in followed] + last

    def mark(self, id: str, state: State) -> None:
        """Note before its file goes to dead/ that the task is not done: whoever comes after it at this moment must not run."""
        if state is not State.DONE:
            self._put(self._followers(id), state, sync=False)
        elif self._disk.exists(self._followers(id)):
            for other in (State.FAILED, State.CANCELLED):
                self._context.links.remove(f"{self._followers(id)}/{other}")

    def bury(self, name: str, by: str) -> bool:
        """Whether the task in dead/ may go, with its edges; one that was not done and is needed after all goes back."""
        id = name[: ids.LENGTH]
        listed = self._listed("followers", id)
        marks = [State(mark) for mark in listed if mark in (State.FAILED, State.CANCELLED)]
        if marks and any(map(ids.is_id, listed)):
            folder = f"{self._root}/{marks[0]}/{id[: ids.SEGMENT]}"
            if self._context.mover.move(f"{self._root}/dead/{name}", folder, name):
                self._context.links.remove(f"{self._followers(id)}/{marks[0]}")
            return False
        if listed and not marks:
            self.settle(id, by)
        for mark in marks:
            self._context.links.remove(f"{self._followers(id)}/{mark}")
        if listed:
            self._context.mover.drop(self._followers(id))
        self.withdraw(id)
        return True


def _by_segment(some: Iterable[str]) -> dict[str, set[str]]:
    segments: dict[str, set[str]] = {}
    for id in some:
        segments.setdefault(id[: ids.SEGMENT], set()).add(id)
    return segments
