"""Segments: about a thousand tasks of one lane each, so that no directory grows and an id tells where its task is.

`segments/<seg>` marks a segment: its first line is the time it was opened and its lane, then one byte for each task
that was put into it. The marker's size is the count, so no adder has to list anything.
"""

from __future__ import annotations

from taskyard import ids
from taskyard.errors import Conflict
from taskyard.stores.directory.names import UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.ground import Ground

SIZE = 1024
RECENT = 16  # markers that are looked at before another segment is opened
_NUMBERS = 32**ids.SEGMENT
_AHEAD = 1024  # free numbers that there must be in a row, so that whoever goes on there stays in order for a while
_LINE = 512  # bytes of a marker's first line, at the most


def next_number(taken: list[str]) -> tuple[int, int | None]:
    """Where the newest segment stands among all, the highest first, and the number that follows it; None if all are taken.

    That is the highest, unless somebody took a number near the end: what stands there is passed over, because numbers do
    not come to an end while most of them are free. Segments of a lane are handed out from the lowest on, so numbers go up
    from where they were, and not from whatever is free.
    """
    above, room_left = _NUMBERS, None
    for place, segment in enumerate(taken):
        number = ids.number(segment)
        if above - number > _AHEAD:
            return place, number + 1
        if above - number > 1 and room_left is None:
            room_left = place, number + 1
        above = number
    if above >= _AHEAD or (above and room_left is None):
        return len(taken), 0
    return room_left or (0, None)


class Segments:
    """Finds room for new tasks."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._root = ground.root
        self._current: dict[str, str] = {}
        self._headers: dict[str, int] = {}

    def reserve(self, lane: str, wanted: int) -> tuple[str, int]:
        """A segment of this lane and how many tasks it takes, at most `wanted`."""
        segment = self._current.get(lane) or self._newest(lane)
        while True:
            room = self._take(segment, wanted) if segment else 0
            if room:
                self._current[lane] = segment
                return segment, room
            self._headers.pop(segment, None)
            segment = self._open(lane, segment)

    def opened(self, segment: str) -> int:
        """When the segment was opened: no task in it is older. 0 if its marker is gone."""
        return self._marker(segment)[0]

    def _take(self, segment: str, wanted: int) -> int:
        """How many places in this segment are the caller's now: its bytes in the marker, as far as they count."""
        path = self._path(segment)
        header = self._headers.get(segment) or self._marker(segment)[2]
        try:
            room = min(wanted, SIZE - (self._disk.size(path) - header))
            if room <= 0:
                return 0
            before = self._disk.append(path, b"." * room, create=False) - header
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return 0
        self._headers[segment] = header
        return max(0, min(room, SIZE - before))

    def _newest(self, lane: str) -> str:
        """The highest segment that this lane has tasks in, if it is the lane's own."""
        try:
            names = sorted(filter(ids.is_segment, self._disk.listdir(f"{self._root}/todo/{lane}")), reverse=True)
        except FileNotFoundError:
            return ""
        # Tasks that were moved here from another lane keep their segment, so the highest need not be the lane's own.
        return next((name for name in names[:8] if self._marker(name)[1] == lane), "")

    def _open(self, lane: str, full: str) -> str:
        """A segment of this lane with room in it, other than the full one: a recent one, or a new one."""
        taken = sorted(filter(ids.is_segment, self._disk.listdir(f"{self._root}/segments")), reverse=True)
        newest, number = next_number(taken)
        for segment in taken[newest : newest + RECENT]:
            # The lane's newest may have no folder in todo/: its tasks are waiting, or all were claimed.
            if self._marker(segment)[1] == lane and segment != full and self._has_room(segment):
                return segment
        if number is None:
            raise Conflict("this yard has used up all its segments, a thousand million tasks", hint="begin a new yard")
        while number < _NUMBERS:
            segment = ids.base32(number, ids.SEGMENT)
            draft = self._ground.draft()
            self._disk.create(draft, f"{self._ground.clock.now()} {lane}\n".encode(), self._ground.durable)
            if self._disk.publish(draft, self._path(segment)):
                if self._ground.durable:
                    self._disk.sync(f"{self._root}/segments")
                return segment
            if self._marker(segment)[1] == lane:
                return segment  # a twin opened it for the same lane a moment ago
            number += 1
        return self._open(lane, full)  # others have taken all that there was above: there is more below

    def _has_room(self, segment: str) -> bool:
        return self._disk.size(self._path(segment)) - self._marker(segment)[2] < SIZE

    def _marker(self, segment: str) -> tuple[int, str, int]:
        """When the segment was opened, its lane, and the length of that line."""
        try:
            line, end, _ = self._disk.read_at(self._path(segment), 0, _LINE).partition(b"\n")
            opened, _, lane = line.decode().partition(" ")
            return (int(opened), lane, len(line) + 1) if end else (0, "", 0)
        except ValueError:
            return 0, "", 0

    def _path(self, segment: str) -> str:
        return f"{self._root}/segments/{segment}"
