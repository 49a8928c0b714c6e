"""Keys: each is one file with the task that was added under it, and no task is missing behind one."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.stores.directory.dropbox.intake import FILE_MOST
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.tasks.keys import Keys

_HEX = frozenset("0123456789abcdef")


class Keyring:
    """Looks at every key, after the tasks: most were seen to be their tasks' already."""

    def __init__(self, scene: Scene, keys: Keys) -> None:
        self._scene = scene
        self._root = scene.root
        self._keys = keys
        self._elsewhere: set[str] = set()

    def check(self, keyed: set[int], elsewhere: set[str]) -> None:
        """Every key that no task was seen with is looked at for itself, unless its task is only misplaced."""
        self._elsewhere = elsewhere
        top = f"{self._root}/keys"
        for part in self._scene.folders(top, lambda name: len(name) == 2 and _HEX.issuperset(name)):
            folder = f"{top}/{part}"
            for name in self._scene.folders(folder, legal_names.KEY.fullmatch):
                self._scene.count("keys")
                if name.startswith(part):
                    self._key(folder, name, keyed)
                else:
                    self._scene.stray(folder, name, "a key of another folder")

    def _key(self, folder: str, name: str, keyed: set[int]) -> None:
        try:
            if self._scene.disk.status(f"{folder}/{name}").st_ino not in keyed:
                self._lonely(folder, name)
        except OSError:
            return  # let go of meanwhile

    def _lonely(self, folder: str, name: str) -> None:
        looked = self._scene.inspected(folder, name, FILE_MOST)
        if looked is None:
            return
        problem = self._problem(folder, name)
        if problem is not None:
            code, what, id = problem
            self._scene.suspect(
                code, (folder, name), what, lambda: (self._problem(folder, name) or ("",))[0] == code, id
            )

    def _problem(self, folder: str, name: str) -> tuple[str, str, str | None] | None:
        """What is wrong with this key; nothing if it is free by now, or its task's after all."""
        path = f"{folder}/{name}"
        try:
            content = self._scene.disk.inspect(path, FILE_MOST)[1]
            fields: dict[str, Any] = task_file.decode(content) if content.startswith(task_file.MARK) else {}
            id = str(fields["id"])
            if self._keys.path(str(fields["key"])) != path:
                return "key_broken", f"its file is that of the key {fields['key']!a}", id
        except (Invalid, KeyError):
            return "key_broken", "not the file of a task with a key", None
        except OSError:
            return None
        found = self._scene.find(id)
        if found is None:
            return self._unowned(path, id)
        # A copy, and a key that another task has too, are told of with the task.
        same = self._scene.disk.same_file(path, found.path)
        return (
            None
            if same or self._claims_it(found.path, str(fields["key"]))
            else (
                "key_broken",
                f"task {id} does not say that the key is its own",
                id,
            )
        )

    def _claims_it(self, path: str, key: str) -> bool:
        """Whether the task's own file names this key; one that moves on at this moment is given the benefit of the doubt."""
        try:
            return bool(task_file.decode(self._scene.disk.read(path)).get("key") == key)
        except Invalid:
            return False
        except OSError:
            return True

    def _unowned(self, path: str, id: str) -> tuple[str, str, str | None] | None:
        """Its task is nowhere; not if it is only just being added, or being pruned."""
        if id in self._elsewhere or self._scene.blind or self._scene.has(f"{self._root}/tmp/{id}.json"):
            return None
        dead = self._scene.context.locator.names(f"{self._root}/dead")
        if any(name.startswith(id) for name in dead) or not self._scene.has(path):
            return None
        return "key_without_task", f"task {id} is nowhere", id
