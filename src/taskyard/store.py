"""The seam: what a store must do, and what it promises.

Policy is decided above it, in `moves`; a store only makes one decided move atomic, and durable as its settings say.
Time is the store's own. A store is right when it passes the contract suite.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from taskyard.draft import Draft
    from taskyard.moves import Move
    from taskyard.retry import Policy
    from taskyard.task import Handle, Standing, State, Task
else:
    Protocol = object


class Want:
    """What a worker asks for; the same for many claims."""

    __slots__ = ("id", "kinds", "lease", "worker")

    def __init__(
        self, worker: str, kinds: frozenset[str] | None = None, lease: float | None = None, id: str | None = None
    ) -> None:
        self.worker = worker
        self.kinds = kinds
        self.lease = lease
        self.id = id


class Grant:
    """A claim that was won: where the task stands now, and when its lease ends (milliseconds since 1970).

    The task itself may come as a function and its raw material, to be made into a task on first use.
    """

    __slots__ = ("_task", "lease_until", "standing")

    def __init__(
        self, standing: Standing, task: Task | tuple[Callable[[Grant, bytes], Task], bytes], lease_until: int
    ) -> None:
        self.standing = standing
        self._task = task
        self.lease_until = lease_until

    @property
    def task(self) -> Task:
        """The task that was claimed."""
        task = self._task
        if isinstance(task, tuple):
            make, material = task
            task = self._task = make(self, material)
        return task


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


class Store(Protocol):
    """One yard's tasks, kept."""

    url: str
    policy: Policy

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Keep new tasks, in this order; at the return all of them are there."""

    def claim(self, want: Want, nonce: str) -> Grant | None:
        """Hand out the most urgent, oldest task that serves, or None; `want.id` names one, and may be refused.

        The nonce is the caller's and used for one claim at most.
        """

    def stand(self, id: str) -> Standing:
        """Where the task of this id, or of this unique prefix, stands now."""

    def shift(self, standing: Standing, move: Move, by: str, *, lapsed: bool = False) -> bool:
        """Whether the move was made: only if the task still stands exactly there, else nothing changes.

        Where a claim ends, its outcome is written down first, so that a move that came too late leaves a stale result.
        With `lapsed` the claim must also still be overdue.
        """

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Write down that a verb came too late, and put its output, if any, aside for a person to read."""

    def renew(self, standing: Standing, progress: float | None = None, note: str | None = None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""

    def workdir(self, handle: Handle) -> str | None:
        """A folder for what this claim alone leaves behind, made if need be; None where the store has no files."""

    def tidy(self, handle: Handle) -> None:
        """Remove the claim's folder if nothing was put there."""

    def get(self, id: str) -> Report:
        """All about the task of this id or unique prefix."""

    def find(self, query: Query) -> tuple[list[Task], str | None]:
        """One page of tasks and the cursor of the next; compact fields only are filled in."""

    def shorten(self, ids: Sequence[str]) -> list[str]:
        """For each id the shortest beginning that names no other task."""

    def counts(self) -> dict[str, dict[str, int]]:
        """Tasks by kind and state."""

    def overdue(self, limit: int) -> list[Standing]:
        """Claims whose lease is over and waiting tasks that are due."""

    def turn(self, every: float) -> bool:
        """Whether it is the caller's turn to sweep: at most one caller in so many seconds, over the whole yard."""

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, or after so many seconds."""

    def close(self) -> None:
        """Let go of what the store holds open."""
