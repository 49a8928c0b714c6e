"""Other programs in the yard's folders, such as a loop that moves todo/NAME to processing/AGENT_NAME.

Their files are not touched while they may be at work. A file that they hold returns to todo/ after a lease without a
change, as their own janitor would do it. Tasks of ours that they moved are put back; those that they ended are ended.
"""

from __future__ import annotations

import errno

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.moves import Move
from taskyard.core.task import Handle, State
from taskyard.core.times import rfc3339
from taskyard.core.words import encoded
from taskyard.stores.directory import names
from taskyard.stores.directory.dropbox import guest_names
from taskyard.stores.directory.dropbox.rejected import shown
from taskyard.stores.directory.names import SUFFIX, Lane, begins_with_id
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.shifts import Shifts

_PLACES = ("todo", "processing", "failed", "done")
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
NO_REASON = "another program failed it, and left no reason"


class Guests:
    """Puts back tasks that other programs moved, returns files that they left, and lists what they hold."""

    def __init__(self, context: Context, shifts: Shifts, rejected: Rejected) -> None:
        self._context = context
        self._shifts = shifts
        self._disk = context.disk
        self._root = context.root
        self._rejected = rejected
        self.moved = context.locator.moved

    def tidy(self, now: int, by: str, *, deep: bool) -> int:
        """Put lanes back, return what guests have left, and end what they have ended; return how many things that were.

        With `deep` it also looks for lanes within lanes, which takes a listing for each.
        """
        return self._put_lanes_back(now, deep) + self._give_back(now) + self._adopt(by)

    # Lanes

    def _put_lanes_back(self, now: int, deep: bool) -> int:
        """Move every lane that a guest has taken for a task back to todo/."""
        moved = 0
        for place in _PLACES:
            for folder in list(self.moved.lanes(place, deep, past_closed=True)):
                # Its guest is about to move it on to failed/, and stops with an error if it is gone by then.
                if place == "processing" and not self._is_left(folder, now, self._context.settle):
                    continue
                moved += self._put_back(folder)
        return moved

    def _put_back(self, folder: str) -> int:
        text, lane = self._lane_of(folder)
        target = f"{self._root}/todo/{text}"
        try:
            self._disk.rename(folder, target)
            # Lanes that were moved into it since the listing have come along.
            moved = 1 + sum([self._put_back(nested) for nested in list(self.moved.nested(target, past_closed=True))])
        except FileNotFoundError:
            return 0
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            moved = sum(
                [self._merge(f"{folder}/{segment}", f"{target}/{segment}") for segment in self._segments(folder)]
            )
            self._context.mover.drop(folder)
        self._context.recheck_lane(lane)
        return moved

    def _merge(self, folder: str, target: str) -> int:
        """Move a segment's folder into its lane; if the lane has one, move its tasks into that one by one."""
        try:
            self._context.mover.ensure(target.rpartition("/")[0])
            self._disk.rename(folder, target)
        except FileNotFoundError:
            return 0
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return 1
        moved = sum(
            [self._context.mover.move(f"{folder}/{name}", target, name) for name in self._context.locator.names(folder)]
        )
        self._context.mover.drop(folder)
        return moved

    def _lane_of(self, folder: str) -> tuple[str, Lane]:
        """Return which lane the folder is; if its name allows several (an agent may be called 5-x), its tasks decide."""
        lanes = list(guest_names.lanes(folder.rpartition("/")[2]).items())
        own = next(self._lanes_of_tasks(folder), None) if len(lanes) > 1 else None
        return next((known for known in lanes if own is not None and known[1].text == own.text), lanes[-1])

    def _lanes_of_tasks(self, folder: str) -> Iterator[Lane]:
        for segment in self._segments(folder):
            for name in self._context.locator.names(f"{folder}/{segment}"):
                try:
                    draft = task_file.draft(self._context.edits.read(f"{folder}/{segment}", name))
                except (Invalid, OSError):
                    continue
                yield Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)

    def _segments(self, folder: str) -> list[str]:
        return list(filter(ids.is_segment, self._context.locator.names(folder)))

    def _is_left(self, path: str, now: int, milliseconds: float) -> bool:
        try:
            return now - self._disk.changed_at(path) > milliseconds
        except FileNotFoundError:
            return False

    # Files that belong to guests

    def _held(self) -> Iterator[tuple[str, str, str]]:
        """Return what guests hold: the name in processing/, its agent, and its name in todo/."""
        folder = f"{self._root}/processing"
        for name in self._context.locator.names(folder):
            agent, own = guest_names.split(name)
            if agent and not begins_with_id(name) and guest_names.carried(name) is None:
                try:
                    if self._disk.is_file(f"{folder}/{name}"):
                        yield name, agent, own
                except FileNotFoundError:
                    continue

    def _give_back(self, now: int) -> int:
        """Move files that guests have left for a lease back to todo/, under their former names."""
        given = 0
        for name, _, own in list(self._held()):
            path = f"{self._root}/processing/{name}"
            if not self._is_left(path, now, self._context.policy.lease * 1000):
                continue
            stem, suffix = (own[: -len(SUFFIX)], SUFFIX) if own.endswith(SUFFIX) else (own, "")
            target = f"{self._root}/todo/{own}"
            try:
                while not self._rejected.renamed(path, target):
                    target = f"{self._root}/todo/{stem}~{ids.base32(ids.chance(20), 4)}{suffix}"
            except FileNotFoundError:
                continue
            given += 1
        return given

    def list(self) -> list[dict[str, str | None]]:
        """Return what guests hold or have done: name, state, worker and time of each, by state and name."""
        entries = [self._entry(own, "processing", name, agent) for name, agent, own in self._held()]
        entries += [
            self._entry(found.token.id, "processing", found.place[1], found.token.worker)
            for found in self.moved.taken()
        ]
        entries += [
            self._entry(name, "done", name, None)
            for name in self._context.locator.names(f"{self._root}/done")
            if name.endswith(SUFFIX) and guest_names.carried(name) is None
        ]
        entries.sort(key=lambda entry: (entry["state"] != "processing", entry["name"] or ""))
        return entries

    def _entry(self, own: str, state: str, name: str, agent: str | None) -> dict[str, str | None]:
        try:
            at = rfc3339(self._disk.changed_at(f"{self._root}/{state}/{name}"))
        except OSError:
            at = None
        return {
            "name": shown(own.removesuffix(SUFFIX)),
            "state": state,
            "worker": None if agent is None else shown(agent),
            "at": at,
        }

    def ends(self) -> Iterator[int]:
        """Return when each file that guests hold counts as left, in milliseconds."""
        lease = round(self._context.policy.lease * 1000)
        for name, _, _ in self._held():
            try:
                yield self._disk.changed_at(f"{self._root}/processing/{name}") + lease
            except FileNotFoundError:
                continue

    # Tasks of ours that guests have ended

    def _adopt(self, by: str) -> int:
        adopted = 0
        for state in (State.FAILED, State.DONE):
            for found in list(self.moved.ended(state)):
                adopted += self._settle(found, by)
        return adopted

    def _settle(self, found: Found, by: str) -> bool:
        """Move a task that a guest ended to its place, under the fence of the guest's claim."""
        token, context = found.token, self._context
        at = context.clock.now()
        failed = found.state is State.FAILED
        errors = token.errors + failed
        standing = token.standing(State.PROCESSING, found.place, context.policy)
        if failed:
            counted = (token.fence, errors, token.crashes)
            move = Move("failed", State.FAILED, *counted, outcome="error", reason=NO_REASON)
            handle = Handle(token.id, token.fence, token.nonce or "")
            context.records.write(handle, move, standing, by, at, context.durable)
        target = _ended_name(found, errors)
        about = (token.id, token.lane.kind, token.fence)
        more = {"final": True, "reason": NO_REASON} if failed else None
        claimed = context.log.line(at, "claimed", *about, token.worker, by)
        line = context.log.line(at, str(found.state), *about, token.worker, by, more)
        folder = f"{self._root}/{found.state}/{token.id[: ids.SEGMENT]}"
        if not context.mover.move(found.path, folder, target):
            context.log.forget()
            return False
        if context.durable:
            context.sync_move(folder, target)
        context.log.append(claimed + line)
        self._shifts.follow_up(token.id, found.state, by)
        return True


def _ended_name(found: Found, errors: int) -> str:
    token = found.token
    own = guest_names.carried(found.place[1])
    assert own is not None  # `MovedTasks.ended` found it by that
    holder = names.ASSIGNED if token.lane.assignee is not None else encoded(token.worker or guest_names.UNKNOWN)
    counted = f"{token.id}.{token.fence}.e{errors}.c{token.crashes}{names.own_parts(own[1])}"
    return f"{counted}.{token.lane.text}.l{token.lease}.{holder}-{token.nonce}{SUFFIX}"
