"""Who uses what, as one file for each segment: so that a claim need not read the files of all tasks that others hold.

    uses/<segment>       <id> TAB <mark> TAB ... <id> NEWLINE      a line for each task that uses something

It is a hint: a task without a line is read, and the file can go at any time. But a line that is whole is right, because the content of a
task's own file never changes. The id at its end shows that it is whole: a full disk or a power cut may have torn the line before. Machines on a
network do without: their appends to one file would overwrite one another.
"""

from __future__ import annotations

from taskyard.core import ids, resources
from taskyard.stores.directory.layout import USES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from taskyard.stores.directory.context import Context

_KNOWN_MOST = 16  # segments that are kept in memory
_MOST = 1 << 22  # bytes that are read of a segment's file


class UsesIndex:
    """Writes and reads the lines of tasks that use something."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[str, tuple[int, dict[str, list[str]]]] = {}

    def note(self, tasks: Iterable[tuple[str, Collection[str]]]) -> None:
        """Write the lines of tasks that are about to be published, each with what it uses."""
        lines: dict[str, list[str]] = {}
        for id, uses in tasks if self._context.local else ():
            if uses:
                line = "\t".join((id, *sorted(resources.marks(uses)), id))
                lines.setdefault(id[: ids.SEGMENT], []).append(f"{line}\n")
        for segment, some in lines.items():
            # It begins on a line of its own, whatever was torn before it.
            self._append(segment, ("\n" + "".join(some)).encode())

    def marks(self, id: str) -> Collection[str] | None:
        """Return the marks of what a task uses; None if its file has to be read for that."""
        segment = id[: ids.SEGMENT]
        read, known = self._known.get(segment) or (0, {})
        found = known.get(id)
        if found is not None or not self._context.local:
            return found
        if len(self._known) > _KNOWN_MOST:
            self._known.clear()
        content = self._context.disk.read_at(self._path(segment), read, _MOST - read)
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.decode("utf-8", "replace").split("\n"):
            first, *marks = line.split("\t")
            if marks and marks[-1] == first and "\0" not in line and "\ufffd" not in line:
                known[first] = marks
        self._known[segment] = (read + len(whole), known)
        return known.get(id)

    def drop(self, segment: str) -> None:
        """Remove the lines of a segment that has no tasks any more."""
        self._context.disk.remove(self._path(segment))

    def _append(self, segment: str, lines: bytes) -> None:
        path = self._path(segment)
        try:
            try:
                self._context.disk.append(path, lines)
            except FileNotFoundError:  # the yard is older than this folder
                self._context.mover.ensure(f"{self._context.root}/{USES}", sync=False)
                self._context.disk.append(path, lines)
        except OSError:
            return  # another user's file, or a full disk: a claim that needs it reads the tasks

    def _path(self, segment: str) -> str:
        return f"{self._context.root}/{USES}/{segment}"
