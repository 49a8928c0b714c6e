"""Claiming: one rename into processing/ under a name that no other process can make."""

from __future__ import annotations

import functools
import time

from taskyard.core import ids, moves
from taskyard.core.errors import Invalid
from taskyard.core.moves import Move
from taskyard.core.store_records import Grant, Terms
from taskyard.core.task import Handle, Standing, State, Task
from taskyard.stores.directory import names
from taskyard.stores.directory.names import CLOSED, NO_FILE, Lane, Token
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.ready_cache import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.store_records import Want
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.ready_cache import Head
    from taskyard.stores.directory.tasks.shifts import Shifts
    from taskyard.stores.directory.tasks.uses import Uses

_LOST_AT_ONCE = 64
_PROCESSING = State.PROCESSING  # looked up once: an enum's member costs a tenth of a microsecond each time
_USES, _BOTH = f".{names.USES}.", f".{names.BOTH}."  # `names.uses_something`, without the call for every claim
_APART = 0.004  # seconds, and ten times that on a network: two claims that clashed try again at different moments

_WAITED = 60_000  # milliseconds in todo/ after which a claimed file is touched: no janitor is that quick
_AGED_EVERY = 1000  # milliseconds for which the age key of that border is cached
_COUNTS = 1 << 24  # bytes that are read of the file of lost races
_COUNT_DIGITS = 10  # of a number in that file; Taskyard writes no longer one


class Claims:
    """Grants claims, and renews them."""

    def __init__(self, context: Context, shifts: Shifts) -> None:
        self._context = context
        self._shifts = shifts
        self._disk = context.disk
        self._log = context.log
        self._processing = context.processing
        self._now = context.clock.now
        self._lost = 0
        self._lost_file = f"{context.root}/writers/lost_races"
        self._plans: dict[tuple[str, Lane, Terms], names.Plan] = {}
        self._aged_at, self._aged = -_AGED_EVERY, ""

    @functools.cached_property
    def uses(self) -> Uses:
        """The resources in use; loaded when the first task uses one."""
        from taskyard.stores.directory.tasks.uses import Uses

        return Uses(self._context)

    def next(self, want: Want, nonce: str) -> Grant | None:
        """Claim the most urgent, oldest task that fits, or return None."""
        lost, fresh = 0, False
        heads, lock = self._context.ready_cache, self._context.claiming
        taken: dict[str, str] | None = None
        busy: frozenset[str] | None = None
        asked: float | None = None
        began = time.monotonic()
        with lock:
            number = heads.begin()
        while True:
            try:
                with lock:
                    picked = heads.pick(want, lost, asked, busy)
                    if picked is not None:
                        head, name = picked
                        folder = head.folder
                    elif fresh or heads.is_fresh(want, number, busy):
                        return None
                    else:
                        # The cached lists are empty, and a list from before this claim proves nothing: list the disk anew.
                        fresh = True
                        taken, busy, asked = None, None, began
                        heads.outdate(number)
                        continue
            except Busy:
                taken = self.uses.taken()
                busy = frozenset(map(names.resource_digest, taken))
                continue
            if _USES in name or _BOTH in name:
                taken = self.uses.taken() if taken is None else taken
                missing = self._pass_over(head, folder, name, taken)
                if missing is not None:
                    busy = None if busy is None else busy | {missing}
                    asked = asked or time.monotonic()
                    continue
                taken = None
            grant = self._take_from(head, want, nonce, folder, name)
            if grant is not None:
                if lost:
                    self._count_lost(lost)
                return grant
            lost += folder not in heads.closed

    def _take_from(self, head: Head, want: Want, nonce: str, folder: str, name: str) -> Grant | None:
        """Claim by rename; return None if another worker was first, or the system refuses: then the folder is skipped."""
        try:
            return self._take(want, nonce, folder, name, head.lane)
        except OSError as error:
            if not self._is_closed(error, f"{folder}/{name}"):
                raise
            with self._context.claiming:
                if head.folder == folder:
                    head.close(str(error.strerror))
            return None

    def _is_closed(self, error: OSError, path: str) -> bool:
        """Whether the system refuses to move this one name, rather than every claim."""
        moves = error.filename == path and error.filename2 is not None and error.errno in CLOSED
        return moves and self._disk.may_change(self._processing)

    def in_use(self) -> frozenset[str]:
        """Return the resources that running tasks use now."""
        return frozenset(self.uses.taken())

    def _pass_over(self, head: Head, folder: str, name: str, taken: dict[str, str]) -> str | None:
        """Return the digest of a resource in use that this task needs, or None; move the task where it waits for that.

        No claim lists that place before the resource is free: so a backlog is walked once, and not by every claim.
        """
        resource = next(filter(taken.__contains__, self.uses.of(folder, name)), None)
        if resource is None:
            return None
        lane, segment = folder.rsplit("/", 2)[1:]
        waiting = names.busy_folder(head.lane, resource)
        if lane == waiting:
            with self._context.claiming:
                self._context.ready_cache.forget(lane)  # it stays where it is, and is listed with the others
        else:
            id, fence, rest = name.split(".", 2)
            target = f"{self._context.root}/todo/{waiting}/{segment}"
            try:
                self._context.mover.move(f"{folder}/{name}", target, f"{id}.{int(fence) + 1}.{rest}")
            except OSError:
                pass  # another user's folder, or a full disk: the task is skipped all the same
        return names.resource_digest(resource)

    def _stand_back(self, folder: str, rest: str, target: str) -> None:
        """Give back a task that was claimed while another one uses the same resource: no claim, no event, nothing counted."""
        id, fence, _ = target.split(".", 2)
        self._log.forget()
        self._context.mover.move(f"{self._processing}/{target}", folder, f"{id}.{int(fence) + 1}.{rest}")
        time.sleep(_APART * ids.chance(10) / 1024 * (1 if self._context.local else 10))

    def _count_lost(self, lost: int) -> None:
        """Count lost races, and write the count only now and then: they are common and harmless."""
        self._lost += lost
        if self._lost >= _LOST_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the number of races that were lost since the last write."""
        lost, self._lost = self._lost, 0
        if lost:
            self._disk.append(self._lost_file, b"%d\n" % lost)

    def lost_races(self) -> int:
        """Return how many races were lost in this yard, as far as they were written."""
        self.flush()
        lines = self._disk.read_at(self._lost_file, 0, _COUNTS).split()
        return sum(int(line) for line in lines if line.isdigit() and len(line) < _COUNT_DIGITS)

    def particular(self, want: Want, nonce: str) -> Grant | None:
        """Claim the task that `want` names, or take over the claim that it names."""
        if want.over is not None and want.move is not None:
            return self._take_over(want.over, want.move, nonce, want.worker)
        assert want.id is not None  # the caller checks this
        return self._named(want, want.id, nonce)

    def _named(self, want: Want, id: str, nonce: str) -> Grant | None:
        """Claim this task, or raise `Conflict` if that is not possible."""
        found = self._context.locator.find(id)
        standing = found.token.standing(found.state, found.place, self._context.policy)
        if found.state is State.BLOCKED:
            standing.unmet = tuple(self._shifts.edges.needs(standing.id))
        moves.claimed(standing, want.worker)
        everything, some = self.paused()
        if everything or standing.kind in some:
            raise moves.paused(standing, everything)
        taken = self.uses.first_taken(self.uses.of(*found.place)) if found.token.uses else None
        if taken is not None:
            holder = taken[1].standing(_PROCESSING, found.place, self._context.policy)
            raise moves.in_use(standing, taken[0], holder)
        return self._take(want, nonce, *found.place, found.token.lane)

    def _take(self, want: Want, nonce: str, folder: str, name: str, lane: Lane) -> Grant | None:
        """Claim by rename; return None if another worker was first."""
        id, fence, rest = name.split(".", 2)
        number = int(fence) + 1
        plan = self._plans.get((rest, lane, want.terms)) or self._plan(rest, lane, want)
        if plan is None:
            return None
        counters, context = plan.counters, self._context
        target = f"{id}.{number}.{plan.middle}{nonce}.json"
        path = f"{self._processing}/{target}"
        now = self._now()
        line = self._log.line(now, "claimed", id, lane.kind, number, want.worker, want.worker)
        try:
            self._disk.rename(f"{folder}/{name}", path)
        except FileNotFoundError:
            if not context.mover.was_mine(self._processing, target):
                self._log.forget()
                return None
        except OSError:
            self._log.forget()
            raise
        if counters.uses and self.uses.clash(target):
            self._stand_back(folder, rest, target)
            return None
        try:
            if context.durability == "strict":
                context.sync_move(self._processing, target)
        finally:
            self._log.append(line)
        if counters.dropped or id[ids.SEGMENT :] < self._long_ago(now):
            self._touch(path)
        standing = Standing(
            id, lane.kind, lane.priority, lane.assignee, _PROCESSING, number, counters.errors, counters.crashes,
            plan.max_attempts, plan.lease, want.worker, nonce, (self._processing, target),
        )  # fmt: skip
        standing.verified = counters.verified
        return self._grant(standing, counters, path, now + plan.lease_ms)

    def _long_ago(self, now: int) -> str:
        """Return an age key; ids of tasks that have waited for long sort before it, without their segment."""
        if now - self._aged_at > _AGED_EVERY:
            self._aged_at, self._aged = now, ids.age_at(now - _WAITED)
        return self._aged

    def _touch(self, path: str) -> None:
        """Set the file's mtime, which a rename keeps: another program's janitor would judge the new claim by the old time."""
        try:
            self._disk.touch(path)
        except FileNotFoundError:
            return

    def _grant(self, standing: Standing, counters: names.Counters, path: str, until: int) -> Grant | None:
        """Return the claim with its task; None if the task has no usable content."""
        try:
            if counters.body is None:
                content = self._disk.read(path)
            else:
                content = self._context.edits.edited(standing.id, counters.body)
            if not counters.dropped and not content.startswith(task_file.MARK):
                raise Invalid("the task's file was not written by Taskyard")
            # The fields of its file are the task's own; the rest is its standing.
            fields = task_file.decode(content)
            # If file and name differ, the name counts; a dropped file does not know where it was put.
            fields["id"], fields["kind"] = standing.id, standing.kind
            fields["priority"], fields["assignee"] = standing.priority, standing.assignee
            fields["state"] = _PROCESSING
            fields["attempts"] = standing.errors + standing.crashes
            fields["max_attempts"] = standing.max_attempts
            fields["fence"] = standing.fence
            fields["worker"] = standing.worker
            fields["lease_ends"] = until
            task = Task.__new__(Task)
            task.__dict__ = fields
            return Grant(standing, task, until)
        except FileNotFoundError:
            if counters.body is not None and self._disk.exists(f"{standing.place[0]}/{standing.place[1]}"):
                self._fail(standing, "the edit that replaced its file is gone")
            return None  # cancelled, or reaped after a tiny lease, between the two calls: as if another worker had been first
        except OSError as error:
            if error.errno not in NO_FILE:
                self._give_back(standing)
                raise
            self._fail(standing, f"its file cannot be read: {error.strerror}")
        except Invalid as error:
            if counters.dropped:
                # A person may be editing it, and it may be whole again in a moment.
                self._shifts.back_to_the_box(standing, error.message)
            else:
                self._fail(standing, f"its file is broken: {error.message}")
        return None

    def _plan(self, rest: str, lane: Lane, want: Want) -> names.Plan | None:
        """Return the plan for a task in todo/ whose name ends with `rest`, or None if that is no task's name."""
        counters = names.Counters.parse(rest)
        if counters is None:
            return None
        if len(self._plans) > 1000:
            self._plans.clear()
        plan = names.Plan(counters, lane, want.worker, want.terms, self._context.policy)
        self._plans[rest, lane, want.terms] = plan
        return plan

    def _give_back(self, standing: Standing) -> None:
        """Give back a claim that cannot be returned, as with too many open files; a record would need one more file."""
        counted = (standing.fence + 1, standing.errors, standing.crashes)
        try:
            self._shifts.shift(standing, Move("released", State.TODO, *counted), standing.worker or "")
        except OSError:
            return  # the end of the lease will give it back

    def _fail(self, standing: Standing, reason: str) -> None:
        """Fail a task that no worker can work on, without losing its file."""
        counted = (standing.fence, standing.errors, standing.crashes)
        self._shifts.shift(standing, Move("failed", State.FAILED, *counted, outcome="error", reason=reason), "taskyard")

    def renew(self, standing: Standing, progress: float | None, note: str | None) -> int | None:
        """Start the lease anew and return its end, or None if the claim is over."""
        folder, name = standing.place
        stamp = self._touched(folder, name)
        if stamp is None and self._taken_again(folder, name):
            stamp = self._touched(folder, name)
        if stamp is None:
            return None
        handle = Handle(standing.id, standing.fence, standing.nonce or "")
        worker = standing.worker or ""
        if progress is not None:
            self._context.records.progress(handle, progress)
        if note is not None:
            self._context.records.note(handle, worker, note, stamp)
            self._log.write(stamp, "noted", standing.id, standing.kind, standing.fence, worker, worker, {"text": note})
        return stamp + round(standing.lease * 1000)

    def _touched(self, folder: str, name: str) -> int | None:
        # On NFS a touch of a name that another client has moved away still succeeds; only a fresh listing shows the move.
        if not self._context.local and name not in self._disk.listdir(folder):
            return None
        try:
            self._disk.touch(f"{folder}/{name}")
            return self._disk.stamp(f"{folder}/{name}")
        except FileNotFoundError:
            return None

    def _taken_again(self, folder: str, name: str) -> bool:
        """Take a claim back that another program's janitor put into todo/, before a sweep does; return whether it was there."""
        try:
            self._disk.rename(f"{self._context.root}/todo/{name}", f"{folder}/{name}")
        except FileNotFoundError:
            return False
        return True

    def held(self, worker: str) -> list[Standing]:
        """Return every claim that a worker of this name holds, oldest task first."""
        claims = []
        dead = self._context.liveness.cached_is_dead()
        for name in self._disk.listdir(self._processing):
            token = Token.parse(name)
            if token is not None and token.worker == worker:
                standing = token.standing(State.PROCESSING, (self._processing, name), self._context.policy)
                standing.dead = token.vouched and dead(token.worker, token.nonce)
                claims.append(standing)
        return sorted(claims, key=lambda standing: ids.age_key(standing.id))

    def _take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> Grant | None:
        """Return the same claim under a new name, which the earlier process does not know."""
        context = self._context
        folder, name = standing.place
        counters = names.Counters.parse(f"e{move.errors}.c{move.crashes}{names.own_parts(name)}.json")
        if counters is None or standing.worker is None or not self._disk.exists(f"{folder}/{name}"):
            return None
        at = context.clock.now()
        context.records.write(Handle(standing.id, standing.fence, standing.nonce or ""), move, standing, by, at, False)
        lane = Lane.of(standing.priority, standing.kind, standing.assignee)
        plan = names.Plan(
            counters, lane, standing.worker, Terms(standing.worker, standing.lease, None, False), context.policy
        )
        again = standing.copy()
        again.fence, again.nonce = move.fence, nonce
        again.place = (folder, f"{standing.id}.{move.fence}.{plan.middle}{nonce}.json")
        line = self._log.line(at, move.event, again.id, again.kind, again.fence, again.worker, by, {"resumed": True})
        if not context.mover.move(f"{folder}/{name}", *again.place):
            self._log.forget()
            return None
        try:
            if context.durability == "strict":
                context.sync_move(*again.place)
        finally:
            self._log.append(line)
        return self._grant(again, counters, f"{folder}/{again.place[1]}", at + plan.lease_ms)

    def pause(self, kind: str | None, on: bool) -> None:
        """Make, or with `on` false remove, the file in paused/ of a kind, or of the whole yard."""
        path = f"{self._context.root}/paused/{names.paused_name(kind)}"
        if on:
            self._disk.append(path, b"")
        else:
            self._disk.remove(path)
        with self._context.claiming:
            self._context.ready_cache.forget()

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        return names.paused(self._context.locator.names(f"{self._context.root}/paused"))
