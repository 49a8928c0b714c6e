"""Syncs again and again: when something happens in the yard, and when a file was saved.

The yard wakes a thread, by the same means as any waiter. Files are looked at twice a second, because no means to be woken by them
works everywhere (network filesystems, containers, editors that replace the file): a look is a few stats, 20 microseconds.
"""

from __future__ import annotations

import os
import threading
import time

from taskyard.core.errors import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.sync import Options
    from taskyard.port import YardPort

_LOOK = 0.5  # seconds between two looks at the files
_SHARE = (
    5  # a pause is this many times as long as the sync before it, so that a busy yard costs a sixth of a core at most
)
_REST = 0.1  # seconds of a pause, at least: a save and the event of its task come together
_AGAIN = 2.0  # seconds until a sync that failed is tried again


class Watch:
    """Keeps files and a yard in sync until it is stopped."""

    def __init__(
        self,
        yard: YardPort,
        sync: Callable[[], list[Report]],
        paths: Callable[[], Iterable[str]],
        say: Callable[[Report], None],
        warn: Callable[[str], None],
    ) -> None:
        self._yard = yard
        self._sync = sync
        self._paths = paths
        self._say = say
        self._warn = warn
        self._stopped = threading.Event()
        self._changed = threading.Event()
        self._warned = ""
        self._told: dict[str, list[dict[str, object]]] = {}
        """The notices of each file, which are not repeated as long as they stay the same."""
        self._cursor = yard.log_end()  # before the first sync, so that no event is missed

    def stop(self) -> None:
        """End `run` soon; a signal handler may call this."""
        self._stopped.set()
        self._changed.set()
        self._yard.wake()

    def run(self) -> None:
        """Sync now, and then whenever something has changed, until `stop`."""
        listener = threading.Thread(target=self._listen, name="sync-events", daemon=True)
        listener.start()
        while not self._stopped.is_set():
            self._changed.clear()
            before, began = self._signature(), time.monotonic()
            failed = not self._once()
            self._stopped.wait(max(_REST, _SHARE * (time.monotonic() - began)))
            retry = time.monotonic() + _AGAIN if failed else None
            while not self._changed.is_set() and self._signature() == before:
                self._changed.wait(_LOOK)
                if retry is not None and time.monotonic() > retry:
                    break
        listener.join()

    def _once(self) -> bool:
        """Whether a sync came to its end; the same trouble is reported once."""
        try:
            for report in self._sync():
                if report.changed or report.notices != self._told.get(report.path, []):
                    self._say(report)
                self._told[report.path] = report.notices
        except TaskyardError as error:
            if error.message != self._warned:
                self._warn(f"{error.message}" + (f"\n  {error.hint}" if error.hint else ""))
            self._warned = error.message
            return False
        self._warned = ""
        return True

    def _signature(self) -> list[tuple[int, int, int] | None]:
        return [_stat(path) for path in self._paths()]

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                for events in self._yard.follow(cursor=self._cursor, until=self._stopped.is_set):
                    self._cursor = events.cursor
                    self._changed.set()
            except TaskyardError:
                self._stopped.wait(_AGAIN)


def watched(
    yard: YardPort, path: str, options: Options
) -> tuple[Callable[[], list[Report]], Callable[[], Iterable[str]]]:
    """Return how to sync a file or a directory, and which paths to look at."""
    if os.path.isdir(path):
        from taskyard.doors.tasksmd.folder import Folder

        folder = Folder(yard, path, options)
        return folder.sync, folder.paths
    from taskyard.doors.tasksmd.sync import sync

    return lambda: [sync(yard, path, options)], lambda: [path]


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
