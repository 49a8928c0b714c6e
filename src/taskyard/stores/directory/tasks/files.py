"""What a yard on a filesystem offers beside its tasks: a folder for each attempt, and syncs."""

from __future__ import annotations

import os

from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import attempt_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.task import Handle, Standing
    from taskyard.stores.directory.context import Context

_LOGS_MOST = 8  # files of one attempt that are read


class DirectoryFiles:
    """Folders of attempts in attempts/, made when they are first needed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.url = context.root

    def workdir(self, handle: Handle) -> str:
        """Return the path of the folder for this claim's files, whether it exists or not."""
        return attempt_folder(self.url, handle)

    @explains_errors
    def make_workdir(self, handle: Handle) -> str:
        """Make that folder and return its path."""
        return self._context.records.folder(handle)

    @explains_errors
    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if it is empty."""
        folder = attempt_folder(self.url, handle)
        if self._context.mover.drop(folder):
            self._context.mover.drop(os.path.dirname(folder))

    @explains_errors
    def confirm(self, standing: Standing) -> None:
        """Sync the move that led to this standing, made by any process, so that it survives a power cut."""
        self._context.sync_again(*standing.place)

    @explains_errors
    def logs(self, handle: Handle, most: int) -> list[tuple[str, int, bytes]]:
        """Return the name, the size and the end of each log in the claim's folder; links are not followed."""
        folder, disk, found = attempt_folder(self.url, handle), self._context.disk, []
        try:
            names = sorted(name for name in disk.listdir(folder) if name.endswith(".log"))
        except FileNotFoundError:
            return []
        for name in names[:_LOGS_MOST]:
            path = f"{folder}/{name}"
            try:
                if disk.is_file(path):  # a command may have put anything there
                    size = disk.size(path)
                    found.append((name, size, disk.read_at(path, max(0, size - most), most)))
            except OSError:
                continue  # gone, or not for this user
        return found

    def unusable(self) -> list[str]:
        """Return lanes and segments that the last claims or `ready` skipped because the system refuses them."""
        return [f"{folder}: {reason}" for folder, reason in sorted(self._context.ready_cache.closed.items())]
