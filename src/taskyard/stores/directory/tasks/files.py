"""What a yard on a filesystem offers beside its tasks: a folder for each attempt, and syncs."""

from __future__ import annotations

import os

from taskyard.stores.directory.filesystem.errors import explains_errors
from taskyard.stores.directory.names import attempt_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.task import Handle, Standing
    from taskyard.stores.directory.context import Context


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

    def unusable(self) -> list[str]:
        """Return lanes and segments that the last claims or `ready` skipped because the system refuses them."""
        return [f"{folder}: {reason}" for folder, reason in sorted(self._context.ready_cache.closed.items())]
