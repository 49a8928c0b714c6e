"""Batches whose tasks come after one another: which draft got which id, and a manifest that outlives a killed adder.

    tmp/<writer>.<n>.batch       a line for each task: its id, and the place that it is to be put in

A manifest is there from the moment when all files of the batch are written until all of them are in their places. So a
batch is there as a whole, or not at all: the process that finds the manifest of a dead one puts the rest in its place.
"""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.needs import Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.new_task import New

SUFFIX = ".batch"


class Batch:
    """The drafts of one add, with the ids that they have got."""

    def __init__(self, drafts: Sequence[Draft], known: dict[str, str]) -> None:
        self._drafts = drafts
        self.known = known
        """The ids of tasks that have one of the keys already, by key."""
        self.added: dict[int, New | str] = {}
        """What each draft has become, by the draft's identity: a new task, or the id of the one that has its key."""
        self._placed: dict[int, str] = {}
        self._keyed: dict[str, str] = {}
        self.is_graph = any(_position(need) is not None for draft in drafts for need in draft.after)
        """Whether tasks of the batch come after one another."""

    def place(self, draft: Draft, id_: str) -> None:
        """Note the id of a draft."""
        self._placed[id(draft)] = id_
        if draft.key is not None:
            self._keyed[draft.key] = id_

    def forget(self, lost: Iterable[int]) -> None:
        """Forget the ids of drafts that were not added after all."""
        for draft in lost:
            gone = self._placed.pop(draft, None)
            self._keyed = {key: id for key, id in self._keyed.items() if id != gone}

    def needed(self, draft: Draft) -> list[Draft]:
        """Return the drafts of the batch that this one comes after."""
        positions = map(_position, draft.after)
        return [self._drafts[position] for position in positions if position is not None]

    def wired(self, after: Sequence[str]) -> tuple[str, ...]:
        """Return these needs with the ids of the batch's own tasks in them; each keeps its position."""
        return tuple(
            need
            if not isinstance(need, Need) or need.position is None
            else Need(self._id_at(need.position), need.on_failure, need.by, need.position)
            for need in after
        )

    def _id_at(self, position: int) -> str:
        draft = self._drafts[position]
        if draft.key is None:
            return self._placed[id(draft)]
        return self.known.get(draft.key) or self._keyed[draft.key]


def _position(need: str) -> int | None:
    return need.position if isinstance(need, Need) else None


class Manifests:
    """Writes and reads manifests."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root

    def write(self, batch: Sequence[New]) -> str:
        """Write the manifest of a batch whose files are all written; from here on all of it will be in its place."""
        begin = len(self._root) + 1
        content = "".join(f"{new.id} {new.folder[begin:]}/{new.name}\n" for new in batch)
        draft = self._context.draft()
        self._disk.create(draft, content.encode(), self._context.durable)
        self._disk.rename(draft, f"{draft}{SUFFIX}")
        if self._context.durable:
            self._disk.sync(f"{self._root}/tmp")
        return f"{draft}{SUFFIX}"

    def remove(self, manifest: str | None) -> None:
        """Remove a manifest, if there is one: the whole batch is in its place, or is taken back."""
        if manifest is not None:
            self._disk.remove(manifest)

    def read(self, path: str) -> list[tuple[str, str, str]]:
        """Return id, folder and name of each task in a manifest; lines that no manifest can have are left out."""
        found = []
        for line in self._disk.read(path).decode("utf-8", "replace").splitlines():
            id, _, place = line.partition(" ")
            folder, _, name = place.rpartition("/")
            if ids.is_id(id) and name.startswith(f"{id}.") and folder.startswith(("todo/", "waiting/", "blocked/")):
                found.append((id, f"{self._root}/{folder}", name))
        return found
