"""The moves of a repair. Each is one rename or link to a name that was never used; nothing is removed."""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.moves import Move
from taskyard.core.store_records import Terms
from taskyard.core.task import State
from taskyard.stores.directory import names
from taskyard.stores.directory.dropbox import file_format
from taskyard.stores.directory.dropbox.rejected import shown
from taskyard.stores.directory.names import DROPPED, SUFFIX, Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.locate import Found
from taskyard.stores.directory.tasks.segments import SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.shifts import Shifts


class RepairMoves:
    """Moves damaged files to failed/, or to the place where they belong."""

    def __init__(self, context: Context, shifts: Shifts, adder: Adder, rejected: Rejected, by: str) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._shifts = shifts
        self._adder = adder
        self._rejected = rejected
        self._by = by

    # Files

    def set_aside(self, path: str, reason: str, task: str | None = None, fence: int = 0, stem: str = "") -> str | None:
        """Move the file to failed/, with the reason beside it, and return a sentence that names its new place.

        With `task`, the log gets an event that this was the task's file, and that the task no longer exists.
        """
        stem = stem or path.rpartition("/")[2].removesuffix(SUFFIX)
        kept = self._rejected.put(path, stem, f"fsck: {reason}")
        if kept is None:
            return None
        about = json.dumps(shown(kept))[1:-1] if task is None else task
        more = {"reason": f"fsck: {reason}"}
        at = self._context.clock.now()
        self._context.log.write(at, "set_aside", about, file_format.DEFAULT_KIND, fence, None, self._by, more)
        return f"set aside as failed/{shown(kept)}.json"

    # Tasks

    def highest(self, found: Found, logged_fence: int) -> int:
        """Return the highest fence that the task ever had, by its name, the log and its records."""
        id = found.token.id
        fences = [found.token.fence, logged_fence]
        for name in self._context.locator.names(f"{self._root}/results/{id[: ids.SEGMENT]}"):
            parts = name.split(".")
            if name.startswith(id) and len(parts) == 5 and parts[1].isdigit() and not parts[3].startswith("stale-"):
                fences.append(int(parts[1]))
        return max(fences)

    def shift(
        self, found: Found, to: State, logged_fence: int, event: str, reason: str, lane: Lane | None = None
    ) -> str | None:
        """Move the task to `to`, under a legal name with a new fence; return what was done, or None."""
        fence = self.highest(found, logged_fence) + 1
        standing = found.token.standing(found.state, found.place, self._context.policy)
        if lane is not None:
            standing.priority, standing.kind, standing.assignee = lane.priority, lane.kind, lane.assignee
        move = Move(event, to, fence, found.token.errors, found.token.crashes, reason=f"fsck: {reason}")
        if not self._shifts.shift(standing, move, self._by, lane=lane):
            return None
        return f"moved to {to} with fence {fence}"

    def fail(self, found: Found, logged_fence: int, reason: str, *, edited: bool = True) -> str | None:
        """Claim the task and fail it for good; with `edited=False` as it was before its edit, which cannot be read."""
        context, token, lane = self._context, found.token, found.token.lane
        own = names.own_parts(found.place[1])
        if not edited and token.body is not None:
            own, lane = self._unedited(found, own)
        counters = names.Counters.parse(f"e{token.errors}.c{token.crashes}{own}{SUFFIX}")
        if counters is None:
            return None
        fence = self.highest(found, logged_fence) + 1
        nonce = f"{ids.base32(ids.chance(40), 8)}1"
        plan = names.Plan(counters, lane, self._by, Terms(self._by, None, None, False), context.policy)
        name = f"{token.id}.{fence}.{plan.middle}{nonce}{SUFFIX}"
        worker = self._by if lane.assignee is None else lane.assignee
        at = context.clock.now()
        line = context.log.line(at, "claimed", token.id, lane.kind, fence, worker, self._by)
        if not context.mover.move(found.path, context.processing, name):
            context.log.forget()
            return None
        context.log.append(line)
        standing = token.standing(State.PROCESSING, (context.processing, name), context.policy)
        standing.fence, standing.worker, standing.nonce = fence, worker, nonce
        standing.priority, standing.kind, standing.assignee = lane.priority, lane.kind, lane.assignee
        counted = (fence, token.errors, token.crashes)
        move = Move("failed", State.FAILED, *counted, outcome="error", reason=f"fsck: {reason}")
        return f"failed, with fence {fence}" if self._shifts.shift(standing, move, self._by) else None

    def _unedited(self, found: Found, own: str) -> tuple[str, Lane]:
        """Return the parts of the name and the lane that the task had before its edit."""
        content = self._disk.read(found.path)
        own = own.replace(f".b{found.token.body}", "" if content.startswith(task_file.MARK) else f".{DROPPED}")
        try:
            draft = task_file.draft(content)
        except Invalid:
            return own, found.token.lane
        return own, Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)

    def back_to_the_box(self, found: Found, reason: str) -> str:
        """Move a broken dropped file back to the drop box, where a sweep reads it again."""
        standing = found.token.standing(found.state, found.place, self._context.policy)
        self._shifts.back_to_the_box(standing, f"fsck: {reason}")
        return f"back in the drop box as todo/{standing.id}.json"

    def put_home(self, found: Found) -> str | None:
        """Move an ended task to its own segment. Its name stays, because that selects its record."""
        folder = f"{self._root}/{found.state}/{found.token.id[: ids.SEGMENT]}"
        self._context.mover.ensure(folder)
        if not self._disk.move_new(found.path, f"{folder}/{found.place[1]}"):
            return None
        self._context.sync_move(folder, found.place[1])
        return f"moved to {folder.removeprefix(self._root + '/')}"

    def bring_back(self, path: str, id: str, logged_fence: int) -> str | None:
        """Restore a task from the file of its key, with a new fence."""
        draft = task_file.draft(self._disk.read(path))
        lane = Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        now = self._context.clock.now()
        needs = self._shifts.edges.open(draft.after) if draft.after else set()
        due = draft.due(now)
        folder, name = self._adder.target(id, draft, lane, due, now, "", bool(needs))
        token = names.Token(id, 0, 0, 0, lane)
        fence = self.highest(Found(State.TODO, (folder, name), token), logged_fence) + 1
        name = name.replace(f"{id}.0.", f"{id}.{fence}.", 1)
        if needs:
            self._shifts.edges.register({id: needs}, self._context.durable)
        self._context.mover.ensure(folder)
        more = {"reason": "fsck: its file was gone; brought back from its key"}
        line = self._context.log.line(now, "retried", id, lane.kind, fence, None, self._by, more)
        if not self._disk.link(path, f"{folder}/{name}"):
            return None
        self._context.sync_move(folder, name)
        self._context.log.append(line)
        if needs:
            self._shifts.edges.look_again(id, self._by)
        return f"brought back with fence {fence}"

    def mark(self, segment: str) -> str | None:
        """Write the marker of a segment that has tasks: as a full one, because their number is unknown."""
        tasks = self._context.locator.matching(segment)
        if not tasks:
            return None
        lanes = [found.token.lane.plain for found in tasks.values() if found.token.body is None]
        lane = max(set(lanes), key=lanes.count) if lanes else next(iter(tasks.values())).token.lane.plain
        draft = self._context.draft()
        opened = min(map(ids.created, tasks))
        self._disk.create(draft, f"{opened} {lane}\n".encode() + b"." * SIZE, self._context.durable)
        if not self._disk.publish(draft, f"{self._root}/segments/{segment}"):
            return None
        if self._context.durable:
            self._disk.sync(f"{self._root}/segments")
        return f"made for lane {lane}, as a full segment"

    def log(self, found: Found, reason: str | None) -> str:
        """Log the claim and the ending of a task, both at the time of the ending."""
        from taskyard.core.times import rfc3339

        token = found.token
        now = self._context.clock.now()
        at = rfc3339(self._disk.changed_at(found.path))
        event = {"at": at, "event": "claimed", "task": token.id, "fence": token.fence, "kind": token.lane.kind}
        event |= {"worker": token.worker, "by": self._by}
        self._context.log.log_again(event, now)
        ending = {**event, "event": str(found.state)}
        if found.state is State.FAILED:
            ending |= {"final": True, "reason": reason}
        self._context.log.log_again(ending, now)
        return "logged"
