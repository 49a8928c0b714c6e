"""The use cases, which users import. A Yard decides with `moves`, and its store makes the decision atomic."""

from __future__ import annotations

import itertools
import os
import time

from taskyard.core import draft, forks, ids, moves, times, words
from taskyard.core.errors import Conflict, Full, Invalid, NotFound, Unavailable
from taskyard.core.store_records import Query, Want
from taskyard.core.task import Handle, State
from taskyard.yard import arguments, janitor
from taskyard.yard.claim import Claim, ClaimBlock
from taskyard.yard.claim_verbs import ClaimVerbs
from taskyard.yard.file_conflicts import FileConflictVerbs
from taskyard.yard.missions import MissionVerbs
from taskyard.yard.orchestration import OrchestrationVerbs
from taskyard.yard.overview import OverviewVerbs
from taskyard.yard.reading import CommandNames
from taskyard.yard.schedules import ScheduleVerbs
from taskyard.yard.spool_verbs import Unspooled
from taskyard.yard.steering import SteeringVerbs
from taskyard.yard.teams import TeamVerbs
from taskyard.yard.ticks import Ticks
from taskyard.yard.tokens import TokenVerbs
from taskyard.yard.waiting import WaitingVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self, Unpack

    from taskyard.core.options import NewTask, TaskOptions
    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Grant
    from taskyard.core.task import Standing, Task
    from taskyard.store import Store
    from taskyard.yard.waiter import Waiting

CLAIMS_MOST = 10_000  # in one call
_REQUESTS = 10**8  # the number in a nonce that names a request has nine digits, and the claim's own number after them


class Yard(
    ClaimVerbs,
    SteeringVerbs,
    MissionVerbs,
    OverviewVerbs,
    ScheduleVerbs,
    TokenVerbs,
    WaitingVerbs,
    FileConflictVerbs,
    TeamVerbs,
    OrchestrationVerbs,
    Unspooled,
    CommandNames,
):
    """A place that hands out work: tasks go in with `add`, workers take them with `claim`."""

    created = False
    """Whether `taskyard.init` has just made this yard."""
    warnings: Sequence[str] = ()
    """Warnings of `taskyard.init` about the place of the yard."""
    by: str
    """The name that the log has as `by`: the worker's, or the caller's for whom a door acts."""

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
        """Return a yard for another worker that shares this yard's store: doors make one for each caller.

        A repeated `request` makes no new claims: `granted` returns those that it made and that still hold. `usual` is the lease
        of claims where the task has none of its own. `by` is the name in the log of who changes something, if not the worker's.
        """
        twin = Yard(self._store, worker)
        twin._speaker = self
        twin._ticks = self._ticks  # shared: a tick that one request finds must wake every waiter
        if request is not None:
            twin._identify(_incarnation(request))
        if usual is not None:
            twin._usual = draft.lease(usual)
        if by is not None:
            twin.by = by
        twin._anything = Want(twin.worker, usual=twin._usual, by=twin.by)
        return twin

    def granted(self, worker: str | None = None) -> list[Claim]:
        """Return the claims that this worker was granted under the same request and still holds: their answer may be lost."""
        held = self._store.held(self.worker if worker is None else words.worker(worker))
        own = [one for one in held if (one.nonce or "").startswith(self._incarnation)]
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

        Raise `Full` if the yard, the kind or the team has no room (`max_todo`), after `wait` seconds in which none was made.
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
        from taskyard.core.backlog import TEAM_LOOK

        waiter = self.waiter(seconds)
        while True:
            last = waiter.is_over()
            try:
                return self._add_now(drafts, conn)
            except Full as full:
                if last:
                    raise
                is_team = full.team is not None
            self.tend()
            waiter.nap(TEAM_LOOK if is_team else self.alarm())

    def _add_now(self, drafts: list[draft.Draft], conn: Any) -> list[Task]:
        return self._add_to(self._store if conn is None else self._within(conn), drafts)

    def add_spooled(self, drafts: list[draft.Draft], token: str, sent: dict[str, Any] | None) -> list[str]:
        """Add spooled drafts and return their ids; a repeated `token` adds nothing. `sent` is what an earlier attempt without an answer reported."""
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

    # The end

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
