"""What the store in memory knows about why nothing is ready, beside its tasks."""

from __future__ import annotations

from taskyard.core.task import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.core.limits import Reached
    from taskyard.stores.memory.tasks import MemoryTasks


class MemoryReasons:
    """The `Reasons` part of the store in memory."""

    def __init__(self, tasks: MemoryTasks, clock: Callable[[], int], bounds: Mapping[str | None, int]) -> None:
        self._tasks = tasks
        self._clock = clock
        self._bounds = bounds

    def now(self) -> int:
        """Return this machine's time."""
        return self._clock()

    def asked(self) -> dict[str | None, int]:
        """Return when a claim last asked for each kind, and under None for any."""
        with self._tasks as shelf:
            return dict(shelf.asked)

    def using(self, resources: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """Return the running task, its worker and what it uses, for each of these resources that is not free."""
        with self._tasks as shelf:
            found = {name: taken for name in resources if (taken := shelf.in_use.conflict(name)) is not None}
            holders = {name: shelf.named(id).standing for name, (_, id) in found.items()}
            return {name: (holder.id, holder.worker or "", found[name][0]) for name, holder in holders.items()}

    def backlog(self) -> dict[str | None, tuple[int, int]]:
        """Return for each bound how many tasks wait for a worker, and how many may."""
        with self._tasks as shelf:
            return {kind: (shelf.backlog.get(kind, 0), most) for kind, most in self._bounds.items()}

    def reached(self) -> list[Reached]:
        """Return the limits that are reached now."""
        with self._tasks as shelf:
            now = self._clock()
            return [one for kind in shelf.kinds if (one := shelf.reached(kind, now)) is not None]

    def next_due(self, kinds: frozenset[str] | None) -> int | None:
        """Return when the first waiting task of these kinds is due."""
        with self._tasks as shelf:
            return min(
                (
                    record.until
                    for record in shelf.oldest_first()
                    if record.standing.state is State.WAITING and (kinds is None or record.standing.kind in kinds)
                ),
                default=None,
            )
