"""A directory as source or target of a copy: `read` does the reading, `write` the writing."""

from __future__ import annotations

from taskyard.core.errors import Conflict
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.errors import explains_errors, unavailable
from taskyard.stores.directory.filesystem.sharing import SharedDisk
from taskyard.stores.directory.transfer.read import YardReader
from taskyard.stores.directory.transfer.write import YardWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    from taskyard.core.transfer import Facts, TaskCopy

    T = TypeVar("T")


def _locked(root: str) -> int | None:
    """Lock the yard, so that one copy at a time writes to it; return the descriptor, or None where there are no locks.

    The kernel releases the lock when the process ends.
    """
    try:
        descriptor = Disk().lock(f"{root}/.")
    except OSError:
        return None
    if descriptor is None:
        raise Conflict(
            f"somebody else copies into {root} at the same time",
            hint="let that copy end; then say the same once more, and both are compared",
        )
    return descriptor


class DirectoryEndpoint:
    """One directory yard as source or target of a copy."""

    keeps_files = True

    def __init__(self, root: str, target: bool = False) -> None:
        self.url = self.label = root
        made = layout.make(root) if target else None
        self._target_warnings = [] if made is None else made.warnings
        self._is_target = target
        self._lock = _locked(root) if target else None
        try:
            self._open(root, made is not None and made.created)
        except BaseException:
            self.close()
            raise

    def _open(self, root: str, is_new: bool) -> None:
        self._reader = YardReader(root, unfinished=self._is_target)
        if not self._is_target:
            self._reader.refuse_unfinished()
        disk = SharedDisk(root) if self._reader.settings.shared else Disk()
        self._writer = YardWriter(self._reader, disk, is_new)
        self.identity = self._reader.identity()

    @explains_errors
    def facts(self) -> Facts:
        """Read the settings and state of the whole yard."""
        return self._reader.facts()

    def warnings(self) -> list[str]:
        """Return what was not copied as it is; of a target, the warnings about its file system."""
        if self._is_target:
            return self._target_warnings
        warnings = []
        if self._reader.broken:
            some = ", ".join(self._reader.broken[:5])
            warnings.append(
                f"{len(self._reader.broken)} ended tasks whose file is broken were copied without data: {some}"
            )
        if self._reader.irregular:
            some = ", ".join(map(ascii, self._reader.irregular[:5]))
            warnings.append(f"{len(self._reader.irregular)} links, pipes or sockets are not copied: {some}")
        return warnings

    @explains_errors
    def segments(self) -> list[str]:
        """List the segments that have tasks, in order."""
        return self._reader.segments()

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """Read the tasks of one segment, in the order of their ids."""
        return self._streamed(self._reader.tasks(segment))

    def events(self) -> Iterator[dict[str, Any]]:
        """Read the log, in the order in which it was written."""
        return self._streamed(self._reader.events())

    def files(self, with_progress: bool) -> Iterator[str]:
        """List the files of attempts, of refused drops, and of the archive."""
        return self._streamed(self._reader.files(with_progress))

    def chunks(self, path: str) -> Iterator[bytes]:
        """Read such a file in chunks."""
        return self._streamed(self._reader.chunks(path))

    def _streamed(self, stream: Iterator[T]) -> Iterator[T]:
        try:
            yield from stream
        except OSError as error:
            raise unavailable(error, self.url) from error

    @explains_errors
    def begin(self, origin: str, facts: Facts) -> None:
        """Mark the yard as an unfinished copy, which no client opens."""
        self._writer.begin(origin, facts)

    @explains_errors
    def replace(self, segment: str, tasks: Iterator[TaskCopy], known: bool) -> int:
        """Write `tasks` as the only tasks of the segment and return their number."""
        return self._writer.replace(segment, tasks, known)

    @explains_errors
    def append_events(self, events: list[dict[str, Any]]) -> None:
        """Append `events` to the log."""
        self._writer.append_events(events)

    @explains_errors
    def clear_events(self) -> None:
        """Remove all events from the log."""
        self._writer.clear_events()

    @explains_errors
    def write_file(self, path: str, chunks: Iterator[bytes]) -> None:
        """Write a file, and replace the one that exists under this path."""
        self._writer.write_file(path, chunks)

    @explains_errors
    def finish(self, facts: Facts) -> None:
        """Write the settings of the source and let clients open the yard, paused as the source is."""
        self._writer.finish(facts)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            Disk().close(self._lock)
            self._lock = None
