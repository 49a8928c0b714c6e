"""The yard's border: a link that was planted in it is never followed, and stops no work.

The last part of every path is opened without following links. This module is about the folders above it: each is
checked once a second, which costs a move nothing. What has the name of a folder that the yard makes as needed is moved
as it is to failed/, so that work goes on. What has the name of one of the yard's standing folders is reported, and
left.
"""

from __future__ import annotations

import errno
import time

from taskyard.core.ids import base32, chance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk

_TRUSTED = 1.0  # seconds for which a checked folder is trusted
_NEVER = -1e9
_KNOWN_MOST = 10_000


class Links:
    """Knows which folders are the yard's own."""

    __slots__ = ("_disk", "_known", "_root")

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._known: dict[str, float] = {}

    def keep(self, folder: str) -> None:
        """Before a write into this folder: make sure that there is a folder of the yard's own, or nothing."""
        now = time.monotonic()
        if now - self._known.get(folder, _NEVER) < _TRUSTED or len(folder) <= len(self._root):
            return
        parent = folder.rpartition("/")[0]
        self.keep(parent)
        if self._disk.is_folder(folder):
            self._remember(folder, now)
        elif self._disk.exists(folder) and not self._disk.is_folder(
            folder
        ):  # it may have been made between the two checks
            if parent == self._root:
                raise OSError(errno.ELOOP, "there is something else in the place of a folder", folder)
            self._set_aside(folder)

    def holds(self, folder: str) -> bool:
        """Before a read: whether this and all above it are folders of the yard's own."""
        now = time.monotonic()
        if now - self._known.get(folder, _NEVER) < _TRUSTED or len(folder) <= len(self._root):
            return True
        if not self.holds(folder.rpartition("/")[0]) or not self._disk.is_folder(folder):
            return False
        self._remember(folder, now)
        return True

    def trust(self, folder: str) -> None:
        """Trust a folder that this process has just made."""
        self._remember(folder, time.monotonic())

    def remove(self, path: str) -> None:
        """Remove this name, if it exists and is in the yard."""
        if self.holds(path.rpartition("/")[0]):
            self._disk.remove(path)

    def _remember(self, folder: str, now: float) -> None:
        if len(self._known) > _KNOWN_MOST:
            self._known.clear()
        self._known[folder] = now

    def _set_aside(self, path: str) -> None:
        """Move what is no folder to failed/, with the reason; never a folder that was made there meanwhile."""
        place = path[len(self._root) + 1 :]
        kept = f"{self._root}/failed/{place.replace('/', '-')[-150:]}~{base32(chance(20), 4)}"
        try:
            if not self._disk.step_aside(path, f"{kept}.json"):
                return
            reason = f"it stood in the place of the folder {place}, and is none\n"
            self._disk.create(f"{kept}.reason", reason.encode("utf-8", "backslashreplace"), sync=False)
        except FileNotFoundError:
            return  # another process has done the same
