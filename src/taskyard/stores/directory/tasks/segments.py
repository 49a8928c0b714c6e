"""Segments of about a thousand tasks of one lane, so that no directory grows large and an id shows where its task is.

`segments/<seg>` marks a segment: its first line is the time it was opened and its lane. Then comes one byte for each task
that was put into it. The marker's size is the count, so no adder has to list anything. `segments/<lane>` notes the
segment that the lane's last task was put into, for new processes. Without it, a process whose tasks do not go to todo/
would find no segment of its lane, and open another for every task.
"""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Conflict
from taskyard.stores.directory.names import UNREADABLE, Lane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.context import Context

SIZE = 1024
RECENT = 16  # markers that are read before another segment is opened
_NUMBERS = 32**ids.SEGMENT
_AHEAD = 1024  # free numbers that must follow in a row, so that new segments stay in order for a while
_LINE = 512  # bytes of a marker's first line, at the most


def next_number(taken: list[str]) -> tuple[int, int | None]:
    """Return the newest segment's position in `taken`, the highest first, and the number after it; None if all are taken.

    The newest is the highest, unless another program took a number near the end. Numbers there are skipped, because most
    lower ones are still free. Claims take the segments of a lane from the lowest on. So numbers must rise from the last one
    used, and not from any free one.
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

    def __init__(self, context: Context) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._current: dict[str, str] = {}
        self._headers: dict[str, int] = {}
        self._filled: dict[str, int] = {}  # places taken, as far as this process knows: others may have taken more
        self._notes: dict[str, str] = {}  # of lanes, as they were last read or written

    def reserve(self, lane: str, wanted: int) -> tuple[str, int]:
        """Reserve places in a segment of this lane; return the segment and the number of places, at most `wanted`."""
        current = self._current.get(lane, "")
        if current:
            room = self._take(current, wanted)
            if room:
                return current, room
        for segment in self._candidates(lane, current):
            room = self._take(segment, wanted)
            if room:
                self._current[lane] = segment
                self._note(lane, segment)
                return segment, room
        raise AssertionError("there is always another segment, or a Conflict")

    def _candidates(self, lane: str, tried: str) -> Iterator[str]:
        """Yield segments of this lane that may have room, other than `tried`, the likeliest first, and then new ones."""
        for find in (self._noted, self._newest):
            segment = find(lane)
            if segment and segment != tried:
                tried = segment
                yield segment
        while True:
            tried = self._open(lane, tried)
            yield tried

    def _noted(self, lane: str) -> str:
        """Return the segment that the lane's note names, if it exists and belongs to the lane."""
        segment = self._disk.read_at(self._path(lane), 0, ids.SEGMENT).decode("ascii", "replace")
        self._notes[lane] = segment if ids.is_segment(segment) and self._marker(segment)[1] == lane else ""
        return self._notes[lane]

    def _note(self, lane: str, segment: str) -> None:
        """Write the lane's note for later processes; a lost one only costs them a search, so nothing is synced."""
        if self._notes.get(lane) == segment:
            return
        self._notes[lane] = segment
        try:
            draft = self._context.draft()
            self._disk.create(draft, f"{segment}\n".encode(), False)
            self._disk.rename(draft, self._path(lane))
        except OSError:
            return  # the disk is full, or another file is in its place: the add itself will raise

    def opened(self, segment: str) -> int:
        """Return when the segment was opened: no task in it is older. Return 0 if its marker is gone."""
        return self._marker(segment)[0]

    def takes_more(self, segment: str) -> bool:
        """Whether tasks may still be put into the segment."""
        try:
            return self._has_room(segment)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return False

    def remove(self, segment: str) -> None:
        """Remove the marker of a segment that is no longer needed, and the note that names it."""
        lane = self._marker(segment)[1]
        notes = Lane.parse(lane) is not None and self._noted(lane) == segment
        self._disk.remove(self._path(segment))
        if notes:
            self._disk.remove(self._path(lane))

    def _take(self, segment: str, wanted: int) -> int:
        """Reserve up to `wanted` places in this segment by appending bytes to its marker; return how many count."""
        path = self._path(segment)
        header = self._headers.get(segment) or self._marker(segment)[2]
        filled = self._filled.get(segment)
        try:
            if filled is None:
                filled = self._disk.size(path) - header
            room = wanted if wanted <= SIZE - filled else SIZE - filled
            if room <= 0:
                return self._full(segment)
            before = self._disk.append(path, b"." * room, create=False) - header
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return self._full(segment)
        self._headers[segment], self._filled[segment] = header, before + room
        return room if before + room <= SIZE else max(0, SIZE - before) or self._full(segment)

    def _full(self, segment: str) -> int:
        """Forget what was known of a segment without room."""
        self._headers.pop(segment, None)
        self._filled.pop(segment, None)
        return 0

    def _newest(self, lane: str) -> str:
        """Return the highest segment that this lane has tasks in, if it is the lane's own."""
        try:
            names = sorted(filter(ids.is_segment, self._disk.listdir(f"{self._root}/todo/{lane}")), reverse=True)
        except FileNotFoundError:
            return ""
        # Tasks that were moved here from another lane keep their segment, so the highest need not be the lane's own.
        return next((name for name in names[:8] if self._marker(name)[1] == lane), "")

    def _open(self, lane: str, full: str) -> str:
        """Return a segment of this lane with room, other than `full`: a recent one, or a new one."""
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
            draft = self._context.draft()
            self._disk.create(draft, f"{self._context.clock.now()} {lane}\n".encode(), self._context.durable)
            if self._disk.publish(draft, self._path(segment)):
                if self._context.durable:
                    self._disk.sync(f"{self._root}/segments")
                return segment
            if self._marker(segment)[1] == lane:
                return segment  # another process opened it for the same lane a moment ago
            number += 1
        return self._open(lane, full)  # others have taken all numbers above: there are more below

    def _has_room(self, segment: str) -> bool:
        return self._disk.size(self._path(segment)) - self._marker(segment)[2] < SIZE

    def _marker(self, segment: str) -> tuple[int, str, int]:
        """Return when the segment was opened, its lane, and the length of that line."""
        try:
            line, end, _ = self._disk.read_at(self._path(segment), 0, _LINE).partition(b"\n")
            opened, _, lane = line.decode().partition(" ")
            return (int(opened), lane, len(line) + 1) if end else (0, "", 0)
        except ValueError:
            return 0, "", 0

    def _path(self, name: str) -> str:
        return f"{self._root}/segments/{name}"
