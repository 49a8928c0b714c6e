"""Idempotency keys: `keys/<2>/<digest>.json` is a second name of the file of the task that was added under the key.

One inode, so a key can never be without its task's content: whoever finds a key whose adder died before the task was in
its place can put it there, and whoever finds a key whose file has no other name left knows that its task is gone.
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

_LOOKS = 100  # at a key whose task is always somewhere else
_DIGEST = 40  # characters of the key's SHA-256


class Keys:
    """Finds and takes keys."""

    def __init__(self, context: Context, help_in: Callable[..., bool]) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._help_in = help_in

    def path(self, key: str) -> str:
        """The file that stands for this key."""
        return path_of(self._root, key)

    def take(self, key: str, written: str, *, sync: bool) -> bool:
        """Whether the key is this new file's now; from here on the task will be, whatever happens to its adder."""
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
        """The task cannot be put in its place (a full disk, say): nothing was added, and the key is free again."""
        if self._disk.same_file(written, self.path(key)):
            self._context.links.remove(self.path(key))
            self._disk.remove(written)

    def holder(self, draft: Draft) -> str | None:
        """The id of the task that has this key, put in its place if need be; None if the key is free.

        `Conflict` if that task is another one: the same key must mean the same kind and data.
        """
        assert draft.key is not None  # asked for tasks with a key only
        path = self.path(draft.key)
        for _ in range(_LOOKS):
            content = self._read(path)
            if content is None:
                return None
            fields = self._fields(draft.key, path, content)
            if self._is_there(fields["id"], content):
                break
            if self._bury(path) or self._let_go(fields["id"], path):
                return None
        else:
            raise Conflict(f"the task of the key {draft.key!r} keeps moving under other hands", hint="try again")
        if fields["kind"] != draft.kind or not _is_added(content, fields["data"], draft):
            raise Conflict(
                f"the key {draft.key!r} belongs to task {ids.short(fields['id'])}, which is not the same",
                hint="the same key must come with the same kind and data; use another key for another task",
            )
        return str(fields["id"])

    def confirm(self, draft: Draft) -> None:
        """Have a key that is taken, and its task, survive a power cut."""
        assert draft.key is not None  # asked for tasks with a key only
        self._context.sync_again(*self.path(draft.key).rsplit("/", 1))
        id = self.holder(draft)
        if id is not None:
            self._context.sync_again(*self._context.locator.find(id).place)

    def is_of(self, key: str, id: str) -> bool:
        """Whether the key stands for the task of this id."""
        try:
            return bool(task_file.decode(self._read(self.path(key)) or b"{}").get("id") == id)
        except Invalid:
            return False

    def is_all_but_placed(self, key: str, written: str) -> bool:
        """Whether this file has its key and no third name: one that has is in its place already, and keeps moving.

        Somebody who has taken the key away for a look, and was killed before the name in dead/ was gone, has left one that counts for nothing.
        """
        path = self.path(key)
        try:
            names = self._names(path, written)
            if names <= 2:
                return names == 2
            # Such names never come twice: those that are there before and after this look at the key are among its names.
            before = self._taken_away(path)
            names = self._names(path, written)
            return names == 2 + len(before & self._taken_away(path)) if before else False
        except FileNotFoundError:
            return False

    def _names(self, path: str, written: str) -> int:
        """How many names the key's file has at this moment, if it is the one that was written; else none."""
        own, held = self._disk.status(written), self._disk.status(path)
        return held.st_nlink if (own.st_dev, own.st_ino) == (held.st_dev, held.st_ino) else 0

    def _taken_away(self, path: str) -> set[str]:
        """The names in dead/ of the key's own file."""
        begin, dead = f"{path.rpartition('/')[2]}.", f"{self._root}/dead"
        names = (name for name in self._context.locator.names(dead) if name.startswith(begin))
        return {name for name in names if self._disk.same_file(f"{dead}/{name}", path)}

    def _read(self, path: str) -> bytes | None:
        """The file that stands for a key, if there is one."""
        try:
            return self._disk.read(path) if self._context.links.holds(path.rpartition("/")[0]) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            return b""  # whatever it is, it is in the key's place

    def _fields(self, key: str, path: str, content: bytes) -> dict[str, Any]:
        """The task in a key's file; `Conflict` if there is none to be seen, because the key may stand for any."""
        try:
            fields = task_file.decode(content)
            if ids.is_id(fields["id"]) and "kind" in fields:
                return fields
        except (Invalid, KeyError):
            pass
        raise Conflict(
            f"the file of the key {key!r} is broken, so nobody can tell which task it stands for: {path}",
            hint="use another key, or have somebody look at that file",
        )

    def release(self, pruned: str) -> bool:
        """Whether the key of a task that is being pruned is let go; its file has this name by now.

        Not while another process is about to let go of it, which may be killed before it does.
        """
        key = task_file.decode(self._disk.read(pruned)).get("key")
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
        """Whether a name in keys/ was taken from there, because it stood for no task, or for the one that is pruned.

        An adder that finds the task in its grave lets go of the key too, and takes it for a new task at once. So only the
        process that has locked the key's file, and finds it under its name still, may take the name away: else an old
        look would free the new task's key for a moment, and another add under it would make a second task.
        """
        try:
            lock = self._disk.lock(path)
        except OSError:
            return self._move_away(path, pruned)  # a filesystem without locks: the look at what was moved must do
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
        """Move the name out of every adder's reach, and look there once more; if it was another's key after all, it goes back."""
        grave = f"{self._root}/dead/{path.rpartition('/')[2]}.{base32(chance(40), 8)}"
        try:
            self._disk.rename(path, grave)
        except FileNotFoundError:
            return False
        try:
            # First whether it is the pruned one's: that may be gone at the next look, and its key have no other name then.
            its_own = pruned is not None and self._is_of(grave, pruned)
            if not its_own and self._disk.links(grave) > 1:
                self._disk.link(grave, path)
            self._disk.unlink(grave)
        except FileNotFoundError:
            return True  # a sweep has done the same
        return True

    def _is_of(self, path: str, pruned: str) -> bool:
        """Whether this key is that of the pruned task: one file, or, where overlayfs has parted the two, the task's own id.

        A file of a lower layer is copied when it is moved, and its other names go on to name, and to count, the old one.
        """
        if self._disk.same_file(path, pruned):
            return True
        try:
            return bool(task_file.decode(self._disk.read(path)).get("id") == pruned.rpartition("/")[2][: ids.LENGTH])
        except (Invalid, FileNotFoundError):
            return False

    def _let_go(self, id: str, path: str) -> bool:
        """Whether the key's task is being pruned by somebody who has not come to its key yet; the key is free then."""
        for name in self._context.locator.names(f"{self._root}/dead"):
            if name.startswith(f"{id}.") and Token.parse(name) and self._is_of(path, f"{self._root}/dead/{name}"):
                return self._take_away(path, f"{self._root}/dead/{name}")
        return False

    def restore(self, path: str, name: str) -> None:
        """Put a key back that somebody has taken away and died over, if its task is still there."""
        digest = name.split(".", 1)[0]
        if len(digest) == _DIGEST and self._disk.links(path) > 1:
            self._disk.link(path, f"{self._root}/keys/{digest[:2]}/{digest}.json")


def path_of(root: str, key: str) -> str:
    """The file that stands for this key in the yard at this path."""
    from hashlib import sha256

    name = sha256(key.encode()).hexdigest()[:_DIGEST]
    return f"{root}/keys/{name[:2]}/{name}.json"


def _is_added(content: bytes, data: Any, draft: Draft) -> bool:
    """Whether this is the data that the key stands for; a task that came from another store may have only its digest."""
    stands_for = task_file.added(content)
    return same(data, draft.data) if stands_for is None else stands_for == digest(draft.payload)
