"""The use cases: what users import. A Yard decides with `moves` and lets its store make the decision atomic."""

from __future__ import annotations

import itertools
import os
import time

from taskyard import draft, ids, janitor, moves, times, words
from taskyard.claim import Claim, legal_text
from taskyard.errors import ClaimLost, Conflict, Invalid, NotFound, TimedOut
from taskyard.store import Query, Want
from taskyard.task import Handle, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Any, Self

    from taskyard.janitor import Swept
    from taskyard.moves import Move
    from taskyard.retry import Policy
    from taskyard.store import Grant, Report, Store
    from taskyard.task import Standing, Task

LIST_MOST = 10_000
_LOOK_EVERY = 1.0  # seconds between two looks at whether a sweep is due: cheaper than the look itself
_SWEEP_ALL = 1_000_000
_NAP_FIRST, _NAP_MOST = 0.005, 0.25


class Page(list["Task"]):
    """Tasks of one list, and the cursor to go on from (`next`, None at the end)."""

    next: str | None = None


class Yard:
    """A place where work is handed out: tasks go in with `add`, workers take them with `claim`."""

    created = False
    """Whether `taskyard.init` has just made this yard."""
    warnings: Sequence[str] = ()
    """What `taskyard.init` found doubtful about its place."""

    def __init__(self, store: Store, worker: str | None = None) -> None:
        self._store = store
        self._named = None if worker is None else words.worker(worker)
        self._identify()
        self._look_at = 0.0

    def _identify(self) -> None:
        # A forked child is another worker: it must never make a handle that its parent makes too.
        self._forks = _forks
        self._incarnation = ids.base32(ids.chance(40), 8)
        self._count = itertools.count(1)
        self.worker = self._named or _own_name(self._incarnation)
        self._anything = Want(self.worker)

    @property
    def url(self) -> str:
        """Where this yard is."""
        return self._store.url

    @property
    def policy(self) -> Policy:
        """The yard's settings for attempts and leases."""
        return self._store.policy

    # Adding

    def add(self, kind: str, data: Any = None, **options: Any) -> Task:
        """Keep a new task and give it back; at the return it is safe."""
        task = self._store.add([draft.Draft(kind, data, options)], self.worker)[0]
        self._tend()
        return task

    def add_many(self, tasks: Iterable[dict[str, Any]]) -> list[str]:
        """Keep many tasks, each a dict with kind, data and options; all are checked before the first is kept."""
        drafts = []
        for position, fields in enumerate(tasks, 1):
            try:
                drafts.append(draft.Draft.of(fields))
            except Invalid as error:
                raise Invalid(f"task {position}: {error.message}", hint=error.hint) from None
        added = self._store.add(drafts, self.worker)
        self._tend()
        return [task.id for task in added]

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
        if self._forks != _forks:
            self._identify()
        if wait:
            wait = times.seconds(wait, "wait")
        if id is None and kinds is None and worker is None and lease is None:
            want = self._anything
        else:
            want = Want(
                self.worker if worker is None else words.worker(worker),
                None if kinds is None else _kinds(kinds),
                None if lease is None else draft.lease(lease),
                None if id is None else _id(id),
            )
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

    def _claim_patiently(self, want: Want, nonce: str, wait: float) -> Grant | None:
        end = time.monotonic() + wait
        nap = _NAP_FIRST
        while True:
            # Nobody hears "nothing ready" while a due or abandoned task lies there.
            if janitor.sweep(self._store, self.worker):
                nap = _NAP_FIRST
            grant = self._store.claim(want, nonce)
            left = end - time.monotonic()
            if grant is not None or left <= 0:
                return grant
            self._store.wait(min(nap, left))
            nap = min(nap * 1.5, _NAP_MOST)

    def held(self, handle: str) -> Claim:
        """The claim of this handle, for a process that was told the handle and nothing else."""
        return Claim(self, handle=Handle.parse(handle))

    # What claims do; `Claim` is the public side of these

    def _stand(self, handle: Handle) -> Standing:
        return self._store.stand(handle.id)

    def _renew(self, handle: Handle, standing: Standing | None, progress: float | None, note: str | None) -> str:
        current = standing or self._store.stand(handle.id)
        if current.is_under(handle) and current.state is State.PROCESSING:
            until = self._store.renew(current, progress, note)
            if until is not None:
                self._tend()  # after the renewal: a holder that slept past its lease must not reap its own claim
                return times.rfc3339(until)
        raise self._refused(handle, "heartbeat" if note is None else "note", None)

    def _settle(self, claim: Claim, verb: str, decide: Callable[[Standing], Move]) -> None:
        """End the claim as decided, if it still holds its task."""
        standing = claim._standing
        if standing is None:
            handle = claim._parsed()
            standing = self._store.stand(handle.id)
            if not standing.is_under(handle) or standing.state is not State.PROCESSING:
                return self._repeat(handle, standing, verb, decide)
        if self._store.shift(standing, decide(standing), self.worker):
            if claim._has_workdir or claim._standing is None:
                self._store.tidy(claim._parsed())
            if time.monotonic() >= self._look_at:
                self._tend()  # after the ending, for the same reason
            return None
        return self._repeat(claim._parsed(), self._store.stand(standing.id), verb, decide)

    def _repeat(self, handle: Handle, current: Standing, verb: str, decide: Callable[[Standing], Move]) -> None:
        """Answer a verb on a claim that is over: the same answer to the same ending, a refusal to all else."""
        held = _as_held(current, handle)
        move = decide(held)
        if current.is_under(handle):
            if _ENDINGS.get(verb) is current.state:
                if move.result is not None and draft.kept(move.result) != self._store.get(handle.id).task.result:
                    self._store.refuse(handle, verb, move, self.worker)
                return
            if verb in _ENDINGS:
                self._store.refuse(handle, verb, move, self.worker)
                raise Conflict(
                    f"this claim has ended task {handle.id} already: it is {current.state}",
                    hint="the first ending stands; what came now is kept as a stale result ('taskyard show')",
                )
        elif any(
            entry["claim"] == str(handle) and _GIVEN_UP.get(verb) == entry["outcome"]
            for entry in self._store.get(handle.id).history
        ):
            return
        raise self._refused(handle, verb, move if verb in _ENDINGS else None)

    def _refused(self, handle: Handle, verb: str, move: Move | None) -> ClaimLost:
        self._store.refuse(handle, verb, move, self.worker)
        task = self._store.get(handle.id).task
        by = f" by {task.worker} under fence {task.fence}" if task.state is State.PROCESSING else ""
        kept = "; what this claim brought is kept as a stale result" if move is not None else ""
        return ClaimLost(f"the claim {handle} is over: the task is {task.state}{by} now{kept}")

    # Looking

    def get(self, id: str) -> Task:
        """The whole task of this id or unique prefix."""
        return self.report(id).task

    def report(self, id: str) -> Report:
        """The task with its history, notes and stale results."""
        self._tend()
        return self._store.get(_id(id))

    def find(
        self,
        state: str | Iterable[str] | None = None,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tasks by state, kind, mission and holder, oldest first; compact fields only."""
        self._tend()
        states = None if state is None else frozenset(map(_state, [state] if isinstance(state, str) else state))
        return self._page(
            Query(states, None if kind is None else _kinds(kind), mission, worker, None, _limit(limit), _cursor(cursor))
        )

    def ready(
        self,
        kind: str | Iterable[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """What this worker could be handed now, oldest first."""
        janitor.sweep(self._store, self.worker)
        taker = self.worker if worker is None else words.worker(worker)
        kinds = None if kind is None else _kinds(kind)
        return self._page(Query(frozenset((State.TODO,)), kinds, mission, None, taker, _limit(limit), _cursor(cursor)))

    def _page(self, query: Query) -> Page:
        tasks, cursor = self._store.find(query)
        page = Page(tasks)
        page.next = cursor
        return page

    def shorten(self, ids: Iterable[str]) -> list[str]:
        """For each id the shortest form that still names that task alone."""
        return self._store.shorten(list(ids))

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        counts: dict[str, int] = self.stats()["counts"]
        return counts

    def stats(self) -> dict[str, Any]:
        """How many tasks are in each state, in all and by kind."""
        self._tend()
        kinds = self._store.counts()
        counts = {str(state): sum(row.get(state, 0) for row in kinds.values()) for state in State}
        rows = {
            kind: {str(state): row[state] for state in State if row.get(state)} for kind, row in sorted(kinds.items())
        }
        return {"counts": counts, "kinds": rows}

    def wait(self, *ids: str, timeout: float | None = None) -> list[Task]:
        """Wait until every one of these tasks has ended, and give them back; `TimedOut` if that takes too long."""
        end = None if timeout is None else time.monotonic() + times.seconds(timeout, "timeout")
        tasks = {id: self.get(id) for id in ids}
        nap = _NAP_FIRST
        while True:
            open_ids = [id for id, task in tasks.items() if not task.state.ended]
            if not open_ids:
                return [tasks[id] for id in ids]
            left = _NAP_MOST if end is None else end - time.monotonic()
            if left <= 0:
                raise TimedOut(
                    f"{len(open_ids)} of {len(tasks)} tasks have not ended in time: {', '.join(open_ids[:5])}"
                )
            self._store.wait(min(nap, left))
            nap = min(nap * 1.5, _NAP_MOST)
            for id in open_ids:
                if self._store.stand(tasks[id].id).state.ended:
                    tasks[id] = self.get(tasks[id].id)
            self._tend()

    # Steering

    def cancel(self, id: str, reason: str | None = None) -> Task:
        """Call a task off; a worker that holds it loses its claim."""
        text = None if reason is None else legal_text(reason, "reason")
        return self._revise(id, lambda standing: moves.cancelled(standing, text))

    def retry(self, id: str) -> Task:
        """Have a failed or cancelled task tried anew, or a waiting one now."""
        return self._revise(id, moves.retried)

    def _revise(self, id: str, decide: Callable[[Standing], Move]) -> Task:
        self._tend()
        for _ in range(_TRIES):
            standing = self._store.stand(_id(id))
            if self._store.shift(standing, decide(standing), self.worker):
                return self._store.get(standing.id).task
        raise Conflict(f"task {id} keeps moving under other hands", hint="try again")

    # Housekeeping

    def sweep(self, limit: int = _SWEEP_ALL) -> Swept:
        """Reap and wake whatever is overdue, now."""
        return janitor.sweep(self._store, self.worker, limit)

    def _tend(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY
        if self._store.turn(self._store.policy.sweep_every):
            janitor.sweep(self._store, self.worker)

    def close(self) -> None:
        """Let go of what the yard holds open; claims are not touched."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Yard {self.url} worker={self.worker!r}>"


_forks = 0  # how often this process was forked off: asking the kernel for the pid at every claim would cost more


def _forked() -> None:
    global _forks  # noqa: PLW0603  there is one process to count for
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

_TRIES = 20
_ENDINGS = {"done": State.DONE, "fail": State.FAILED}
_GIVEN_UP = {"release": "released", "fail": "error"}


def _as_held(standing: Standing, handle: Handle) -> Standing:
    """The standing as this handle last knew it, for deciding what its late verb would have brought."""
    held = standing.copy()
    held.state, held.fence, held.nonce = State.PROCESSING, handle.fence, handle.nonce
    return held


def _own_name(incarnation: str) -> str:
    host = os.uname().nodename.split(".")[0] if hasattr(os, "uname") else "worker"
    return f"{words.encoded(host)[:30].rstrip('%') or 'worker'}-{os.getpid()}-{incarnation[:4]}"


def _kinds(value: Iterable[str] | str) -> frozenset[str]:
    return frozenset(words.kind(kind) for kind in ([value] if isinstance(value, str) else value))


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        raise Invalid(f"not a state: {value!a}", hint=f"states are {', '.join(State)}") from None


def _limit(value: int) -> int:
    return draft.integer(value, "limit", 1, LIST_MOST)


def _cursor(value: str | None) -> str | None:
    if value is not None and not ids.is_id(value):
        raise Invalid(f"not a cursor: {ascii(value)[:60]}", hint="give the 'next' of the page before")
    return value


def _id(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid(f"a task id must be a text, not {type(value).__name__}")
    text = value.lower()
    if not ids.is_prefix(text):
        raise NotFound(
            f"no task has the id {ascii(value)[:80]}",
            hint=f"an id has {ids.LENGTH} characters; a beginning of at least {ids.SEGMENT} will do",
        )
    return text
