"""The missions of a memory yard."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.mission import Cancelled, Mission, Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.stores.memory.tasks import MemoryTasks


class MemoryMissions:
    """What was said about missions, and their tasks in numbers."""

    def __init__(self, tasks: Callable[[], MemoryTasks], clock: Callable[[], int]) -> None:
        self._tasks = tasks
        self._clock = clock

    def put(self, mission: Mission) -> Mission | None:
        """Keep what is said about a mission; if something was said before, return that."""
        with self._tasks() as shelf:
            known = shelf.missions.get(mission.name)
            if known is not None:
                return _copy(known, shelf)
            mission.created_at = self._clock()
            shelf.missions[mission.name] = _copy(mission, shelf)
            return None

    def get(self, name: str) -> Mission | None:
        """Return what was said about this mission."""
        with self._tasks() as shelf:
            known = shelf.missions.get(name)
            if known is None and name in shelf.cancelled_missions:
                known = Mission(name)
            return None if known is None else _copy(known, shelf)

    def all(self) -> list[Mission]:
        """Return what was said about every mission."""
        with self._tasks() as shelf:
            names = dict.fromkeys([*shelf.missions, *shelf.cancelled_missions])
            return [_copy(shelf.missions.get(name) or Mission(name), shelf) for name in names]

    def cancel(self, name: str, mark: Cancelled) -> None:
        """Mark the mission as cancelled now."""
        with self._tasks() as shelf:
            shelf.cancelled_missions[name] = Cancelled(self._clock(), mark.reason, mark.done, mark.failed)

    def tally(self, name: str | None = None) -> dict[str, Tally]:
        """Return the tasks of this mission, or of each, in numbers."""
        tallies: dict[str, Tally] = {}
        with self._tasks() as shelf:
            for record in shelf.oldest_first():
                mission, at = record.draft.mission, record.standing
                if mission is None or name not in (None, mission):
                    continue
                tally = tallies.setdefault(mission, Tally())
                tally.count(at.kind, at.state, 1, ids.created(at.id))
                if at.state.ended:
                    tally.ended(record.until)
        return tallies


def _copy(known: Mission, shelf: MemoryTasks) -> Mission:
    return Mission(known.name, known.brief, known.owner, known.created_at, shelf.cancelled_missions.get(known.name))
