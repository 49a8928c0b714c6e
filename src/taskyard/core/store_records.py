"""The records that go through the Store seam, as arguments and as results. No I/O."""

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
    """What a waiter has seen so far, to pass to its next `wait`; values are only compared."""


class Lead:
    """Who leads a yard's orchestrators: the worker's name, None if it is not known, and a number that rises with each new leader."""

    __slots__ = ("leader", "leads", "term")

    def __init__(self, leader: str | None, term: int, leads: bool) -> None:
        self.leader = leader
        self.term = term
        self.leads = leads
        """Whether the one who asked leads now."""


class Want:
    """What a worker wants to claim; one object serves many claims."""

    __slots__ = ("by", "id", "kinds", "mission", "move", "over", "terms", "worker")

    def __init__(
        self,
        worker: str,
        kinds: frozenset[str] | None = None,
        lease: float | None = None,
        id: str | None = None,
        usual: float | None = None,
        vouched: bool = False,
        mission: str | None = None,
        by: str | None = None,
    ) -> None:
        self.worker = worker
        self.by = worker if by is None else by
        """The name that the log has as `by`: the worker's, or the caller's for whom a door acts."""
        self.kinds = kinds
        self.mission = mission
        """Claim only tasks of this mission."""
        self.id = id
        """Claim this task and no other."""
        self.over: Standing | None = None
        """Take over this claim by the move `move`, if the claim still holds."""
        self.move: Move | None = None
        self.terms = Terms(worker, lease, usual, vouched)

    @classmethod
    def again(cls, worker: str, over: Standing, move: Move, by: str | None = None) -> Self:
        """Make the want of a worker that lost its memory: the claim that it holds, under a new fence and nonce."""
        want = cls(worker, by=by)
        want.over, want.move = over, move
        return want


class Terms(tuple[str, float | None, float | None, bool]):
    """The terms of a claim: worker, lease, fallback lease, and whether a lock backs it."""

    __slots__ = ()

    def __new__(cls, worker: str, lease: float | None, usual: float | None, vouched: bool) -> Self:
        """Make a tuple, because every claim looks one up."""
        return tuple.__new__(cls, (worker, lease, usual, vouched))

    def lease(self, own: float | None, default: float) -> float:
        """Return the lease of a claim; `own` is the lease that the task itself asks for, or None."""
        return self[1] or own or self[2] or default

    @property
    def vouched(self) -> bool:
        """Whether the claimer holds a lock that the kernel releases when it dies (`Liveness.vouch`)."""
        return self[3]


class Grant:
    """A claim that was won: the task, its standing now, and when its lease ends (milliseconds since 1970)."""

    __slots__ = ("lease_until", "standing", "task")

    def __init__(self, standing: Standing, task: Task, lease_until: int) -> None:
        self.standing = standing
        self.task = task
        self.lease_until = lease_until


class Query:
    """The filters of a list, oldest first.

    With a `taker`: only tasks that this worker could claim, in the order of claims. With `dropped_as`: only tasks that were
    dropped under that name. With `ids`: only these tasks, without a limit; those that are gone are left out. With `keys`:
    only the tasks that were added under these keys, whose `key` is filled in; no limit either. With `whole`: every field
    of each task is filled in.
    """

    __slots__ = (
        "cursor",
        "dropped_as",
        "ids",
        "keys",
        "kinds",
        "limit",
        "mission",
        "states",
        "taker",
        "whole",
        "worker",
    )

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
        ids: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        whole: bool = False,
    ) -> None:
        self.ids = ids
        self.keys = keys
        self.whole = whole
        self.states = states
        self.kinds = kinds
        self.mission = mission
        self.worker = worker
        self.taker = taker
        self.limit = limit
        self.cursor = cursor
        self.dropped_as = dropped_as

    def wants(self, kind: str, assignee: str | None) -> bool:
        """Whether tasks of this kind and assignee can be in the list."""
        if self.kinds is not None and kind not in self.kinds:
            return False
        return self.taker is None or assignee is None or assignee == self.taker


def holds(stand: Callable[[Handle], Standing], handle: Handle) -> bool:
    """Whether this claim holds its task, for a store that looks up one task at a time."""
    try:
        standing = stand(handle)
    except NotFound:
        return False
    return standing.is_under(handle) and standing.state is State.PROCESSING


STALE_MOST = 32  # late results kept for one task: made-up handles must not fill a store


class Trail:
    """The filters of a query to the log."""

    __slots__ = ("at_end", "cursor", "events", "kind", "limit", "newest", "since", "task", "worker")

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
        newest: bool = False,
    ) -> None:
        self.events = events
        self.at_end = at_end
        """Return no events, only the cursor of the log's end."""
        self.newest = newest
        """Return the last `limit` events of all, whatever else is asked for; fewer if they are too large to read in a moment."""
        self.task = task
        self.worker = worker
        self.kind = kind
        self.since = since
        self.cursor = cursor
        self.limit = limit


class Report:
    """All that is known of one task: itself, its ended attempts, its notes, its late results, and the tasks around it."""

    __slots__ = ("children", "draft", "followers", "history", "notes", "stale_results", "task")

    def __init__(
        self,
        task: Task,
        history: list[dict[str, Any]],
        notes: list[dict[str, Any]],
        stale_results: list[dict[str, Any]],
        draft: Callable[[], Draft | None],
        followers: Callable[[int], list[str]] = lambda _: [],
        children: Callable[[int], list[str]] = lambda _: [],
    ) -> None:
        self.task = task
        self.history = history
        self.notes = notes
        self.stale_results = stale_results
        self.draft = draft
        """Return the draft of the task as it was added or last edited; None if the task has moved since."""
        self.followers = followers
        """Return the ids of tasks that wait for this one, at most `most`."""
        self.children = children
        """Return the ids of tasks that were added as parts of this one, at most `most`."""


class Counts:
    """How many tasks there are by kind and state, the oldest of some states, and how many claims lost a race."""

    __slots__ = ("estimated", "kinds", "lost_races", "oldest")

    def __init__(
        self,
        kinds: dict[str, dict[str, int]],
        lost_races: int,
        oldest: dict[State, str] | None = None,
        estimated: frozenset[State] = frozenset(),
    ) -> None:
        self.kinds = kinds
        self.lost_races = lost_races
        self.oldest = oldest or {}
        """The id of the oldest task in todo, in processing and in blocked, where there is one."""
        self.estimated = estimated
        """States whose numbers come from a sample."""


class Outside:
    """Files of other programs in a store's folders: what they hold or have done, and what is no task."""

    __slots__ = ("guests", "others")

    def __init__(
        self, guests: Sequence[dict[str, str | None]] = (), others: Sequence[dict[str, str | None]] = ()
    ) -> None:
        self.guests = list(guests)
        """Files that other programs hold or have done: name, state, worker and time of each."""
        self.others = list(others)
        """Files in the drop box that are no tasks: name and reason of each."""


class Scratch:
    """A yard for one trial run, beside another yard and with a store like it."""

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
        """The run calls this again and again, so that other runs see that it is alive."""
        self.keep = keep
        """Keep everything after the run has ended, also when a later run cleans up."""
        self.cleared = list(cleared)
        """What earlier runs that were killed had left, and this run has removed."""
        self.left = list(left)
        """What earlier runs seem to have left, but cannot be proven dead."""
        self.remove = remove
        """Remove what is not in the folder."""
        self.folder = folder
        """The trial's own folder, for everything that belongs to it."""
        self.dropbox = dropbox
        """Where files can be dropped; None if there is no drop box."""
        self.prompt_log = prompt_log
        """Whether the next sweep logs what a killed process could no longer log."""
