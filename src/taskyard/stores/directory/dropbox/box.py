"""The `DropBox` part of the directory store: files that people and other programs put into todo/."""

from __future__ import annotations

import functools

from taskyard.core.store_records import Outside
from taskyard.stores.directory import names
from taskyard.stores.directory.filesystem.errors import explains_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.guests import Guests
    from taskyard.stores.directory.dropbox.intake import Intake
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.store import DirectoryStore


class DirectoryDropBox:
    """Connects the parts of the drop box; a sweep that finds no dropped file imports none of them."""

    def __init__(self, context: Context, store: DirectoryStore) -> None:
        self._context = context
        self._store = store
        self.url = context.root

    @functools.cached_property
    def rejected(self) -> Rejected:
        """The refused files."""
        from taskyard.stores.directory.dropbox.rejected import Rejected

        return Rejected(self._context)

    @functools.cached_property
    def files(self) -> Intake:
        """Makes tasks of dropped files."""
        from taskyard.stores.directory.dropbox.intake import Intake

        return Intake(self._context, self._store.adder, self.rejected)

    @functools.cached_property
    def guests(self) -> Guests:
        """Files that other programs have claimed or ended by moving them."""
        from taskyard.stores.directory.dropbox.guests import Guests

        return Guests(self._context, self._store.shifts, self.rejected)

    @explains_errors
    def intake(self, by: str, limit: int | None = None) -> int:
        """Make tasks of the files in the drop box, of at most `limit`; return how many tasks that made."""
        if self._has_guests():
            with self._context.adding:
                self.guests.tidy(self._context.clock.exact(), by, deep=False)
        if not any(map(names.is_dropped, self._context.disk.listdir(f"{self.url}/todo"))):
            return 0
        with self._context.adding:
            return self.files.take(by, limit)

    def _has_guests(self) -> bool:
        """Return whether todo/, processing/ or failed/ has a name that only another program can have put there."""
        listdir, context = self._context.disk.listdir, self._context
        return (
            any(not names.is_known_in_todo(name) for name in listdir(f"{self.url}/todo"))
            or not all(map(names.begins_with_id, listdir(context.processing)))
            or any(not names.is_known_in_failed(name) for name in listdir(f"{self.url}/failed"))
        )

    @explains_errors
    def dropped(self) -> int:
        """Return how many dropped files are not tasks yet."""
        return sum(map(names.is_dropped, self._context.disk.listdir(f"{self.url}/todo")))

    @explains_errors
    def set_aside(self) -> list[dict[str, str | None]]:
        """Return the refused files, each with its name and the reason."""
        return self.rejected.list()

    @explains_errors
    def give_back(self, name: str) -> None:
        """Move a refused file back into the drop box."""
        self.rejected.give_back(name)

    @explains_errors
    def outside(self) -> Outside:
        """Return the files that other programs hold or have ended here, and those in the drop box that are no tasks."""
        from taskyard.stores.directory.dropbox import not_tasks

        return Outside(self.guests.list(), not_tasks.others(self._context))
