"""The watch: hears from the kernel what changes in a yard, where that can be.

Every move is logged after it is made, so one watch on `events/` hears of all that any process on this kernel does; the
other few hear of what is no move.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk

_MODIFIED, _WRITTEN, _MOVED_OUT, _MOVED_IN, _MADE, _REMOVED = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
_ITSELF = 0x400 | 0x800  # the folder was removed, or moved
_FOLDER = 0x40000000  # it happened to a folder
_GONE = _ITSELF | 0x2000 | 0x8000  # also: unmounted, or not watched any more
WATCHED = {
    "events": _MODIFIED | _MADE | _MOVED_IN,
    "todo": _WRITTEN | _MADE | _MOVED_IN,  # the drop box
    "paused": _MADE | _REMOVED | _MOVED_IN | _MOVED_OUT,
    "workers": _WRITTEN | _REMOVED,  # a living worker has its file open for writing: the kernel closes it at its death
}
_HEADER = 16  # bytes of an inotify event before its name
_NAP_LOCAL, _NAP_NETWORK = 1.0, 2.0  # seconds


class Watch:
    """The ear of one open yard."""

    def __init__(self, disk: Disk, root: str, local: bool) -> None:
        self._disk = disk
        self._root = root
        self._local = local
        self._watch: int | None = None
        self.longest_nap = _NAP_LOCAL if local else _NAP_NETWORK

    def open(self) -> bool:
        """Have the kernel tell, unless it does already, or cannot."""
        if self._watch is not None or not self._local:
            return False
        try:
            self._watch = self._disk.watcher()
            self._add_watches()
        except OSError:
            # No such thing on this system, or too many of them (128 for each user, by default): look now and then.
            self.close()
            return False
        return True

    def _add_watches(self) -> None:
        assert self._watch is not None
        self._disk.watch(self._watch, self._root, _MADE | _MOVED_IN | _ITSELF)  # a folder that is not there yet
        for folder, happenings in WATCHED.items():
            try:
                self._disk.watch(self._watch, f"{self._root}/{folder}", happenings | _ITSELF)
            except FileNotFoundError:
                if folder == "events":
                    raise

    def mark(self) -> bool:
        """The kernel tells of everything from `open` on."""
        return False

    def stirred(self) -> bool:
        """The kernel keeps what happens until it is read."""
        return False

    def wary(self) -> float:
        """There is nothing more to ask."""
        return float("inf")

    def rise(self) -> None:
        """The kernel tells everybody, asleep or not."""

    def descriptor(self) -> int | None:
        """The kernel's, if it tells."""
        return self._watch

    def trusted(self) -> float:
        """The kernel forgets nothing."""
        return float("inf")

    def heed(self) -> bool:
        """Whatever happened need not be told apart; but a folder that is gone or new changes what has to be watched."""
        if self._watch is None:
            return True
        try:
            told = os.read(self._watch, 1 << 16)
        except BlockingIOError:
            return True
        at = all_masks = 0
        while at < len(told):
            all_masks |= int.from_bytes(told[at + 4 : at + 8], sys.byteorder)
            at += _HEADER + int.from_bytes(told[at + 12 : at + 16], sys.byteorder)
        if all_masks & _GONE:
            self.close()
            self.open()
        elif all_masks & _FOLDER:
            try:
                self._add_watches()
            except OSError:
                self.close()
        return True

    def close(self) -> None:
        """Tell the kernel that it may be silent."""
        watch, self._watch = self._watch, None
        if watch is not None:
            self._disk.close(watch)

    def abandon(self) -> None:
        """A descriptor that was inherited is one's own to close."""
        self.close()
