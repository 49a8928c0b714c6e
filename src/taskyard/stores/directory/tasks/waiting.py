"""Tasks that are not due yet: `waiting/<bucket>/<segment>/`, buckets by the minute, hour or day they are due in."""

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


class Waiting:
    """Finds due tasks, and moves others from coarse buckets that have begun into finer ones."""

    def __init__(self, lookup: Locator, mover: Mover, root: str) -> None:
        self._locator = lookup
        self._mover = mover
        self._root = f"{root}/waiting"
        self.ahead: list[int] = []
        """When the next call is due, as far as the last one could see: the soonest task, or the next bucket to begin."""

    def due(self, now: int) -> Iterator[Found]:
        """Yield tasks whose time has come, soonest bucket first."""
        self.ahead = ahead = []
        for name in sorted(self._locator.names(self._root)):
            if not begun(name, now):
                ahead.append((now // _MINUTE + 1) * _MINUTE)  # no bucket begins within a minute
                return
            segments = self._locator.names(f"{self._root}/{name}")
            for segment in segments:
                yield from self._due_in(f"{self._root}/{name}/{segment}", now, ahead)
            if not segments:
                self._mover.drop(f"{self._root}/{name}")

    def _due_in(self, folder: str, now: int, ahead: list[int]) -> Iterator[Found]:
        names = self._locator.names(folder)
        refined, soonest = 0, None
        # Workers that find the same tasks due begin at different ones, or all but one of them would lose every race.
        first = ids.chance(16) % len(names) if names else 0
        for name in names[first:] + names[:first]:
            token = Token.parse(name)
            if token is None or token.due is None:
                continue
            if token.due <= now:
                yield Found(State.WAITING, (folder, name), token)
                continue
            soonest = token.due if soonest is None else min(soonest, token.due)
            finer = f"{self._root}/{bucket(token.due, now)}/{token.id[: ids.SEGMENT]}"
            if finer != folder and refined < _REFINED:
                refined += 1
                self._mover.move(f"{folder}/{name}", finer, name)
        if soonest is not None:
            ahead.append(soonest)
        if not names:
            self._mover.drop(folder)
