"""Who leads a yard: one file in leader/, whose name tells, and whose ctime tells for how long it has not been renewed.

`<number>` is free, `<number>.<worker>.<incarnation>` is held. Every change of hands is one rename to the next number, so only one
process gets it, and a leader that was stopped finds its own name gone. It needs no lock, so it holds on network filesystems too.
"""

from __future__ import annotations

from taskyard.core import ids, words
from taskyard.core.store_records import Lead
from taskyard.stores.directory.names import is_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

FOLDER = "leader"
_FREE = "0"


class DirectoryLeadership:
    """Hands out the leadership of one yard."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._folder = f"{context.root}/{FOLDER}"

    def lead(self, worker: str, incarnation: str, seconds: float) -> Lead:
        """Lead for `seconds` from now on, if this incarnation leads already or no other does; return who leads."""
        number, name = self._last()
        holder = leader_of(name)
        if holder is not None and holder[1] == incarnation and self._renewed(name):
            return Lead(worker, number, True)
        if holder is not None and not self._is_over(name, seconds):
            return Lead(holder[0], number, False)
        own = f"{number + 1}.{words.encoded(worker)}.{incarnation}"
        if self._context.mover.move(f"{self._folder}/{name}", self._folder, own):
            return Lead(worker, number + 1, True)
        number, name = self._last()
        holder = leader_of(name)
        return Lead(None if holder is None else holder[0], number, False)

    def resign(self, incarnation: str) -> bool:
        """Whether this incarnation led, and does so no more."""
        number, name = self._last()
        holder = leader_of(name)
        if holder is None or holder[1] != incarnation:
            return False
        return self._context.mover.move(f"{self._folder}/{name}", self._folder, str(number + 1))

    def _last(self) -> tuple[int, str]:
        """Return the number and the name of the one file; it is made if it is missing."""
        while True:
            found = [name for name in self._context.locator.names(self._folder) if is_leader(name)]
            if found:
                return max((int(name.partition(".")[0]), name) for name in found)
            self._context.mover.mark(self._folder, _FREE, sync=False)

    def _renewed(self, name: str) -> bool:
        try:
            self._context.disk.touch(f"{self._folder}/{name}")
        except FileNotFoundError:
            return False
        return True

    def _is_over(self, name: str, seconds: float) -> bool:
        try:
            age = self._context.clock.exact() - self._context.disk.stamp(f"{self._folder}/{name}")
        except FileNotFoundError:
            return False
        # After a clock that was ahead is set right, a leader that lives has touched it since.
        return abs(age) > seconds * 1000


def is_leader(name: str) -> bool:
    """Whether this is a name as used in leader/."""
    return is_turn(name) or leader_of(name) is not None


def leader_of(name: str) -> tuple[str, str] | None:
    """Return the worker and the incarnation in a name of leader/; None if it has none."""
    number, _, rest = name.partition(".")
    worker, _, incarnation = rest.rpartition(".")
    if not is_turn(number) or not worker or not ids.is_word(incarnation):
        return None
    try:
        return words.decoded(worker), incarnation
    except ValueError:
        return None
