"""Work whose asker may give it up: what only reads stops at its next step, and a statement that runs is cancelled.

The work runs in one thread, and is given up from another. What changes tasks is never stopped in the middle of a move.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_working: dict[int, Abandonment] = {}
"""What threads are at work on that may be given up."""


class Abandoned(Exception):
    """The client that asked for this is gone."""


class Abandonment:
    """One piece of work. One that `reads` stops at any step; one that changes tasks stops only between two moves."""

    __slots__ = ("_cancel", "_lock", "is_abandoned", "reads")

    def __init__(self, reads: bool) -> None:
        self.reads = reads
        self.is_abandoned = False
        self._cancel: Callable[[], object] | None = None
        self._lock = allocate_lock()

    def run(self, act: Callable[[], Any]) -> Any:
        """Do the work in this thread; raise `Abandoned` if it is given up meanwhile."""
        if self.is_abandoned:
            raise Abandoned
        thread = get_ident()
        _working[thread] = self
        try:
            return act()
        finally:
            del _working[thread]

    def abandon(self) -> None:
        """Give the work up, from another thread; this waits until a running statement's cancel has reached the database."""
        with self._lock:  # so that what is cancelled is not lent to other work meanwhile
            self.is_abandoned = True
            if self._cancel is not None:
                self._cancel()

    def begin(self, cancel: Callable[[], object]) -> None:
        """From now on, call `cancel` if the work is given up; raise `Abandoned` if it was given up before."""
        with self._lock:
            if self.is_abandoned:
                raise Abandoned
            self._cancel = cancel

    def end(self) -> bool:
        """Forget the `cancel` of `begin`; return whether the work was given up."""
        with self._lock:
            self._cancel = None
            return self.is_abandoned


def reading() -> Abandonment | None:
    """Return the work of this thread if that only reads, and may be given up."""
    work = _working.get(get_ident())
    return work if work is not None and work.reads else None


def check() -> None:
    """Raise `Abandoned` if this thread reads for an asker that is gone."""
    if _working and (work := reading()) is not None and work.is_abandoned:
        raise Abandoned


def check_between_moves() -> None:
    """Raise `Abandoned` if the client that asked for this is gone; what was done so far stays."""
    work = _working.get(get_ident())
    if work is not None and work.is_abandoned:
        raise Abandoned


class Shielded:
    """A block that is not given up in the middle: it changes something on behalf of all."""

    __slots__ = ("_work",)

    def __enter__(self) -> None:
        self._work = _working.pop(get_ident(), None)

    def __exit__(self, *_: object) -> None:
        if self._work is not None:
            _working[get_ident()] = self._work
