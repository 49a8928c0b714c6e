"""Adding tasks: written whole in tmp/, then renamed into place, and synced before they are acknowledged."""

from __future__ import annotations

from errno import ENOENT
from itertools import groupby

from taskyard.core import ids
from taskyard.core.draft import same
from taskyard.core.errors import Conflict
from taskyard.stores.directory import names
from taskyard.stores.directory.filesystem.errors import interrupted, unavailable
from taskyard.stores.directory.names import Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.keys import Keys
from taskyard.stores.directory.tasks.new_task import New
from taskyard.stores.directory.tasks.segments import Segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.shifts import Shifts

_BATCH = 500  # tasks that share one sync of the filesystem, and one intent
_FEW = 4  # up to this many files are synced faster one by one
_GIVEN_UP = (Exception, KeyboardInterrupt, SystemExit)  # a caller that stops a batch must not find a part of it later
TAKEN_BACK = "the rest of its batch could not be added"  # the logged reason for cancelling a task of a batch


class Adder:
    """Adds drafts to the yard. A file on its way in is `tmp/<id>.json`, so that other processes can finish what was begun."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        self._context = context
        self._shifts = shifts
        self._disk = context.disk
        self._root = context.root
        self._mover = context.mover
        self._durable = context.durable
        self.segments = Segments(context)
        self.keys = Keys(context, self.help_in)

    def add(self, drafts: Sequence[Draft], by: str) -> list[New | str]:
        """Add all of these or none, in this order; for a key that was there before, return the id of the task that has it."""
        known = self._known(drafts)
        later = [draft for draft in drafts if draft.after]
        if later:  # a known key stands for its task, also if the tasks that it came after are gone
            self._shifts.edges.resolve([new for new in later if new.key not in known])
        added: dict[int, New | str] = {}
        try:
            for keyed, run in groupby(drafts, lambda draft: draft.key is not None):
                some = list(run)
                add = self._add_with_keys if keyed else self._add_batch
                for start in range(0, len(some), _BATCH):
                    add(some[start : start + _BATCH], by, added, known)
        except _GIVEN_UP as error:
            begun = [new for new in added.values() if isinstance(new, New)]
            if len(drafts) == 1:
                for new in begun:
                    self._disk.remove(new.written)
                self._disconnect(begun)
                raise
            kept = self._take_back(begun, by)
            if isinstance(error, OSError):
                raise unavailable(error, self._root, kept) from error
            if isinstance(error, KeyboardInterrupt):
                raise interrupted(kept) from None
            raise
        if self._durable:
            self._confirm([draft for draft in drafts if isinstance(added[id(draft)], str)])
        return [added[id(draft)] for draft in drafts]

    def _confirm(self, known: list[Draft]) -> None:
        """Sync the tasks of these keys before they are returned: the processes that added them may have failed to."""
        if len(known) > _FEW:
            self._disk.sync_all(self._root)
            return
        for draft in known:
            self.keys.confirm(draft)

    def _take_back(self, batch: list[New], by: str) -> list[str]:
        """Remove what is there of a batch that cannot be added as a whole; return the ids of the tasks that stay.

        A task that a worker has claimed stays, and so does one with a key: another add may have returned it.
        """
        kept, unlogged = [], []
        for new in batch:
            if new.draft.key is not None:
                kept.append(new.id)
                if not new.logged:
                    unlogged.append(new)
                continue
            try:
                self._disk.unlink(f"{new.folder}/{new.name}")
            except FileNotFoundError:
                if self._disk.exists(new.written):
                    continue  # it was never in its place
                kept.append(new.id)
                if not new.logged:
                    unlogged.append(new)
            else:
                if new.logged:
                    reason = {"reason": TAKEN_BACK}
                    at = self._context.clock.now()
                    self._context.log.write(at, "cancelled", new.id, new.lane.kind, 1, None, by, reason)
        for new in batch:
            self._disk.remove(new.written)
        self._disconnect([new for new in batch if new.id not in kept])
        blocked = {new.id: new.needs for new in unlogged}
        lines = self._context.log.lines_added([(new.id, new.lane.kind) for new in unlogged], by, blocked)
        self._context.log.append(lines)
        self._context.log.forget()
        return kept

    def _known(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Return the keys that are taken already, with the ids of their tasks; raise `Conflict` if one key means two tasks."""
        keyed: dict[str, Draft] = {}
        known: dict[str, str] = {}
        for draft in drafts:
            if draft.key is None:
                continue
            twin = keyed.setdefault(draft.key, draft)
            if twin.kind != draft.kind or not same(twin.data, draft.data):
                raise Conflict(f"the key {draft.key!r} stands for two different tasks in one batch")
            holder = self.keys.holder(draft) if twin is draft else None
            if holder is not None:
                known[draft.key] = holder
        return known

    def _add_batch(self, drafts: Sequence[Draft], by: str, added: dict[int, New | str], _: dict[str, str]) -> None:
        one_by_one = self._durable and len(drafts) <= _FEW
        batch = self._placed(drafts)
        try:
            self.connect(batch, one_by_one)
            for new in batch:
                self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), sync=one_by_one)
            if self._durable and not one_by_one:
                self._disk.sync_all(self._root)
            # Folders need disk space: those of a batch are made before any of its tasks is in its place.
            for folder in {new.folder for new in batch} if len(batch) > 1 else ():
                if not self._disk.exists(folder):
                    self._mover.ensure(folder)
        except _GIVEN_UP:
            for new in batch:
                self._disk.remove(new.written)
            self._disconnect(batch)
            raise
        added.update((id(new.draft), new) for new in batch)
        self._put(batch, by)
        if one_by_one:
            self.sync({new.folder for new in batch})
        elif self._durable:
            self._disk.sync_all(self._root)
        self.look(batch, by)

    def resolve(self, draft: Draft) -> None:
        """Replace the names in the draft's `after` with whole ids; raise `NotFound` if one names no task."""
        self._shifts.edges.resolve([draft])

    def connect(self, batch: Sequence[New], sync: bool) -> None:
        """Write the edges of blocked tasks, before they are published."""
        for new in batch:
            if new.needs:
                self._shifts.edges.register(new.id, new.needs, sync)

    def _disconnect(self, batch: Sequence[New]) -> None:
        """Remove the edges of tasks that were not published; a published task keeps its own."""
        for new in batch:
            if new.needs and not self._disk.exists(f"{new.folder}/{new.name}"):
                self._shifts.edges.withdraw(new.id)

    def look(self, batch: Sequence[New], by: str) -> None:
        """Unblock tasks after they are published: what they wait for may have been done in between."""
        blocked = {new.id: new.needs for new in batch if new.needs}
        freed = self._shifts.edges.look(blocked, by) if blocked else blocked
        for new in batch:
            new.freed = new.id in freed

    def _add_with_keys(
        self, drafts: Sequence[Draft], by: str, added: dict[int, New | str], known: dict[str, str]
    ) -> None:
        """Add tasks with keys; of several drafts with one key the first becomes the task."""
        firsts = {draft.key: draft for draft in reversed(drafts) if draft.key not in known}
        fresh = [draft for draft in drafts if firsts.get(draft.key) is draft]
        if len(fresh) > _FEW:
            self._add_all_keyed(fresh, by, added)
        for draft in drafts:
            assert draft.key is not None  # the caller checks this
            if draft.key in known:
                added[id(draft)] = known[draft.key]
                continue
            new = added.get(id(draft)) or self._add_keyed(draft, by)
            added[id(draft)] = new
            known[draft.key] = new if isinstance(new, str) else new.id

    def _add_all_keyed(self, drafts: Sequence[Draft], by: str, added: dict[int, New | str]) -> None:
        """Write all files, then take all keys, then put all tasks in their places; a task that lost its key is left out."""
        batch = self._placed(drafts)
        try:
            taken = self._take_keys(batch)
            self._put(taken, by)
        except _GIVEN_UP:
            added.update((id(new.draft), new) for new in self._left_there(batch))
            raise
        added.update((id(new.draft), new) for new in taken)
        if self._durable:
            self._disk.sync_all(self._root)
        self.look(taken, by)

    def _take_keys(self, batch: Sequence[New]) -> list[New]:
        """Write the files of new tasks and take their keys; return the tasks that got theirs."""
        self.connect(batch, sync=False)
        for new in batch:
            self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), sync=False)
        if self._durable:
            self._disk.sync_all(self._root)
        for folder in {new.folder for new in batch}:
            if not self._disk.exists(folder):
                self._mover.ensure(folder)
        taken = [new for new in batch if self.keys.take(new.draft.key or "", new.written, sync=False)]
        for new in set(batch).difference(taken):
            self._disk.unlink(new.written)
            self._disconnect([new])
        if self._durable:
            self._disk.sync_all(self._root)  # a key is on disk before its task is
        return taken

    def _left_there(self, batch: Sequence[New]) -> list[New]:
        """Return the tasks of a stopped batch with keys that are in the yard; remove keys and files of the others."""
        there = []
        for new in batch:
            assert new.draft.key is not None  # the caller checks this
            self.keys.give_up(new.draft.key, new.written)
            if self.keys.is_of(new.draft.key, new.id):
                there.append(new)
            else:
                self._disk.remove(new.written)
                self._disconnect([new])
        return there

    def _add_keyed(self, draft: Draft, by: str) -> New | str:
        """Take the key with the finished file, before the task is in its place: so exactly one of all racing adders adds it."""
        assert draft.key is not None  # the caller checks this
        while True:
            holder = self.keys.holder(draft)
            if holder is not None:
                return holder
            if draft.after:
                self._shifts.edges.resolve([draft])
            new = self.place(draft)
            self.connect([new], self._durable)
            self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), self._durable)
            if self.keys.take(draft.key, new.written, sync=self._durable):
                try:
                    self._put([new], by)
                except OSError:
                    self.keys.give_up(draft.key, new.written)
                    self._disconnect([new])
                    raise
                if self._durable:
                    self.sync({new.folder})
                self.look([new], by)
                return new
            self._disk.unlink(new.written)
            self._disconnect([new])

    def _put(self, batch: list[New], by: str) -> None:
        blocked = {new.id: new.needs for new in batch}
        lines = self._context.log.lines_added([(new.id, new.lane.kind) for new in batch], by, blocked)
        moved = [new for new in batch if self._mover.move(new.written, new.folder, new.name)]
        if len(moved) < len(batch):
            for new in set(batch) - set(moved):
                self._must_be_there(new)
            lines = self._context.log.lines_added([(new.id, new.lane.kind) for new in moved], by, blocked)
        if moved:
            self.announce(moved, lines)
        else:
            self._context.log.forget()  # the process that has put them in their place logs it

    def _must_be_there(self, new: New) -> None:
        """Raise an error if a janitor removed the file of this slow add; a file with a key it would have put in its place."""
        if new.draft.key is None and not self._context.locator.knows(new.id):
            raise FileNotFoundError(ENOENT, "the new task's file was removed before it was in place", new.written)

    def announce(self, batch: Sequence[New], lines: bytes) -> None:
        """Log new tasks, and show them to the next claim of this process."""
        try:
            self._context.log.append(lines)
        finally:  # a Ctrl-C during the write takes effect right after it
            for new in batch:
                new.logged = True
        with self._context.claiming:
            for lane in {new.lane.text for new in batch}:
                self._context.ready_cache.notice(lane)

    def sync(self, folders: set[str]) -> None:
        """Sync new names in these folders, so that they survive a power cut."""
        for folder in folders:
            try:
                self._disk.sync(folder)
            except FileNotFoundError:
                # Claimed already, and the emptied folder was dropped: the task must survive in its new place too.
                self._disk.sync_all(self._root)

    def help_in(self, id: str, content: bytes, written: str = "", by: str = "taskyard") -> bool:
        """Finish what the task's adder may have left undone; return whether the task is in its place now."""
        if self._context.locator.knows(id):
            # It was finished, and a power cut has brought the first name back: a task in its place must not appear twice.
            self._disk.remove(written or f"{self._root}/tmp/{id}.json")
            return True
        draft = task_file.draft(content)
        written = written or f"{self._root}/tmp/{id}.json"
        if draft.key is None or not self.keys.is_all_but_placed(draft.key, written):
            return bool(self._context.locator.matching(id))
        now = self._context.clock.now()
        lane = Lane.of(draft.priority, draft.kind, draft.assignee)
        due = draft.due(now)
        # Its adder wrote its needs before it took the key; a task of `after` that is not found proves nothing.
        needs = set(self._shifts.edges.needs(id)) | self._shifts.edges.open(draft.after) if draft.after else set()
        new = New(id, draft, lane, due, *self.target(id, draft, lane, due, now, "", bool(needs)), written, needs)
        if needs and self._disk.exists(written):
            self.connect([new], self._durable)
        line = self._context.log.lines_added([(id, lane.kind)], by, {id: needs})
        if not self._mover.move(written, new.folder, new.name):
            self._context.log.forget()
            self.look([new], by)  # this process may have written the edges alone
            return bool(self._context.locator.matching(id))
        try:
            if self._durable:
                self.sync({new.folder})
        finally:
            self.announce([new], line)
        self.look([new], by)
        return True

    def target(
        self, id: str, draft: Draft, lane: Lane, due: int | None, now: int, mark: str = "", blocked: bool = False
    ) -> tuple[str, str]:
        """Return folder and name of a new task."""
        stem = f"{id}.0.e0.c0{mark}{names.Counters.limits(draft)}"
        segment = id[: ids.SEGMENT]
        if blocked:
            time = "" if due is None else f".d{due}"
            return f"{self._root}/blocked/{segment}", f"{stem}.{lane.text}{time}.json"
        if due is None:
            return f"{self._root}/todo/{lane.text}/{segment}", f"{stem}.json"
        return f"{self._root}/waiting/{names.bucket(due, now)}/{segment}", f"{stem}.{lane.text}.d{due}.json"

    def place(self, draft: Draft, mark: str = "") -> New:
        """Return an id and a place for one more task, with a mark in its name."""
        return self._placed([draft], mark)[0]

    def _placed(self, drafts: Sequence[Draft], mark: str = "") -> list[New]:
        """Assign every draft its id and its place; ids rise in the order of the drafts."""
        lanes = [Lane.of(draft.priority, draft.kind, draft.assignee) for draft in drafts]
        left: dict[str, int] = {}
        for lane in lanes:
            left[lane.text] = left.get(lane.text, 0) + 1
        room: dict[str, tuple[str, int]] = {}
        after = {id for draft in drafts for id in draft.after}
        unmet = self._shifts.edges.unmet(after) if after else after
        batch = []
        for draft, lane in zip(drafts, lanes, strict=True):
            segment, free = room.get(lane.text) or self.segments.reserve(lane.text, left[lane.text])
            left[lane.text] -= 1
            room[lane.text] = (segment, free - 1)
            if free == 1:
                del room[lane.text]
            fine = self._context.clock.fine()
            id = segment + self._context.mint.tail(fine)
            due = draft.due(int(fine))
            needs = unmet.intersection(draft.after)
            folder, name = self.target(id, draft, lane, due, int(fine), mark, bool(needs))
            batch.append(New(id, draft, lane, due, folder, name, f"{self._root}/tmp/{id}.json", needs))
        return batch
