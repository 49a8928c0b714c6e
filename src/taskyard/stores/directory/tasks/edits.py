"""The content of a task: its own file, or the body in edits/ that has replaced it.

A task's file is never written to. An edit is a new body, `edits/<segment>/<id>.<token>.json`, and a rename of the task to
a name that selects it. A worker that claims in between gets the old content, and the edit is refused.
"""

from __future__ import annotations

from errno import ENOENT

from taskyard.core import ids
from taskyard.stores.directory import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links


class Edits:
    """Reads and writes bodies."""

    def __init__(
        self, disk: Disk, bounds: Links, root: str, draft: Callable[[], str], ensure: Callable[[str], None]
    ) -> None:
        self._disk = disk
        self._links = bounds
        self._root = root
        self._draft = draft
        self._ensure = ensure

    def path(self, id: str, token: str) -> str:
        """Return the path of this edit's body."""
        return f"{self._root}/edits/{id[: ids.SEGMENT]}/{id}.{token}.json"

    def read(self, folder: str, name: str) -> bytes:
        """Return the current content of the task with this name."""
        token = next((part[1:] for part in name.split(".")[4:5] if names.is_body(part)), None)
        return self._disk.read(f"{folder}/{name}") if token is None else self.edited(name.split(".", 1)[0], token)

    def edited(self, id: str, token: str) -> bytes:
        """Return the content of this edit."""
        path = self.path(id, token)
        if not self._links.holds(path.rpartition("/")[0]):
            raise FileNotFoundError(ENOENT, "there is no such edit", path)
        return self._disk.read(path)

    def write(self, id: str, content: bytes, sync: bool) -> str:
        """Write a new body, and return the token that selects it."""
        token = ids.base32(ids.chance(40), names.BODY)
        self._write(self.path(id, token), content, sync)
        return token

    def keep(self, id: str, token: str, content: bytes, sync: bool) -> None:
        """Write a body again if it is gone, now that a name selects it: a sweep removes one that none has selected for long."""
        path = self.path(id, token)
        if not self._disk.exists(path):
            self._write(path, content, sync)

    def _write(self, path: str, content: bytes, sync: bool) -> None:
        folder = path.rpartition("/")[0]
        self._ensure(folder)
        draft = self._draft()
        self._disk.create(draft, content, sync)
        self._put(draft, path)
        if sync:
            self._disk.sync(folder)

    def _put(self, draft: str, path: str) -> None:
        """Give the body its name, also if a sweep drops its empty folder at this moment."""
        folder, _, name = path.rpartition("/")
        while True:
            try:
                return self._disk.rename(draft, path)
            except FileNotFoundError:
                self._ensure(folder)
                if not self._disk.exists(draft):
                    if name in self._disk.listdir(folder):
                        return None  # it was made, and the file server's reply was lost
                    raise

    def remove(self, id: str, token: str) -> None:
        """Remove a body that no name selects."""
        self._links.remove(self.path(id, token))
