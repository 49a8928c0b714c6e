"""How many tasks wait for a worker, without a look at them for every add.

`backlog/<kind>` has a byte for each task of a bounded kind that was added, `backlog/@` for each of the yard. What was
counted, and at which size of that file, is in `<kind>.counted`: so many tasks, and one for each byte since, are never fewer
than there are. Only where that is too many the names are counted anew.
"""

from __future__ import annotations

import time

from taskyard.core import backlog
from taskyard.core.task import State
from taskyard.stores.directory import names
from taskyard.stores.directory.layout import BACKLOG
from taskyard.stores.directory.tasks import counting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.stores.directory.context import Context

_HELD = State.PROCESSING  # counted with the others where a count is carried on: such a task may come back


class Backlog:
    """Keeps a directory's bounds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._root = f"{context.root}/{BACKLOG}"

    @property
    def bounds(self) -> dict[str | None, int]:
        """The bounds of the yard's settings."""
        return backlog.bounds(self._context.max_todo, self._context.kinds)

    def reserve(self, wanted: Mapping[str | None, int]) -> None:
        """Take places for new tasks; raise `Full` if there are not as many. Adders at the same moment may each take the last."""
        if not wanted:
            return
        bounds, now = self.bounds, self._context.clock.now()
        for kind, number in wanted.items():
            if number > bounds[kind]:
                raise backlog.full(kind, 0, bounds[kind], number)
        if not self._fits(bounds, wanted, now):
            error = backlog.refused(bounds, self.counts(wanted, now), wanted)
            if error is not None:
                raise error
        for kind, number in wanted.items():
            self._disk.append(self._path(kind), b"+" * number)

    def _fits(self, bounds: backlog.Bounds, wanted: Mapping[str | None, int], now: int) -> bool:
        """Whether these places are surely there, by the last count and what was added since."""
        for kind, number in wanted.items():
            counted, since, at, cost = self._counted(kind)
            most = counted + self._size(kind) - since
            if at and not backlog.may_count(at, cost, now) and most + number > bounds[kind]:
                # What is carried on also has what was claimed since: it may be more than there ever was room for.
                raise backlog.full(kind, min(most, bounds[kind]), bounds[kind], number)
            if not backlog.is_current(at, now) or most + number > bounds[kind]:
                return False
        return True

    def counts(self, wanted: Mapping[str | None, int], now: int) -> dict[str | None, int]:
        """Count the backlog of each of these bounds, and note it for later adds."""
        sizes = {kind: self._size(kind) for kind in wanted}
        began = time.monotonic()
        exact = self.count()
        cost = round((time.monotonic() - began) * 1000)
        for kind in wanted:
            total = sum(row[0] + row[1] for name, row in exact.items() if kind in (None, name))
            self._note(kind, f"{total} {sizes[kind]} {now} {cost}\n")
        return {kind: sum(row[0] for name, row in exact.items() if kind in (None, name)) for kind in wanted}

    def count(self) -> dict[str, tuple[int, int]]:
        """Return for each kind how many tasks wait for a worker, and how many are held."""
        found: dict[str, tuple[int, int]] = {}
        for kind, row in counting.count(self._context, (*backlog.STATES, _HELD))[0].items():
            found[kind] = (sum(row.get(state, 0) for state in backlog.STATES), row.get(_HELD, 0))
        return found

    def _path(self, kind: str | None) -> str:
        return f"{self._root}/{names.paused_name(kind)}"

    def _size(self, kind: str | None) -> int:
        try:
            return self._disk.size(self._path(kind))
        except FileNotFoundError:
            self._context.mover.ensure(self._root)
            return 0

    def _counted(self, kind: str | None) -> tuple[int, int, int, int]:
        """Return the last count, the size at which it was made, when, and how long it took; zeros if there is none."""
        words = self._disk.read_at(f"{self._path(kind)}.counted", 0, 80).split()
        if len(words) != 4 or not all(word.isdigit() for word in words):
            return 0, 0, 0, 0
        counted, since, at, cost = map(int, words)
        return counted, since, at, cost

    def _note(self, kind: str | None, text: str) -> None:
        """Replace the note of the last count; of several counts at once any may stay."""
        draft = self._context.draft()
        self._disk.create(draft, text.encode(), False)
        self._disk.rename(draft, f"{self._path(kind)}.counted")
