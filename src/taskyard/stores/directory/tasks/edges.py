"""Which task must wait for which: when an edge is written, when it is met, and what its end sets free.

All needs of a task are there before the first follower is, and both before the task is published in blocked/. Then its
adder checks whether one of the others is done by now. So either the adder or the done sees the edge. Each done removes
its own need; the process that finds the folder empty unblocks the task. What a killed process left undone is found by the
intents of the dead, and by a walk through one segment after the other.

What it means if the other one fails stands in the task's own content; `cascade` applies it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from errno import EINVAL, ENOLCK, ENOTSUP

from taskyard.core import ids, moves, needs, plan, task_names
from taskyard.core.errors import NotFound, TaskyardError
from taskyard.core.task import State
from taskyard.stores.directory.names import Token
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.edge_files import EdgeFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.cascade import Cause
    from taskyard.stores.directory.tasks.shifts import Shifts

_MANY = (
    200  # followers whose empty folders a done removes itself: ext4 takes 1 ms for each, ten times as long as the rest
)
FAILURES = (State.FAILED, State.CANCELLED)
_LISTED_AGAIN = 32  # names in a folder that are cheap to list again: a list of more is kept
_LISTS_MOST = 64  # lists that are kept
_LOCKED = 0.002  # seconds between two tries to lock the order
_NO_LOCKS = frozenset((ENOLCK, ENOTSUP, EINVAL))  # a filesystem without locks: an edit looks for a cycle after it, too
_FEW = 4  # ids of one segment that are looked up one by one; more are found in one pass over it


class Edges(EdgeFiles):
    """Registers, meets and removes needs."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        super().__init__(context)
        self._shifts = shifts
        self._blocked: dict[str, dict[str, str]] = {}

    # Before a task is added

    def resolve(self, drafts: Sequence[Draft]) -> None:
        """Replace the names in each draft's `after` with whole ids; raise `NotFound` or `Ambiguous` if that fails.

        A need that has a position in the batch stays as it is.
        """
        wanted = {str(need) for draft in drafts for need in draft.after if _is_outside(need)}
        if not wanted:
            return
        known = self._matching(wanted)
        whole = {name: self._whole(name, known) for name in wanted}
        for draft in drafts:
            draft.after = needs.unique(
                needs.parse(need).named(whole[str(need)]) if _is_outside(need) else needs.parse(need)
                for need in draft.after
            )

    def _whole(self, pattern: str, known: set[str]) -> str:
        matches = [pattern] if pattern in known else [id for id in known if ids.fits(pattern, id)]
        if len(matches) > 1:
            raise task_names.ambiguous(pattern, matches)
        return matches[0] if matches else self._context.locator.find(pattern).token.id

    def _matching(self, wanted: Iterable[str]) -> set[str]:
        """Return the ids of tasks that fit these patterns in one pass; others of their segments may be among them."""
        found: set[str] = set()
        for segment, some in by_segment(wanted).items():
            for pattern in some if len(some) <= _FEW else [segment]:
                found.update(self._context.locator.matching(pattern))
        return found

    def unmet(self, after: Iterable[str]) -> set[str]:
        """Return those of these needs that are not met, by a fresh listing."""
        wanted = set(after)
        unmet = wanted - self.done(wanted)
        mild = {need for need in unmet if needs.on_failure(need) == needs.RUN}
        return unmet - self.states(mild, *FAILURES).keys()

    def done(self, after: Iterable[str]) -> set[str]:
        """Return those of these tasks that are done."""
        return set(self.states(after, State.DONE))

    def states(self, some: Iterable[str], *states: State) -> dict[str, State]:
        """Return which of these tasks are in one of these states, each listed by segment; the last state wins."""
        found: dict[str, State] = {}
        for segment, wanted in by_segment(some).items():
            for state in states:
                listed = {name[: ids.LENGTH] for name in self._names(f"{self._root}/{state}/{segment}")}
                found.update(dict.fromkeys(wanted & listed, state))
        return found

    def open(self, after: Iterable[str]) -> set[str]:
        """Return those of these needs that are not met and whose task exists: one that is missing was done and pruned."""
        unmet = self.unmet(after)
        return {id for id in unmet if self._context.locator.knows(id)} if unmet else unmet

    def register(self, edges: Mapping[str, Collection[str]], sync: bool, batch: Collection[str] = ()) -> None:
        """Write the edges of tasks that are about to be published; raise `NotFound` if a needed task is gone by then.

        It checks after the edges are written: a process that prunes a task that is not done reads the edges after its move.
        The tasks of the same batch are not there yet, and are not looked for.
        """
        pairs = [(id, other) for id, others in edges.items() for other in sorted(others)]
        if not pairs:
            return
        self._write(pairs, sync, sheet=bool(batch))
        needed = {other for _, other in pairs}.difference(batch)
        try:
            for other in needed - self._matching(needed):
                self._context.locator.find(other)
        except NotFound:
            for id in edges:
                self.withdraw(id)
            raise

    def owed(self, place: tuple[str, str], noted: Iterable[str]) -> set[str]:
        """Return the open tasks that the task in this place comes after, but that are not among its `noted` needs.

        A need is written before its task, and removed only after the other one is done: so a missing one was lost. Only one
        that says `run` may be gone for another reason: the other one had failed, and was retried.
        """
        try:
            after = self.comes_after(place)
        except OSError:
            return set()  # gone, or unreadable, which is reported as such
        return self.open({id for id, policy in after.items() if policy != needs.RUN}.difference(noted))

    def comes_after(self, place: tuple[str, str]) -> dict[str, str]:
        """Return the tasks that its own content puts before this task, and what their failures mean.

        If the content is broken there are none, as the task will fail.
        """
        try:
            after = task_file.draft(self._context.edits.read(*place)).after
        except TaskyardError:
            return {}
        return {str(need): needs.on_failure(need) for need in after if ids.is_id(need)}

    # After a task is published in blocked/, and after a task is done

    def look(self, waiting: Mapping[str, AbstractSet[str]], by: str) -> dict[str, State]:
        """Move those of these blocked tasks whose needs let them go by now, or have them cancelled; return these.

        A need without a policy is that of a task whose content was not read.
        """
        met = self.done({other for some in waiting.values() for other in some})
        free: dict[str, str | None] = {}
        edges = []
        for other in met:
            self.sheets.meet(other)
        noted = {id for segment in by_segment(waiting) for id in self.sheets.waiting(segment)}
        for id, some in waiting.items():
            if id in noted:
                # Its sheet has needs that are not noted as met; on a network filesystem no process notes that.
                if some <= met and not self._listed("needs", id):
                    free[id] = None
                continue
            for other in sorted(some & met):
                edges.append(f"{self.folder_of_followers(other)}/{id}")
                if self._meet(id, other):
                    free[id] = other
            if id not in free and not self._listed("needs", id):
                free[id] = None  # others met them before the task was there to be unblocked
        moved = dict.fromkeys(self._unblock(free, by), State.TODO)
        for edge in edges:
            self._context.links.remove(edge)
            self._context.mover.drop(edge.rpartition("/")[0])
        open = {
            other: [id for id, some in waiting.items() if other in some]
            for other in {other for some in waiting.values() for other in some if _may_give_way(other)} - met
        }
        failed = self.states(open, *FAILURES) if open else {}
        return moved | self.judge([(other, state, open[other]) for other, state in failed.items()], by)

    def look_again(self, id: str, by: str) -> dict[str, State]:
        """Do the same for a task that got into blocked/ by another way."""
        return self.look({id: set(self.needs(id))}, by)

    def judge(self, causes: Sequence[Cause], by: str, thorough: bool = False) -> dict[str, State]:
        """Apply failures to the tasks that come after them; return the tasks that were moved. See `Cascade`."""
        if not causes:
            return {}
        from taskyard.stores.directory.tasks.cascade import Cascade

        return Cascade(self._context, self, self._shifts, by, thorough).judge(causes)

    def fail(self, state: State, id: str, by: str) -> None:
        """Apply the failure of this task to all that come after it."""
        self.judge([(id, state, None)], by)

    def settle(self, id: str, by: str) -> int:
        """Remove the need for a task that is done from all its followers; return their number."""
        followers: list[str] = []
        if self._disk.exists(self.folder_of_followers(id)):
            followers = sorted(filter(ids.is_id, self._names(self.folder_of_followers(id))))
            self.meet(id, followers, by)
        sheets = self.sheets.meet(id)
        free = [task for sheet in sheets for task in sheet.freed_by(id) if not self._listed("needs", task)]
        if free:
            self._unblock(dict.fromkeys(free, id), by)
        for sheet in sheets:
            self.sheets.drop(sheet)
        return len(followers) + len(free)

    def meet(self, id: str, followers: Sequence[str], by: str) -> set[str]:
        """Remove the need for a task from these followers, which it no longer blocks; return those that go on."""
        tidy = len(followers) <= _MANY or not self._context.local
        freed = self._unblock({follower: id for follower in followers if self._meet(follower, id, tidy=tidy)}, by)
        for follower in followers:
            self._context.links.remove(f"{self.folder_of_followers(id)}/{follower}")
        self._context.mover.drop(self.folder_of_followers(id))
        return freed

    def tidy(self, id: str, by: str) -> dict[str, State]:
        """Remove the needs of an edit that was not made, or that is over; then look at the task as after its add."""
        found = self._context.locator.find(id)
        try:
            after = self.comes_after(found.place)
        except FileNotFoundError:
            return {}  # it moves: the walk looks at it again
        for other in self.needs(id):
            if other not in after:
                self.cut(id, other)
        return self.look_again(id, by) if found.state is State.BLOCKED else {}

    @contextmanager
    def one_order(self) -> Iterator[None]:
        """Make one edit of what tasks come after at a time: two could make a cycle together. A killed process frees the lock."""
        lock = None
        try:
            while (lock := self._disk.lock(f"{self._root}/needs")) is None:
                time.sleep(_LOCKED)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        try:
            yield
        finally:
            if lock is not None:
                self._disk.close(lock)

    def crosses(self, id: str, after: Sequence[str]) -> bool:
        """Whether this task would come after itself, if it came after these."""

        def find_after(some: Sequence[str]) -> dict[str, list[str]]:
            there = self._context.locator.several(some)
            return {other: list(self._comes_after_now(found.place)) for other, found in there.items()}

        return plan.path(id, after, find_after) is not None

    def _comes_after_now(self, place: tuple[str, str]) -> dict[str, str]:
        try:
            return self.comes_after(place)
        except FileNotFoundError:
            return {}  # it moves, so it is not blocked behind the task

    def _meet(self, id: str, other: str, *, tidy: bool = True) -> bool:
        """Remove one need; return whether it was the task's last. With `tidy`, remove its empty folder too.

        On a network filesystem the result of rmdir decides, because the server knows: a listing may be a moment old.
        """
        folder = self._needs(id)
        self._context.links.remove(f"{folder}/{other}")
        if not tidy:
            return not self._names(folder) and not self.sheets.needs(id)
        try:
            if self._context.links.holds(folder.rpartition("/")[0]):
                self._disk.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            return False  # other needs are left
        return not self.sheets.needs(id)

    def _unblock(self, free: dict[str, str | None], by: str) -> set[str]:
        """Move these tasks out of blocked/; one that is not there was cancelled, or its adder is about to check it."""
        freed = set()
        for segment, wanted in by_segment(free).items():
            folder = f"{self._root}/blocked/{segment}"
            for name in self._named(folder, wanted):
                token = Token.parse(name)
                if token is None:
                    continue
                cause = free[token.id]
                if (cause is None or token.body is not None) and self._is_owed((folder, name), token.id, by):
                    continue
                standing = token.standing(State.BLOCKED, (folder, name), self._context.policy)
                move = moves.unblocked(standing, later=(token.due or 0) > self._context.clock.now())
                if self._shifts.shift(standing, move, by, more=None if cause is None else {"freed_by": cause}):
                    freed.add(token.id)
        return freed

    def _named(self, folder: str, wanted: set[str]) -> list[str]:
        """Return the names of these tasks in a segment of blocked/, by a list from before where all are still there.

        Without it, every done of a graph would list up to a thousand names to find the one that it frees.
        """
        known = self._blocked.get(folder, {})
        names = [known[id] for id in sorted(wanted) if id in known]
        if len(names) == len(wanted) and all(self._disk.exists(f"{folder}/{name}") for name in names):
            return names
        listed = self._names(folder)
        if self._context.local and len(listed) > _LISTED_AGAIN:
            if len(self._blocked) >= _LISTS_MOST:
                self._blocked.clear()
            self._blocked[folder] = {name[: ids.LENGTH]: name for name in listed}
        return [name for name in listed if name[: ids.LENGTH] in wanted]

    def _is_owed(self, place: tuple[str, str], id: str, by: str) -> bool:
        """Whether a task is to wait for more than is noted; what is missing is noted again.

        Two edits at once may remove each other's needs. A sweep removes those of a task whose adder stands still for long.
        """
        owed = self.owed(place, ())
        for other in owed:
            self.note(id, other)
        if owed:
            self.look({id: owed}, by)  # one of them may have been done meanwhile
        return bool(owed)


def by_segment(some: Iterable[str]) -> dict[str, set[str]]:
    """Return these ids by their segments."""
    segments: dict[str, set[str]] = {}
    for id in some:
        segments.setdefault(id[: ids.SEGMENT], set()).add(id)
    return segments


def _is_outside(need: str) -> bool:
    """Whether this need is a name to be looked up, and no place in the same batch."""
    return not isinstance(need, needs.Need) or need.position is None


def _may_give_way(need: str) -> bool:
    """Whether a failure of the other task may let this need go, or cancel its task."""
    return not isinstance(need, needs.Need) or need.on_failure != needs.BLOCK
