"""A directory yard as a port: what is read goes through `unloading`, what is written through `loading`."""

from __future__ import annotations

from taskyard.core.errors import Conflict
from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.errors import explains_errors, unavailable
from taskyard.stores.directory.filesystem.sharing import SharedDisk
from taskyard.stores.directory.transfer.read import Unloading
from taskyard.stores.directory.transfer.write import Loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    from taskyard.core.transfer import Facts, Parcel

    T = TypeVar("T")


def _alone(root: str) -> int | None:
    """A lock that one copy into this yard holds at a time, and that ends with its process; None where there are no locks."""
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


class DirectoryPort:
    """One yard in one directory, to be copied from or to."""

    keeps_files = True

    def __init__(self, root: str, target: bool = False) -> None:
        self.url = self.label = root
        made = layout.make(root) if target else None
        self._doubts = [] if made is None else made.warnings
        self._is_target = target
        self._lock = _alone(root) if target else None
        try:
            self._open(root, made is not None and made.created)
        except BaseException:
            self.close()
            raise

    def _open(self, root: str, is_new: bool) -> None:
        self._reading = Unloading(root, unfinished=self._is_target)
        if not self._is_target:
            self._reading.finished()
        disk = SharedDisk(root) if self._reading.settings.shared else Disk()
        # A yard that was made for the copy has no wishes of its own.
        self._writing = Loading(self._reading, disk, is_new)
        self.identity = self._reading.identity()

    @explains_errors
    def facts(self) -> Facts:
        """What is true of the yard as a whole."""
        return self._reading.facts()

    def warnings(self) -> list[str]:
        """What was met on the way and is not copied as it is; of a target what is doubtful about its place."""
        if self._is_target:
            return self._doubts
        said = []
        if self._reading.broken:
            some = ", ".join(self._reading.broken[:5])
            said.append(
                f"{len(self._reading.broken)} ended tasks whose file is broken were copied without data: {some}"
            )
        if self._reading.oddities:
            some = ", ".join(map(ascii, self._reading.oddities[:5]))
            said.append(f"{len(self._reading.oddities)} links, pipes or sockets are not copied: {some}")
        return said

    @explains_errors
    def segments(self) -> list[str]:
        """The segments that have tasks, in order."""
        return self._reading.segments()

    def tasks(self, segment: str) -> Iterator[Parcel]:
        """The tasks of one segment, by their ids."""
        return self._streamed(self._reading.tasks(segment))

    def events(self) -> Iterator[dict[str, Any]]:
        """The log, in the order in which it was written."""
        return self._streamed(self._reading.events())

    def files(self, whole: bool) -> Iterator[str]:
        """What attempts left, what was set aside, and the archive; with `whole` also how far attempts were."""
        return self._streamed(self._reading.files(whole))

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of such a file."""
        return self._streamed(self._reading.pieces(path))

    def _streamed(self, stream: Iterator[T]) -> Iterator[T]:
        try:
            yield from stream
        except OSError as error:
            raise unavailable(error, self.url) from error

    @explains_errors
    def begin(self, origin: str, facts: Facts) -> None:
        """Have nobody work here until `finish`."""
        self._writing.begin(origin, facts)

    @explains_errors
    def replace(self, segment: str, parcels: Iterator[Parcel], known: bool) -> int:
        """Make these the tasks of the segment."""
        return self._writing.replace(segment, parcels, known)

    @explains_errors
    def tell(self, events: list[dict[str, Any]]) -> None:
        """Add these to the end of the log."""
        self._writing.tell(events)

    @explains_errors
    def forget(self) -> None:
        """Make the log empty."""
        self._writing.forget()

    @explains_errors
    def put(self, path: str, pieces: Iterator[bytes]) -> None:
        """Keep a file under this path."""
        self._writing.put(path, pieces)

    @explains_errors
    def finish(self, facts: Facts) -> None:
        """Have everybody see the yard, paused as it is."""
        self._writing.finish(facts)

    def close(self) -> None:
        """Let another copy come."""
        if self._lock is not None:
            Disk().close(self._lock)
            self._lock = None
