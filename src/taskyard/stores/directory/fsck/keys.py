"""Check keys: each is a hard link of the file of its task, and that task exists."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.stores.directory import layout
from taskyard.stores.directory.dropbox.intake import FILE_MOST
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.names import SUFFIX
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.tasks.keys import Keys

_HEX = frozenset("0123456789abcdef")


class KeyAudit:
    """Checks every key after the tasks, which have confirmed most of them already."""

    def __init__(self, audit: AuditContext, keys: Keys) -> None:
        self._audit = audit
        self._root = audit.root
        self._keys = keys
        self._misplaced: set[str] = set()

    def check(self, keyed: set[int], misplaced: set[str]) -> None:
        """Check every key whose inode is not in `keyed`, unless its task is in `misplaced`."""
        self._misplaced = misplaced
        top = f"{self._root}/keys"
        for part in self._audit.folders(top, lambda name: len(name) == 2 and _HEX.issuperset(name)):
            folder = f"{top}/{part}"
            for name in self._audit.folders(folder, legal_names.KEY.fullmatch):
                self._audit.count("keys")
                if name.startswith(part):
                    self._key(folder, name, keyed)
                else:
                    self._audit.stray(folder, name, "a key of another folder")

    def _key(self, folder: str, name: str, keyed: set[int]) -> None:
        try:
            if self._audit.disk.status(f"{folder}/{name}").st_ino not in keyed:
                self._unconfirmed(folder, name)
        except OSError:
            return  # removed meanwhile

    def _unconfirmed(self, folder: str, name: str) -> None:
        looked = self._audit.inspected(folder, name, FILE_MOST)
        if looked is None:
            return
        problem = self._problem(folder, name)
        if problem is not None:
            code, what, id = problem
            self._audit.suspect(
                code, (folder, name), what, lambda: (self._problem(folder, name) or ("",))[0] == code, id
            )

    def _problem(self, folder: str, name: str) -> tuple[str, str, str | None] | None:
        """Return code, text and task id of what is wrong with this key; None if nothing is, or if it was removed."""
        path = f"{folder}/{name}"
        try:
            content = self._audit.disk.inspect(path, FILE_MOST)[1]
            fields: dict[str, Any] = task_file.decode(content) if content.startswith(task_file.MARK) else {}
            id = str(fields["id"])
            if self._keys.path(str(fields["key"])) != path:
                return "key_broken", f"its file is that of the key {fields['key']!a}", id
        except (Invalid, KeyError):
            return "key_broken", "not the file of a task with a key", None
        except OSError:
            return None
        found = self._audit.find(id)
        if found is None:
            return self._unowned(path, id)
        # The check of the task reports a copied key, and a key that two tasks have.
        same = self._audit.disk.same_file(path, found.path)
        return (
            None
            if same or self._names_key(found.path, str(fields["key"]))
            else (
                "key_broken",
                f"task {id} does not say that the key is its own",
                id,
            )
        )

    def _names_key(self, path: str, key: str) -> bool:
        """Return whether the task's file has this key; True if the file cannot be read, because it may be moving."""
        try:
            return bool(task_file.decode(self._audit.disk.read(path)).get("key") == key)
        except Invalid:
            return False
        except OSError:
            return True

    def _is_ticks(self, id: str) -> bool:
        """Return whether a schedule is about to add this task."""
        top = f"{self._root}/{layout.SCHEDULES}"
        return any(self._audit.has(f"{top}/{name}/{id}{SUFFIX}") for name in self._audit.context.locator.names(top))

    def _unowned(self, path: str, id: str) -> tuple[str, str, str | None] | None:
        """Return the problem of a key whose task is nowhere; None if the task is being added or pruned."""
        if id in self._misplaced or self._audit.incomplete or self._audit.has(f"{self._root}/tmp/{id}.json"):
            return None
        dead = self._audit.context.locator.names(f"{self._root}/dead")
        if any(name.startswith(id) for name in dead) or self._is_ticks(id) or not self._audit.has(path):
            return None
        return "key_without_task", f"task {id} is nowhere", id
