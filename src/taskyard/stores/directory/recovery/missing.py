"""Decides when a task that is not found is gone: when several sweeps in a row, over ten minutes, have missed it.

One look proves nothing. A task that is claimed and released all the time slips past many looks in a row. A client of a
file server may remember for long that a name was missing. So the first sweep that misses a task only notes it, in
`tmp/<id>.missing`: the time, and then a byte for each further sweep that misses it. A sweep that finds it removes the
note.
"""

from __future__ import annotations

from taskyard.core import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

NOTE = ".missing"
_SWEEPS = 3  # sweeps that must have missed it
_LOOKS = 50  # notes that one sweep checks
_KEPT = 86_400_000  # milliseconds: by then every segment was walked through, and the note is no longer needed
_MOST = 1 << 15  # bytes of a note that are read: more than there are sweeps in that time


class Missing:
    """Notes which tasks were not found, and decides when that is proof enough."""

    def __init__(self, context: Context) -> None:
        self._disk = context.disk
        self._root = context.root
        self._locator = context.locator

    def look_again(self, listed: list[str], now: int) -> None:
        """Look once more for the tasks of some of the notes that are listed in tmp/."""
        notes = [name for name in listed if name.endswith(NOTE) and ids.is_id(name[: -len(NOTE)])]
        for name in sorted(notes, key=lambda _: ids.chance(16))[:_LOOKS]:
            path = f"{self._root}/tmp/{name}"
            try:
                if self._since(path)[0] < now - _KEPT or self._locator.knows(name[: -len(NOTE)]):
                    self._disk.remove(path)
                else:
                    self._disk.append(path, b".", create=False)
            except (FileNotFoundError, PermissionError):
                continue  # removed by another sweep, or not readable

    def is_gone(self, id: str, now: int, patience: int) -> bool:
        """Whether a task that was just not found is gone: missed often enough, and for `patience` milliseconds."""
        path = f"{self._root}/tmp/{id}{NOTE}"
        since, sweeps = self._since(path)
        if not sweeps:
            self._begin(path, now)
        return sweeps >= _SWEEPS and now - since > patience

    def _since(self, path: str) -> tuple[int, int]:
        """Return when the task was first missed, and by how many sweeps; zeros if there is no note."""
        since, end, more = self._disk.read_at(path, 0, _MOST).partition(b"\n")
        return (int(since), 1 + len(more)) if end and since.isdigit() else (0, 0)

    def _begin(self, path: str, now: int) -> None:
        try:
            self._disk.create(path, b"%d\n" % now, sync=False)
        except FileExistsError:
            return  # another sweep made it at the same moment
