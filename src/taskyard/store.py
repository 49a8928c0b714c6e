"""The seam: what a store must do, and what it promises.

Policy is decided above it, in `moves`; a store only makes one decided move atomic, and durable as its settings say.
Time is the store's own. A store is right when it passes the contract suite.
"""

from __future__ import annotations

from taskyard.core.errors import Invalid, NotFound, Unavailable
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, Self

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.retry import Policy
    from taskyard.core.task import Handle, Standing, Task

    Heard = tuple[int, int]
    """What a waiter has heard so far, for its next `wait`; only ever compared."""
else:
    Protocol = object


class Want:
    """What a worker asks for; the same for many claims."""

    __slots__ = ("id", "kinds", "terms", "worker")

    def __init__(
        self,
        worker: str,
        kinds: frozenset[str] | None = None,
        lease: float | None = None,
        id: str | None = None,
        usual: float | None = None,
        vouched: bool = False,
    ) -> None:
        self.worker = worker
        self.kinds = kinds
        self.id = id
        self.terms = Terms(worker, lease, usual, vouched)


class Terms(tuple[str, float | None, float | None, bool]):
    """On what terms a claim is made: by whom, for how long, for how long where the task does not say, and whether vouched for."""

    __slots__ = ()

    def __new__(cls, worker: str, lease: float | None, usual: float | None, vouched: bool) -> Self:
        """A tuple, because every claim looks one up."""
        return tuple.__new__(cls, (worker, lease, usual, vouched))

    def lease(self, own: float | None, default: float) -> float:
        """The lease of a claim of a task with, or without, a lease of its own."""
        return self[1] or own or self[2] or default

    @property
    def vouched(self) -> bool:
        """Whether the kernel tells others when the claimer is dead (`Store.vouch`)."""
        return self[3]


class Grant:
    """A claim that was won: the task, where it stands now, and when its lease ends (milliseconds since 1970)."""

    __slots__ = ("lease_until", "standing", "task")

    def __init__(self, standing: Standing, task: Task, lease_until: int) -> None:
        self.standing = standing
        self.task = task
        self.lease_until = lease_until


class Query:
    """What a list asks for, oldest first; with a `taker`, only what that worker could be handed."""

    __slots__ = ("cursor", "kinds", "limit", "mission", "states", "taker", "worker")

    def __init__(
        self,
        states: frozenset[State] | None = None,
        kinds: frozenset[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        taker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> None:
        self.states = states
        self.kinds = kinds
        self.mission = mission
        self.worker = worker
        self.taker = taker
        self.limit = limit
        self.cursor = cursor


STALE_MOST = 32  # late results of one task that are kept: nobody can fill a store with handles that were made up


class Trail:
    """What the log is asked for."""

    __slots__ = ("cursor", "events", "kind", "limit", "since", "task", "worker")

    def __init__(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: int | None = None,
        cursor: str | None = None,
        limit: int = 1000,
        events: frozenset[str] | None = None,
    ) -> None:
        self.events = events
        self.task = task
        self.worker = worker
        self.kind = kind
        self.since = since
        self.cursor = cursor
        self.limit = limit


class Report:
    """All that is known of one task: itself, its ended attempts, its notes, and what came too late to count."""

    __slots__ = ("history", "notes", "stale_results", "task")

    def __init__(
        self,
        task: Task,
        history: list[dict[str, Any]],
        notes: list[dict[str, Any]],
        stale_results: list[dict[str, Any]],
    ) -> None:
        self.task = task
        self.history = history
        self.notes = notes
        self.stale_results = stale_results


class Outside:
    """What lies in a store's folders that other programs put there: what they hold or have done, and what is no task."""

    __slots__ = ("guests", "others")

    def __init__(
        self, guests: Sequence[dict[str, str | None]] = (), others: Sequence[dict[str, str | None]] = ()
    ) -> None:
        self.guests = list(guests)
        """Files in other programs' hands, or done by them: name, state, worker and time of each."""
        self.others = list(others)
        """What lies where tasks are dropped and is none: name and reason of each."""


class Scratch:
    """A yard that is made to be tried and thrown away, beside another one and like it."""

    __slots__ = ("cleared", "dropbox", "folder", "hold", "keep", "label", "left", "prompt_log", "remove", "url")

    def __init__(
        self,
        url: str,
        folder: str,
        dropbox: str | None,
        prompt_log: bool,
        label: str | None = None,
        hold: Callable[[], None] = lambda: None,
        keep: Callable[[], None] = lambda: None,
        remove: Callable[[], None] = lambda: None,
        cleared: Sequence[str] = (),
        left: Sequence[str] = (),
    ) -> None:
        self.url = url
        self.label = label
        """Where the yard is, for people, if it is not in the folder."""
        self.hold = hold
        """Said all the time by the run, so that others see that it lives."""
        self.keep = keep
        """Has all of it stay when the run has ended, whoever comes next."""
        self.cleared = list(cleared)
        """What runs before it that were killed had left, and that is gone now."""
        self.left = list(left)
        """What such runs seem to have left, where nobody can prove that they are dead."""
        self.remove = remove
        """Lets go of what is not in the folder."""
        self.folder = folder
        """A folder of its own, for all that belongs to the trial."""
        self.dropbox = dropbox
        """Where files can be dropped, if anywhere."""
        self.prompt_log = prompt_log
        """Whether what a killed process could not log any more is in the log after the next sweep."""


class Store(Protocol):
    """One yard's tasks, kept."""

    url: str
    """Opens this yard again, in other processes too; it may hold a password."""
    label: str
    """The same for people: no secret is in it."""
    policy: Policy
    checks: dict[str, list[str]]
    batch: int
    """How many claims or endings at a time cost less than one by one; 1 where each is a move of its own."""

    def within(self, connection: Any) -> Store:
        """The same yard, whose moves are part of the transaction that the caller has on this connection.

        `Invalid` where the store knows no such connection.
        """

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""

    def intake(self, by: str, limit: int | None = None) -> int:
        """Take in what was left at the store's door by other means than `add`, or so much of it; how many tasks that made."""

    def set_aside(self) -> list[dict[str, str | None]]:
        """What came in that way and is no task: name, reason and time of each."""

    def give_back(self, name: str) -> None:
        """Try once more to take in what was set aside under this name."""

    def outside(self) -> Outside:
        """What other programs hold or have done in this store's folders, and what was dropped there and is no task."""

    def dropped_under(self, name: str) -> list[str]:
        """The ids of the tasks that were dropped under this name."""

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or None; `want.id` names one, and may be refused.

        The nonce is the caller's and used for one claim at most.
        """

    def claim_many(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out as many of the most urgent, oldest tasks that serve as there are nonces, or tasks."""

    def stand(self, id: str) -> Standing:
        """Where the one task that fits this pattern (`ids.pattern`) stands now."""

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:
        """Whether the move was made: only if the task still stands exactly there, else nothing changes.

        Where a claim ends, its outcome is written down first, so that a move that came too late leaves a stale result; if the
        claim had written down another one before, it ends with that, and this move was not made.
        With `lapsed` the claim must also still be overdue.
        """

    def shift_many(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Which of these moves were made, each guarded by itself as with `shift`."""

    def confirm(self, standing: Standing) -> None:
        """Have the move that led to this standing be as durable as the store's answer to it, before that answer is repeated."""

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Write down that a verb came too late, and put its output, if any, aside for a person to read."""

    def drafted(self, standing: Standing) -> Draft | None:
        """What was asked for when the task that stands there was added or last edited; None if it has moved on."""

    def rewrite(self, standing: Standing, draft: Draft, move: Move, by: str, *, due_anew: bool) -> bool:
        """Whether the task, if it still stands exactly there, is now what the draft says.

        With `due_anew` the draft also says when it is due; else that stays as it was.
        """

    def held(self, worker: str) -> list[Standing]:
        """Every claim that a worker of this name holds."""

    def take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> Grant | None:
        """The same claim under the move's fence and a new nonce, or None if it is over."""

    def pause(self, kind: str | None, on: bool) -> None:
        """Hand out no more tasks of this kind, or of any; or do so again."""

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Whether the whole yard is paused, and which kinds are."""

    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""

    def vouch(self, worker: str, incarnation: str) -> int | None:
        """Have others see at once when this process is dead, by a lock that the kernel drops then.

        Gives the descriptor that holds the lock: a process that is to outlive this one, and to be done before the
        claims are free, gets it too. None where nobody could tell, and leases alone count.
        """

    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks; a look only, which renews nothing and is not logged."""

    def workdir(self, handle: Handle) -> str | None:
        """A folder for what this claim alone leaves behind, made if need be; None where the store has no files."""

    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if nothing was put there."""

    def get(self, id: str) -> Report:
        """All about the one task that fits this pattern (`ids.pattern`)."""

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks and the cursor of the next; compact fields only are filled in."""

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each whole id its short name, as long as it must be to fit no other task of its segment."""

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""

    def tallies(self) -> dict[str, int]:
        """What is counted and not logged: `lost_races` for a task, and files `dropped` that no sweep has taken in."""

    def unusable(self) -> list[str]:
        """What the last claims passed over because the system refuses it, each with the reason."""

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""

    def mend(self, by: str) -> int:
        """Put right what processes that died in mid-move have left, a bounded share of it; how many things that were."""

    def prune(self, age: float | None, count: int | None, by: str, *, apply: bool) -> dict[str, Any]:
        """Let ended tasks go that ended more than so many seconds ago, or are more than so many; or tell what would."""

    def audit(
        self,
        by: str,
        sweep: Callable[[], object] | None = None,
        progress: Callable[[str], object] | None = None,
    ) -> dict[str, Any]:
        """Prove that every task is in one legal state, beside whoever works; `verdict`, what was `checked`, and `findings`.

        With a `sweep` to call, whatever can be is healed first, by safe moves that remove nothing.
        """

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep: at most one caller in so many seconds, over the whole yard."""

    def latest(self) -> str:
        """The cursor of the log's end: only what happens from now on comes after it."""

    def alarm(self) -> float | None:
        """Seconds until the next lease ends or the next task is due, as far as the last `overdue` saw; None if nothing is."""

    def listen(self) -> Heard:
        """What has been heard so far: listen, look, and then wait with this, and no change is ever missed."""

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Return when something may have changed since `heard`, or after so many seconds; then it is the same again."""

    def wake(self) -> None:
        """End every wait of this process on this store now; a signal handler may say so too."""

    def close(self) -> None:
        """Let go of what the store holds open."""


class OneByOne:
    """What many moves at a time are to a store where each is one of its own."""

    batch = 1

    def unusable(self) -> list[str]:
        """Nothing that a claim would have to pass over."""
        return []

    def claim_many(self: Store, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out as many of the most urgent, oldest tasks that serve as there are nonces, or tasks."""
        grants: list[Grant] = []
        for nonce in nonces:
            try:
                grant = self.claim(want, nonce)
            except Unavailable:
                if not grants:
                    raise
                grant = None  # what was won is to be told of; who asks for more will hear of the trouble
            if grant is None:
                break
            grants.append(grant)
        return grants

    def holding(self: Store, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks."""
        return [_holds(self, handle) for handle in handles]

    def shift_many(self: Store, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Which of these moves were made."""
        return [self.shift(standing, move, by) for standing, move in shifts]


def _holds(store: Store, handle: Handle) -> bool:
    try:
        standing = store.stand(handle.id)
    except NotFound:
        return False
    return standing.is_under(handle) and standing.state is State.PROCESSING


def foreign(label: str) -> Invalid:
    """The refusal of a connection by a store that has none."""
    return Invalid(
        f"the yard {label} is not in a database, so there is no transaction to be part of",
        hint="conn= is for yards in PostgreSQL; leave it out here",
    )


class Closed:
    """Stands in the place of a store that was closed, so that no verb has to ask whether it still is open."""

    def __init__(self, store: Store) -> None:
        self.url = store.url
        self.label = store.label
        self.policy = store.policy

    def __getattr__(self, verb: str) -> Any:
        raise Unavailable(f"the yard {self.label} was closed here", hint="open it again with taskyard.open")

    def close(self) -> None:
        """Once more does no harm."""
