"""The directory store: tasks as files, states as folders, one rename for each move. PROTOCOL.md tells it to the byte."""

from __future__ import annotations

import itertools
import os
import threading
import time

from taskyard import ids, moves
from taskyard.errors import Invalid
from taskyard.moves import Move
from taskyard.store import Grant
from taskyard.stores.directory import body, layout, names, safety
from taskyard.stores.directory.clock import StoreClock
from taskyard.stores.directory.disk import Disk
from taskyard.stores.directory.heads import Heads
from taskyard.stores.directory.journal import Journal
from taskyard.stores.directory.lookup import Lookup
from taskyard.stores.directory.mover import Mover
from taskyard.stores.directory.names import Lane, Token
from taskyard.stores.directory.records import Records
from taskyard.stores.directory.segments import Segments
from taskyard.stores.directory.trouble import told, unavailable
from taskyard.stores.directory.waiting import Waiting
from taskyard.task import Handle, Standing, State, Task
from taskyard.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.draft import Draft
    from taskyard.store import Query, Report, Want
    from taskyard.stores.directory.listing import Listing
    from taskyard.stores.directory.looking import Looking

_UNSYNCED = ("released", "due")  # a power cut that undoes one of these costs time, but nothing that was promised
_AFTER_SLEEP = 20.0  # seconds without reaping after this machine was suspended: its workers need a beat to wake up too


class DirectoryStore:
    """One yard in one directory, shared by any number of processes."""

    def __init__(self, root: str, durability: str | None = None, disk: Disk | None = None) -> None:
        settings = layout.load(root)
        self.url = root
        self.policy = settings.policy
        self.durability = durability or settings.durability
        self._root = root
        self._processing = f"{root}/processing"
        self._disk = disk or Disk()
        self._durable = self.durability != "fast"
        self._local = safety.is_local(root)
        self._tag = ids.base32(ids.chance(40), 8)
        self._lock = threading.Lock()  # for the lists of what may be claimed next
        self._adding = threading.Lock()  # one adder at a time, while claims go on
        self._drafts = itertools.count(1)
        self._mint = ids.Mint()
        self._clock = StoreClock(self._disk, f"{root}/tmp/clock")
        self._mover = Mover(self._disk, root, self._local, self._durable)
        self._lookup = Lookup(self._disk, root)
        self._heads = Heads(self._disk, f"{root}/todo")
        self._segments = Segments(self._disk, root, self._draft, self._clock.now, self._durable)
        self._records = Records(self._disk, root, self._draft, self._mover.ensure)
        self._waiting = Waiting(self._lookup, self._mover, root)
        self._journal = Journal(self._disk, f"{root}/events", _kernel() if self._local else f"{_kernel()}-{self._tag}")
        self._plans: dict[tuple[str, Lane, str, float | None], names.Plan] = {}
        self._swept: tuple[int, float] | None = None
        self._no_reaping_before = 0.0

    def _draft(self) -> str:
        """A name in tmp/ that nobody else uses."""
        return f"{self._root}/tmp/{self._tag}-{os.getpid()}-{next(self._drafts)}"

    # Adding

    @told
    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""
        from taskyard.stores.directory.adding import Adder

        adder = Adder(
            self._disk,
            self._root,
            self._mover,
            self._segments,
            self._mint,
            self._clock,
            self._waiting,
            self._draft,
            self._durable,
        )
        with self._adding:
            added = adder.add(drafts)
        with self._lock:
            for lane in {new.lane.text for new in added}:
                self._heads.notice(lane)
        self._journal.write_added([(new.id, new.lane.kind) for new in added], by)
        return [self._new_task(new.id, new.draft, new.due) for new in added]

    def _new_task(self, id: str, draft: Draft, due: int | None) -> Task:
        not_before = due if draft.not_before is None else draft.not_before
        fields = {
            "id": id,
            "kind": draft.kind,
            "title": draft.title,
            "state": State.TODO if due is None else State.WAITING,
            "priority": draft.priority,
            "data": draft.data,
            "not_before": None if not_before is None else rfc3339(not_before),
            "mission": draft.mission,
            "assignee": draft.assignee,
            "max_attempts": draft.max_attempts or self.policy.max_attempts,
            "fence": 0,
        }
        return Task(**fields)

    # Claims

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or None."""
        try:
            if want.id is not None:
                return self._claim_one(want, want.id, nonce)
            lost, fresh = 0, False
            while True:
                with self._lock:
                    picked = self._heads.pick(want, lost)
                    if picked is not None:
                        head, name = picked
                        folder = head.folder
                    elif fresh:
                        return None
                    else:
                        # The lists are used up, and a cached list is not the truth: once more from the disk.
                        fresh = True
                        self._heads.forget()
                        continue
                grant = self._take(want, nonce, folder, name, head.lane)
                if grant is not None:
                    return grant
                lost += 1
        except OSError as error:
            raise unavailable(error) from error

    def _claim_one(self, want: Want, id: str, nonce: str) -> Grant | None:
        found = self._lookup.find(id)
        moves.claimed(found.token.standing(found.state, found.place, self.policy), want.worker)
        return self._take(want, nonce, *found.place, found.token.lane)

    def _take(self, want: Want, nonce: str, folder: str, name: str, lane: Lane) -> Grant | None:
        """Claim by rename; None if somebody else was first."""
        try:
            id, fence, rest = name.split(".", 2)
            number = int(fence) + 1
        except ValueError:
            return None  # nothing of ours
        plan = self._plans.get((rest, lane, want.worker, want.lease)) or self._plan(rest, lane, want)
        if plan is None:
            return None
        counters, lease = plan.counters, plan.lease
        target = f"{id}.{number}.{plan.middle}{nonce}.json"
        path = f"{self._processing}/{target}"
        try:
            self._disk.rename(f"{folder}/{name}", path)
        except FileNotFoundError:
            if not self._mover.was_mine(self._processing, target):
                return None
        try:
            content = self._disk.read(path)
        except FileNotFoundError:
            return None  # cancelled, or with a tiny lease reaped, between the two calls: as if somebody else had been first
        if self.durability == "strict":
            self._sync_move(self._processing, target)
        now = self._clock.now()
        standing = Standing(
            id, lane.kind, lane.priority, lane.assignee, State.PROCESSING, number, counters.errors, counters.crashes,
            counters.max_attempts or self.policy.max_attempts, lease, want.worker, nonce, (self._processing, target),
        )  # fmt: skip
        if not (content.startswith(body.MARK) and content.endswith(body.END)) and self._broken(standing, content):
            return None
        self._journal.write(now, "claimed", id, lane.kind, number, want.worker, want.worker)
        return Grant(standing, (_held_task, content), now + int(lease * 1000))

    def _plan(self, rest: str, lane: Lane, want: Want) -> names.Plan | None:
        plan = names.Plan.of(rest, lane, want.worker, want.lease, self.policy)
        if plan is not None:
            if len(self._plans) > 1000:
                self._plans.clear()
            self._plans[rest, lane, want.worker, want.lease] = plan
        return plan

    def _broken(self, standing: Standing, content: bytes) -> bool:
        """Take a task whose file cannot be read out of everybody's way, with the reason, and without losing the file."""
        try:
            body.decode(content)
        except Invalid as error:
            self.shift(
                standing,
                Move(
                    "failed",
                    State.FAILED,
                    standing.fence,
                    standing.errors,
                    standing.crashes,
                    outcome="error",
                    reason=error.message,
                ),
                "taskyard",
            )
            return True
        return False

    @told
    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""
        folder, name = standing.place
        # On NFS a touch of a name that another client has moved away still succeeds; only a fresh listing tells.
        if not self._local and name not in self._disk.listdir(folder):
            return None
        try:
            self._disk.touch(f"{folder}/{name}")
            stamp = self._disk.stamp(f"{folder}/{name}")
        except FileNotFoundError:
            return None
        handle = Handle(standing.id, standing.fence, standing.nonce or "")
        if progress is not None:
            self._records.progress(handle, progress)
        if note is not None:
            self._records.note(handle, standing.worker, note, stamp)
            self._journal.write(
                stamp,
                "noted",
                standing.id,
                standing.kind,
                standing.fence,
                standing.worker,
                standing.worker or "",
                {"text": note},
            )
        return stamp + round(standing.lease * 1000)

    @told
    def workdir(self, handle: Handle) -> str:
        """The claim's own folder, made if need be."""
        return self._records.folder(handle)

    @told
    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if nothing was put there."""
        folder = self._records.path(handle)
        self._mover.drop(folder)
        self._mover.drop(os.path.dirname(folder))

    # Moves

    @told
    def stand(self, id: str) -> Standing:
        """Where the task of this id, or of this unique prefix, stands now."""
        found = self._lookup.find(id)
        return found.token.standing(found.state, found.place, self.policy)

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:
        """Whether the move was made: only if the task still stands exactly there."""
        try:
            source, name = standing.place
            if lapsed and not self._is_over(f"{source}/{name}", standing.lease):
                return False
            at = self._clock.now()
            sync = self._durable and move.event not in _UNSYNCED
            if move.outcome is not None and (move.outcome != "done" or move.result is not None):
                if not self._disk.exists(f"{source}/{name}"):
                    return False
                handle = Handle(standing.id, standing.fence, standing.nonce or "")
                self._records.write(handle, move, standing, by, at, sync)
            due = None
            if move.to is State.DONE:
                # With a result the name says so, and no later word of the same claim can slip one under a done without.
                folder = f"{self._root}/done/{standing.id[: ids.SEGMENT]}"
                target = name if move.result is None else f"{name[:-5]}.r.json"
            else:
                folder, target, due = self._target(standing, move, name, at)
            try:
                self._disk.rename(f"{source}/{name}", f"{folder}/{target}")
            except FileNotFoundError:
                if not self._mover.move(f"{source}/{name}", folder, target):
                    return False
            if sync:
                self._sync_move(folder, target)
        except OSError as error:
            raise unavailable(error) from error
        if move.to is State.DONE:
            self._journal.write(at, "done", standing.id, standing.kind, standing.fence, standing.worker, by)
        else:
            self._tell(standing, move, by, at, due)
        return True

    def _target(self, standing: Standing, move: Move, name: str, at: int) -> tuple[str, str, int | None]:
        """Folder and name that this move leads to, and the due time if it is to wait."""
        segment = standing.id[: ids.SEGMENT]
        stem = f"{standing.id}.{move.fence}.e{move.errors}.c{move.crashes}{names.own_limits(name)}"
        lane = Lane.of(standing.priority, standing.kind, standing.assignee)
        if move.to is State.TODO:
            return f"{self._root}/todo/{lane.text}/{segment}", f"{stem}.json", None
        if move.to is State.WAITING:
            due = at + round(move.delay * 1000)
            return self._waiting.folder(standing.id, due, at), f"{stem}.{lane.text}.d{due}.json", due
        claim = names.claim_parts(name) if move.keeps_claim else ""
        return f"{self._root}/{move.to}/{segment}", f"{stem}.{lane.text}{claim}.json", None

    def _sync_move(self, folder: str, name: str) -> None:
        """Have a rename survive a power cut: the directory for its new name, the file because btrfs keeps both names else."""
        try:
            self._disk.sync(f"{folder}/{name}")
        except FileNotFoundError:
            return  # moved on already; whoever did that syncs it
        self._disk.sync(folder)

    def _tell(self, standing: Standing, move: Move, by: str, at: int, due: int | None) -> None:
        """Log the move, and let the next claim of this process see what came back to todo."""
        more: dict[str, Any] | None = None
        if move.event in {"failed", "reaped"}:
            more = {"final": move.to is State.FAILED, "reason": move.reason}
            if due is not None:
                more["due"] = rfc3339(due)
        elif move.reason is not None:
            more = {"reason": move.reason}
        self._journal.write(at, move.event, standing.id, standing.kind, move.fence, standing.worker, by, more)
        if move.to is State.TODO:
            with self._lock:
                self._heads.forget(Lane.of(standing.priority, standing.kind, standing.assignee).text)

    @told
    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Write down that a verb came too late, and keep its output for a person to read."""
        found = self._lookup.find(handle.id)
        at = self._clock.now()
        if move is not None:
            self._records.keep_stale(handle, move, None, by, at)
        self._journal.write(at, "refused", handle.id, found.token.lane.kind, handle.fence, by, by, {"verb": verb})

    # Overdue

    @told
    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""
        now = self._clock.exact()
        late: list[Standing] = []
        if self._may_reap(now):
            for name in self._disk.listdir(self._processing):
                token = Token.parse(name)
                if token is None or token.lease is None or len(late) >= limit:
                    continue
                try:
                    if now - self._disk.stamp(f"{self._processing}/{name}") > token.lease:
                        late.append(token.standing(State.PROCESSING, (self._processing, name), self.policy))
                except FileNotFoundError:
                    continue
        for found in self._waiting.due(now):
            if len(late) >= limit:
                break
            late.append(found.token.standing(found.state, found.place, self.policy))
        return late

    def _may_reap(self, now: int) -> bool:
        """Not right after this machine slept: its claims look dead, but their workers are only just waking up."""
        ticks = time.monotonic()
        if self._swept is not None:
            slept = (now - self._swept[0]) / 1000 - (ticks - self._swept[1])
            if slept > _AFTER_SLEEP / 2:
                self._no_reaping_before = ticks + _AFTER_SLEEP
        self._swept = (now, ticks)
        return ticks >= self._no_reaping_before

    def _is_over(self, path: str, lease: float) -> bool:
        try:
            return self._clock.exact() - self._disk.stamp(path) > lease * 1000
        except FileNotFoundError:
            return False

    @told
    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep; the turn is taken by a rename, so one caller gets it."""
        folder = f"{self._root}/turns"
        last = max((int(name) for name in self._lookup.names(folder) if name.isdigit()), default=None)
        if last is None:
            self._disk.append(f"{folder}/0", b"")  # somebody tidied too well: begin anew
            return False
        try:
            if self._clock.exact() - self._disk.stamp(f"{folder}/{last}") < every * 1000:
                return False
        except FileNotFoundError:
            return False
        return self._mover.move(f"{folder}/{last}", folder, str(last + 1))

    # Looking

    @told
    def get(self, id: str) -> Report:
        """All about the task of this id or unique prefix."""
        return self._looking.report(id)

    @told
    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks and the cursor of the next."""
        return self._looking.page(query)

    @property
    def _looking(self) -> Looking:
        from taskyard.stores.directory.looking import Looking

        return Looking(self._disk, self._lookup, self._records, self._listing, self.policy)

    @property
    def _listing(self) -> Listing:
        from taskyard.stores.directory.listing import Listing

        return Listing(self._lookup, self._segments, self._root)

    @told
    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""
        return self._listing.shorten(list(ids))

    @told
    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""
        return self._listing.counts()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, a little less each time, so that pollers drift apart."""
        time.sleep(seconds * (0.75 + ids.chance(8) / 1024))

    def close(self) -> None:
        """Let go of the event file."""
        self._journal.close()


def _held_task(grant: Grant, content: bytes) -> Task:
    """The task that a claim holds: the fields of its file are a task's own, and the rest is where it stands."""
    standing = grant.standing
    fields = body.decode(content)
    fields["state"] = State.PROCESSING
    fields["attempts"] = standing.errors + standing.crashes
    fields["max_attempts"] = standing.max_attempts
    fields["fence"] = standing.fence
    fields["worker"] = standing.worker
    fields["lease_ends"] = grant.lease_until
    task = Task.__new__(Task)
    task.__dict__ = fields
    return task


def _kernel() -> str:
    """A short name of the running kernel: the same in all containers on it, another after every boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(8)
    except OSError:
        return f"pid{os.getpid()}"
