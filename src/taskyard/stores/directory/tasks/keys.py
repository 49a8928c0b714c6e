"""Idempotency keys: `keys/<2>/<digest>.json` is a second name of the file of the task that was added under the key.

Both names have one inode, so a key always has its task's content. If its adder died before the task was in its place, any
process that finds the key can put it there. If the key's file has no other name left, its task is gone.
"""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.draft import digest, same
from taskyard.core.errors import Conflict, Invalid, NotFound
from taskyard.core.ids import base32, chance
from taskyard.stores.directory.names import NO_FILE, Token
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context

_LOOKS = 100  # tries for a key whose task moves all the time
_DIGEST = 40  # characters of the key's SHA-256


class Keys:
    """Finds, takes and frees keys."""

    def __init__(self, context: Context, help_in: Callable[..., bool]) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._help_in = help_in

    def path(self, key: str) -> str:
        """Return the path of this key's file."""
        return path_of(self._root, key)

    def take(self, key: str, written: str, *, sync: bool) -> bool:
        """Take the key for this new file; return whether that succeeded. Then the task will exist, even if its adder dies."""
        path = self.path(key)
        folder = path.rpartition("/")[0]
        self._context.links.keep(folder)
        try:
            taken = self._disk.link(written, path)
        except FileNotFoundError:
            self._context.mover.ensure(folder, sync)
            taken = self._disk.link(written, path)
        if taken and sync:
            self._disk.sync(folder)
        return taken

    def give_up(self, key: str, written: str) -> None:
        """Free the key of a task that cannot be put in its place, as on a full disk: nothing was added."""
        if self._disk.same_file(written, self.path(key)):
            self._context.links.remove(self.path(key))
            self._disk.remove(written)

    def holder(self, draft: Draft) -> str | None:
        """Return the id of the task that has this key, and put it in its place if need be; None if the key is free.

        Raise `Conflict` if that task is another one: the same key must mean the same kind and data.
        """
        assert draft.key is not None  # called only for drafts with a key
        found = self._held_by(draft.key)
        if found is None:
            return None
        fields, content = found
        if fields["kind"] != draft.kind or not _is_added(content, fields["data"], draft):
            raise Conflict(
                f"the key {draft.key!r} belongs to task {ids.short(fields['id'])}, which is not the same",
                hint="the same key must come with the same kind and data; use another key for another task",
            )
        return str(fields["id"])

    def find(self, key: str) -> str | None:
        """Return the id of the task that was added under this key, and put it in its place if need be; None if there is none."""
        found = self._held_by(key)
        return None if found is None else str(found[0]["id"])

    def _held_by(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """Return the task that has the key, which is in its place: its fields, and its file; None if the key is free."""
        path = self.path(key)
        for _ in range(_LOOKS):
            content = self._read(path)
            if content is None:
                return None
            fields = self._fields(key, path, content)
            if self._is_there(fields["id"], content):
                return fields, content
            if self._bury(path) or self._let_go(fields["id"], path):
                return None
        raise Conflict(f"the task of the key {key!r} keeps moving under other hands", hint="try again")

    def confirm(self, draft: Draft) -> None:
        """Sync a key that is taken, and its task, so that they survive a power cut."""
        assert draft.key is not None  # called only for drafts with a key
        self._context.sync_again(*self.path(draft.key).rsplit("/", 1))
        id = self.holder(draft)
        if id is not None:
            self._context.sync_again(*self._context.locator.find(id).place)

    def is_of(self, key: str, id: str) -> bool:
        """Whether the key stands for the task with this id."""
        try:
            return bool(task_file.decode(self._read(self.path(key)) or b"{}").get("id") == id)
        except Invalid:
            return False

    def is_all_but_placed(self, key: str, written: str) -> bool:
        """Whether this file has its key and no third name: with a third name it is in its place already, and keeps moving.

        A name in dead/ does not count: a process took the key away to check it, and was killed before it removed that name.
        """
        path = self.path(key)
        try:
            names = self._names(path, written)
            if names <= 2:
                return names == 2
            # Such names never come twice: those seen both before and after the count of links are among its names.
            before = self._taken_away(path)
            names = self._names(path, written)
            return names == 2 + len(before & self._taken_away(path)) if before else False
        except FileNotFoundError:
            return False

    def _names(self, path: str, written: str) -> int:
        """Return how many names the key's file has at this moment, if it is the one that was written; else 0."""
        own, held = self._disk.status(written), self._disk.status(path)
        return held.st_nlink if (own.st_dev, own.st_ino) == (held.st_dev, held.st_ino) else 0

    def _taken_away(self, path: str) -> set[str]:
        """Return the names in dead/ of the key's own file."""
        begin, dead = f"{path.rpartition('/')[2]}.", f"{self._root}/dead"
        names = (name for name in self._context.locator.names(dead) if name.startswith(begin))
        return {name for name in names if self._disk.same_file(f"{dead}/{name}", path)}

    def _read(self, path: str) -> bytes | None:
        """Return the content of a key's file, or None if there is none."""
        try:
            return self._disk.read(path) if self._context.links.holds(path.rpartition("/")[0]) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            return b""  # no regular file, but it is in the key's place

    def _fields(self, key: str, path: str, content: bytes) -> dict[str, Any]:
        """Return the task in a key's file; raise `Conflict` if none can be read, because the key may stand for any."""
        try:
            fields = task_file.decode(content)
            if ids.is_id(fields["id"]) and "kind" in fields:
                return fields
        except (Invalid, KeyError):
            pass
        raise Conflict(
            f"the file of the key {key!r} is broken and no longer names its task: {path}",
            hint="use another key, or ask the person who keeps the yard to look at that file",
        )

    def release(self, key: str | None, pruned: str) -> bool:
        """Free this key of a task that is being pruned, whose file is now `pruned`; return whether the key is free.

        It is not free while another process is about to free it, which may be killed before it does.
        """
        if key is None:
            return True
        path = self.path(key)
        if not self._context.links.holds(path.rpartition("/")[0]) or not self._is_of(path, pruned):
            return True
        return self._take_away(path, pruned) or not self._is_of(path, pruned)

    def _is_there(self, id: str, content: bytes) -> bool:
        try:
            self._context.locator.find(id)
        except NotFound:
            # Its adder died before it was in its place; or a janitor has just given it up, too early.
            return self._help_in(id, content) or self._help_in(id, content, f"{self._root}/dead/{id}.json")
        return True

    def _bury(self, path: str) -> bool:
        """Remove a key whose file has no other name left: its task was pruned."""
        try:
            return self._disk.links(path) == 1 and self._take_away(path)
        except FileNotFoundError:
            return False

    def _take_away(self, path: str, pruned: str | None = None) -> bool:
        """Remove a name from keys/ that stands for no task, or for the pruned one; return whether it was removed.

        An adder that finds the task in dead/ frees the key too, and takes it for a new task at once. So a process may remove
        the name only if it has locked the key's file and still finds it under that name. Otherwise a process with outdated
        knowledge would free the new task's key for a moment, and another add under it would make a second task.
        """
        try:
            lock = self._disk.lock(path)
        except OSError:
            return self._move_away(path, pruned)  # a filesystem without locks: the check after the move must do
        if lock is None:
            return False
        try:
            its_own = self._disk.links(path) == 1 if pruned is None else self._is_of(path, pruned)
            return its_own and self._move_away(path, pruned)
        except FileNotFoundError:
            return False
        finally:
            self._disk.close(lock)

    def _move_away(self, path: str, pruned: str | None) -> bool:
        """Move the name where no adder finds it, and check it once more; put it back if it was another task's key after all."""
        grave = f"{self._root}/dead/{path.rpartition('/')[2]}.{base32(chance(40), 8)}"
        try:
            self._disk.rename(path, grave)
        except FileNotFoundError:
            return False
        try:
            # First whether it is the pruned task's: that file may be gone a moment later, and its key have no other name then.
            its_own = pruned is not None and self._is_of(grave, pruned)
            if not its_own and self._disk.links(grave) > 1:
                self._disk.link(grave, path)
            self._disk.unlink(grave)
        except FileNotFoundError:
            return True  # a sweep has done the same
        return True

    def _is_of(self, path: str, pruned: str) -> bool:
        """Whether this key is that of the pruned task: the same file, or, if overlayfs has split the two, the same task id.

        Overlayfs copies a file of a lower layer when it is moved; its other names still refer to, and count, the old file.
        """
        if self._disk.same_file(path, pruned):
            return True
        try:
            return bool(task_file.decode(self._disk.read(path)).get("id") == pruned.rpartition("/")[2][: ids.LENGTH])
        except (Invalid, FileNotFoundError):
            return False

    def _let_go(self, id: str, path: str) -> bool:
        """Free the key if its task is being pruned by a process that has not come to the key yet; return whether it is free."""
        for name in self._context.locator.names(f"{self._root}/dead"):
            if name.startswith(f"{id}.") and Token.parse(name) and self._is_of(path, f"{self._root}/dead/{name}"):
                return self._take_away(path, f"{self._root}/dead/{name}")
        return False

    def restore(self, path: str, name: str) -> None:
        """Put back a key that a process took away before it died, if its task still exists."""
        digest = name.split(".", 1)[0]
        if len(digest) == _DIGEST and self._disk.links(path) > 1:
            self._disk.link(path, f"{self._root}/keys/{digest[:2]}/{digest}.json")


def path_of(root: str, key: str) -> str:
    """Return the path of this key's file in the yard at `root`."""
    from hashlib import sha256

    name = sha256(key.encode()).hexdigest()[:_DIGEST]
    return f"{root}/keys/{name[:2]}/{name}.json"


def _is_added(content: bytes, data: Any, draft: Draft) -> bool:
    """Whether this is the data that the key stands for; a task that came from another store may have only its digest."""
    stands_for = task_file.added(content)
    return same(data, draft.data) if stands_for is None else stands_for == digest(draft.payload)
