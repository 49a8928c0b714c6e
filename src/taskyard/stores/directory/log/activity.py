"""How often each event happened of late, counted in the newest pages of the log, without parsing a line."""

from __future__ import annotations

from taskyard.core.activity import Activity
from taskyard.core.times import rfc3339
from taskyard.stores.directory.log.writer import SUFFIX, page_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.stores.directory.filesystem.disk import Disk

_MOST = 8 << 20  # bytes that are read: about 60,000 events
_PIECE = 1 << 18
_HOUR = len("2026-01-31T12")
_AT = slice(len('{"at":"'), len('{"at":"2026-01-31T12:05:00.000Z'))
_EVENT = len('{"at":"2026-01-31T12:05:00.000Z","event":"')
_SLACK = 2000  # milliseconds by which threads may have logged out of order


def activity(disk: Disk, folder: str, now: int, most: int = _MOST) -> Activity:
    """Return the events of the last minute and hour; if there are too many to read, of as long as was read."""
    found = Activity(now)
    begin = rfc3339(now - Activity.HOUR)
    pages = [name for name in disk.listdir(folder) if name.endswith(SUFFIX) and name[:_HOUR] >= begin[:_HOUR]]
    left = most
    for name in sorted(pages, key=lambda name: (name[:_HOUR], page_number(name)[1]), reverse=True):
        for size, lines in from_the_end(disk, f"{folder}/{name}"):
            if left <= 0:
                read = most - left
                found.share = read / max(read, sum(_size(disk, f"{folder}/{page}") for page in pages))
                return found
            left -= size
            oldest = _count(found, lines)
            if oldest is not None and oldest < rfc3339(now - Activity.HOUR - _SLACK):
                break
    found.complete = True
    return found


def from_the_end(disk: Disk, path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the page's whole lines, in pieces, the last piece first; and how many bytes were read for each."""
    end = _size(disk, path)
    cut = b""  # the end of a line that begins in an earlier piece
    while end > 0:
        begin = max(0, end - _PIECE)
        first, *lines = (disk.read_at(path, begin, end - begin) + cut).split(b"\n")
        if begin == 0:
            lines.insert(0, first)
        cut = first[:_PIECE]
        size, end = end - begin, begin
        yield size, lines


def _size(disk: Disk, path: str) -> int:
    try:
        return disk.size(path)
    except FileNotFoundError:
        return 0  # pruned


def _count(found: Activity, lines: list[bytes]) -> str | None:
    """Count these lines; return the time of the first one."""
    oldest = None
    for line in lines:
        if line[: _AT.start] == b'{"at":"' and line[_AT.stop : _EVENT] == b'","event":"':
            at = line[_AT].decode("ascii", "replace")
            oldest = oldest or at
            found.count(line[_EVENT : line.find(b'"', _EVENT)].decode("ascii", "replace"), at)
    return oldest
