"""Children: an empty file `children/<segment>/<parent>/<child>` for each task with a parent, so that none is searched for.

The entry is written before its task is put in its place. A process that is killed in between leaves an entry of a task
that is not there: readers skip it, and a sweep removes it.
"""

from __future__ import annotations

from itertools import islice

from taskyard.core import ids
from taskyard.stores.directory.layout import CHILDREN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context


class Children:
    """Writes, reads and removes the entries."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._top = f"{context.root}/{CHILDREN}"

    def note(self, parent: str, id: str, sync: bool) -> None:
        """Write the entry of a task that is about to be put in its place."""
        self._context.mover.mark(self.folder(parent), id, sync)

    def of(self, parent: str, most: int) -> list[str]:
        """Return the oldest `most` children that exist, oldest first."""
        entries = iter(sorted(self.entries(parent), key=ids.age_key))
        found: list[str] = []
        while len(found) < most and (some := list(islice(entries, most - len(found)))):
            there = self._context.locator.several(some)
            found += [id for id in some if id in there]
        return found

    def entries(self, parent: str) -> list[str]:
        """Return the ids of all entries, also of tasks that are not there."""
        return list(filter(ids.is_id, self._context.locator.names(self.folder(parent))))

    def forget(self, parent: str, id: str) -> None:
        """Remove the entry of a task that is gone."""
        self._context.links.remove(f"{self.folder(parent)}/{id}")
        self._context.mover.drop(self.folder(parent))

    def forget_all(self, parent: str) -> None:
        """Remove all entries of a parent that is gone; its children stay."""
        folder = self.folder(parent)
        if self._context.links.holds(folder):
            self._context.disk.remove_tree(folder)

    def folder(self, parent: str) -> str:
        """Return the folder of this parent's entries."""
        return f"{self._top}/{parent[: ids.SEGMENT]}/{parent}"
