"""Names by the moment that they are for: `<bucket>/<segment>/`, buckets by the minute, hour or day of that moment."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.names import Token, begun, bucket
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.tasks.locate import Locator
    from taskyard.stores.directory.tasks.mover import Mover

_REFINED = 1000  # tasks that one call moves from a segment of a coarse bucket into finer ones
_MINUTE = 60_000  # milliseconds


class Buckets:
    """Finds names whose moment has come, and moves others from coarse buckets that have begun into finer ones."""

    def __init__(self, lookup: Locator, mover: Mover, root: str) -> None:
        self._locator = lookup
        self._mover = mover
        self._root = root
        self.ahead: list[int] = []
        """When the next call is due, as far as the last one could see: the soonest task, or the next bucket to begin."""

    def moment(self, name: str) -> int | None:
        """Return the moment that this name is for; None if it is no name of ours."""
        raise NotImplementedError

    def names(self, now: int) -> Iterator[tuple[str, str]]:
        """Yield folder and name of all whose moment has come, soonest bucket first."""
        self.ahead = ahead = []
        for name in sorted(self._locator.names(self._root)):
            if not begun(name, now):
                ahead.append((now // _MINUTE + 1) * _MINUTE)  # no bucket begins within a minute
                return
            segments = self._locator.names(f"{self._root}/{name}")
            for segment in segments:
                yield from self._names_in(f"{self._root}/{name}/{segment}", now, ahead)
            if not segments:
                self._mover.drop(f"{self._root}/{name}")

    def _names_in(self, folder: str, now: int, ahead: list[int]) -> Iterator[tuple[str, str]]:
        names = self._locator.names(folder)
        refined, soonest = 0, None
        # Workers that find the same tasks due begin at different ones, or all but one of them would lose every race.
        first = ids.chance(16) % len(names) if names else 0
        for name in names[first:] + names[:first]:
            moment = self.moment(name)
            if moment is None:
                continue
            if moment <= now:
                yield folder, name
                continue
            soonest = moment if soonest is None else min(soonest, moment)
            finer = f"{self._root}/{bucket(moment, now)}/{name[: ids.SEGMENT]}"
            if finer != folder and refined < _REFINED:
                refined += 1
                self._mover.move(f"{folder}/{name}", finer, name)
        if soonest is not None:
            ahead.append(soonest)
        if not names:
            self._mover.drop(folder)


class Waiting(Buckets):
    """Tasks that are not due yet: `waiting/<bucket>/<segment>/`."""

    def __init__(self, lookup: Locator, mover: Mover, root: str) -> None:
        super().__init__(lookup, mover, f"{root}/waiting")

    def moment(self, name: str) -> int | None:
        """Return when the task of this name is due."""
        token = Token.parse(name)
        return None if token is None else token.due

    def due(self, now: int) -> Iterator[Found]:
        """Yield tasks whose time has come, soonest bucket first."""
        for folder, name in self.names(now):
            token = Token.parse(name)
            if token is not None:
                yield Found(State.WAITING, (folder, name), token)
