"""The `Log` part of the directory store: read and write events, and count those of the last hour."""

from __future__ import annotations

from taskyard.stores.directory.filesystem.errors import explains_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.activity import Activity
    from taskyard.core.store_records import Trail
    from taskyard.stores.directory.context import Context


class DirectoryLog:
    """Connects the reader and the writer; what reads is imported at its first use."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._folder = f"{context.root}/events"
        self.url = context.root

    @explains_errors
    def read(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """Return events, merged from all files of the log, and the cursor to go on from."""
        from taskyard.stores.directory.log.reader import LogReader

        reader = LogReader(self._context.disk, self._folder)
        if trail.at_end or trail.newest:
            end = reader.latest()
            return (self._newest(trail.limit) if trail.newest else []), end
        return reader.read(trail)

    def _newest(self, limit: int) -> list[dict[str, Any]]:
        from taskyard.stores.directory.log.newest import newest_events

        return newest_events(self._context.disk, self._folder, limit)

    @explains_errors
    def write(self, event: str, by: str, kind: str = "", more: dict[str, Any] | None = None) -> None:
        """Log an event about the yard."""
        context = self._context
        context.log.write(context.clock.exact(), event, "", kind, 0, None, by, more)

    @explains_errors
    def activity(self) -> Activity:
        """Return what was logged in the last hour, as far as the newest pages show."""
        from taskyard.stores.directory.log.activity import activity

        return activity(self._context.disk, self._folder, self._context.clock.now())
