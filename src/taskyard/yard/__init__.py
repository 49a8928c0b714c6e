"""The use cases: what users import. A Yard decides with `moves` and lets its store make the decision atomic."""

from __future__ import annotations

import itertools
import os
import time

from taskyard.core import draft, forks, ids, moves, times, words
from taskyard.core.errors import Ambiguous, Conflict, Invalid, NotFound, TimedOut, Unavailable
from taskyard.core.task import Handle, State
from taskyard.store import Closed, Query, Want
from taskyard.yard import arguments, janitor
from taskyard.yard.claim import Claim, legal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self

    from taskyard.core.moves import Move
    from taskyard.core.retry import Policy
    from taskyard.core.task import Standing, Task
    from taskyard.store import Grant, Outside, Report, Store
    from taskyard.yard.janitor import Swept

_TRIES = 20  # times that a decision is made anew because the task moved meanwhile
_LOOK_EVERY = 1.0  # seconds between two looks at whether a sweep is due: cheaper than the look itself
_SWEEP_ALL = 1_000_000
CLAIMS_MOST = 10_000  # at once
_WAIT_PAUSE = 1.0  # seconds between two looks in vain at many tasks, at the most


class Yard:
    """A place where work is handed out: tasks go in with `add`, workers take them with `claim`."""

    created = False
    """Whether `taskyard.init` has just made this yard."""
    warnings: Sequence[str] = ()
    """What `taskyard.init` found doubtful about its place."""
    tends = True
    """Whether verbs do their share of the janitor's work on the way."""

    def __init__(self, store: Store, worker: str | None = None) -> None:
        self._store = store
        self._named = None if worker is None else words.worker(worker)
        self._identify()
        self._look_at = 0.0

    def _identify(self) -> None:
        # A forked child is another worker: it must never make a handle that its parent makes too.
        self._forks = forks.count
        self._incarnation = ids.base32(ids.chance(40), 8)
        self._count = itertools.count(1)
        self.worker = self._named or _own_name(self._incarnation)
        self._usual: float | None = None
        self._vouched = False
        self._anything = Want(self.worker)

    @property
    def url(self) -> str:
        """Where this yard is."""
        return self._store.url

    @property
    def label(self) -> str:
        """Where it is, for people to read: without a password that may be in its URL."""
        return self._store.label

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases."""
        return self._store.policy

    @property
    def named(self) -> str | None:
        """The worker's name if it was given one, and not only made up for this process."""
        return self._named

    @property
    def checks(self) -> dict[str, list[str]]:
        """The yard's own checks, by name: commands that tasks may ask to be verified by."""
        return self._store.checks

    # Adding

    def add(self, kind: str, data: Any = None, *, conn: Any = None, **options: Any) -> Task:
        """Keep a new task and give it back; at the return it is safe.

        With a psycopg connection, of a yard in PostgreSQL, it is part of the caller's transaction: there when that commits.
        """
        new = [draft.Draft(kind, data, options)]
        if conn is not None:
            return self._store.within(conn).add(new, self.worker)[0]
        task = self._store.add(new, self.worker)[0]
        self._tend()
        return task

    def add_many(self, tasks: Iterable[dict[str, Any]], *, conn: Any = None) -> arguments.Added:
        """Keep many tasks, each a dict with kind, data and options; all are checked before the first is kept."""
        drafts = []
        for position, fields in enumerate(tasks, 1):
            try:
                drafts.append(draft.Draft.of(fields))
            except (Invalid, NotFound) as error:
                raise type(error)(f"task {position}: {error.message}", hint=error.hint) from None
        added = (self._store if conn is None else self._store.within(conn)).add(drafts, self.worker)
        if conn is None:
            self._tend()
        made = arguments.Added(task.id for task in added)
        made.created = sum(task.created for task in added)
        return made

    # Claiming

    def claim(
        self,
        id: str | None = None,
        *,
        kinds: Iterable[str] | str | None = None,
        worker: str | None = None,
        wait: float = 0,
        lease: float | None = None,
    ) -> Claim | None:
        """Take one task, the most urgent and oldest that serves; None if nothing is ready within `wait` seconds."""
        if self._forks != forks.count:
            self._identify()
        if wait:
            wait = times.seconds(wait, "wait")
        if id is None and kinds is None and worker is None and lease is None:
            want = self._anything
        else:
            want = self._want(id, kinds, worker, lease)
        nonce = f"{self._incarnation}{next(self._count)}"
        if time.monotonic() >= self._look_at:
            self._tend()
        try:
            grant = self._store.claim(want, nonce)
        except Conflict:  # only a named task is refused; it may be due, or abandoned
            if not janitor.sweep(self._store, self.worker):
                raise
            grant = self._store.claim(want, nonce)
        if grant is None:
            grant = self._claim_patiently(want, nonce, wait)
        return None if grant is None else Claim(self, grant)

    def claim_many(
        self,
        number: int,
        *,
        kinds: Iterable[str] | str | None = None,
        worker: str | None = None,
        lease: float | None = None,
    ) -> list[Claim]:
        """Take up to so many tasks at once, the most urgent and oldest that serve: on PostgreSQL with one statement."""
        if self._forks != forks.count:
            self._identify()
        want = self._want(None, kinds, worker, lease)
        nonces = [self._nonce() for _ in range(draft.integer(number, "number", 1, CLAIMS_MOST))]
        self._tend()
        grants = self._store.claim_many(want, nonces)
        if not grants:
            janitor.sweep(self._store, self.worker)
            grants = self._store.claim_many(want, nonces)
        return [Claim(self, grant) for grant in grants]

    def _want(self, id: str | None, kinds: Iterable[str] | str | None, worker: str | None, lease: float | None) -> Want:
        return Want(
            self.worker if worker is None else words.worker(worker),
            None if kinds is None else arguments.kinds(kinds),
            None if lease is None else draft.lease(lease),
            None if id is None else self._task_id(id),
            self._usual,
            self._vouched and worker is None,
        )

    def _nonce(self) -> str:
        return f"{self._incarnation}{next(self._count)}"

    def _claim_patiently(self, want: Want, nonce: str, wait: float) -> Grant | None:
        if not wait:
            janitor.sweep(self._store, self.worker)
            return self._store.claim(want, nonce)
        from taskyard.yard.waiter import Waiting  # most commands don't wait

        patience = Waiting(self._store, wait)
        while True:
            last = patience.is_over()
            # Nobody hears "nothing ready" while a due or abandoned task lies there.
            janitor.sweep(self._store, self.worker)
            grant = self._store.claim(want, nonce)
            if grant is not None or last:
                return grant
            patience.nap(self._store.alarm())
            self._tend()

    def _wake(self) -> None:
        """Have everybody in this process who waits on this yard look again now, and ask whether to go on."""
        self._store.wake()

    def vouch(self, lease: float) -> int | None:
        """For a worker that heartbeats by itself: claims have this lease where the task has none, and end with the process.

        Gives the descriptor of the lock that tells others of its death, or None where only leases tell (`Store.vouch`).
        """
        if self._forks != forks.count:
            self._identify()
        lock = self._store.vouch(self.worker, self._incarnation)
        self._usual, self._vouched = draft.lease(lease), lock is not None
        self._anything = Want(self.worker, usual=self._usual, vouched=self._vouched)
        return lock

    def held(self, handle: str) -> Claim:
        """The claim of this handle, for a process that was told the handle and nothing else."""
        try:
            return Claim(self, handle=Handle.parse(handle))
        except Invalid as error:
            held = self._held_by_me(handle)
            if held is None:
                raise
            raise Invalid(
                f"{handle} is a task id, and this needs the handle of a claim; you hold that task, as {held.worker}",
                hint=moves.lost_handle(held),
            ) from error

    def _held_by_me(self, id: object) -> Standing | None:
        """How the task stands that was named in place of a handle, if a worker of this name holds it."""
        try:
            standing = self._store.stand(arguments.task_id(id))
        except (Invalid, NotFound, Unavailable):
            return None
        return standing if standing.state is State.PROCESSING and standing.worker == self.worker else None

    def _task_id(self, id: object) -> str:
        """The whole id of what is called so: by it, its beginning, a short name, or the name under which one task was dropped."""
        try:
            wanted = arguments.task_id(id)
            return wanted if ids.is_id(wanted) else self._store.stand(wanted).id
        except Ambiguous:
            raise
        except NotFound:
            found = self._dropped_under(id) if isinstance(id, str) else None
            if found is None:
                raise
            return found

    def _dropped_under(self, name: str) -> str | None:
        """The id of the one task that was dropped under this name, if any was; `NotFound` says what else is called so."""
        stem = name.removesuffix(".json")
        tasks = self._store.dropped_under(name) or self._store.dropped_under(stem)
        if len(tasks) == 1:
            return tasks[0]
        if tasks:
            some = ", ".join(tasks[-5:])
            raise Ambiguous(f"{len(tasks)} tasks were dropped as {words.shown(name)}: {some}", hint="give the id")
        for entry in self._store.outside().guests:
            if entry["name"] in (name, stem):
                who = "another program" if entry["worker"] is None else str(entry["worker"])
                what = "is done" if entry["state"] == State.DONE else "is held"
                raise NotFound(
                    f"{words.shown(name)} {what} by {who}, which works on the files alone, since {entry['at']}",
                    hint=f"it is a file in {entry['state']}/ and no task of the yard; 'taskyard list' shows it",
                )
        for entry in self._store.set_aside():
            if entry["name"] in (name, stem):
                why = "" if entry["reason"] is None else f": {entry['reason']}"
                raise NotFound(
                    f"{words.shown(name)} is no task: it is a file that lies aside in failed/{why}",
                    hint=f"put failed/{entry['name']}.json right, then 'taskyard retry {entry['name']}'",
                )
        return None

    # Reader

    def get(self, id: str) -> Task:
        """The whole task of this id, unique beginning of one, or short name."""
        return self.report(id).task

    def report(self, id: str) -> Report:
        """The task with its history, notes and stale results."""
        report = self._store.get(self._task_id(id))
        self._name([report.task])
        return report

    def find(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """Tasks by state, kind, mission and holder, oldest first; compact fields only."""
        self._look()
        states = (
            None if state is None else frozenset(map(arguments.state, [state] if isinstance(state, str) else state))
        )
        return self._page(
            Query(
                states,
                None if kind is None else arguments.kinds(kind),
                None if mission is None else words.text(mission, "mission"),
                None if worker is None else words.worker(worker),
                None,
                arguments.limit(limit),
                arguments.cursor(cursor),
            )
        )

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> arguments.Page:
        """What this worker could be handed now, oldest first."""
        try:
            janitor.sweep(self._store, self.worker, intake=janitor.INTAKE)
        except Unavailable:
            pass  # what is due shows when the yard can be written again
        taker = self.worker if worker is None else words.worker(worker)
        kinds = None if kind is None else arguments.kinds(kind)
        return self._page(
            Query(
                frozenset((State.TODO,)), kinds, mission, None, taker, arguments.limit(limit), arguments.cursor(cursor)
            )
        )

    def _page(self, query: Query) -> arguments.Page:
        tasks, cursor = self._store.find(query)
        page = arguments.Page(tasks)
        page.next = cursor
        self._name(page)
        return page

    def shorten(self, ids: Iterable[str]) -> list[str]:
        """For each id its short name, as long as it must be to fit no other task now."""
        return self._store.shorten([self._task_id(id) for id in ids])

    def _name(self, tasks: Sequence[Task]) -> None:
        """Give tasks that are looked at the names that tell each from all others."""
        try:
            names = self._store.shorten([task.id for task in tasks])
        except Unavailable:
            return  # a folder that cannot be listed must not hide what was read; the least names stand
        for task, short in zip(tasks, names, strict=True):
            task.short = short

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        counts: dict[str, int] = self.stats()["counts"]
        return counts

    def stats(self) -> dict[str, Any]:
        """How many tasks are in each state, in all and by kind; how many files are set aside or dropped, and what is paused."""
        kinds, outside = self._store.counts(), self._store.outside()
        counts = {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}
        rows = {
            kind: {str(state): row[state] for state in State if row.get(state)} for kind, row in sorted(kinds.items())
        }
        return {
            "counts": counts,
            "kinds": rows,
            "set_aside": len(self._store.set_aside()),
            "guests": _by_state(outside.guests),
            "not_tasks": outside.others,
            "paused": self.paused(),
            **self._store.tallies(),
        }

    def unusable(self) -> list[str]:
        """What the last claims passed over because the system refuses it, each with the reason."""
        return self._store.unusable()

    def wait(self, *ids: str, timeout: float | None = None) -> list[Task]:
        """Wait until every one of these tasks has ended, and give them back; `TimedOut` if that takes too long."""
        from taskyard.yard.waiter import Waiting

        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        self._tend()
        tasks = {id: self.get(id) for id in ids}
        open_ids = [id for id, task in tasks.items() if not task.state.ended]
        patience = Waiting(self._store, seconds, pause=_WAIT_PAUSE) if open_ids and seconds != 0 else None
        while open_ids:
            last = patience is None or patience.is_over()
            for id in open_ids:
                if self._store.stand(tasks[id].id).state.ended:
                    tasks[id] = self.get(tasks[id].id)
            open_ids = [id for id in open_ids if not tasks[id].state.ended]
            if not open_ids:
                break
            if patience is None or last:
                raise TimedOut(
                    f"{len(open_ids)} of {len(tasks)} tasks have not ended in time: {', '.join(open_ids[:5])}"
                )
            patience.nap(self.policy.sweep_every)
            self._tend()
        return [tasks[id] for id in ids]

    # Steering

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Call a task off; a worker that holds it loses its claim."""
        text = None if reason is None else legal_text(reason, "reason")
        return self._revise(id, lambda standing: moves.cancelled(standing, text))

    def retry(self, id: str) -> Task | None:
        """Have a failed or cancelled task tried anew, or a waiting one now.

        The name of a file that was set aside puts it back into the drop box; the answer is then None, because what
        becomes of it shows when it is taken in.
        """
        if self._names_a_file(id):
            self._store.give_back(id)
            janitor.sweep(self._store, self.worker)
            again = next((entry for entry in self._store.set_aside() if str(entry["name"]).split("~")[0] == id), None)
            if again is not None:
                raise Conflict(
                    f"{id} was set aside again: {again['reason']}",
                    hint=f"put failed/{again['name']}.json right, then retry",
                )
            return None
        return self._revise(id, moves.retried)

    def _names_a_file(self, name: str) -> bool:
        """Whether this is the name of a file that is set aside, and names no task; `Ambiguous` where it may be either.

        A whole id is always the task's.
        """
        aside = any(entry["name"] == name for entry in self._store.set_aside())
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

    def outside(self) -> Outside:
        """What other programs hold or have done in the yard's folders, and what lies in the drop box and is no task."""
        return self._store.outside()

    def set_aside(self) -> list[dict[str, str | None]]:
        """Files that came in through the drop box and are no tasks: name, reason and time of each."""
        return self._store.set_aside()

    def edit(self, id: str, **changes: Any) -> Task:
        """Change a task that nobody holds: title, data, priority, assignee, delay, not_before, max_attempts."""
        if not changes:
            raise Invalid("nothing to edit", hint=f"name what to change: {', '.join(draft.EDITABLE)}")
        timed = "delay" in changes or "not_before" in changes
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            moves.edited(standing, None)
            old = self._store.drafted(standing)
            if old is None:
                continue
            new = old.changed(changes)
            later = bool(new.delay or new.not_before is not None) if timed else None
            if self._store.rewrite(standing, new, moves.edited(standing, later), self.worker, due_anew=timed):
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def resume(self, worker: str | None = None) -> list[Claim]:
        """Take every claim of this worker's name again, under a new fence: for a worker that has forgotten all.

        Whoever held them before is shut out, so only do this when that worker is gone.
        """
        name = self._named if worker is None else words.worker(worker)
        if name is None:
            raise Invalid("resume needs a worker's name", hint="say --worker NAME, or set TASKYARD_WORKER")
        claims = []
        for standing in self._store.held(name):
            grant = self._store.take_over(standing, moves.resumed(standing), self._nonce(), self.worker)
            if grant is not None:
                claims.append(Claim(self, grant))
        return claims

    def pause(self, kind: str | None = None) -> None:
        """Hand out nothing more, of this kind or of any; what runs goes on."""
        self._store.pause(None if kind is None else words.kind(kind), True)

    def unpause(self, kind: str | None = None) -> None:
        """Take back a `pause` of the same words."""
        self._store.pause(None if kind is None else words.kind(kind), False)

    def paused(self) -> dict[str, Any]:
        """What is paused: the whole `yard` (true or false), and which `kinds`."""
        everything, some = self._store.paused()
        return {"yard": everything, "kinds": sorted(some)}

    def events(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int = 1000,
        event: str | Iterable[str] | None = None,
    ) -> arguments.Events:
        """What happened, oldest first, as dicts; `cursor` of the answer is where to go on from."""
        if cursor == "":
            raise Invalid("the cursor is empty", hint="give the 'cursor' of the answer before, or none")
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        return follow.page(self._store, follow.trail(self._store, named, worker, kind, event, since, cursor, limit))

    def watch(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> arguments.Events:
        """The first event that matches, from now on or after the cursor, as soon as there is one; else `TimedOut`."""
        return next(self.follow(task, worker, kind, event, cursor=cursor, limit=1, timeout=timeout))

    def follow(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        event: str | Iterable[str] | None = None,
        since: Any = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        until: Callable[[], bool] | None = None,
    ) -> Iterator[arguments.Events]:
        """Events as they come, some at a time: after the cursor ("" is before all), else from now on.

        It ends after `limit` events, or once `until` is true; `TimedOut` when nothing has matched for `timeout` seconds.
        """
        from taskyard.yard import follow

        named = None if task is None else self._task_id(task)
        trail = follow.trail(self._store, named, worker, kind, event, since, cursor, 1 if limit is None else limit)
        seconds = None if timeout is None else times.seconds(timeout, "timeout")
        return follow.pages(self._store, trail, self._tend, seconds, limit, until)

    def _revise(self, id: str, decide: Callable[[Standing], Move]) -> Task:
        self._tend()
        whole = self._task_id(id)
        for _ in range(_TRIES):
            standing = self._store.stand(whole)
            if self._store.shift(standing, decide(standing), self.worker):
                return self._after(standing)
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    def _after(self, moved: Standing) -> Task:
        task = self._store.get(moved.id).task
        self._name([task])
        return task

    # Housekeeping

    def prune(self, age: Any = None, count: int | None = None, *, apply: bool = False) -> dict[str, Any]:
        """Let ended tasks go to the archive that ended longer ago than `age`, or are more than `count`.

        Without `apply` it only tells what would go.
        """
        if age is None and count is None:
            raise Invalid("prune needs an age or a count", hint="say how long, or how many, ended tasks are kept")
        seconds = None if age is None else times.seconds(age, "age")
        number = None if count is None else draft.integer(count, "count", 0, 10**9)
        told = self._store.prune(seconds, number, self.worker, apply=apply)
        told["oldest"] = None if told["oldest"] is None else times.rfc3339(told["oldest"])
        return told

    def audit(self, repair: bool = False, progress: Callable[[str], object] | None = None) -> dict[str, Any]:
        """Prove that every task is in one legal state; the `verdict`, what was `checked`, and the `findings`.

        With `repair` what can be is healed, by safe moves that remove nothing. `progress` is told how far the work is.
        """
        return self._store.audit(self.worker, self._tidied if repair else None, progress)

    def _tidied(self) -> None:
        """A sweep as a part of a repair: what it cannot do is found by the next look."""
        try:
            self.sweep()
        except Unavailable:
            pass

    def sweep(self, limit: int = _SWEEP_ALL) -> Swept:
        """Take in what was dropped, reap and wake what is overdue, and mend what the dead have left, now."""
        return janitor.sweep(self._store, self.worker, limit, mend=True)

    def _look(self) -> None:
        """Before the whole yard is looked at: what was dropped a moment ago belongs to the picture, if it can be taken in."""
        try:
            self._store.intake(self.worker, janitor.INTAKE)
        except Unavailable:
            pass  # a yard that cannot be written can still be read
        self._tend()

    def _tend(self) -> None:
        now = time.monotonic()
        if now < self._look_at or not self.tends:
            return
        self._look_at = now + _LOOK_EVERY
        try:
            if self._store.turn(self._store.policy.sweep_every):
                janitor.sweep(self._store, self.worker, mend=True, intake=janitor.INTAKE)
        except Unavailable:
            pass  # the janitor's share is not what was asked for; what was asked for tells by itself

    def close(self) -> None:
        """Let go of what the yard holds open; claims are not touched. A closed yard refuses every verb."""
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


def _by_state(guests: list[dict[str, str | None]]) -> dict[str, int]:
    states = [str(entry["state"]) for entry in guests]
    return {state: states.count(state) for state in sorted(set(states))}


def _own_name(incarnation: str) -> str:
    host = os.uname().nodename.split(".")[0] if hasattr(os, "uname") else "worker"
    return f"{words.encoded(host)[:30].rstrip('%') or 'worker'}-{os.getpid()}-{incarnation[:4]}"
