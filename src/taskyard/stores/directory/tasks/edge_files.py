"""The files of edges: a file for every unmet need, and one in the other direction so that a done finds it.

    needs/<seg>/<task>/<other>        the task is blocked until the other one is done
    followers/<seg>/<other>/<task>    read by the process that makes the other one done

The edges of a graph are one file, a sheet (`sheets`). Which edge is written or removed when is decided in `edges`.
"""

from __future__ import annotations

from taskyard.core import ids, needs
from taskyard.stores.directory.tasks.sheets import Sheets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

_FEW = 4  # edges that are written one by one, each with its own sync; more are names of one file


class EdgeFiles:
    """Reads, writes and removes the files of edges."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._names = context.locator.names
        self.sheets = Sheets(context)

    # Reading

    def needs(self, id: str) -> list[str]:
        """Return the tasks that the task waits for, oldest first."""
        return sorted({*filter(ids.is_id, self._listed("needs", id)), *self.sheets.needs(id)}, key=ids.age_key)

    def followers(self, id: str) -> list[str]:
        """Return the tasks that wait for this task."""
        return sorted({*filter(ids.is_id, self._listed("followers", id)), *self.sheets.followers(id)})

    def is_followed(self, id: str) -> bool:
        """Whether there may be tasks that wait for this one; False proves nothing."""
        return self._disk.has(self.folder_of_followers(id)) or self._disk.has(
            f"{self._root}/sheets/{id[: ids.SEGMENT]}"
        )

    def _needs(self, id: str) -> str:
        return f"{self._root}/needs/{id[: ids.SEGMENT]}/{id}"

    def folder_of_followers(self, id: str) -> str:
        """Return the folder of the edges to the tasks that wait for this one."""
        return f"{self._root}/followers/{id[: ids.SEGMENT]}/{id}"

    def _listed(self, place: str, id: str) -> list[str]:
        """List the task's folder; raise an error if that is impossible, because an empty list unblocks tasks."""
        own = f"{self._root}/{place}/{id[: ids.SEGMENT]}/{id}"
        # Most tasks have no edges: one lookup costs less than a listing.
        return self._names(own) if self._disk.exists(own) else []

    # Writing

    def _sync_followers(self, other: str) -> None:
        try:
            self._disk.sync(self.folder_of_followers(other))
        except FileNotFoundError:
            return  # the other task has ended meanwhile, and its process has removed edge and folder

    def _write(self, pairs: list[tuple[str, str]], sync: bool, sheet: bool) -> None:
        """Write all needs, then all followers; those of a batch into its sheet, where that is possible."""
        if len(pairs) > _FEW:
            self._write_many(self._not_in_sheet(pairs) if sheet else pairs)
            if sync:
                self._disk.sync_all(self._root)
            return
        for id, other in pairs:
            self.put(self._needs(id), other, sync)
        for id in dict(pairs) if sync else ():
            self._disk.sync(self._needs(id))
        for id, other in pairs:
            self.put(self.folder_of_followers(other), id, sync)
            if sync:
                self._sync_followers(other)

    def _not_in_sheet(self, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Write the edges of tasks that any failure blocks into a sheet; return the others."""
        edges: dict[str, list[str]] = {}
        for id, other in pairs:
            edges.setdefault(id, []).append(other)
        kept = {id: some for id, some in edges.items() if all(needs.on_failure(other) == needs.BLOCK for other in some)}
        return [(id, other) for id, other in pairs if id not in kept] if self.sheets.write(kept) else pairs

    def _write_many(self, pairs: list[tuple[str, str]]) -> None:
        """Write the edges of a batch as names of one empty file: on ext4 a new name costs a third of a new file."""
        path, there = "", set()
        for folder, name in [(self._needs(id), other) for id, other in pairs] + [
            (self.folder_of_followers(other), id) for id, other in pairs
        ]:
            if folder not in there:
                there.add(folder)
                self._context.mover.ensure(folder, False)
            path = self._link(path, folder, name)

    def _link(self, path: str, folder: str, name: str) -> str:
        """Give an edge's file one more name; return the name of a file that may have more."""
        try:
            if path:
                self._disk.link(path, f"{folder}/{name}")
                return path
        except OSError:
            pass  # no hard links here, or too many of one file; or a done has removed either of the two
        self.put(folder, name, sync=False)
        return f"{folder}/{name}"

    def note(self, id: str, other: str) -> None:
        """Write the lost need of a task, and its edge in the other direction."""
        self.put(self._needs(id), other, sync=True)
        self.tie(id, other)

    def tie(self, id: str, other: str) -> None:
        """Write the edge by which a done of the other task finds this task."""
        self.put(self.folder_of_followers(other), id, sync=True)

    def put(self, folder: str, name: str, sync: bool) -> None:
        """Make an empty file in a folder of edges, which is made if need be."""
        while True:
            self._context.links.keep(folder)
            try:
                return self._disk.create(f"{folder}/{name}", b"", sync=False)
            except FileExistsError:
                return None  # another process finishes the same add
            except FileNotFoundError:
                self._context.mover.ensure(folder, sync)

    def unfold(self, id: str) -> None:
        """Take the task out of its sheet: what it waits for is noted in files, as an edit will change that.

        The followers come first here: as long as the sheet has the task, no follower without a need lets it go.
        """
        others = self.sheets.needs(id) if self._context.local else []
        if others:
            for other in others:
                self.put(self.folder_of_followers(other), id, self._context.durable)
            for other in others:
                self.put(self._needs(id), other, self._context.durable)
            if self._context.durable:
                self._disk.sync(self._needs(id))
                for other in others:
                    self._sync_followers(other)
            self.sheets.leave(id)

    # Removing

    def withdraw(self, id: str) -> None:
        """Remove all edges of the task: it was not added after all, or is gone."""
        for other in self.needs(id):
            self._context.links.remove(f"{self.folder_of_followers(other)}/{id}")
            self._context.mover.drop(self.folder_of_followers(other))
            self._context.links.remove(f"{self._needs(id)}/{other}")
        self._context.mover.drop(self._needs(id))
        self.sheets.leave(id)

    def cut(self, id: str, other: str) -> None:
        """Remove the edge between a task and one that it comes after no longer."""
        self._context.links.remove(f"{self._needs(id)}/{other}")
        self._context.mover.drop(self._needs(id))
        self._context.links.remove(f"{self.folder_of_followers(other)}/{id}")
        self._context.mover.drop(self.folder_of_followers(other))
