"""Check `children/`: the names in it, and that each entry has its parent and its child."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.stores.directory.layout import CHILDREN
from taskyard.stores.directory.recovery.segments import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from taskyard.stores.directory.fsck.context import AuditContext


class ChildAudit:
    """Checks the entries of one segment at a time. An entry that is missing is no damage: its task names its parent."""

    def __init__(self, audit: AuditContext) -> None:
        self._audit = audit
        self._root = audit.root

    def check(self, segment: str, seen: Collection[str]) -> None:
        """Compare the parents with the tasks of their segment, and all children with the yard."""
        top = f"{self._root}/{CHILDREN}/{segment}"
        entries: list[tuple[str, str]] = []
        for parent in self._audit.folders(top, lambda name: ids.is_id(name) and name.startswith(segment)):
            folder = f"{top}/{parent}"
            if parent not in seen:
                self._orphan(top, parent)
            several = [child for child in self._audit.folders(folder, ids.is_id) if self._audit.is_plain(folder, child)]
            self._audit.count("children", len(several))
            entries += [(folder, child) for child in several]
        there = self._audit.context.locator.several({child for _, child in entries})
        for folder, child in entries:
            if child not in there:
                self._orphan(folder, child)

    def _orphan(self, folder: str, id: str) -> None:
        """Add a suspect for an entry without its task, if it is so old that a sweep would remove it."""
        path = f"{folder}/{id}"
        if self._audit.age(path) <= PATIENCE:
            return

        def still_holds() -> bool:
            waits = self._audit.has(f"{self._root}/tmp/{id}.json")
            return not waits and self._audit.is_nowhere(id) and self._audit.has(path)

        self._audit.suspect("orphan", (folder, id), "of a task that is nowhere", still_holds, id)
