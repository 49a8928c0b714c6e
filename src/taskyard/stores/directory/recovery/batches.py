"""Puts the rest of a batch in its place, after the process that was adding it has died."""

from __future__ import annotations

from taskyard.core.errors import TaskyardError
from taskyard.stores.directory.names import UNREADABLE, Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.batches import SUFFIX
from taskyard.stores.directory.tasks.new_task import New

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.edges import Edges

_PATIENCE = 60_000  # milliseconds; less than files in tmp/ are left for. To help an adder that lives does no harm
_STILL = 300_000  # milliseconds for an adder that lives: it may be stopped, and files in tmp/ are given up after twice as long
_TOGETHER = 500  # tasks that are logged with one write


class BatchRecovery:
    """Finishes batches by their manifests."""

    def __init__(self, context: Context, adder: Adder, edges: Edges) -> None:
        self._context = context
        self._disk = context.disk
        self._tmp = f"{context.root}/tmp"
        self._adder = adder
        self._edges = edges
        self._writers = context.writers()

    def finish_left(self, listed: list[str], now: int, by: str) -> int:
        """Finish the batches of dead or stopped processes among these names in tmp/; return how many tasks were put in their places."""
        return sum(self._finish(name, by) for name in listed if name.endswith(SUFFIX) and self._is_left(name, now))

    def finish_of(self, tag: str, by: str) -> int:
        """Finish the batches of this dead process."""
        mine = [name for name in self._disk.listdir(self._tmp) if name.endswith(SUFFIX) and name.startswith(f"{tag}.")]
        return sum(self._finish(name, by) for name in mine)

    def _is_left(self, name: str, now: int) -> bool:
        owner = name.split(".", 1)[0]
        try:
            age = now - self._disk.changed_at(f"{self._tmp}/{name}")
            if self._writers.is_known(owner):
                return age > _STILL or not self._writers.is_alive(owner, now)
            return age > _PATIENCE
        except FileNotFoundError:
            return False

    def _finish(self, name: str, by: str) -> int:
        path = f"{self._tmp}/{name}"
        try:
            tasks = self._adder.manifests.read(path)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return 0  # another sweep was quicker, or it is not ours
        moved = 0
        for start in range(0, len(tasks), _TOGETHER):
            moved += self._place(tasks[start : start + _TOGETHER], by)
        if self._context.durable and moved:
            self._disk.sync_all(self._context.root)
        blocked = [id for id, folder, _ in tasks if folder.startswith(f"{self._context.root}/blocked/")]
        self._edges.look({id: set(self._edges.needs(id)) for id in blocked}, by)
        self._disk.remove(path)
        return moved

    def _place(self, tasks: list[tuple[str, str, str]], by: str) -> int:
        """Put those of these tasks in their places that are still in tmp/, and log them."""
        left = [new for id, folder, name in tasks if (new := self._new(id, folder, name)) is not None]
        if left:
            self._adder.put(left, by)
        return len(left)

    def _new(self, id: str, folder: str, name: str) -> New | None:
        """Return the task of this file in tmp/; None if it is in its place."""
        written = f"{self._tmp}/{id}.json"
        try:
            draft = task_file.draft(self._disk.read(written))
        except (FileNotFoundError, TaskyardError):
            return None
        lane = Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        return New(id, draft, lane, None, folder, name, written, set(self._edges.needs(id)))
