"""The next tasks for claims: the oldest tasks of each lane, listed once and then claimed from memory.

A listing is only a hint. The rename decides which worker gets a task, and a lane is listed anew every second. No claim
returns "nothing ready" because of a cached list.
"""

from __future__ import annotations

import time

from taskyard.core import ids, order
from taskyard.stores.directory.names import CLOSED, Lane, is_ready, mission_digest, paused, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.retry import Policy
    from taskyard.core.store_records import Want
    from taskyard.stores.directory.filesystem.disk import Disk

_NEVER = -1e9
_NO_KINDS: frozenset[str] = frozenset()
_GLANCE = 0.002  # seconds between two listings of lanes, and of lanes that were empty
_RELIST = 1.0  # seconds for which a lane's list is used
_WINDOW = 32  # after lost races the next pick is random among this many at most
_DRAINED = 10_000  # milliseconds after which an empty lane is removed
_FEW = 8  # lanes that are compared one by one at every claim
_COMPARE = 0.01  # seconds after which more lanes are compared anew, for what other processes have put there
_READ_AT_ONCE = 64  # names that are compared with the grammar at a time: a single claim needs one of a thousand
_LISTED_AT_ONCE = 32  # lanes that one claim lists before it compares all that are listed: 32 full ones took 24 ms


class Head:
    """The oldest tasks of one lane."""

    __slots__ = (
        "_closed", "_disk", "_now", "_path", "_segments", "_unread", "folder", "lane", "listed", "listed_in", "name", "names", "waits_for",
    )  # fmt: skip

    def __init__(self, disk: Disk, path: str, lane: Lane, closed: dict[str, str], now: Callable[[], int]) -> None:
        self._disk = disk
        self._closed = closed
        self._path = path
        self._now = now
        self._segments: list[str] = []
        self._unread: list[
            str
        ] = []  # names of the open segment that nothing has compared with the grammar yet, oldest last
        self.lane = lane
        self.name = path.rpartition("/")[2]
        self.waits_for = waits_for(path)
        """The digest of the resource that its tasks wait for; None for an ordinary lane."""
        self.names: list[str] = []  # oldest last, so that taking one is a pop
        self.folder = ""
        self.listed = _NEVER
        self.listed_in = 0
        """The number of the newest claim when it was listed: a clock may stand still between two claims."""

    def fill(self, now: float, number: int) -> bool:
        """List what has to be listed; return whether there is a task to try."""
        if now - self.listed > (_RELIST if self.names or self._unread or self._segments else _GLANCE):
            self._list_segments(now)
            self.listed_in = number
        while not self.names and (self._unread or self._segments):
            if not self._unread:
                self._list_names(self._segments.pop())
            self.names = list(filter(is_ready, self._unread[-_READ_AT_ONCE:]))
            del self._unread[-_READ_AT_ONCE:]
        return bool(self.names)

    def _list_segments(self, now: float) -> None:
        self.listed = now
        self.names, self._unread = [], []
        self._segments = sorted(filter(ids.is_segment, self._listed(self._path)), reverse=True)
        if not self._segments and self.waits_for is not None:
            self._drop(self._path)

    def _list_names(self, segment: str) -> None:
        self.folder = f"{self._path}/{segment}"
        names = self._listed(self.folder)
        self._unread = sorted((name for name in names if name.startswith(segment)), reverse=True)
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
        self.names, self._unread = [], []

    def put_back(self, folder: str, name: str) -> None:
        """Put back the oldest name, which cannot be claimed now."""
        if folder == self.folder:
            self.names.append(name)

    def insert(self, folder: str, name: str) -> bool:
        """Take in a name that has come into this lane; return False if the lane has to be listed for it."""
        segment = name[: ids.SEGMENT]
        if not self.folder or folder.rpartition("/")[0] != self._path or folder < self.folder:
            return False
        if folder == self.folder:
            _insert(self.names if not self._unread or name < self._unread[-1] else self._unread, name)
        elif segment not in self._segments:
            _insert(self._segments, segment)
        return True

    def take(self, lost: int) -> str:
        """Return a name near the oldest, the nearer the fewer races were lost: so workers spread, yet keep the order."""
        return self.names.pop(-1 - ids.chance(16) % min(1 << lost, _WINDOW, len(self.names)))


class Group(list[Head]):
    """The lanes of one priority, or with ageing of all; and in `heap` those with a task to try, by that task, for a moment."""

    __slots__ = ("heap", "until", "version")

    def __init__(self) -> None:
        super().__init__()
        self.heap: list[tuple[order.Rank | str, int, Head]] = []
        self.until = _NEVER
        self.version = 0


class ReadyCache:
    """The lanes of a yard by priority, and their heads."""

    def __init__(self, disk: Disk, root: str, now: Callable[[], int], policy: Policy) -> None:
        self._disk = disk
        self._now = now
        self._policy = policy
        self._todo = f"{root}/todo"
        self._stops = f"{root}/paused"
        self._stopped: list[str] = []
        self._ready_cache: dict[str, Head] = {}
        self._served: dict[tuple[frozenset[str] | None, str | None, str, frozenset[str]], list[Group]] = {}
        self._changed = -1
        self._glanced = self._listed = _NEVER
        self._number = self._listed_in = self._version = 0
        self._rotation = ids.chance(16)
        self.closed: dict[str, str] = {}
        """Folders that claims skip because the system refuses them, each with the system's message."""

    def forget(self, lane: str | None = None) -> None:
        """List this lane, or all, before the next pick: a task was put there that may be older than the cached ones."""
        self._version += 1
        self._glanced = self._listed = _NEVER
        for head in self._ready_cache.values() if lane is None else filter(None, [self._ready_cache.get(lane)]):
            head.listed = _NEVER

    def regroup(self) -> None:
        """Group the lanes anew before the next pick: the settings have changed."""
        self._version += 1
        self._served = {}

    def begin(self) -> int:
        """Return the number of a claim that begins now; later listings have at least this number."""
        self._number += 1
        return self._number

    def outdate(self, number: int) -> None:
        """List before the next pick all lanes that were not listed since this claim began."""
        self._version += 1
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
            self._version += 1

    def insert(self, lane: str, folder: str, name: str) -> None:
        """Take in a task that was put into this lane, and that may be older than the cached ones."""
        head = self._ready_cache.get(lane)
        if head is None or not head.insert(folder, name):
            self.forget(lane)
        self._version += 1

    def pick(
        self, want: Want, lost: int, now: float, busy: frozenset[str] | None = None, closed: frozenset[str] = _NO_KINDS
    ) -> tuple[Head, str] | None:
        """Return the oldest task of the most urgent lanes that fit, or None if the lists hold none.

        `now` is when the claim began: lists since then are not listed anew, so that a claim which skips tasks comes to an end.
        `busy` are digests of resources in use, and names of lanes: lanes that wait for one, or have that name, are skipped.
        Without it a lane that waits raises `Busy`. `closed` are kinds of which no task can be claimed now.
        """
        if now - self._glanced >= _GLANCE:
            self._glance(now)
        for group in self._served.get((want.kinds, want.mission, want.worker, closed)) or self._serving(want, closed):
            if len(group) == 1:
                head = group[0]
                if head.waits_for is not None and _is_busy(head, busy):
                    continue
                if (head.names and now - head.listed < _RELIST) or head.fill(now, self._number):
                    return head, head.take(lost) if lost else head.names.pop()
                continue
            first = self._first(group, now, busy)
            if first is not None:
                return first, first.take(lost) if lost else first.names.pop()
        return None

    def _first(self, group: Group, now: float, busy: frozenset[str] | None) -> Head | None:
        """Return the lane of this group whose oldest task is the next in the order of claims; None if none has one."""
        if len(group) <= _FEW:
            ready, _ = self._ready(group, now, busy)
            return ready[0] if len(ready) == 1 else min(ready, key=self._rank, default=None)
        if now < group.until and group.version == self._version:
            first = self._top(group, now, busy)
            if first is not None:
                return first
        import heapq  # few yards have so many lanes: a process that claims once does without

        ready, complete = self._ready(group, now, busy)
        group.heap = [(self._rank(head), number, head) for number, head in enumerate(ready)]
        heapq.heapify(group.heap)
        group.until, group.version = now + _COMPARE if complete else now, self._version
        return self._top(group, now, busy)

    def _top(self, group: Group, now: float, busy: frozenset[str] | None) -> Head | None:
        """Return the first lane of the group's heap; what was taken from a lane since only made its oldest task younger."""
        import heapq

        while group.heap:
            rank, number, head = group.heap[0]
            if (head.waits_for is not None and _is_busy(head, busy)) or not (
                head.names or head.fill(now, self._number)
            ):
                heapq.heappop(group.heap)
            elif (current := self._rank(head)) != rank:
                heapq.heapreplace(group.heap, (current, number, head))
            else:
                return head
        return None

    def _ready(self, group: list[Head], now: float, busy: frozenset[str] | None) -> tuple[list[Head], bool]:
        """Return the lanes that have a task to try, and whether all were listed; list some more, or all if none has one.

        So a worker compares all lanes from its first claims on, and a new process as many as it can list in a moment.
        """
        ready, left = [], _LISTED_AT_ONCE
        for head in group if len(group) <= _LISTED_AT_ONCE else self._turned(group):
            if head.waits_for is not None and _is_busy(head, busy):
                continue
            if head.names and (now - head.listed < _RELIST or left <= 0):
                ready.append(head)
            elif left > 0 or not ready:
                left -= 1
                if head.fill(now, self._number):
                    ready.append(head)
        return ready, left > 0

    def _rank(self, head: Head) -> order.Rank | str:
        """Return the key that sorts the lanes of one group by their oldest task, in the order of claims."""
        ageing = self._policy.ageing
        name = head.names[-1]
        return ids.age_key(name) if ageing is None else order.rank(head.lane.priority, name[: ids.LENGTH], ageing)

    def passed_over(self, *, fresh: bool) -> list[tuple[str, str]]:
        """Return folder and name of the oldest task in each lane of tasks that were passed over, without paused kinds.

        With `fresh`, no list from before this call counts.
        """
        now = time.monotonic()
        if fresh or now - self._glanced >= _GLANCE:
            self._glance(now)
        everything, some = paused(self._stopped)
        found = []
        for head in self._ready_cache.values():
            if head.waits_for is None or everything or head.lane.kind in some:
                continue
            if fresh:
                head.listed = _NEVER
            if (head.names and now - head.listed < _RELIST) or head.fill(now, self._number):
                found.append((head.folder, head.names[-1]))
        return found

    def is_fresh(
        self, want: Want, number: int, busy: frozenset[str] | None, closed: frozenset[str] = _NO_KINDS
    ) -> bool:
        """Whether all lanes that fit were listed since this claim began, except those that wait for a busy resource."""
        groups = self._serving(want, closed)
        return self._listed_in >= number and all(
            head.listed_in >= number or (busy is not None and head.waits_for is not None and _is_busy(head, busy))
            for group in groups
            for head in group
        )

    def _serving(self, want: Want, closed: frozenset[str]) -> list[Group]:
        """Return the lanes that fit such a claim: in groups of equal priority, the most urgent first, or all in one with ageing."""
        if len(self._served) > 1000:
            self._served.clear()
        lanes: dict[int, Group] = {}
        kinds, worker = want.kinds, want.worker
        mission = None if want.mission is None else mission_digest(want.mission)
        everything, some = paused(self._stopped)
        for head in self._ready_cache.values():
            if (
                everything
                or head.lane.kind in some
                or head.lane.kind in closed
                or (mission is not None and head.lane.mission != mission)
            ):
                continue
            if (kinds is None or head.lane.kind in kinds) and (
                head.lane.assignee is None or head.lane.assignee == worker
            ):
                lanes.setdefault(head.lane.priority if self._policy.ageing is None else 0, Group()).append(head)
        groups = self._served[kinds, want.mission, worker, closed] = [lanes[priority] for priority in sorted(lanes)]
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


def _insert(names: list[str], name: str) -> None:
    """Insert into a list that has its oldest name last."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if names[middle] > name:
            low = middle + 1
        else:
            high = middle
    names.insert(low, name)


class Busy(Exception):
    """The caller of `pick` has to pass which resources are in use."""


def _is_busy(head: Head, busy: frozenset[str] | None) -> bool:
    if busy is None:
        raise Busy
    return head.waits_for in busy or head.name in busy
