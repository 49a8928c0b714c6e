"""A yard's verb about files that are in sync with it: what both sides disagree about."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.store import Store

_NAME_MOST = 500  # characters of a file's name


class FileConflictVerbs:
    """Keeps what a sync has found. It is a part of the yard's settings, so every store changes it in one step."""

    _store: Store
    by: str

    def set_file_conflicts(self, file: str, conflicts: list[dict[str, Any]]) -> None:
        """Have `overview` list what this file and the yard disagree about; an empty list takes the file off.

        Each conflict has the whole id of its `task`, the `row` and `line` in the file, the `field`, and the words of `file` and
        `yard`. They take the place of those that were reported of this file before; the same ones again change nothing.
        """
        from taskyard.core import file_conflicts, times, words

        name, found = words.text(file, "file", _NAME_MOST), file_conflicts.listed(conflicts)
        if file_conflicts.same(self._store.settings.read(), name, found):
            return
        at = times.rfc3339(self._store.reasons.now())
        self._store.settings.change(lambda written: file_conflicts.replaced(written, name, at, found))
        self._store.log.write("file_conflicts", self.by, more={"file": name, "count": len(found)})
