"""The yard's time: the file server's, not this machine's date."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.filesystem.disk import Disk

_TRUSTED = 1_000_000_000  # nanoseconds for which an observation is continued by this machine's monotonic clock
_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # continues while the machine sleeps


class StoreClock:
    """Continues the last observed time for a second, then asks the filesystem again."""

    __slots__ = ("_disk", "_offset", "_probe", "_seen")

    def __init__(self, disk: Disk, probe: str) -> None:
        self._disk = disk
        self._probe = probe
        self._offset = 0
        self._seen = -_TRUSTED

    def now(self) -> int:
        """Return milliseconds since 1970, good enough for events and delays."""
        ticks = time.clock_gettime_ns(_TICKS)
        if ticks - self._seen >= _TRUSTED:
            return self.exact()
        return (ticks + self._offset) // 1_000_000

    def fine(self) -> float:
        """The same with its fraction, for ids."""
        ticks = time.clock_gettime_ns(_TICKS)
        if ticks - self._seen >= _TRUSTED:
            self.exact()
        return (ticks + self._offset) / 1_000_000

    def exact(self) -> int:
        """The same, asked of the filesystem: leases are judged by it."""
        now = self._disk.now(self._probe)
        self._seen = time.clock_gettime_ns(_TICKS)
        self._offset = now - self._seen
        return now // 1_000_000
