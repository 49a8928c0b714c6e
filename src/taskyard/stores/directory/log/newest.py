"""The newest events of the log, read from the ends of its pages."""

from __future__ import annotations

from taskyard.core.transfer import in_order
from taskyard.stores.directory.log.activity import from_the_end
from taskyard.stores.directory.log.reader import parse_event
from taskyard.stores.directory.log.writer import SUFFIX, page_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.filesystem.disk import Disk

_MOST = 8 << 20  # bytes that are read: about 60,000 events
_HOUR = len("2026-01-31T12")


def newest_events(disk: Disk, folder: str, limit: int, most: int = _MOST) -> list[dict[str, Any]]:
    """Return the newest events, at most `limit`, oldest first; of an hour with several pages, the newest of each are read."""
    hours: dict[str, list[str]] = {}
    for name in disk.listdir(folder):
        if name.endswith(SUFFIX):
            hours.setdefault(name[:_HOUR], []).append(name)
    found: list[dict[str, Any]] = []
    for hour in sorted(hours, reverse=True):
        wanted, of_hour = limit - len(found), list[dict[str, "Any"]]()
        logs: dict[str, list[str]] = {}
        for name in sorted(hours[hour], key=page_number, reverse=True):
            logs.setdefault(page_number(name)[0], []).append(name)
        for pages in logs.values():
            events, most = _of_log(disk, [f"{folder}/{name}" for name in pages], wanted, most)
            of_hour += events
        of_hour.sort(key=lambda event: str(event["at"]))
        found = of_hour[-wanted:] + found
        if len(found) >= limit or most <= 0:
            break
    return in_order(found)


def _of_log(disk: Disk, pages: list[str], wanted: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the newest events of the pages of one log, newest page first, and how many bytes may still be read."""
    found: list[dict[str, Any]] = []
    for path in pages:
        for size, lines in from_the_end(disk, path):
            events = [event for event in map(parse_event, lines[-wanted - 1 :]) if event is not None]
            found = events + found
            most -= size
            if len(found) >= wanted or most <= 0:
                return found[-wanted:], most
    return found, most
