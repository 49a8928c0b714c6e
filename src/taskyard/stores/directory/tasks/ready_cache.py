"""The next tasks for claims: the oldest tasks of each lane, listed once and then claimed from memory.

A listing is only a hint. The rename decides which worker gets a task, and a lane is listed anew every second. No claim
returns "nothing ready" because of a cached list.
"""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.stores.directory.names import CLOSED, Lane, is_ready, paused, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.store_records import Want
    from taskyard.stores.directory.filesystem.disk import Disk

_NEVER = -1e9
_GLANCE = 0.002  # seconds between two listings of lanes, and of lanes that were empty
_RELIST = 1.0  # seconds for which a lane's list is used
_WINDOW = 32  # after lost races the next pick is random among this many at most
_DRAINED = 10_000  # milliseconds after which an empty lane is removed
_LANES_AT_ONCE = 8  # lanes of equal priority whose oldest tasks are compared: bounds what a single claim has to list


class Head:
    """The oldest tasks of one lane."""

    __slots__ = (
        "_closed", "_disk", "_now", "_path", "_segments", "folder", "lane", "listed", "listed_in", "names", "waits_for",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str, lane: Lane, closed: dict[str, str], now: Callable[[], int]) -> None:
        self._disk = disk
        self._closed = closed
        self._path = path
        self._now = now
        self._segments: list[str] = []
        self.lane = lane
        self.waits_for = waits_for(path)
        """The digest of the resource that its tasks wait for; None for an ordinary lane."""
        self.names: list[str] = []  # oldest last, so that taking one is a pop
        self.folder = ""
        self.listed = _NEVER
        self.listed_in = 0
        """The number of the newest claim when it was listed: a clock may stand still between two claims."""

    def fill(self, now: float, number: int) -> bool:
        """List what has to be listed; return whether there is a task to try."""
        if now - self.listed > (_RELIST if self.names or self._segments else _GLANCE):
            self._list_segments(now)
            self.listed_in = number
        while not self.names and self._segments:
            self._list_names(self._segments.pop())
        return bool(self.names)

    def _list_segments(self, now: float) -> None:
        self.listed = now
        self.names = []
        self._segments = sorted(filter(ids.is_segment, self._listed(self._path)), reverse=True)
        if not self._segments and self.waits_for is not None:
            self._drop(self._path)

    def _list_names(self, segment: str) -> None:
        self.folder = f"{self._path}/{segment}"
        names = self._listed(self.folder)
        self.names = [name for name in names if is_ready(name) and name.startswith(segment)]
        self.names.sort(reverse=True)
        if not names and (self._segments or self._is_drained()):
            # Removed, so that no later listing reads it. A process that still moves a task in makes it anew.
            self._drop(self.folder)
            if not self._segments:
                self._drop(self._path)

    def _is_drained(self) -> bool:
        """Whether the lane's last, empty segment can be removed as well: no task was put there or taken from there recently.

        A process that adds one task at a time would otherwise make its folder anew for each, and sync that.
        """
        if self.waits_for is not None:
            return True
        try:
            return self._now() - self._disk.changed_at(self.folder) > _DRAINED
        except OSError:
            return False

    def _drop(self, folder: str) -> None:
        try:
            self._disk.rmdir(folder)
        except OSError:
            return

    def _listed(self, folder: str) -> list[str]:
        """List the folder; one that the system refuses is noted, and does not block claims from others."""
        try:
            names = self._disk.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            if error.errno not in CLOSED:
                raise
            self._closed[folder] = str(error.strerror)
            return []
        if self._closed:
            self._closed.pop(folder, None)
        return names

    def close(self, reason: str) -> None:
        """Skip the folder at the head: it can be listed, but nothing can be taken from it."""
        self._closed[self.folder] = reason
        self.names = []

    def take(self, lost: int) -> str:
        """Return a name near the oldest, the nearer the fewer races were lost: so workers spread, yet keep the order."""
        return self.names.pop(-1 - ids.chance(16) % min(1 << lost, _WINDOW, len(self.names)))


class ReadyCache:
    """The lanes of a yard by priority, and their heads."""

    def __init__(self, disk: Disk, root: str, now: Callable[[], int]) -> None:
        self._disk = disk
        self._now = now
        self._todo = f"{root}/todo"
        self._stops = f"{root}/paused"
        self._stopped: list[str] = []
        self._ready_cache: dict[str, Head] = {}
        self._served: dict[tuple[frozenset[str] | None, str], list[list[Head]]] = {}
        self._changed = -1
        self._glanced = self._listed = _NEVER
        self._number = self._listed_in = 0
        self._rotation = ids.chance(16)
        self.closed: dict[str, str] = {}
        """Folders that claims skip because the system refuses them, each with the system's message."""

    def forget(self, lane: str | None = None) -> None:
        """List this lane, or all, before the next pick: a task was put there that may be older than the cached ones."""
        self._glanced = self._listed = _NEVER
        for head in self._ready_cache.values() if lane is None else filter(None, [self._ready_cache.get(lane)]):
            head.listed = _NEVER

    def begin(self) -> int:
        """Return the number of a claim that begins now; later listings have at least this number."""
        self._number += 1
        return self._number

    def outdate(self, number: int) -> None:
        """List before the next pick all lanes that were not listed since this claim began."""
        if self._listed_in < number:
            self._glanced = self._listed = _NEVER
        for head in self._ready_cache.values():
            if head.listed_in < number:
                head.listed = _NEVER

    def notice(self, lane: str) -> None:
        """Note a new task in this lane: it is younger than all cached ones, so only an empty list is outdated."""
        head = self._ready_cache.get(lane)
        if head is None:
            self._glanced = self._listed = _NEVER
        elif not head.names:
            head.listed = _NEVER

    def pick(
        self, want: Want, lost: int, asked: float | None = None, busy: frozenset[str] | None = None
    ) -> tuple[Head, str] | None:
        """Return the oldest task of the most urgent lanes that fit, or None if the lists hold none.

        `asked` is a moment: lists since then are not listed anew, so that a claim which skips tasks comes to an end.
        `busy` are digests of resources in use: lanes that wait for one are skipped. Without it such a lane raises `Busy`.
        """
        now = time.monotonic() if asked is None else asked
        if now - self._glanced >= _GLANCE:
            self._glance(now)
        for group in self._served.get((want.kinds, want.worker)) or self._serving(want.kinds, want.worker):
            if len(group) == 1:
                head = group[0]
                if head.waits_for is not None and _is_busy(head, busy):
                    continue
                if (head.names and now - head.listed < _RELIST) or head.fill(now, self._number):
                    return head, head.take(lost) if lost else head.names.pop()
                continue
            lanes = group if len(group) <= _LANES_AT_ONCE else self._turned(group)
            for start in range(0, len(lanes), _LANES_AT_ONCE):
                some = lanes[start : start + _LANES_AT_ONCE]
                if any(head.waits_for for head in some):
                    some = [head for head in some if head.waits_for is None or not _is_busy(head, busy)]
                ready = [
                    head
                    for head in some
                    if (head.names and now - head.listed < _RELIST) or head.fill(now, self._number)
                ]
                if ready:
                    head = ready[0] if len(ready) == 1 else min(ready, key=_age_of_oldest)
                    return head, head.take(lost) if lost else head.names.pop()
        return None

    def is_fresh(self, want: Want, number: int, busy: frozenset[str] | None) -> bool:
        """Whether all lanes that fit were listed since this claim began, except those that wait for a busy resource."""
        groups = self._serving(want.kinds, want.worker)
        return self._listed_in >= number and all(
            head.listed_in >= number or (busy is not None and head.waits_for in busy)
            for group in groups
            for head in group
        )

    def _serving(self, kinds: frozenset[str] | None, worker: str) -> list[list[Head]]:
        """Return the lanes that fit such a claim, in groups of equal priority, the most urgent first."""
        if len(self._served) > 1000:
            self._served.clear()
        lanes: dict[int, list[Head]] = {}
        everything, some = paused(self._stopped)
        for head in self._ready_cache.values():
            if everything or head.lane.kind in some:
                continue
            if (kinds is None or head.lane.kind in kinds) and (
                head.lane.assignee is None or head.lane.assignee == worker
            ):
                lanes.setdefault(head.lane.priority, []).append(head)
        groups = self._served[kinds, worker] = [lanes[priority] for priority in sorted(lanes)]
        return groups

    def _turned(self, group: list[Head]) -> list[Head]:
        """Return the group from another beginning each time, so that no lane starves."""
        self._rotation += 1
        first = self._rotation % len(group)
        return group[first:] + group[:first]

    def _glance(self, now: float) -> None:
        """Look for new and removed lanes, and for pauses."""
        self._glanced = now
        stopped = sorted(self._disk.listdir(self._stops))
        if stopped != self._stopped:
            self._stopped, self._served = stopped, {}
        changed = self._disk.changed(self._todo)
        if changed == self._changed and now - self._listed < _RELIST:
            return
        self._changed, self._listed, self._listed_in = changed, now, self._number
        heads = {}
        for name in self._disk.listdir(self._todo):
            lane = Lane.of_folder(name)
            if lane is not None:
                path = f"{self._todo}/{name}"
                heads[name] = self._ready_cache.get(name) or Head(self._disk, path, lane, self.closed, self._now)
        self._ready_cache = heads
        self._served = {}


class Busy(Exception):
    """The caller of `pick` has to pass which resources are in use."""


def _is_busy(head: Head, busy: frozenset[str] | None) -> bool:
    if busy is None:
        raise Busy
    return head.waits_for in busy


def _age_of_oldest(head: Head) -> str:
    return ids.age_key(head.names[-1])
