"""Adding tasks: written whole in tmp/, then renamed into place, and synced before they are acknowledged."""

from __future__ import annotations

import functools
from errno import ENOENT
from itertools import groupby

from taskyard.core import backlog, ids
from taskyard.core.draft import same
from taskyard.core.errors import Conflict
from taskyard.stores.directory import names
from taskyard.stores.directory.filesystem.errors import interrupted, unavailable
from taskyard.stores.directory.names import Lane
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.batches import Batch, Manifests
from taskyard.stores.directory.tasks.keys import Keys
from taskyard.stores.directory.tasks.new_task import New
from taskyard.stores.directory.tasks.segments import Segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from taskyard.core.draft import Draft
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.backlog import Backlog
    from taskyard.stores.directory.tasks.shifts import Shifts
    from taskyard.stores.directory.tasks.uses_index import UsesIndex

_BATCH = 500  # tasks that share one sync of the filesystem, and one intent
_FEW = 4  # up to this many files are synced faster one by one
_GIVEN_UP = (Exception, KeyboardInterrupt, SystemExit)  # a caller that stops a batch must not find a part of it later
_TAKEN_BACK = "the rest of its batch could not be added"  # the logged reason for cancelling a task of a batch


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
        self.manifests = Manifests(context)

    @functools.cached_property
    def backlog(self) -> Backlog:
        """How full the yard is; loaded when the settings have a bound."""
        from taskyard.stores.directory.tasks.backlog import Backlog

        return Backlog(self._context)

    @functools.cached_property
    def _uses_index(self) -> UsesIndex:
        """Who uses what; loaded when the first task uses something."""
        from taskyard.stores.directory.tasks.uses_index import UsesIndex

        return UsesIndex(self._context)

    def reserve(self, drafts: Sequence[Draft], known: Collection[str] = ()) -> None:
        """Take places for the new ones of these tasks; raise `Full` if a bound of the settings leaves too few."""
        if self._context.max_todo is not None or self._context.kinds:
            new = {draft.key or id(draft): draft for draft in drafts if draft.key not in known}
            self.backlog.reserve(backlog.wanted(self.backlog.bounds, new.values()))

    def add(self, drafts: Sequence[Draft], by: str, reserved: bool = False) -> list[New | str]:
        """Add all of these or none, in this order; for a key that was there before, return the id of the task that has it."""
        self._context.mark_features(drafts)
        if len(drafts) == 1 and drafts[0].key is None and not drafts[0].after:
            self.reserve(() if reserved else drafts)
            return [self._add_alone(drafts[0], by)]
        return self._add_all(drafts, by, reserved)

    def _add_all(self, drafts: Sequence[Draft], by: str, reserved: bool) -> list[New | str]:
        known = self._known(drafts)
        self.reserve(() if reserved else drafts, known)
        later = [draft for draft in drafts if draft.after]
        if later:  # a known key stands for its task, also if the tasks that it came after are gone
            self._shifts.edges.resolve([new for new in later if new.key not in known])
        batch = Batch(drafts, known)
        added = batch.added
        try:
            for keyed, run in groupby(drafts, lambda draft: draft.key is not None):
                some = list(run)
                add = self._add_with_keys if keyed else self._add_batch
                size = len(some) if batch.is_graph and not keyed else _BATCH
                for start in range(0, len(some), size):
                    add(some[start : start + size], by, batch)
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

        A task that a worker has claimed stays, and so does one with a key: another add may have returned it. What these come
        after stays too.
        """
        kept: list[str] = []
        unlogged = []
        needed: set[str] = set()  # by tasks that stay; a task stands behind those that it needs
        for new in reversed(batch):
            if new.draft.key is not None or new.id in needed:
                kept.append(new.id)
                needed |= new.needs
                if not new.logged:
                    unlogged.append(new)
                continue
            try:
                self._disk.unlink(f"{new.folder}/{new.name}")
            except FileNotFoundError:
                if self._disk.exists(new.written) or not self._context.locator.knows(new.id):
                    continue  # it was never in its place
                kept.append(new.id)
                needed |= new.needs
                if not new.logged:
                    unlogged.append(new)
            else:
                if new.logged:
                    reason = {"reason": _TAKEN_BACK, "taken_back": True}
                    at = self._context.clock.now()
                    self._context.log.write(at, "cancelled", new.id, new.lane.kind, 1, None, by, reason)
        for new in batch:
            self._disk.remove(new.written)
        self._disconnect([new for new in batch if new.id not in kept])
        blocked = {new.id: new.needs for new in unlogged}
        lines = self._context.log.lines_added([(new.id, new.lane.kind) for new in unlogged[::-1]], by, blocked)
        self._context.log.append(lines)
        self._context.log.forget()
        return kept[::-1]

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

    def _add_alone(self, draft: Draft, by: str) -> New:
        """Add a task that has no key and comes after no other: without the bookkeeping of a batch, which took 12 us of 41."""
        new = self.place(draft)
        try:
            self.index([new], self._durable)
            self._disk.create(new.written, task_file.encode(new.id, draft, new.due), self._durable)
            self.put([new], by)
        except _GIVEN_UP:
            self._disk.remove(new.written)
            raise
        if self._durable:
            self.sync({new.folder})
        return new

    def _add_batch(self, drafts: Sequence[Draft], by: str, whole: Batch) -> None:
        one_by_one = self._durable and len(drafts) <= _FEW
        batch = self._placed(drafts, whole)
        manifest = self._written(batch, one_by_one, whole.is_graph)
        whole.added.update((id(new.draft), new) for new in batch)
        try:
            for start in range(0, len(batch), _BATCH):
                self.put(batch[start : start + _BATCH], by)
        except _GIVEN_UP:
            self.manifests.remove(manifest)  # first: nothing must put back in its place what is taken back
            raise
        if one_by_one:
            self.sync({new.folder for new in batch})
        elif self._durable:
            self._disk.sync_all(self._root)
        self.look(batch, by)
        self.manifests.remove(manifest)

    def _written(self, batch: list[New], one_by_one: bool, is_graph: bool) -> str | None:
        """Write the edges and the files of new tasks; return the manifest of a batch whose tasks come after one another."""
        try:
            self.connect(batch, one_by_one)
            self.index(batch, one_by_one)
            for new in batch:
                self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), sync=one_by_one)
            if self._durable and not one_by_one:
                self._disk.sync_all(self._root)
            # Folders need disk space: those of a batch are made before any of its tasks is in its place.
            for folder in {new.folder for new in batch} if len(batch) > 1 else ():
                if not self._disk.exists(folder):
                    self._mover.ensure(folder)
            return self.manifests.write(batch) if is_graph and len(batch) > 1 else None
        except _GIVEN_UP:
            for new in batch:
                self._disk.remove(new.written)
            self._disconnect(batch)
            raise

    def resolve(self, draft: Draft) -> None:
        """Replace the names in the draft's `after` with whole ids; raise `NotFound` if one names no task."""
        self.look_up(draft)
        self._shifts.edges.resolve([draft])

    def look_up(self, draft: Draft) -> None:
        """Look up the keys in the `after` of a draft that came by no yard; raise `NotFound` if one names no task."""
        if draft.after:
            from taskyard.core import plan

            plan.ordered([draft], lambda keys: {key: id for key in keys if (id := self.keys.find(key)) is not None})

    def connect(self, batch: Sequence[New], sync: bool) -> None:
        """Write the edges of blocked tasks, before they are published."""
        needs = {new.id: new.needs for new in batch if new.needs}
        if needs:
            self._shifts.edges.register(needs, sync, {new.id for new in batch})

    def index(self, batch: Sequence[New], sync: bool) -> None:
        """Write the entries of tasks with resources, a deadline or a parent, before they are published; one left over does no harm."""
        if any(new.draft.uses for new in batch):
            self._uses_index.note((new.id, new.draft.uses) for new in batch)
        for new in batch:
            if new.draft.parent is not None:
                self._shifts.children.note(new.draft.parent, new.id, sync)
            if new.draft.expires is not None:
                self._shifts.deadlines.note(new.id, int(new.draft.expires), self._context.clock.now(), sync)

    def _disconnect(self, batch: Sequence[New]) -> None:
        """Remove the edges of tasks that were not published; a published task keeps its own."""
        for new in batch:
            if new.needs and not self._disk.exists(f"{new.folder}/{new.name}"):
                self._shifts.edges.withdraw(new.id)

    def look(self, batch: Sequence[New], by: str) -> None:
        """Unblock tasks after they are published: what they wait for may have been done in between."""
        blocked = {new.id: new.needs for new in batch if new.needs}
        if not blocked:
            return
        moved = self._shifts.edges.look(blocked, by)
        for new in batch:
            new.moved = moved.get(new.id)

    def _add_with_keys(self, drafts: Sequence[Draft], by: str, whole: Batch) -> None:
        """Add tasks with keys; of several drafts with one key the first becomes the task."""
        added, known = whole.added, whole.known
        firsts = {draft.key: draft for draft in reversed(drafts) if draft.key not in known}
        fresh = [draft for draft in drafts if firsts.get(draft.key) is draft]
        if len(fresh) > _FEW:
            self._add_all_keyed(fresh, by, whole)
        for draft in drafts:
            assert draft.key is not None  # the caller checks this
            if draft.key in known:
                added[id(draft)] = known[draft.key]
                continue
            new = added.get(id(draft)) or self._add_keyed(draft, by, whole)
            added[id(draft)] = new
            known[draft.key] = new if isinstance(new, str) else new.id

    def _add_all_keyed(self, drafts: Sequence[Draft], by: str, whole: Batch) -> None:
        """Write all files, then take all keys, then put all tasks in their places; a task that lost its key is left out."""
        batch, added = self._placed(drafts, whole), whole.added
        try:
            taken = self._take_keys(batch, whole)
            self.put(taken, by)
        except _GIVEN_UP:
            added.update((id(new.draft), new) for new in self._left_there(batch))
            raise
        added.update((id(new.draft), new) for new in taken)
        if self._durable:
            self._disk.sync_all(self._root)
        self.look(taken, by)

    def _take_keys(self, batch: Sequence[New], whole: Batch) -> list[New]:
        """Write the files of new tasks and take their keys; return the tasks that got theirs.

        A task that comes after one which lost its key is left out too: it comes after the task that has the key.
        """
        self.connect(batch, sync=False)
        self.index(batch, sync=False)
        for new in batch:
            self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), sync=False)
        if self._durable:
            self._disk.sync_all(self._root)
        for folder in {new.folder for new in batch}:
            if not self._disk.exists(folder):
                self._mover.ensure(folder)
        taken: list[New] = []
        lost: set[int] = set()
        for new in batch:
            needs_lost = lost and not lost.isdisjoint(map(id, whole.needed(new.draft)))
            if not needs_lost and self.keys.take(new.draft.key or "", new.written, sync=False):
                taken.append(new)
            else:
                lost.add(id(new.draft))
        whole.forget(lost)
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

    def _add_keyed(self, draft: Draft, by: str, whole: Batch) -> New | str:
        """Take the key with the finished file, before the task is in its place: so exactly one of all racing adders adds it."""
        assert draft.key is not None  # the caller checks this
        while True:
            holder = self.keys.holder(draft)
            if holder is not None:
                return holder
            if draft.after:
                self._shifts.edges.resolve([draft])
            [new] = self._placed([draft], whole)
            self.connect([new], self._durable)
            self.index([new], self._durable)
            self._disk.create(new.written, task_file.encode(new.id, new.draft, new.due), self._durable)
            if self.keys.take(draft.key, new.written, sync=self._durable):
                try:
                    self.put([new], by)
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

    def put(self, batch: list[New], by: str) -> None:
        """Put new tasks in their places, and log them."""
        blocked = {new.id: new.needs for new in batch if new.needs}
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
        lane = Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        due = draft.due(now)
        # Its adder wrote its needs before it took the key; a task of `after` that is not found proves nothing.
        needs = set(self._shifts.edges.needs(id)) | self._shifts.edges.open(draft.after) if draft.after else set()
        new = New(id, draft, lane, due, *self.target(id, draft, lane, due, now, "", bool(needs)), written, needs)
        if needs and self._disk.exists(written):
            self._help_needed(needs, by)
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

    def _help_needed(self, needs: set[str], by: str) -> None:
        """Put those of these tasks in their places that the same killed adder has left: to `connect`, a missing one is gone."""
        left: dict[str, bytes] = {}
        ahead = sorted(needs)
        while ahead:
            id = ahead.pop()
            if id in left or self._context.locator.knows(id):
                continue
            try:
                left[id] = self._disk.read(f"{self._root}/tmp/{id}.json")
            except FileNotFoundError:
                continue
            ahead += self._shifts.edges.needs(id)
        for id in reversed(left):  # the farthest first: a chain may be as long as a batch
            self.help_in(id, left[id], by=by)

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
        if draft.after:
            return self._placed([draft], Batch([draft], {}), mark)[0]
        context, lane = self._context, Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        segment, _ = self.segments.reserve(lane.plain, 1)
        fine = context.clock.fine()
        id, now = segment + context.mint.tail(fine), int(fine)
        due = draft.due(now)
        draft.set_deadline(now)
        folder, name = self.target(id, draft, lane, due, now, mark)
        return New(id, draft, lane, due, folder, name, f"{self._root}/tmp/{id}.json", set())

    def _placed(self, drafts: Sequence[Draft], whole: Batch, mark: str = "") -> list[New]:
        """Assign every draft its id and its place; ids rise in the order of the drafts."""
        lanes = [Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission) for draft in drafts]
        left: dict[str, int] = {}
        for lane in lanes:
            left[lane.plain] = left.get(lane.plain, 0) + 1
        room: dict[str, tuple[str, int]] = {}
        placed = []
        for draft, lane in zip(drafts, lanes, strict=True):
            segment, free = room.get(lane.plain) or self.segments.reserve(lane.plain, left[lane.plain])
            left[lane.plain] -= 1
            room[lane.plain] = (segment, free - 1)
            if free == 1:
                del room[lane.plain]
            fine = self._context.clock.fine()
            id = segment + self._context.mint.tail(fine)
            whole.place(draft, id)
            placed.append((id, draft, lane, int(fine)))
        unmet = self._unmet(drafts, whole)
        batch = []
        for id, draft, lane, now in placed:
            due = draft.due(now)
            draft.set_deadline(now)
            needs = {need for need in draft.after if need in unmet}
            folder, name = self.target(id, draft, lane, due, now, mark, bool(needs))
            batch.append(New(id, draft, lane, due, folder, name, f"{self._root}/tmp/{id}.json", needs))
        return batch

    def _unmet(self, drafts: Sequence[Draft], whole: Batch) -> set[str]:
        """Put ids into the needs of these drafts, and return those that are not met; new tasks of the batch are not."""
        for draft in drafts:
            if draft.after:
                draft.after = whole.wired(draft.after)
        after = {need for draft in drafts for need in draft.after}
        return self._shifts.edges.unmet(after) if after else after
