"""The drop box: a JSON object that is copied or moved into todo/ becomes a task, even while `cp` is still writing it."""

from __future__ import annotations

import errno
import json

from taskyard.core import ids
from taskyard.core.errors import Conflict, Full, Invalid, NotFound
from taskyard.stores.directory.dropbox import dropped_names, file_format
from taskyard.stores.directory.dropbox.guest_names import carried
from taskyard.stores.directory.dropbox.rejected import shown
from taskyard.stores.directory.names import DROPPED, SUFFIX, is_dropped
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.new_task import New

_UNREADABLE = (errno.EACCES, errno.EPERM, errno.EIO, errno.ENXIO)
_TOGETHER = 500  # files that share one sync of the filesystem
_FEW = 4  # up to this many are synced faster one by one
FILE_MOST = 4 << 20  # bytes: several times the largest legal task


class _Added(OSError):
    """The call failed after the task was added."""


def own_key(box: str) -> str:
    """Return the key for a file without one that cannot become the task's file itself: its temporary name."""
    return "dropped-" + ".".join(box.rpartition("/")[2].split(".", 2)[:2])


class Intake:
    """Takes files out of the drop box; each file is one rename, so several processes may do it at once."""

    def __init__(self, context: Context, adder: Adder, rejected: Rejected) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._adder = adder
        self._rejected = rejected
        self._settle = context.settle

    def take(self, by: str, limit: int | None = None) -> int:
        """Take in complete files, oldest first, and reject what never will be complete; return the number of new tasks.

        `limit` bounds the files that are taken or rejected; one that has to wait in the box does not count.
        """
        now = self._context.clock.exact()
        # A claim that another program has put here is the same task: a sweep takes it back.
        arrived = (
            name for name in self._disk.listdir(f"{self._root}/todo") if is_dropped(name) and carried(name) is None
        )
        names = sorted(arrived, key=lambda name: (self._age(name), name), reverse=True)
        added: list[New] = []
        full: set[str | None] = set()
        left = len(names) if limit is None else limit
        while names and left > 0:
            whole, refused = self._whole(names, min(left, _TOGETHER), now, by)
            left -= len(whole) + refused
            together = self._context.durable and len(whole) > _FEW
            if together:
                self._disk.sync_all(self._root)  # sync what was read, before it becomes a task
            for path, draft in whole:
                if not self._has_room(draft, full):
                    continue
                new = self._taken(path, draft, by, sync=self._context.durable and not together)
                if new is not None:
                    added.append(new)
        if self._context.durable:
            self._adder.sync({new.folder for new in added})
        return len(added)

    def _has_room(self, draft: Draft, full: set[str | None]) -> bool:
        """Take a place for this task; False if its kind or the yard is full: then its file stays, and later ones of the same kind."""
        if draft.kind in full or None in full:
            return False
        try:
            self._adder.reserve([draft])
        except Full as error:
            full.add(error.kind)
            return False
        return True

    def _whole(self, names: list[str], most: int, now: int, by: str) -> tuple[list[tuple[str, Draft]], int]:
        """Pop the next files that can be taken in off the end of `names`; also return how many were rejected instead."""
        whole: list[tuple[str, Draft]] = []
        refused = 0
        while names and len(whole) + refused < most:
            name = names.pop()
            path = f"{self._root}/todo/{name}"
            try:
                draft = self._read(path, now)
                if draft is not None and draft.after and draft.key is None:
                    self._adder.resolve(draft)
            except (Invalid, NotFound) as error:
                self._set_aside(path, name, error.message, by)
                refused += 1
                continue
            if draft is not None:
                whole.append((path, draft))
        return whole, refused

    def _taken(self, path: str, draft: Draft, by: str, *, sync: bool) -> New | None:
        """Return the task that the file has become; None if another process was first, or it is none after all."""
        try:
            if draft.key is None and self._disk.adopt(path):
                return self._take_plain(path, draft, by, sync=sync)
        except FileNotFoundError:
            return None
        return self._take_keyed(path, draft, by)

    def _age(self, name: str) -> int:
        try:
            return self._disk.changed_at(f"{self._root}/todo/{name}")
        except FileNotFoundError:
            return 0

    def _take_plain(self, path: str, draft: Draft, by: str, *, sync: bool) -> New | None:
        """Make the file the task's own, as it is; its `after` is stored separately with whole ids, as an edit is."""
        counted = isinstance(draft.expires, float)  # from now on, which the file as it is does not say
        self._context.mark_features([draft])
        new = self._adder.place(draft, f".{DROPPED}")
        self._adder.index([new], self._context.durable)
        if draft.after or counted:
            self._adder.connect([new], self._context.durable)
            content = task_file.encode(new.id, draft, new.due)
            token = self._context.edits.write(new.id, content, self._context.durable)
            new.name = new.name.replace(f".{DROPPED}", f".b{token}", 1)
        try:
            if sync:
                self._disk.sync(path)
        except FileNotFoundError:
            return None
        dropped_names.note(self._context, new.id, path.rpartition("/")[2][: -len(SUFFIX)])
        line = self._context.log.lines_added([(new.id, new.lane.kind)], by, {new.id: new.needs})
        if not self._context.mover.move(path, new.folder, new.name):
            self._context.log.forget()
            return None
        self._adder.announce([new], line)
        self._adder.look([new], by)
        return new

    def _take_keyed(self, path: str, draft: Draft, by: str) -> New | None:
        """Move the file out of the box first, then add it with its key: of two files with one taskId, one is the task."""
        name = path.rpartition("/")[2]
        box = self._rejected.box(name[: -len(SUFFIX)])
        try:
            self._disk.rename(path, box)
        except FileNotFoundError:
            folder, _, mine = box.rpartition("/")
            if not self._context.mover.was_mine(folder, mine):
                return None
        try:
            # Read it again, now that it is out of reach: another program may have written to it since.
            draft = file_format.draft(file_format.parse(self._disk.examine(box, FILE_MOST).content))
            draft.key = draft.key or own_key(box)
            added = self._added(box, name, draft, by)
            if not isinstance(added, str):
                return added
            self._set_aside(box, name, added, by)
        except Invalid:
            self._rejected.undo(box, path)  # looked at again where it came from
        except OSError as error:
            if not isinstance(error, _Added):
                self._rejected.undo(box, path)
            raise
        return None

    def _added(self, box: str, name: str, draft: Draft, by: str) -> New | str:
        """Add what was taken out of the box and return the task, or why there is none.

        Raise `_Added` where a call fails when the task is there. Its file must not go back then: the next intake would take
        it for a second file of the same taskId. It stays in tmp/, where a later sweep finds that its task is there.
        """
        try:
            self._adder.look_up(draft)
            added = self._adder.add([draft], by, reserved=True)[0]
            if isinstance(added, str):
                return f"its taskId {draft.key!r} belongs to task {ids.short(added)} already"
            dropped_names.note(self._context, added.id, name[: -len(SUFFIX)])
            self._disk.unlink(box)
        except (Conflict, NotFound) as error:
            return error.message
        except OSError as error:
            if self._may_have_task(draft):
                raise _Added(error.errno, error.strerror, error.filename) from error
            raise
        return added

    def _may_have_task(self, draft: Draft) -> bool:
        """Return whether the task of this draft is there after a failed add, as far as can be seen."""
        try:
            return self._adder.keys.holder(draft) is not None
        except Conflict:
            return False
        except OSError:
            return True  # a sweep looks again

    def _owner(self, path: str) -> str:
        """Return whose file it is, for the person who has to ask its owner."""
        try:
            return f" (it is {self._disk.owner(path)}'s, who can let others read it)"
        except FileNotFoundError:
            return ""

    def _set_aside(self, path: str, name: str, reason: str, by: str) -> None:
        kept = self._rejected.put(path, name[: -len(SUFFIX)], reason)
        if kept is not None:
            at = self._context.clock.now()
            name = json.dumps(shown(kept))[1:-1]  # whatever its name holds, the log stays JSON
            self._context.log.write(at, "set_aside", name, file_format.DEFAULT_KIND, 0, None, by, {"reason": reason})

    def _read(self, path: str, now: int) -> Draft | None:
        """Read the task in the file; None if it has to wait; raise `Invalid` if it is to be rejected."""
        try:
            look = self._disk.examine(path, FILE_MOST)
            if look.is_folder:
                return None
            if look.oddity:
                raise Invalid(look.oddity)
            return file_format.draft(file_format.parse(look.content))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
            reason = Invalid(f"it cannot be read: {error.strerror}{self._owner(path)}")
        except file_format.NotWhole as error:
            reason = error
        # It may be incomplete, so it stays until it has not changed for a while.
        try:
            settled = now - self._disk.changed_at(path) > self._settle
        except FileNotFoundError:
            return None
        if settled:
            raise reason
        return None
