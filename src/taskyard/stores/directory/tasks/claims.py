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
from taskyard.stores.directory.tasks.locate import Found
from taskyard.stores.directory.tasks.ready_cache import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.resources import InUse
    from taskyard.core.store_records import Want
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.limits import Limits
    from taskyard.stores.directory.tasks.ready_cache import Head
    from taskyard.stores.directory.tasks.shifts import Shifts
    from taskyard.stores.directory.tasks.uses import Uses

_LOST_AT_ONCE = 64
_PROCESSING = State.PROCESSING  # looked up once: an enum's member costs a tenth of a microsecond each time
_USES, _DEADLINES = frozenset("uwUW"), frozenset("UVWY")  # marks, which end a name in todo/
_APART = 0.004  # seconds, and ten times that on a network: two claims that clashed try again at different moments

_NONE: frozenset[str] = frozenset()
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
        # The plan of the last claim, with what it is for: the next one mostly needs the same, and no hash of three parts.
        self._last_plan: tuple[str, Lane | None, Terms | None, names.Plan | None] = ("", None, None, None)
        self._aged_at, self._aged = -_AGED_EVERY, ""

    @functools.cached_property
    def uses(self) -> Uses:
        """The resources in use; loaded when the first task uses one."""
        from taskyard.stores.directory.tasks.uses import Uses

        return Uses(self._context)

    @functools.cached_property
    def limits(self) -> Limits:
        """The limits of kinds; loaded when a kind has some."""
        from taskyard.stores.directory.tasks.limits import Limits

        return Limits(self._context)

    def closed(self, wanted: frozenset[str] | None = None) -> frozenset[str]:
        """Return those of these kinds, or of all, whose limits are reached."""
        return self.limits.closed(wanted) if self._context.kinds else _NONE

    def next(self, want: Want, nonce: str) -> Grant | None:
        """Claim the most urgent, oldest task that fits, or return None."""
        lost, fresh, number = 0, False, 0
        heads, lock = self._context.ready_cache, self._context.claiming
        taken: InUse | None = None
        kept: dict[str, str] | None = None
        busy: frozenset[str] | None = None
        closed = self.closed(want.kinds)
        began = time.monotonic()
        while True:
            try:
                with lock:
                    number = number or heads.begin()
                    picked = heads.pick(want, lost, began, busy, closed)
                    if picked is not None:
                        head, name = picked
                        folder = head.folder
                    elif fresh or heads.is_fresh(want, number, busy, closed):
                        return None
                    else:
                        # The cached lists are empty, and a list from before this claim proves nothing: list the disk anew.
                        fresh = True
                        taken, kept, busy = None, None, None
                        heads.outdate(number)
                        continue
            except Busy:
                taken = self.uses.taken()
                busy = frozenset(map(names.resource_digest, taken))
                continue
            mark = name[-6] if name[-7] == "." else ""
            if mark in _DEADLINES and self._expired(folder, name, head.lane, want.by):
                continue
            if mark in _USES:
                kept = self.uses.kept() if kept is None else kept
                taken = self.uses.glance(name, kept) if taken is None else taken
                missing = self._pass_over(head, folder, name, taken, kept)
                if missing is not None:
                    busy = None if busy is None else busy | {missing}
                    continue
                taken = None
            grant = self._take_from(head, want, nonce, folder, name)
            if grant is not None:
                if lost:
                    self._count_lost(lost)
                return grant
            lost += folder not in heads.closed
            closed = self._closed_after(head, want, closed)

    def _closed_after(self, head: Head, want: Want, closed: frozenset[str]) -> frozenset[str]:
        """Return the kinds whose limits are reached, after a claim from this lane was in vain."""
        if head.lane.kind not in self._context.kinds:
            return closed
        with self._context.claiming:
            self._context.ready_cache.forget(head.name)  # the task may still be there, or under another name
        return self.closed(want.kinds)

    def _expired(self, folder: str, name: str, lane: Lane, by: str) -> bool:
        """Cancel the task if its deadline has passed, and return whether it had."""
        token = Token.parse(name, lane)
        deadlines = self._shifts.deadlines
        now = self._context.clock.exact()
        return token is not None and deadlines.cancel(Found(State.TODO, (folder, name), token), now, by) is not False

    def _take_from(self, head: Head, want: Want, nonce: str, folder: str, name: str) -> Grant | None:
        """Claim by rename; return None if another worker was first, or the system refuses: then the folder is skipped."""
        try:
            return self._take_within_limits(want, nonce, folder, name, head.lane)
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

    def _pass_over(self, head: Head, folder: str, name: str, taken: InUse | None, kept: dict[str, str]) -> str | None:
        """Return the resource or lane to skip if this task must wait for a resource; None if it can be claimed.

        The task is moved where it waits for that resource. No claim lists that place before the resource is free: so a
        backlog is walked once, and not by every claim.
        """
        if taken is None:
            return None
        own = self.uses.of(folder, name)
        id, fence, rest = name.split(".", 2)
        found = taken.first(own)
        if found is not None and found[2].startswith(f"{id}."):
            return None  # another worker has got this very task meanwhile: a lost race, and no conflict
        resource, in_use = (None, False) if found is None else (found[1], True)
        if resource is None and kept:
            resource = self.uses.first_kept(kept, own, id)
        if resource is None:
            return None
        self.uses.beware()
        self.uses.keep(kept, name, own)
        lane, segment = folder.rsplit("/", 2)[1:]
        waiting = names.busy_folder(head.lane, resource)
        if lane != waiting:
            self._move_aside(f"{folder}/{name}", waiting, segment, f"{id}.{int(fence) + 1}.{rest}")
        with self._context.claiming:
            if lane == waiting and not in_use:
                head.put_back(folder, name)
            elif lane == waiting or kept:
                self._context.ready_cache.forget(waiting)  # it is listed with the others
        return names.resource_digest(resource) if in_use else waiting

    def _move_aside(self, path: str, lane: str, segment: str, name: str) -> None:
        """Move a task to the lane where it waits for a resource."""
        try:
            self._context.mover.move(path, f"{self._context.root}/todo/{lane}/{segment}", name)
        except OSError:
            return  # another user's folder, or a full disk: the task is skipped all the same

    def _stand_back(self, folder: str, rest: str, target: str) -> None:
        """Undo a claim that conflicts with another one's resource, or exceeds a limit. It logs and counts nothing."""
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
        try:
            if lost:
                # It begins on a line of its own, whatever a killed process has torn before it.
                self._disk.append(self._lost_file, b"\n%d\n" % lost)
        except OSError:
            return  # another user's file, or a full disk: a claim that was won must reach its worker all the same

    def lost_races(self) -> int:
        """Return how many races were lost in this yard, as far as they were written."""
        self.flush()
        lines = self._disk.read_at(self._lost_file, 0, _COUNTS).split()
        return sum(int(line) for line in lines if line.isdigit() and len(line) < _COUNT_DIGITS)

    def particular(self, want: Want, nonce: str) -> Grant | None:
        """Claim the task that `want` names, or take over the claim that it names."""
        if want.over is not None and want.move is not None:
            return self._take_over(want.over, want.move, nonce, want.by)
        assert want.id is not None  # the caller checks this
        return self._named(want, want.id, nonce)

    def _named(self, want: Want, id: str, nonce: str) -> Grant | None:
        """Claim this task, or raise `Conflict` if that is not possible."""
        found = self._context.locator.find(id)
        standing = found.token.standing(found.state, found.place, self._context.policy)
        if found.state is State.BLOCKED:
            standing.unmet = tuple(self._shifts.edges.needs(standing.id))
        moves.claimed(standing, want.worker)
        deadline = self._shifts.deadlines.of(found) if found.token.deadline else None
        if deadline is not None and deadline <= self._context.clock.exact():
            raise moves.too_late(standing, deadline)
        everything, some = self.paused()
        if everything or standing.kind in some:
            raise moves.paused(standing, everything)
        for reached in self.limits.reached(frozenset((standing.kind,))) if self._context.kinds else ():
            raise moves.limited(standing, reached, self._context.clock.now())
        taken = self.uses.first_taken(self.uses.of(*found.place)) if found.token.uses else None
        if taken is not None:
            holder = taken[2].standing(_PROCESSING, found.place, self._context.policy)
            raise moves.in_use(standing, taken[0], taken[1], holder)
        return self._take_within_limits(want, nonce, *found.place, found.token.lane)

    def _take_within_limits(self, want: Want, nonce: str, folder: str, name: str, lane: Lane) -> Grant | None:
        """Claim by rename, within the limits of the kind; return None if another worker was first or a limit is reached."""
        if lane.kind not in self._context.kinds:
            return self._take(want, nonce, folder, name, lane)
        now, grant = self._now(), None
        slot = self.limits.enter(lane.kind, now)
        if slot is None:
            return None
        try:
            grant = self._take(want, nonce, folder, name, lane, now)
        finally:
            if grant is None:
                self.limits.leave(slot)
        return grant

    def _take(self, want: Want, nonce: str, folder: str, name: str, lane: Lane, now: int = 0) -> Grant | None:
        """Claim by rename; return None if another worker was first."""
        id, fence, rest = name.split(".", 2)
        number = int(fence) + 1
        last_rest, last_lane, last_terms, plan = self._last_plan
        if last_rest != rest or last_lane is not lane or last_terms is not want.terms:
            plan = self._plans.get((rest, lane, want.terms)) or self._plan(rest, lane, want)
            self._last_plan = (rest, lane, want.terms, plan)
        if plan is None:
            return None
        counters, context = plan.counters, self._context
        target = f"{id}.{number}.{plan.middle}{nonce}.json"
        path = f"{self._processing}/{target}"
        now = now or self._now()
        line = self._log.line(now, "claimed", id, lane.kind, number, want.worker, want.by)
        try:
            self._disk.rename(f"{folder}/{name}", path)
        except FileNotFoundError:
            if not context.mover.was_mine(self._processing, target):
                self._log.forget()
                return None
        except OSError:
            self._log.forget()
            raise
        if (counters.uses or context.kinds) and self._is_in_the_way(counters, lane.kind, target):
            self._stand_back(folder, rest, target)
            return None
        try:
            if context.durability == "strict":
                context.sync_move(self._processing, target)
        finally:
            self._log.append(line)
        if now - self._aged_at > _AGED_EVERY:
            # Ids of tasks that have waited for long sort before this age key, without their segment.
            self._aged_at, self._aged = now, ids.age_at(now - _WAITED)
        if counters.dropped or id[ids.SEGMENT :] < self._aged:
            self._touch(path)
        standing = Standing(
            id, lane.kind, lane.priority, lane.assignee, _PROCESSING, number, counters.errors, counters.crashes,
            plan.max_attempts, plan.lease, want.worker, nonce, (self._processing, target),
        )  # fmt: skip
        standing.verified = counters.verified
        return self._grant(standing, counters, path, now + plan.lease_ms)

    def _is_in_the_way(self, counters: names.Counters, kind: str, target: str) -> bool:
        """Whether the claim of this name conflicts with another one, or is beyond a limit of its kind."""
        return (counters.uses and self.uses.clash(target)) or (
            kind in self._context.kinds and self.limits.exceeded(kind, target)
        )

    def _touch(self, path: str) -> None:
        """Set the file's mtime, which a rename keeps: another program's janitor would judge the new claim by the old time."""
        try:
            self._disk.touch(path)
        except (FileNotFoundError, PermissionError):
            return  # the claim is made, and has to reach its worker

    def _grant(self, standing: Standing, counters: names.Counters, path: str, until: int) -> Grant | None:
        """Return the claim with its task; None if the task has no usable content."""
        try:
            # The fields of its file are the task's own; the rest is its standing.
            fields = self.uses.read(standing.id) if counters.uses else None
            if fields is None:
                fields = task_file.decode(self._content(standing, counters, path), counters.dropped)
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

    def _content(self, standing: Standing, counters: names.Counters, path: str) -> bytes:
        """Read the claimed task's own file, or the edit that has replaced it."""
        if counters.body is None:
            return self._disk.read(path)
        return self._context.edits.edited(standing.id, counters.body)

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

    def renew(self, standing: Standing, progress: float | None, note: str | None, by: str | None = None) -> int | None:
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
            about = (standing.id, standing.kind, standing.fence, worker)
            self._log.write(stamp, "noted", *about, by or worker, {"text": note})
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
        lane = Lane.at(standing)
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

    def heed_settings(self) -> None:
        """Work by the settings that another process has changed since they were read here."""
        if not self._context.heed_settings():
            return
        self._plans.clear()
        self._last_plan = ("", None, None, None)
        if self._context.kinds:
            self.limits.forget()
        with self._context.claiming:
            self._context.ready_cache.regroup()

    def next_slot(self) -> float | None:
        """Return the seconds until a rate that was reached at the last look allows one more claim."""
        return self.limits.alarm() if self._context.kinds else None

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        return names.paused(self._context.locator.names(f"{self._context.root}/paused"))
