"""Deadlines: an empty file `deadlines/<bucket>/<segment>/<id>.<ms>` for each, so that no sweep has to read the backlog.

The entry is written before the task, or its edit, is put in its place. It only says where to look: whether the deadline
applies is in the task's name (its mark is a capital), and the deadline itself in the task's file.
"""

from __future__ import annotations

from taskyard.core import ids, moves, times
from taskyard.core.errors import Invalid, NotFound
from taskyard.core.task import State
from taskyard.stores.directory import names
from taskyard.stores.directory.layout import DEADLINES
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.waiting import Buckets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.shifts import Shifts

_OPEN = (State.TODO, State.WAITING, State.BLOCKED)
_FORGOTTEN = 3_600_000  # milliseconds after which the entry of a task that is nowhere goes: its adder was killed, or it was pruned


class Deadlines(Buckets):
    """Writes the entries, and cancels the tasks whose deadline has passed."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        super().__init__(context.locator, context.mover, f"{context.root}/{DEADLINES}")
        self._context = context
        self._shifts = shifts
        self._disk = context.disk

    def moment(self, name: str) -> int | None:
        """Return the deadline of an entry."""
        id, _, at = name.partition(".")
        return int(at) if ids.is_id(id) and at.isascii() and at.isdigit() and len(at) <= 13 else None

    def note(self, id: str, deadline: int, now: int, sync: bool) -> None:
        """Write the entry of a task that is about to be put in its place."""
        folder = f"{self._root}/{names.bucket(deadline, now)}/{id[: ids.SEGMENT]}"
        self._mover.mark(folder, f"{id}.{deadline}", sync)

    def expire(self, by: str, limit: int) -> int:
        """Cancel at most `limit` tasks that no worker has started by their deadline; return how many."""
        now = self._context.clock.exact()
        number, held = 0, None
        for folder, name in self.names(now):
            if number >= limit:
                break
            if held is None:  # one listing for all: most whose deadline has passed are worked on
                held = {other[: ids.LENGTH] for other in self._disk.listdir(self._context.processing)}
            if name[: ids.LENGTH] not in held:
                number += self._settle(folder, name, now, by)
        return number

    def _settle(self, folder: str, name: str, now: int, by: str) -> bool:
        """Cancel the task of an entry if its deadline has passed, and remove the entry if it has no more use."""
        id = name[: ids.LENGTH]
        try:
            found = self._context.locator.find(id)
        except NotFound:
            if now - (self.moment(name) or 0) > _FORGOTTEN:
                self._disk.remove(f"{folder}/{name}")
            return False
        except PermissionError:
            return False  # it may be in a folder that is not readable
        if found.state is State.PROCESSING and found.token.deadline:
            return False  # a release would bring it back, and the deadline with it
        gone = self.cancel(found, now, by)
        if gone is not None:
            self._disk.remove(f"{folder}/{name}")
        return bool(gone)

    def cancel(self, found: Found, now: int, by: str) -> bool | None:
        """Cancel a task if its deadline has passed, and return whether it had; None if it moved meanwhile, or is not readable."""
        try:
            deadline = self._read(found)
        except (FileNotFoundError, PermissionError):
            return None
        if deadline is None or deadline > now:
            return False
        standing = found.token.standing(found.state, found.place, self._context.policy)
        return True if self._shifts.shift(standing, moves.expired(standing, deadline), by) else None

    def of(self, found: Found) -> int | None:
        """Return the deadline that applies to this task, from its file; None if there is none, or the task has moved."""
        try:
            return self._read(found)
        except (FileNotFoundError, PermissionError):
            return None

    def _read(self, found: Found) -> int | None:
        """Return the same; raise an error if the file has moved, or may be readable later or for another user."""
        if not found.token.deadline or found.state not in _OPEN:
            return None
        try:
            moment = task_file.decode(self._context.edits.read(*found.place)).get("expires")
        except FileNotFoundError:
            if not self._disk.exists(found.path):
                raise
            return None  # the edit that replaced its file is gone: the worker that claims it finds that too
        except Invalid:
            return None
        except OSError as error:
            if isinstance(error, PermissionError) or error.errno not in names.NO_FILE:
                raise
            return None
        return None if moment is None else times.moment(moment, "expires")
