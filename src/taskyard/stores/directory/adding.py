"""Adding tasks: written whole in tmp/, then renamed into place, and synced before they are acknowledged."""

from __future__ import annotations

from errno import ENOENT

from taskyard.stores.directory import body, names
from taskyard.stores.directory.names import Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.draft import Draft
    from taskyard.ids import Mint
    from taskyard.stores.directory.clock import StoreClock
    from taskyard.stores.directory.disk import Disk
    from taskyard.stores.directory.mover import Mover
    from taskyard.stores.directory.segments import Segments
    from taskyard.stores.directory.waiting import Waiting

_BATCH = 1000  # tasks that share one sync of the filesystem
_FEW = 4  # so many files are synced sooner one by one


class New:
    """A task on its way in."""

    __slots__ = ("draft", "due", "folder", "id", "lane", "name", "written")

    def __init__(
        self, id: str, draft: Draft, lane: Lane, due: int | None, folder: str, name: str, written: str
    ) -> None:
        self.id = id
        self.draft = draft
        self.lane = lane
        self.due = due
        self.folder = folder
        self.name = name
        self.written = written


class Adder:
    """Puts drafts into the yard."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        mover: Mover,
        segments: Segments,
        mint: Mint,
        clock: StoreClock,
        waiting: Waiting,
        draft: Callable[[], str],
        durable: bool,
    ) -> None:
        self._disk = disk
        self._root = root
        self._mover = mover
        self._segments = segments
        self._mint = mint
        self._clock = clock
        self._waiting = waiting
        self._draft = draft
        self._durable = durable

    def add(self, drafts: Sequence[Draft]) -> list[New]:
        """All of these, in this order."""
        added: list[New] = []
        for start in range(0, len(drafts), _BATCH):
            added += self._add_batch(drafts[start : start + _BATCH])
        return added

    def _add_batch(self, drafts: Sequence[Draft]) -> list[New]:
        one_by_one = self._durable and len(drafts) <= _FEW
        batch = self._placed(drafts)
        for new in batch:
            self._disk.create(new.written, body.encode(new.id, new.draft, new.due), sync=one_by_one)
        if self._durable and not one_by_one:
            self._disk.sync_all(self._root)
        for new in batch:
            if not self._mover.move(new.written, new.folder, new.name):
                raise FileNotFoundError(
                    ENOENT, "a new task's file was taken away before it was in its place", new.written
                )
        if one_by_one:
            for folder in {new.folder for new in batch}:
                self._sync(folder)
        elif self._durable:
            self._disk.sync_all(self._root)
        return batch

    def _sync(self, folder: str) -> None:
        try:
            self._disk.sync(folder)
        except FileNotFoundError:
            # Claimed already, and the emptied folder was dropped: wherever the task is now, it has to survive.
            self._disk.sync_all(self._root)

    def _placed(self, drafts: Sequence[Draft]) -> list[New]:
        """Give every draft its id and its place; ids rise in the order of the drafts."""
        lanes = [Lane.of(draft.priority, draft.kind, draft.assignee) for draft in drafts]
        left: dict[str, int] = {}
        for lane in lanes:
            left[lane.text] = left.get(lane.text, 0) + 1
        room: dict[str, tuple[str, int]] = {}
        batch = []
        for draft, lane in zip(drafts, lanes, strict=True):
            segment, free = room.get(lane.text) or self._segments.reserve(lane.text, left[lane.text])
            left[lane.text] -= 1
            room[lane.text] = (segment, free - 1)
            if free == 1:
                del room[lane.text]
            fine = self._clock.fine()
            now = int(fine)
            id = segment + self._mint.tail(fine)
            due = draft.due(now)
            lease = None if draft.lease is None else round(draft.lease * 1000)
            stem = f"{id}.0.{names.Counters.of_new(draft.max_attempts, lease)}"
            if due is None:
                folder, name = f"{self._root}/todo/{lane.text}/{segment}", f"{stem}.json"
            else:
                folder, name = self._waiting.folder(id, due, now), f"{stem}.{lane.text}.d{due}.json"
            batch.append(New(id, draft, lane, due, folder, name, self._draft()))
        return batch
