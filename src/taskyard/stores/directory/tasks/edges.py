"""Which task must wait for which: a file for every unmet need, and one in the other direction so that a done finds it.

    needs/<seg>/<task>/<other>        the task is blocked until the other one is done
    followers/<seg>/<other>/<task>    read by the process that makes the other one done

All needs of a task are there before the first follower is, and both before the task is published in blocked/. Then its
adder checks whether one of the others is done by now. So either the adder or the done sees the edge. Each done removes
its own need; the process that finds the folder empty unblocks the task. What a killed process left undone is found by the
intents of the dead, and by a walk through one segment after the other.
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
    200  # followers whose empty folders a done removes itself: ext4 takes 1 ms for each, ten times as long as the rest
)
_FEW = 4  # ids of one segment that are looked up one by one; more are found in one pass over it


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
        """Replace the names in each draft's `after` with whole ids; raise `NotFound` or `Ambiguous` if that fails."""
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
        """Return the ids of tasks that fit these patterns in one pass; others of their segments may be among them."""
        found: set[str] = set()
        for segment, some in _by_segment(wanted).items():
            for pattern in some if len(some) <= _FEW else [segment]:
                found.update(self._context.locator.matching(pattern))
        return found

    def unmet(self, after: Iterable[str]) -> set[str]:
        """Return those of these tasks that are not done, by a fresh listing."""
        return set(after) - self.done(after)

    def done(self, after: Iterable[str]) -> set[str]:
        """Return those of these tasks that are done."""
        met: set[str] = set()
        for segment, some in _by_segment(after).items():
            listed = {name[: ids.LENGTH] for name in self._names(f"{self._root}/done/{segment}")}
            met.update(some & listed)
        return met

    def open(self, after: Iterable[str]) -> set[str]:
        """Return those of these tasks that exist and are not done: a needed task that is missing was done and pruned."""
        unmet = self.unmet(after)
        return {id for id in unmet if self._context.locator.knows(id)} if unmet else unmet

    def register(self, id: str, needs: Iterable[str], sync: bool) -> None:
        """Write the edges of a task that is about to be published; raise `NotFound` if a needed task is gone by then.

        It checks after the edges are written: a process that prunes a task that is not done reads the edges after its move.
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
        """Return the open tasks that the task in this place comes after, but that are not among its `noted` needs.

        A need is written before its task, and removed only after the other one is done: so a missing one was lost.
        """
        try:
            return self.open(self.comes_after(place).difference(noted))
        except OSError:
            return set()  # gone, or unreadable, which is reported as such

    def comes_after(self, place: tuple[str, str]) -> set[str]:
        """Return the tasks that its own content puts before this task; none if the content is broken, as the task will fail."""
        try:
            after = task_file.draft(self._context.edits.read(*place)).after
        except TaskyardError:
            return set()
        return set(filter(ids.is_id, after))

    def note(self, id: str, other: str) -> None:
        """Write the lost need of a task, and its edge in the other direction."""
        self._put(self._needs(id), other, sync=True)
        self.tie(id, other)

    def tie(self, id: str, other: str) -> None:
        """Write the edge by which a done of the other task finds this task."""
        self._put(self._followers(other), id, sync=True)

    def _put(self, folder: str, name: str, sync: bool) -> None:
        while True:
            self._context.links.keep(folder)
            try:
                return self._disk.create(f"{folder}/{name}", b"", sync=False)
            except FileExistsError:
                return None  # another process finishes the same add
            except FileNotFoundError:
                self._context.mover.ensure(folder, sync)

    def withdraw(self, id: str) -> None:
        """Remove all edges of the task: it was not added after all, or is gone."""
        for other in self.needs(id):
            self._context.links.remove(f"{self._followers(other)}/{id}")
            self._context.mover.drop(self._followers(other))
            self._context.links.remove(f"{self._needs(id)}/{other}")
        self._context.mover.drop(self._needs(id))

    # After a task is published in blocked/, and after a task is done

    def needs(self, id: str) -> list[str]:
        """Return the tasks that the task waits for, oldest first."""
        return sorted(filter(ids.is_id, self._listed("needs", id)), key=ids.age_key)

    def look(self, needs: dict[str, set[str]], by: str) -> set[str]:
        """Unblock those of these tasks whose needs are met by now, and return them."""
        met = self.done({other for some in needs.values() for other in some})
        free: dict[str, str | None] = {}
        edges = []
        for id, some in needs.items():
            for other in sorted(some & met):
                edges.append(f"{self._followers(other)}/{id}")
                if self._meet(id, other):
                    free[id] = other
            if id not in free and not self._listed("needs", id):
                free[id] = None  # others met them before the task was there to be unblocked
        freed = self._unblock(free, by)
        for edge in edges:
            self._context.links.remove(edge)
            self._context.mover.drop(edge.rpartition("/")[0])
        return freed

    def look_again(self, id: str, by: str) -> set[str]:
        """Do the same for a task that got into blocked/ by another way."""
        return self.look({id: set(self.needs(id))}, by)

    def settle(self, id: str, by: str) -> int:
        """Remove the need for a task that is done from all its followers; return their number."""
        followers = sorted(filter(ids.is_id, self._listed("followers", id)))
        tidy = len(followers) <= _MANY or not self._context.local
        self._unblock({follower: id for follower in followers if self._meet(follower, id, tidy=tidy)}, by)
        for follower in followers:
            self._context.links.remove(f"{self._followers(id)}/{follower}")
        self._context.mover.drop(self._followers(id))
        return len(followers)

    def _meet(self, id: str, other: str, *, tidy: bool = True) -> bool:
        """Remove one need; return whether it was the task's last. With `tidy`, remove its empty folder too.

        On a network filesystem the result of rmdir decides, because the server knows: a listing may be a moment old.
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
            return False  # other needs are left
        return True

    def _unblock(self, free: dict[str, str | None], by: str) -> set[str]:
        """Move these tasks out of blocked/; one that is not there was cancelled, or its adder is about to check it."""
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
        """List the task's folder; raise an error if that is impossible, because an empty list unblocks tasks."""
        own = f"{self._root}/{place}/{id[: ids.SEGMENT]}/{id}"
        # Most tasks have no edges: one lookup costs less than a listing.
        return self._names(own) if self._disk.exists(own) else []

    # Before and after a task is pruned

    def leaving(self, going: list[tuple[int, Found]]) -> list[tuple[int, Found]]:
        """Return these ended tasks without those that are not done and that a remaining task needs.

        Tasks that are not done and have followers come last, the youngest first, so that their followers are gone by then.
        """
        goes = {found.token.id: found.state for _, found in going}
        kept: set[str] = set()
        followed: dict[str, list[str]] = {}
        for segment in _by_segment(id for id, state in goes.items() if state is not State.DONE):
            for id in self._names(f"{self._root}/followers/{segment}"):
                if id in goes and goes[id] is not State.DONE:
                    followed[id] = [name for name in self._names(self._followers(id)) if ids.is_id(name)]
        # A task is younger than all that it comes after, so the youngest are judged first.
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
        """Note before its file goes to dead/ that the task is not done: a task added after it at this moment must not run."""
        if state is not State.DONE:
            self._put(self._followers(id), state, sync=False)
        elif self._disk.exists(self._followers(id)):
            for other in (State.FAILED, State.CANCELLED):
                self._context.links.remove(f"{self._followers(id)}/{other}")

    def bury(self, name: str, by: str) -> bool:
        """Return whether the task in dead/ may go, with its edges; one that was not done and is needed after all goes back."""
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
