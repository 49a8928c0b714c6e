"""The records that go through the Store seam: what is asked for, and what comes back. No I/O."""

from __future__ import annotations

from taskyard.core.errors import NotFound
from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.task import Handle, Standing, Task

    Heard = tuple[int, int]
    """What a waiter has seen so far, for its next `wait`; only ever compared."""


class Want:
    """What a worker asks for; the same for many claims."""

    __slots__ = ("id", "kinds", "move", "over", "terms", "worker")

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
        """Claim this task and no other."""
        self.over: Standing | None = None
        """Take over this claim, if it still holds, as `move` says."""
        self.move: Move | None = None
        self.terms = Terms(worker, lease, usual, vouched)

    @classmethod
    def again(cls, worker: str, over: Standing, move: Move) -> Self:
        """The wish of a worker that has lost its memory: the claim that it holds, under a new fence and nonce."""
        want = cls(worker)
        want.over, want.move = over, move
        return want


class Terms(tuple[str, float | None, float | None, bool]):
    """The terms of a claim: worker, lease, lease for tasks that have none of their own, backed by a lock or not."""

    __slots__ = ()

    def __new__(cls, worker: str, lease: float | None, usual: float | None, vouched: bool) -> Self:
        """A tuple, because every claim looks one up."""
        return tuple.__new__(cls, (worker, lease, usual, vouched))

    def lease(self, own: float | None, default: float) -> float:
        """The lease of a claim of a task with, or without, a lease of its own."""
        return self[1] or own or self[2] or default

    @property
    def vouched(self) -> bool:
        """Whether the claimer holds a lock that the kernel drops when it dies (`Liveness.vouch`)."""
        return self[3]


class Grant:
    """A claim that was won: the task, where it stands now, and when its lease ends (milliseconds since 1970)."""

    __slots__ = ("lease_until", "standing", "task")

    def __init__(self, standing: Standing, task: Task, lease_until: int) -> None:
        self.standing = standing
        self.task = task
        self.lease_until = lease_until


class Query:
    """What a list asks for, oldest first.

    With a `taker`: only what that worker could be handed. With `dropped_as`: only tasks that were dropped under that name.
    """

    __slots__ = ("cursor", "dropped_as", "kinds", "limit", "mission", "states", "taker", "worker")

    def __init__(
        self,
        states: frozenset[State] | None = None,
        kinds: frozenset[str] | None = None,
        mission: str | None = None,
        worker: str | None = None,
        taker: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        dropped_as: str | None = None,
    ) -> None:
        self.states = states
        self.kinds = kinds
        self.mission = mission
        self.worker = worker
        self.taker = taker
        self.limit = limit
        self.cursor = cursor
        self.dropped_as = dropped_as


def holds(stand: Callable[[str], Standing], handle: Handle) -> bool:
    """Whether this claim holds its task, for a store that looks at one task at a time."""
    try:
        standing = stand(handle.id)
    except NotFound:
        return False
    return standing.is_under(handle) and standing.state is State.PROCESSING


STALE_MOST = 32  # late results of one task that are kept: made-up handles must not fill a store


class Trail:
    """What the log is asked for."""

    __slots__ = ("at_end", "cursor", "events", "kind", "limit", "since", "task", "worker")

    def __init__(
        self,
        task: str | None = None,
        worker: str | None = None,
        kind: str | None = None,
        since: int | None = None,
        cursor: str | None = None,
        limit: int = 1000,
        events: frozenset[str] | None = None,
        at_end: bool = False,
    ) -> None:
        self.events = events
        self.at_end = at_end
        """Ask for no events, but for the cursor of the log's end."""
        self.task = task
        self.worker = worker
        self.kind = kind
        self.since = since
        self.cursor = cursor
        self.limit = limit


class Report:
    """All that is known of one task: itself, its ended attempts, its notes, and what came too late to count."""

    __slots__ = ("draft", "history", "notes", "stale_results", "task")

    def __init__(
        self,
        task: Task,
        history: list[dict[str, Any]],
        notes: list[dict[str, Any]],
        stale_results: list[dict[str, Any]],
        draft: Callable[[], Draft | None],
    ) -> None:
        self.task = task
        self.history = history
        self.notes = notes
        self.stale_results = stale_results
        self.draft = draft
        """What was asked for when the task was added or last edited; None if it has moved since."""


class Counts:
    """How many tasks there are by kind and state, and how many races for a task were lost."""

    __slots__ = ("kinds", "lost_races")

    def __init__(self, kinds: dict[str, dict[str, int]], lost_races: int) -> None:
        self.kinds = kinds
        self.lost_races = lost_races


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
