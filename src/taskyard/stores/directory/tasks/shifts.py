"""Every other move: one rename of the exact name of the standing, to a name that was never used before."""

from __future__ import annotations

import functools

from taskyard.core import ids, moves
from taskyard.core.errors import Conflict, Invalid, NotFound
from taskyard.core.task import Handle, State
from taskyard.core.times import rfc3339
from taskyard.stores.directory import names
from taskyard.stores.directory.names import Lane, Token
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.task import Standing
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.children import Children
    from taskyard.stores.directory.tasks.deadlines import Deadlines
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.reviews import Reviews

_UNSYNCED = (
    "released",
    "due",
    "unblocked",
)  # a power cut that undoes one of these costs time, but breaks no promise
_DONE, _TODO, _BLOCKED, _WAITING = (
    State.DONE,
    State.TODO,
    State.BLOCKED,
    State.WAITING,
)  # looked up once: an enum's member costs a tenth of a microsecond each time
_MANY = 32  # cancels that are worth a sync of the whole filesystem
_REASON_MOST = 1000  # characters in the log; the record has all of it


class Shifts:
    """Makes the moves that `moves` has decided."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._log = context.log
        self._now = context.clock.now
        self._followers = f"{context.root}/followers"
        self._sheets = f"{context.root}/sheets"
        self._todo = f"{context.root}/todo"

    @functools.cached_property
    def edges(self) -> Edges:
        """The edges of blocked tasks; loaded when the first task comes after others."""
        from taskyard.stores.directory.tasks.edges import Edges

        return Edges(self._context, self)

    @functools.cached_property
    def reviews(self) -> Reviews:
        """The judgements of what was submitted; loaded for the first of them."""
        from taskyard.stores.directory.tasks.reviews import Reviews

        return Reviews(self._context, self)

    @functools.cached_property
    def children(self) -> Children:
        """The children of tasks; loaded when the first task has a parent, or one is shown."""
        from taskyard.stores.directory.tasks.children import Children

        return Children(self._context)

    @functools.cached_property
    def deadlines(self) -> Deadlines:
        """The deadlines of open tasks; loaded when the first task has one."""
        from taskyard.stores.directory.tasks.deadlines import Deadlines

        return Deadlines(self._context, self)

    def several(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Make each of these moves; many cancels are synced together, and what they mean to others is looked up once."""
        if len(shifts) < _MANY or not all(move.event == "cancelled" for _, move in shifts):
            return [self.shift(standing, move, by) for standing, move in shifts]
        made = [self._shift(standing, move, by, None, None, alone=False) for standing, move in shifts]
        if self._context.durable:
            self._disk.sync_all(self._context.root)
        ended = [(standing.id, move.to, None) for (standing, move), was in zip(shifts, made, strict=True) if was]
        followed = [cause for cause in ended if self.edges.is_followed(cause[0])]
        if followed:
            self._go_on(lambda _, by: self.edges.judge(followed, by), "", by)
        return made

    def shift(
        self, standing: Standing, move: Move, by: str, more: dict[str, Any] | None = None, lane: Lane | None = None
    ) -> bool:
        """Make the move if the task still stands there, or its file was put into todo/ unchanged; return whether it did.

        It keeps its lane, unless a repair puts it into another.
        """
        if move.draft is not None:
            if not move.unmet:
                return self._rewrite(standing, move.draft, move, by)
            with self.edges.one_order():
                crossed = self.edges.crosses(standing.id, move.draft.after)
                return not crossed and self._rewrite(standing, move.draft, move, by)
        if move.reviewer is not None:
            return self.reviews.judge(standing, move, move.reviewer, by)
        if self._shift(standing, move, by, more, lane):
            return True
        given_back = self._given_back(standing)
        return given_back is not None and self._shift(given_back, move, by, more, lane)

    def _given_back(self, standing: Standing) -> Standing | None:
        """Return the standing of a claim that another program's janitor put into todo/: it holds until a sweep takes it."""
        folder, name = standing.place
        if folder != self._context.processing or not self._disk.exists(f"{self._todo}/{name}"):
            return None
        given_back = standing.copy()
        given_back.place = (self._todo, name)
        return given_back

    def _shift(
        self,
        standing: Standing,
        move: Move,
        by: str,
        more: dict[str, Any] | None,
        lane: Lane | None,
        *,
        alone: bool = True,
    ) -> bool:
        """Make the move. If it is not `alone`, the caller syncs it, and applies what it means to other tasks."""
        context = self._context
        source, name = standing.place
        path = f"{source}/{name}"
        if move.if_lapsed and not self._is_over(standing, path):
            return False
        at = self._now()
        acknowledged = move.event not in _UNSYNCED or move.submits
        sync = context.durable and alone and acknowledged
        needs_record = move.outcome is not None and (move.outcome != "done" or move.result is not None)
        agrees = self._recorded(standing, move, by, at, sync) if needs_record else True
        if agrees is None:
            return False
        if move.outcome is None and move.event in ("cancelled", "retried"):
            self._record_task(standing, move, by, at, sync)
        if move.to is _DONE:
            # With a result the name shows that, so no later output of the same claim can become the result of a done without.
            segment = standing.id[: ids.SEGMENT]
            folder = f"{context.root}/done/{segment}"
            target = name if move.result is None else f"{name[:-5]}.r.json"
            line = self._log.line(at, "done", standing.id, standing.kind, standing.fence, standing.worker, by)
        else:
            folder, target, due = self.target(standing, move, name, at, lane or Lane.at(standing))
            line = self.line(standing, move, by, at, due, more)
        context.links.keep(folder)
        try:
            self._disk.rename(path, f"{folder}/{target}")
        except FileNotFoundError:
            if not context.mover.move(path, folder, target):
                self._log.forget()
                return False
        try:
            if sync:
                context.sync_move(folder, target)
        finally:
            self._log.append(line)  # the move is made, and a repeated call moves nothing that could be logged
        if alone:
            self.arrive(standing, move, (folder, target), by)
        return agrees  # False: the claim has ended by its first ending, and not by this one

    def follow_up(self, id: str, state: State, by: str) -> None:
        """Unblock or cancel the tasks that waited for a task which has ended now, as their needs say."""
        # Most tasks have no followers, and pay for one lookup; the next sweep finds a follower that it misses.
        segment = id[: ids.SEGMENT]
        if self._disk.has(f"{self._followers}/{segment}/{id}") or self._disk.has(f"{self._sheets}/{segment}"):
            self._go_on(self.edges.settle if state is _DONE else functools.partial(self.edges.fail, state), id, by)

    def cancel_follower(
        self, standing: Standing, move: Move, by: str, other: str, sync: bool
    ) -> tuple[str, str] | None:
        """Cancel a blocked task with one that it comes after; return its new place, which the caller syncs."""
        folder, name = standing.place
        path = f"{folder}/{name}"
        if not self._disk.exists(path):
            return None
        at = self._now()
        self._context.records.write_cancel(standing.id, move, by, at, sync)
        folder, target, _ = self.target(standing, move, name, at, Lane.at(standing))
        line = self.line(standing, move, by, at, None, {"cancelled_by": other})
        if not self._context.mover.move(path, folder, target):
            self._log.forget()
            return None
        self._log.append(line)
        return folder, target

    def _recorded(self, standing: Standing, move: Move, by: str, at: int, sync: bool) -> bool | None:
        """Write the claim's record; return whether it agrees with this move, or None if the claim must not end so any more."""
        path = "/".join(standing.place)
        if not self._disk.exists(path):
            return None
        handle = Handle(standing.id, standing.fence, standing.nonce or "")
        agrees = self._context.records.write(handle, move, standing, by, at, sync)
        # A heartbeat came while the record was written: the claim is alive.
        return agrees if not move.if_lapsed or self._is_over(standing, path) else None

    def _record_task(self, standing: Standing, move: Move, by: str, at: int, sync: bool) -> None:
        """Write the record of a cancel or a retry of a task that no worker holds."""
        retries = move.event == "retried" and standing.state is not _WAITING
        if not retries and (move.event == "retried" or move.reason is None):
            return
        if not self._disk.exists("/".join(standing.place)):
            return
        if retries:
            self._context.records.write_retry(standing, by, at, sync)
        else:
            self._context.records.write_cancel(standing.id, move, by, at, sync)

    def arrive(self, standing: Standing, move: Move, place: tuple[str, str], by: str) -> None:
        """Do what follows from a move to this place, for this process and for other tasks."""
        state = move.to
        if state is _TODO:
            if move.event == "unblocked":  # listing the lane anew costs more than the move
                self._context.show_ready(Lane.at(standing), *place)
            else:
                self._context.recheck_lane(Lane.at(standing))
        elif state is _BLOCKED:
            self._go_on(self.edges.look_again, standing.id, by)
        elif state is not _WAITING:
            self.follow_up(standing.id, state, by)

    def _go_on(self, follow: Callable[[str, str], object], id: str, by: str) -> None:
        """Move the tasks that depend on a move; the move stays made if this fails, and the next sweep does the rest."""
        try:
            follow(id, by)
        except OSError:
            return

    def _is_over(self, standing: Standing, path: str) -> bool:
        if standing.place[0] == self._todo:
            return True  # another program's janitor has judged so; only its holder can be quicker
        if standing.dead:
            return self._context.liveness.is_dead(standing.worker, standing.nonce)
        try:
            return self._context.clock.exact() - self._disk.stamp(path) > standing.lease * 1000
        except FileNotFoundError:
            return False

    def line(
        self, standing: Standing, move: Move, by: str, at: int, due: int | None, fields: dict[str, Any] | None = None
    ) -> bytes:
        """Return the event of the move, noted as an intent and ready to be logged."""
        more: dict[str, Any] = {**(fields or {}), **move.details()}
        if move.reason is not None:
            more["reason"] = move.reason[:_REASON_MOST]
        if due is not None:
            more["due"] = rfc3339(due)
        about = (standing.id, standing.kind, move.fence)
        second = b""
        if move.event == "edited":
            if move.unmet:
                second = self._log.line(at, "blocked", *about, None, by, {"after": sorted(move.unmet)})
            elif move.unmet is not None and standing.state is _BLOCKED:
                second = self._log.line(at, "unblocked", *about, None, by)
        elif move.to is _BLOCKED:
            second = self._log.line(at, "blocked", *about, None, by, {"after": list(standing.unmet)})
        return self._log.line(at, move.event, *about, standing.worker, by, more) + second

    def target(self, standing: Standing, move: Move, name: str, at: int, lane: Lane) -> tuple[str, str, int | None]:
        """Return folder and name after this move, and the due time if the task is to wait."""
        name = name[name.index(f"{standing.id}.") :]  # another program may have put a prefix before it
        stem = f"{standing.id}.{move.fence}.e{move.errors}.c{move.crashes}{names.own_parts(name, moves.keeps_deadline(standing, move))}"
        due = names.due(name) if move.to in (_WAITING, _BLOCKED) else None
        if move.to is _WAITING and due is None:
            due = at + round(move.delay * 1000)
        claim = names.claim_parts(name) if move.keeps_claim else ""
        place = self._placed(standing.id, move.to, stem, lane, due, at, claim)
        return *place, due if move.to is _WAITING else None

    def _placed(
        self, id: str, state: State, stem: str, lane: Lane, due: int | None, now: int, claim: str = ""
    ) -> tuple[str, str]:
        """Return folder and name of a task in this state."""
        segment = id[: ids.SEGMENT]
        if state is State.TODO:
            return f"{self._context.root}/todo/{lane.text}/{segment}", f"{stem}.json"
        if state is State.WAITING and due is not None:
            return f"{self._context.root}/waiting/{names.bucket(due, now)}/{segment}", f"{stem}.{lane.text}.d{due}.json"
        if state is _BLOCKED and due is not None:
            return f"{self._context.root}/blocked/{segment}", f"{stem}.{lane.text}.d{due}.json"
        return f"{self._context.root}/{state}/{segment}", f"{stem}.{lane.text}{claim}.json"

    def drafted(self, standing: Standing) -> Draft | None:
        """Return the draft in the task's file, or in its newest edit."""
        path = "/".join(standing.place)
        try:
            return task_file.draft(self._context.edits.read(*standing.place))
        except FileNotFoundError:
            if not self._disk.exists(path):
                return None
            reason = "the edit that replaced its file is gone"
        except OSError as error:
            if error.errno not in names.NO_FILE:
                raise
            reason = str(error.strerror)
        except Invalid as error:
            reason = error.message
        raise Conflict(f"what task {standing.id} asks for cannot be read: {reason}", hint=f"look at {path}")

    def _rewrite(self, standing: Standing, draft: Draft, move: Move, by: str) -> bool:
        """Write the new body beside the task; then one rename selects it and puts the task where it belongs."""
        context = self._context
        folder, name = standing.place
        at = context.clock.now()
        old = Token.parse(name, Lane.at(standing))
        if old is None:
            return False
        due = _edited_due(draft, move, old.due, at)
        draft.set_deadline(at)
        lane = Lane.of(draft.priority, draft.kind, draft.assignee, draft.mission)
        context.mark_features([draft])
        content = task_file.encode(standing.id, draft, due if move.due_anew else None)
        token = context.edits.write(standing.id, content, context.durable)
        if move.expires_anew and draft.expires is not None:
            self.deadlines.note(standing.id, int(draft.expires), at, context.durable)
        own = names.Counters.limits(draft, deadline=old.deadline or move.expires_anew)
        stem = f"{standing.id}.{move.fence}.e{move.errors}.c{move.crashes}.b{token}{own}"
        target = self._placed(standing.id, move.to, stem, lane, due, at)
        line = self.line(standing, move, by, at, due if move.due_anew and move.to is State.WAITING else None)
        try:
            before = self._connect(standing.id, move)
        except NotFound:
            self._log.forget()
            context.edits.remove(standing.id, token)
            raise
        if not context.mover.move(f"{folder}/{name}", *target) and not self._selects(standing.id, token):
            self._log.forget()
            context.edits.remove(standing.id, token)
            if move.unmet:
                self._go_on(self.edges.tidy, standing.id, by)
            return False
        try:
            context.edits.keep(standing.id, token, content, context.durable)
            if context.durable:
                context.sync_move(*target)
        finally:
            self._log.append(line)
        if old.body is not None:
            context.edits.remove(standing.id, old.body)
        for other in before.difference(move.unmet or ()):
            self.edges.cut(standing.id, other)
        if move.to is _BLOCKED:
            # The done of its last need may have missed it while it moved from one name to another.
            self._go_on(self.edges.look_again, standing.id, by)
        context.recheck_lane(lane)
        return True

    def _connect(self, id: str, move: Move) -> set[str]:
        """Write the needs that an edit adds, before the rename that blocks the task; return those that it had before."""
        if move.unmet is None:
            return set()
        self.edges.unfold(id)
        before = set(self.edges.needs(id))
        added = [need for need in move.unmet if need not in before]
        if added:
            self.edges.register({id: added}, self._context.durable)
        return before

    def _selects(self, id: str, token: str) -> bool:
        """Whether the task has this body: the rename was made, its reply was lost, and the task has moved on."""
        if self._context.local:
            return False  # a local kernel loses no replies
        try:
            return self._context.locator.find(id).token.body == token
        except NotFound:
            return False

    def back_to_the_box(self, standing: Standing, reason: str) -> None:
        """Move a changed file back into the drop box: a program is writing to it, and it may be whole in a moment."""
        folder, name = standing.place
        at = self._context.clock.now()
        more = {"reason": reason[:_REASON_MOST]}
        line = self._log.line(
            at, "set_aside", standing.id, standing.kind, standing.fence + 1, standing.worker, "taskyard", more
        )
        if self._context.mover.move(f"{folder}/{name}", f"{self._context.root}/todo", f"{standing.id}.json"):
            self._log.append(line)

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output for a person to read."""
        found = self._context.locator.find(handle.id)
        at = self._context.clock.now()
        if move is not None:
            self._context.records.keep_stale(handle, move, None, by, at)
        token = found.token
        own = (token.fence, token.nonce) == (
            handle.fence,
            handle.nonce,
        )  # a review ends under the nonce of who submitted
        holder = token.worker if own else self._context.records.holder(handle)
        self._log.write(at, "refused", handle.id, token.lane.kind, handle.fence, holder or by, by, {"verb": verb})


def _edited_due(draft: Draft, move: Move, before: int | None, at: int) -> int | None:
    """Return when an edited task is due; None if it does not wait."""
    due = draft.due(at) if move.due_anew else before
    if due is not None or move.to is not State.WAITING:
        return due
    # Not `at` for a moment that has passed: sweeps go by the times of files, which may be a few milliseconds behind.
    return at if draft.not_before is None else min(at, draft.not_before)
