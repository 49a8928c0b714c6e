"""The only way in which a task changes its state: one rename of an exact name to a name that was never used before."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links


class Mover:
    """Renames, makes missing folders, and distinguishes lost replies from lost races."""

    def __init__(self, disk: Disk, bounds: Links, root: str, local: bool, durable: bool) -> None:
        self._disk = disk
        self._links = bounds
        self._root = root
        self._local = local
        self._durable = durable

    def move(self, path: str, folder: str, name: str) -> bool:
        """Rename the task; return whether this process did. False means that the task was no longer there under that name."""
        while True:
            self._links.keep(folder)
            try:
                self._disk.rename(path, f"{folder}/{name}")
            except FileNotFoundError:
                # The task is gone; or its new folder is missing, or was empty and dropped a moment ago. The task is checked
                # first: a lost race is common, and making sure of a folder syncs the one above it.
                if not self._disk.exists(path):
                    return self.was_mine(folder, name)
                self.ensure(folder)
            else:
                return True

    def was_mine(self, folder: str, name: str) -> bool:
        """Return whether a rename took place whose reply was lost: on a network filesystem its repeat then finds nothing.

        No other process uses this name, so if a fresh listing shows it, the rename was ours. A local kernel loses no replies.
        """
        if self._local:
            return False
        try:
            return name in self._disk.listdir(folder)
        except FileNotFoundError:
            return False  # nothing was ever moved there

    def ensure(self, folder: str, sync: bool = True) -> None:
        """Make the folder and what is missing above it; sync each new name, or a power cut would take all below it."""
        parent = folder.rpartition("/")[0]
        self._links.keep(parent)
        try:
            self._make(folder)
        except FileNotFoundError:
            if len(parent) <= len(self._root):
                raise  # the yard itself is gone: no part of it is silently made again
            self.ensure(parent, sync)
            self.ensure(folder, sync)
            return
        if self._durable and sync:
            try:
                self._disk.sync(parent)
            except FileNotFoundError:
                return  # empty and dropped by a sweep, with what was made in it; the next move into it makes it anew

    def mark(self, folder: str, name: str, sync: bool) -> None:
        """Make an empty file in this folder, which is made if need be; with `sync` it survives a power cut."""
        while True:
            self._links.keep(folder)
            try:
                self._disk.append(f"{folder}/{name}", b"")
                if sync:
                    self._disk.sync(folder)
            except FileNotFoundError:
                self.ensure(folder, sync)  # not there yet, or empty and dropped by a sweep
            else:
                return

    def _make(self, folder: str) -> None:
        """Make one folder; what stands in its place and is none is set aside."""
        while True:
            try:
                self._disk.mkdir(folder)
            except FileExistsError:
                self._links.keep(folder)
                if self._links.holds(folder):
                    return  # made by another process, which may not have synced it yet
            else:
                self._links.trust(folder)
                return

    def drop(self, folder: str) -> bool:
        """Remove a folder if it is empty, and return whether it was; the next move into it makes it anew."""
        try:
            if not self._links.holds(folder):
                return False
            self._disk.rmdir(folder)
        except OSError:
            return False
        return True
