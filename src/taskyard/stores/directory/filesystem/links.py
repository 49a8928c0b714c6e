"""Where the yard ends: a link that somebody planted in it is never followed, and is in nobody's way.

The last part of every path is opened without following links. This is about the folders on the way there: each is looked
at once a second, which a move does not notice. What stands in the place of a folder that the yard makes as it goes is set
aside in failed/, as it is, so that work goes on; in the place of one of the yard's standing folders it is told, and left.
"""

from __future__ import annotations

import errno
import time

from taskyard.core.ids import base32, chance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk

_TRUSTED = 1.0  # seconds that a folder which was looked at is taken for the yard's own
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
        """Before something is put into a folder: have nothing but a folder of the yard's own, or nothing at all, be there."""
        now = time.monotonic()
        if now - self._known.get(folder, _NEVER) < _TRUSTED or len(folder) <= len(self._root):
            return
        parent = folder.rpartition("/")[0]
        self.keep(parent)
        if self._disk.is_folder(folder):
            self._remember(folder, now)
        elif self._disk.exists(folder) and not self._disk.is_folder(folder):  # it may have been made between the looks
            if parent == self._root:
                raise OSError(errno.ELOOP, "there is something else in the place of a folder", folder)
            self._set_aside(folder)

    def holds(self, folder: str) -> bool:
        """Before something is read there: whether this and all above it are folders of the yard's own."""
        now = time.monotonic()
        if now - self._known.get(folder, _NEVER) < _TRUSTED or len(folder) <= len(self._root):
            return True
        if not self.holds(folder.rpartition("/")[0]) or not self._disk.is_folder(folder):
            return False
        self._remember(folder, now)
        return True

    def remove(self, path: str) -> None:
        """Take this name away, if it is there and in the yard."""
        if self.holds(path.rpartition("/")[0]):
            self._disk.remove(path)

    def _remember(self, folder: str, now: float) -> None:
        if len(self._known) > _KNOWN_MOST:
            self._known.clear()
        self._known[folder] = now

    def _set_aside(self, path: str) -> None:
        """Put what is no folder out of the way, with the reason; never a folder that somebody has made there meanwhile."""
        place = path[len(self._root) + 1 :]
        kept = f"{self._root}/failed/{place.replace('/', '-')[-150:]}~{base32(chance(20), 4)}"
        try:
            if not self._disk.step_aside(path, f"{kept}.json"):
                return
            reason = f"it stood in the place of the folder {place}, and is none\n"
            self._disk.create(f"{kept}.reason", reason.encode("utf-8", "backslashreplace"), sync=False)
        except FileNotFoundError:
            return  # somebody else has done the same
