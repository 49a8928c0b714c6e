"""The disk of a yard on a network filesystem, whose clients remember for half a minute that a name was missing.

Until then such a client answers from memory, though another machine has made the name meanwhile (measured on NFS, v3
and v4.2, default mounts). A listing asks the server, and refreshes the client's memory of that folder. So here a
missing name counts as missing only if listings from the yard's own folders down do not show it.
"""

from __future__ import annotations

from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.sharing import SharedDisk

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


_PLAIN = Disk()  # asks the client once, and trusts the answer


class NetworkDisk(Disk):
    """The filesystem as a yard on a network uses it."""

    def __init__(self, root: str) -> None:
        self._root = root

    def listdir(self, folder: str) -> list[str]:
        """Return the names in the folder."""
        return self._retried(folder, lambda: _PLAIN.listdir(folder))

    def _open(self, path: str, flags: int) -> int:  # type: ignore[override]
        """Open an existing file."""
        return self._retried(path, lambda: _PLAIN._open(path, flags))

    def _status(self, path: str) -> os.stat_result:  # type: ignore[override]
        """Return the status of this name."""
        return self._retried(path, lambda: _PLAIN._status(path))

    def unlink(self, path: str) -> None:  # type: ignore[override]
        """Remove this name."""
        self._retried(path, lambda: _PLAIN.unlink(path))

    def rmdir(self, path: str) -> None:  # type: ignore[override]
        """Remove this empty folder."""
        self._retried(path, lambda: _PLAIN.rmdir(path))

    def touch(self, path: str) -> None:
        """Set the file's time to now."""
        self._retried(path, lambda: _PLAIN.touch(path))

    def has(self, path: str) -> bool:
        """Whether this name can be seen."""
        return _PLAIN.has(path) or (self._is_listed(path) and _PLAIN.has(path))

    def _retried(self, path: str, call: Callable[[], T]) -> T:
        """Make the call; once more if it finds nothing and the server knows the name."""
        try:
            return call()
        except FileNotFoundError:
            if not self._is_listed(path):
                raise
            return call()

    def _is_listed(self, path: str) -> bool:
        """Whether fresh listings show the name, and the folders above it up to one of the yard's own."""
        first, *parts = path.removeprefix(f"{self._root}/").split("/")
        folder = f"{self._root}/{first}"
        for part in parts:
            try:
                if part not in _PLAIN.listdir(folder):
                    return False
            except (FileNotFoundError, NotADirectoryError):
                return False
            folder = f"{folder}/{part}"
        return True


class SharedNetworkDisk(NetworkDisk, SharedDisk):
    """The same, for a yard that a group shares."""

    def __init__(self, root: str) -> None:
        SharedDisk.__init__(self, root)
        NetworkDisk.__init__(self, root)
