"""What each asker may have of the gateway at one time: connections of one address, and bytes of bodies."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from taskyard.doors.gateway.buckets import TooMany

if TYPE_CHECKING:
    from collections.abc import Iterator

BODIES_MOST = 128 << 20  # bytes of bodies that one asker may be sending at a time: two of the largest


class Held:
    """Counts what each asker holds, and forgets an asker that holds nothing."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: dict[str, int] = {}

    def take(self, asker: str, number: int = 1) -> bool:
        """Take `number` more; return False, and take nothing, if that would be too many."""
        now = self._held.get(asker, 0) + number
        if now > self.most:
            return False
        self._held[asker] = now
        return True

    def give_back(self, asker: str, number: int = 1) -> None:
        """Give back what was taken."""
        left = self._held[asker] - number
        if left:
            self._held[asker] = left
        else:
            del self._held[asker]


class Body:
    """The bytes of one body, counted as its asker's as long as it is held."""

    def __init__(self, bodies: Held, asker: str) -> None:
        self._bodies = bodies
        self._asker = asker
        self.length = 0

    def grow(self, number: int) -> None:
        """Count more bytes; raise `TooMany` if the asker sends too many at a time."""
        if not self._bodies.take(self._asker, number):
            raise TooMany(
                f"more than {self._bodies.most >> 20} MiB are being sent with this token, or from this address",
                hint="send large requests one after the other",
            )
        self.length += number


@contextmanager
def body(bodies: Held, asker: str) -> Iterator[Body]:
    """Return a block in which a body is held."""
    held = Body(bodies, asker)
    try:
        yield held
    finally:
        if held.length:
            bodies.give_back(asker, held.length)
