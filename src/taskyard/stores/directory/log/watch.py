"""Receives changes in a yard from the kernel (inotify), where that is possible.

Every move is logged after it is made. So one watch on `events/` reports all moves of processes on this kernel; the
other watches report what is no move.
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
_GONE = _ITSELF | 0x2000 | 0x8000  # also: unmounted, or no longer watched
WATCHED = {
    "events": _MODIFIED | _MADE | _MOVED_IN,
    "todo": _WRITTEN | _MADE | _MOVED_IN,  # the drop box
    "paused": _MADE | _REMOVED | _MOVED_IN | _MOVED_OUT,
    "workers": _WRITTEN
    | _REMOVED,  # a living worker has its file open for writing: the kernel closes it when the worker dies
}
_HEADER = 16  # bytes of an inotify event before its name
_PAUSE_LOCAL, _PAUSE_NETWORK = 1.0, 2.0  # seconds


class Watch:
    """The source of changes of one open yard."""

    def __init__(self, disk: Disk, root: str, local: bool) -> None:
        self._disk = disk
        self._root = root
        self._local = local
        self._watch: int | None = None
        self.longest_pause = _PAUSE_LOCAL if local else _PAUSE_NETWORK

    def open(self) -> bool:
        """Begin to watch, unless it does already or cannot; return whether it began."""
        if self._watch is not None or not self._local:
            return False
        try:
            self._watch = self._disk.watcher()
            self._add_watches()
        except OSError:
            # No inotify on this system, or too many instances (128 for each user, by default): the waiting thread
            # polls.
            self.close()
            return False
        return True

    def _add_watches(self) -> None:
        assert self._watch is not None
        self._disk.watch(self._watch, self._root, _MADE | _MOVED_IN | _ITSELF)  # a folder that does not exist yet
        for folder, events in WATCHED.items():
            try:
                self._disk.watch(self._watch, f"{self._root}/{folder}", events | _ITSELF)
            except FileNotFoundError:
                if folder == "events":
                    raise

    def mark(self) -> bool:
        """Do nothing: the kernel reports everything from `open` on."""
        return False

    def missed(self) -> bool:
        """Return False: the kernel keeps events until they are read."""
        return False

    def recheck_after(self) -> float:
        """Return infinity: there is nothing to check again."""
        return float("inf")

    def end_sleep(self) -> None:
        """Do nothing: the kernel reports to all, asleep or not."""

    def descriptors(self) -> list[int]:
        """Return the inotify descriptor, if there is one."""
        return [] if self._watch is None else [self._watch]

    def receive(self) -> bool:
        """Read the events; all are worth a look. A folder that is gone or new changes what has to be watched."""
        if self._watch is None:
            return True
        try:
            received = os.read(self._watch, 1 << 16)
        except BlockingIOError:
            return True
        at = all_masks = 0
        while at < len(received):
            all_masks |= int.from_bytes(received[at + 4 : at + 8], sys.byteorder)
            at += _HEADER + int.from_bytes(received[at + 12 : at + 16], sys.byteorder)
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
        """Close the inotify descriptor."""
        watch, self._watch = self._watch, None
        if watch is not None:
            self._disk.close(watch)

    def abandon(self) -> None:
        """Close the inherited descriptor, which is this process's own copy."""
        self.close()
