"""The use cases, which users import. A Yard decides with `moves`, and its store makes the decision atomic."""

from __future__ import annotations

import itertools
import os
import time

from taskyard.core import draft, forks, ids, moves, times, words
from taskyard.core.errors import Ambiguous, Conflict, Full, Invalid, NotFound, Unavailable
from taskyard.core.store_records import Query, Want
from taskyard.core.task import Handle, State
from taskyard.yard import arguments, janitor
from taskyard.yard.claim import Claim, ClaimBlock
from taskyard.yard.claim_verbs import ClaimVerbs, legal_text
from taskyard.yard.file_conflicts import FileConflictVerbs
from taskyard.yard.missions import MissionVerbs
from taskyard.yard.orchestration import OrchestrationVerbs
from taskyard.yard.overview import OverviewVerbs
from taskyard.yard.reading import CommandNames
from taskyard.yard.schedules import ScheduleVerbs
from taskyard.yard.spool_verbs import Unspooled
from taskyard.yard.ticks import Ticks
from taskyard.yard.tokens import TokenVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self, Unpack

    from taskyard.core.moves import Move
    from taskyard.core.options import EditOptions, NewTask, TaskOptions
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Grant
    from taskyard.core.task import Standing, Task
    from taskyard.store import Store
    from taskyard.yard.janitor import Swept
    from taskyard.yard.waiter import Waiting

_TRIES = 20  # times that a decision is made anew because the task moved in between
_LOOK_EVERY = 1.0  # seconds between two checks whether a sweep is due: cheaper than the check itself
_SWEEP_ALL = 1_000_000
CLAIMS_MOST = 10_000  # in one call
_REQUESTS = 10**8  # the number in a nonce that names a request has nine digits, and the claim's own number after them


class Yard(
    ClaimVerbs,
    MissionVerbs,
    OverviewVerbs,
    ScheduleVerbs,
    TokenVerbs,
    FileConflictVerbs,
    OrchestrationVerbs,
    Unspooled,
    CommandNames,
):
    """A place that hands out work: tasks go in with `add`, workers take them with `claim`."""

    created = False
    """Whether `taskyard.init` has just made this yard."""
    warnings: Sequence[str] = ()
    """Warnings of `taskyard.init` about the place of the yard."""
    tends = True
    """Whether verbs also do a share of the janitor's work."""
    by: str
    """Who changes something, in the log: the worker, or whom a door speaks for."""

    def __init__(self, store: Store, worker: str | None = None) -> None:
        self._store = store
        self._named = None if worker is None else words.worker(worker)
        self._speaker: Yard | None = None
        self._identify()
        self._look_at = 0.0
        self._ticks = Ticks()

    def _identify(self, incarnation: str | None = None) -> None:
        # A forked child is another worker: it must never make the same handle as its parent.
        self._forks = forks.count
        self._incarnation = incarnation or ids.base32(ids.chance(40), 8)
        self._count = itertools.count(1)
        self.worker = self._named or own_name(self._incarnation)
        self.by = self.worker
        self._usual: float | None = None
        self._vouched = False
        self._anything = Want(self.worker, by=self.by)

    def acting_for(
        self, worker: str | None, request: str | None = None, usual: float | None = None, by: str | None = None
    ) -> Yard:
        """Return this yard as another worker uses it, for a door that speaks for many; it shares all that is open.

        Claims under the same name of a `request` are the same claims: `granted` returns those that hold. `usual` is the lease
        of claims where the task has none of its own. `by` is the name in the log of who changes something, if not the worker's.
        """
        twin = Yard(self._store, worker)
        twin._speaker = self
        twin._ticks = self._ticks  # what one request learns of the next tick, all that wait must know
        if request is not None:
            twin._identify(_incarnation(request))
        if usual is not None:
            twin._usual = draft.lease(usual)
        if by is not None:
            twin.by = by
        twin._anything = Want(twin.worker, usual=twin._usual, by=twin.by)
        return twin

    def granted(self) -> list[Claim]:
        """Return the claims that this worker was granted under the same request and still holds: their answer may be lost."""
        own = [one for one in self._store.held(self.worker) if (one.nonce or "").startswith(self._incarnation)]
        return [Claim(self, standing) for standing in own]

    @property
    def url(self) -> str:
        """The URL of this yard."""
        return self._store.url

    @property
    def label(self) -> str:
        """The URL for people to read: without a password."""
        return self._store.label

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases."""
        return self._store.policy

    @property
    def named(self) -> str | None:
        """The worker's name if the caller gave one; None if the yard made it up for this process."""
        return self._named

    @property
    def batch(self) -> int:
        """The number of claims or endings in one call that costs less than one call for each."""
        return self._store.batch

    @property
    def one_process(self) -> bool:
        """Whether only this process can open the yard."""
        return self._store.one_process

    @property
    def checks(self) -> dict[str, list[str]]:
        """The yard's own checks: the command of each, by the name that tasks refer to."""
        return self._store.settings.checks

    # Adding

    def add(
        self, kind: str, data: Any = None, *, conn: Any = None, wait: float = 0, **options: Unpack[TaskOptions]
    ) -> Task:
        """Add a new task and return it; it is stored safely when this returns.

        Raise `Full` if the yard or the kind has no room (`max_todo`), after `wait` seconds in which none was made.
        With `conn`, a psycopg connection, a yard in PostgreSQL adds it in the caller's transaction: it exists after the commit.
        """
        new = draft.Draft(kind, data, options)
        task = self._add([new], conn, wait)[0]
        if conn is None:
            self.tend()
        return task

    def _add(self, drafts: list[draft.Draft], conn: Any, wait: float = 0) -> list[Task]:
        """Add the drafts, those that others come after first, and return their tasks in the order of the drafts."""
        seconds = times.seconds(wait, "wait") if wait else 0.0
        if seconds and conn is not None:
            raise Invalid("no add waits for room within a transaction", hint="leave out wait, or conn")
        try:
            return self._add_now(drafts, conn)
        except Full as full:
            if not seconds or full.wanted > full.most:
                raise
        waiter = self.waiter(seconds)
        while True:
            last = waiter.is_over()
            try:
                return self._add_now(drafts, conn)
            except Full:
                if last:
                    raise
            self.tend()
            waiter.nap(self.alarm())

    def _add_now(self, drafts: list[draft.Draft], conn: Any) -> list[Task]:
        return self._add_to(self._store if conn is None else self._within(conn), drafts)

    def add_spooled(self, drafts: list[draft.Draft], token: str, sent: dict[str, Any] | None) -> list[str]:
        """Add what was kept in a spool, once only for its token, and return the ids; `sent` is of an attempt before that."""
        resends = self._store.resends
        if resends is None:
            raise Invalid(f"the yard {self.label} has no server, so nothing of it is spooled")
        return [task.id for task in self._add_to(resends.under(token, sent), drafts)]

    def _add_to(self, store: Store, drafts: list[draft.Draft]) -> list[Task]:
        for new in drafts:  # `any` of a generator costs more than the rest
            if new.after or new.ref or new.parent or new.discovered_from:
                break
        else:
            return store.add(drafts, self.by)
        from taskyard.yard import dependencies

        dependencies.relate(store, drafts)
        return dependencies.add(store, drafts, self.by)

    def add_many(
        self, tasks: Iterable[NewTask | dict[str, Any]], *, conn: Any = None, wait: float = 0
    ) -> arguments.Added:
        """Add many tasks, each a dict with kind, data and options; all are checked before the first is added.

        Raise `Full`, and add none, if there is no room for all of them (`max_todo`) within `wait` seconds.
        """
        drafts = []
        for position, fields in enumerate(words.several(tasks, "tasks"), 1):
            try:
                drafts.append(draft.Draft.of(fields))
            except (Invalid, NotFound) as error:
                raise type(error)(f"task {position}: {error.message}", hint=error.hint) from None
        added = self._add(drafts, conn, wait)
        if conn is None:
            self.tend()
        made = arguments.Added(task.id for task in added)
        made.created = sum(task.created for task in added)
        return made

    # Claiming

    def claim(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        wait: float = 0,
        lease: float | None = None,
    ) -> Claim | None:
        """Claim the most urgent, then oldest task that fits; return None if nothing is ready within `wait` seconds."""
        if self._forks != forks.count:
            self._identify()
        if wait:
            wait = times.seconds(wait, "wait")
        if id is None and kinds is None and mission is None and worker is None and lease is None:
            want = self._anything
        else:
            want = self._want(id, kinds, worker, lease, mission)
        nonces = (f"{self._incarnation}{next(self._count)}",)
        if time.monotonic() >= self._look_at:
            self.tend()
        try:
            grants = self._store.claim(want, nonces)
        except Conflict:  # only a task named by id is refused; it may be due, or its holder dead
            if not self._sweep():
                raise
            grants = self._store.claim(want, nonces)
        if not grants:
            grants = self._claim_patiently(want, nonces, wait)
        return Claim(self, grants[0].standing, grants[0]) if grants else None

    def claimed(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        wait: float = 0,
        lease: float | None = None,
    ) -> ClaimBlock:
        """Return a context manager: `with yard.claimed(...) as claim:`. `claim` is None if nothing is ready."""
        return ClaimBlock(self.claim(id, kinds=kinds, mission=mission, worker=worker, wait=wait, lease=lease))

    def claim_many(
        self,
        number: int,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
        worker: str | None = None,
        lease: float | None = None,
    ) -> list[Claim]:
        """Claim up to `number` tasks, the most urgent and oldest that fit; on PostgreSQL with one statement."""
        if self._forks != forks.count:
            self._identify()
        want = self._want(None, kinds, worker, lease, mission)
        nonces = [self._nonce() for _ in range(draft.integer(number, "number", 1, CLAIMS_MOST))]
        self.tend()
        grants = self._store.claim(want, nonces)
        if not grants:
            self._sweep()
            grants = self._store.claim(want, nonces)
        return [Claim(self, grant.standing, grant) for grant in grants]

    def _want(
        self,
        id: str | None,
        kinds: Iterable[str] | str | None,
        worker: str | None,
        lease: float | None,
        mission: str | None = None,
    ) -> Want:
        if id is not None and mission is not None:
            raise Invalid("a task that is named is claimed whatever its mission", hint="give an id, or a mission")
        return Want(
            self.worker if worker is None else words.worker(worker),
            None if kinds is None else arguments.kinds(kinds),
            None if lease is None else draft.lease(lease),
            None if id is None else self._task_id(id),
            self._usual,
            self._vouched and worker is None,
            None if mission is None else words.text(mission, "mission"),
            self._asker(worker),
        )

    def _asker(self, worker: str | None) -> str:
        """Return who claims, in the log: the worker that the call names, unless a door says that another asks."""
        return self.by if worker is None or self.by != self.worker else worker

    def _nonce(self) -> str:
        return f"{self._incarnation}{next(self._count)}"

    def _claim_patiently(self, want: Want, nonces: tuple[str], wait: float) -> list[Grant]:
        if not wait:
            self._sweep()
            return self._store.claim(want, nonces)
        waiter = self.waiter(wait, want=want if want.id is None else None)
        while True:
            last = waiter.is_over()
            # A claim never returns "nothing ready" while a task is due, or held by a dead worker.
            self._sweep()
            grants = self._store.claim(want, nonces)
            if grants or last:
                return grants
            waiter.nap(self.alarm())
            self.tend()

    def claim_waiter(
        self,
        seconds: float | None,
        stopped: Callable[[], bool] | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        mission: str | None = None,
    ) -> Waiting:
        """Return an object that waits until a task may be ready for such a claim, for at most `seconds`."""
        return self.waiter(seconds, stopped, want=self._want(None, kinds, None, None, mission))

    def vouch(self, lease: float) -> int | None:
        """Set up a worker that heartbeats by itself: its claims have this lease if the task has none, and end with the process.

        Return the descriptor of the lock by which others see its death, or None if only leases count (`Liveness`).
        """
        if self._forks != forks.count:
            self._identify()
        liveness = self._store.liveness
        lock = None if liveness is None else liveness.vouch(self.worker, self._incarnation)
        self._usual, self._vouched = draft.lease(lease), lock is not None
        self._anything = Want(self.worker, usual=self._usual, vouched=self._vouched)
        return lock

    def give_back_dead(self) -> list[tuple[str, str]]:
        """Give back what dead processes of this worker's name held; return id and kind of each task."""
        if self._named is None:
            return []
        return [
            (standing.id, standing.kind)
            for standing in self._store.held(self._named)
            if standing.dead and janitor.reap(self._store, standing, self.worker)
        ]

    def remains(self, kinds: frozenset[str] | None, mission: str | None = None) -> bool:
        """Whether a task of these kinds, and of this mission, is in todo, is held by a worker, or waits for a retry."""
        for state in (State.PROCESSING, State.TODO, State.WAITING):
            cursor = None
            while True:
                page, cursor = self._store.find(Query(frozenset((state,)), kinds, mission, limit=100, cursor=cursor))
                if any(self._is_left(task) for task in page):
                    return True
                if cursor is None:
                    break
        return False

    def _is_left(self, task: Task) -> bool:
        if task.state is State.WAITING:
            # It was claimed before; a task that was only added for later is not waited for, nor is a review.
            return task.fence > 0 and self._store.get(task.id).task.review != "pending"
        return task.state is State.PROCESSING or task.assignee in (None, self.worker)

    def held(self, handle: str) -> Claim:
        """Return the claim of this handle, for a process that knows only the handle."""
        try:
            return Claim(self, Handle.parse(handle))
        except Invalid as error:
            held = self._held_by_me(handle)
            if held is None:
                raise
            raise Invalid(
                f"{handle} is a task id, and this needs the handle of a claim; you hold that task, as {held.worker}",
                hint=moves.lost_handle(held),
            ) from error

    def _held_by_me(self, id: object) -> Standing | None:
        """Return the standing of a task that was named in place of a handle, if a worker of this name holds it."""
        try:
            standing = self._store.stand(arguments.task_id(id))
        except (Invalid, NotFound, Unavailable):
            return None
        return standing if standing.state is State.PROCESSING and standing.worker == self.worker else None

    # Steering

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Cancel a task; a worker that holds it loses its claim."""
        text = None if reason is None else legal_text(reason, "reason")
        return self._revise(id, lambda standing: moves.cancelled(standing, text))

    def retry(self, id: str) -> Task | None:
        """Retry a failed or cancelled task, or make a waiting one ready now.

        The name of a file that was set aside puts that file back into the drop box. Then this returns None, because the file
        is not a task until it is taken in.
        """
        dropbox = self._store.dropbox
        if dropbox is not None and self._names_a_file(id):
            dropbox.give_back(id)
            self._sweep()
            again = next((entry for entry in dropbox.set_aside() if str(entry["name"]).split("~")[0] == id), None)
            if again is not None:
                raise Conflict(
                    f"{id} was set aside again: {again['reason']}",
                    hint=f"put failed/{again['name']}.json right, then retry",
                )
            return None
        return self._revise(id, self._retried)

    def _retried(self, standing: Standing) -> Move:
        if standing.unmet and standing.state is State.CANCELLED:
            from taskyard.yard import dependencies

            dependencies.refuse_doomed(self._store, standing)
        return moves.retried(standing)

    def bulk(
        self,
        verb: str,
        ids: Iterable[str] | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        reason: str | None = None,
        apply: bool = False,
        most: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> dict[str, Any]:
        """Cancel, retry or release the tasks that are named, or all that match; without `apply` only count them.

        Return `count`, how many were `changed`, those that were `refused` with the reason, and the first `tasks`. With `most`, no
        more than so many are chosen. `progress` is called with how many are done, of how many.
        """
        from taskyard.yard import bulk

        text = None if reason is None else legal_text(reason, "reason")
        decided = bulk.decide(bulk.verb(verb), text, self._retried)
        filters = (state, kind, mission, worker)
        if (ids is None) == all(given is None for given in filters):
            raise Invalid(
                f"{verb} needs tasks, or a filter that chooses them", hint="give ids, or state, kind, mission or worker"
            )
        self._look()
        if ids is not None:
            choice = bulk.named(self._store, [self._task_id(id) for id in ids])
        else:
            choice = bulk.matching(self._store, arguments.query(*filters, states=bulk.STATES[verb]), most)
        self._name(choice.first)
        done = bulk.apply(self._store, bulk.order(choice, verb), decided, self.by, progress) if apply else None
        return bulk.answer(choice, done)

    def _names_a_file(self, name: str) -> bool:
        """Whether this names a file that is set aside, and no task; raise `Ambiguous` if it may be either.

        A whole id always names the task.
        """
        aside = any(entry["name"] == name for entry in self.set_aside())
        try:
            self._store.stand(arguments.task_id(name))
        except Ambiguous:
            pass
        except NotFound:
            return aside
        if aside and not ids.is_id(name.lower()):
            raise Ambiguous(
                f"{name!a} names a task, and a file that is set aside",
                hint=f"give the task's whole id; or move failed/{name}.json, which is the file, into todo/",
            )
        return False

    def edit(self, id: str, **changes: Unpack[EditOptions]) -> Task:
        """Change a task that no worker holds.

        What can be changed: title, data, priority, assignee, delay, not_before, expires, timeout, max_attempts, after.
        `after` replaces all that the task comes after; None or an empty list removes it.
        """
        if not changes:
            raise Invalid("nothing to edit", hint=f"name what to change: {', '.join(draft.EDITABLE)}")
        timed = "delay" in changes or "not_before" in changes
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            moves.editable(standing)
            report = self._store.get(whole)
            if report.task.review == "pending":
                from taskyard.yard import review

                review.refuse_loss(report.task, changes)
            old = report.draft()
            if old is None:
                continue
            new, unmet = old.changed(changes), None
            if "after" in changes:
                from taskyard.yard import dependencies

                new.after, unmet = dependencies.replaced(self._store, whole, new.after)
            later = report.task.not_before is not None
            move = moves.edited(standing, new, timed, unmet, later, expires="expires" in changes)
            if self._store.shift([(standing, move)], self.by)[0]:
                if unmet:
                    self._refuse_crossed(whole, old.after, new.after)
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def _refuse_crossed(self, id: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Take back an edit that made a cycle together with one of another caller, and raise `Conflict`."""
        from taskyard.yard import dependencies

        crossed = dependencies.standing_cycle(self._store, id, after)
        if crossed is not None:
            self.edit(id, after=list(before))
            raise crossed

    def resume(self, worker: str | None = None) -> list[Claim]:
        """Claim again every task that this worker's name holds, under a new fence: for a worker that lost its memory.

        The earlier claims are lost, so call this only when the process that held them is dead.
        """
        name = arguments.resumed(self._named, worker)
        claims = []
        for standing in self._store.held(name):
            want = Want.again(self.worker, standing, moves.resumed(standing), self.by)
            claims += [Claim(self, grant.standing, grant) for grant in self._store.claim(want, [self._nonce()])]
        return claims

    def accept(self, id: str) -> Task:
        """Accept what was submitted for review: the task is done with it. Raise `Conflict` if nothing waits for review."""
        return self._reviewed(id, None)

    def reject(self, id: str, note: str) -> Task:
        """Reject what was submitted: the task goes back to todo, no error is counted, and its next worker reads the note."""
        return self._reviewed(id, legal_text(note, "note"))

    def _reviewed(self, id: str, note: str | None) -> Task:
        from taskyard.yard import review

        self.tend()
        return self._after(review.review(self._store, self._task_id(id), self.worker, self.by, note, self._nonce()))

    def pause(self, kind: str | None = None) -> None:
        """Stop handing out tasks, of this kind or of any; running tasks go on."""
        self._pause(kind, True)

    def unpause(self, kind: str | None = None) -> None:
        """End a `pause` with the same arguments."""
        self._pause(kind, False)

    def _pause(self, kind: str | None, on: bool) -> None:
        named = None if kind is None else words.kind(kind)
        self._store.settings.pause(named, on)
        self._store.log.write("paused" if on else "unpaused", self.by, named or "")

    def settings(self) -> dict[str, Any]:
        """Return every setting of the yard, as it was set or by default."""
        from taskyard.core import settings

        return settings.effective(self._store.settings.read())

    def set_settings(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Change settings, and return all of them; None takes one back to its default.

        Of `kinds` and `checks` only those that are named change: `{"kinds": {"build": {"concurrency": 2}}}`. Other processes
        heed it within seconds; what was claimed before stays as it is.
        """
        from taskyard.core import settings

        written = self._store.settings.change(lambda before: settings.changed(before, changes))
        self._store.log.write("configured", self.by, more={"changes": changes})
        return settings.effective(written)

    def _revise(self, id: str, decide: Callable[[Standing], Move]) -> Task:
        self.tend()
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            if self._store.shift([(standing, decide(standing))], self.by)[0]:
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def _after(self, moved: Standing) -> Task:
        task = self._store.get(moved.id).task
        self._name([task])
        return task

    # Housekeeping

    def prune(
        self,
        age: Any = None,
        count: int | None = None,
        *,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        ids: Iterable[str] | str | None = None,
        apply: bool = False,
    ) -> dict[str, Any]:
        """Move ended tasks to the archive: those that ended longer ago than `age`, or beyond the newest `count`.

        With a filter (a state, kind, mission, the worker that ended them) or `ids`: only of those that match, all of them if no age and no
        count is given, and no page of the log goes. Without `apply` it only returns what would go.
        """
        filters = (state, kind, mission, worker)
        only = None if all(given is None for given in (*filters, ids)) else arguments.query(*filters)
        if only is not None and ids is not None:
            only.ids = [self._store.stand(self._task_id(id)).id for id in words.several(ids, "ids")]
        if age is None and count is None:
            if only is None:
                raise Invalid("prune needs an age or a count", hint="say how long, or how many, ended tasks are kept")
            count = 0
        seconds = None if age is None else times.seconds(age, "age")
        number = None if count is None else draft.integer(count, "count", 0, 10**9)
        told = self._store.upkeep.prune(seconds, number, self.by, apply=apply, only=only)
        if apply:
            self._store.log.write("pruned", self.by, more={"count": told["tasks"]})
        told["oldest"] = None if told["oldest"] is None else times.rfc3339(told["oldest"])
        return told

    def audit(self, repair: bool = False, progress: Callable[[str], object] | None = None) -> dict[str, Any]:
        """Check that every task is in one legal state; return the `verdict`, what was `checked`, and the `findings`.

        With `repair`, heal what can be healed, by safe moves that remove nothing. `progress` is called with the current step.
        """
        return self._store.upkeep.audit(self.by, self._tidied if repair else None, progress)

    def _tidied(self) -> None:
        """Sweep as a part of a repair; the next audit finds what the sweep could not do."""
        try:
            self.sweep()
        except Unavailable:
            pass

    def sweep(self, limit: int = _SWEEP_ALL) -> Swept:
        """Take in dropped files, reap and wake overdue tasks, and repair what dead processes left, now."""
        return self._sweep(limit, mend=True, asked=True)

    fsck = audit
    janitor = sweep

    def tend(self) -> None:
        """Do a share of the janitor's work, if it is due."""
        if self._speaker is not None:
            self._speaker.tend()  # which knows when it last did: this yard is used for one request
            return
        now = time.monotonic()
        if now < self._look_at or not self.tends:
            return
        self._look_at = now + _LOOK_EVERY
        try:
            if self._store.upkeep.turn(self._store.policy.sweep_every):
                self._sweep(mend=True, intake=janitor.INTAKE)
        except Unavailable:
            pass  # the caller did not ask for this share; the verb that it did ask for raises by itself

    def close(self) -> None:
        """Release what the yard holds open; claims stay. A closed yard refuses every verb."""
        self._store.close()
        self._store = Closed(self._store)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Yard {self.label} worker={self.worker!r}>"


class Closed:
    """Replaces a store that was closed, so that no verb has to check whether it is open."""

    def __init__(self, store: Store) -> None:
        self.url = store.url
        self.label = store.label
        self.policy = store.policy

    def __getattr__(self, verb: str) -> Any:
        raise Unavailable(f"the yard {self.label} was closed here", hint="open it again with taskyard.open")

    def close(self) -> None:
        """Do nothing: the store is closed already."""


def _incarnation(request: str) -> str:
    """Return the part of a nonce that all claims of this request share: 70 bits, so that no other request has it."""
    from hashlib import sha256

    chance = int.from_bytes(sha256(request.encode()).digest(), "big")
    return f"{ids.base32(chance >> 128, 8)}{_REQUESTS + chance % (9 * _REQUESTS)}"


def own_name(incarnation: str) -> str:
    """Return a worker's name that no other process has."""
    host = os.uname().nodename.split(".")[0] if hasattr(os, "uname") else "worker"
    return f"{words.encoded(host)[:30].rstrip('%') or 'worker'}-{os.getpid()}-{incarnation[:4]}"
