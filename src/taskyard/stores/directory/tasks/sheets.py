"""The edges of a batch in one file, its sheet: for a graph, a file for each edge would cost more than all else.

    sheets/<seg>/<sheet>        one file, with a name in the segment of each task that it is about

    <task> <other> <other> .    the task is blocked until these are done: a line for each task, written before the first name
    <other>                     is done: a line that is appended by the process that has made it done, or has found it so
    -<task>                     is not in the sheet any more: what it waits for is in needs/, or the task is gone

A process that is done with a task appends its line, and then reads what others have appended. So of two processes that are
done with the last two needs of a task at least one sees both lines, and unblocks it. A sheet is named for its first task, and
removed when none of its tasks waits. Where appends of two machines overwrite one another (a network filesystem) no sheet is
made, nor appended to.
"""

from __future__ import annotations

from taskyard.core import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.tasks.locate import Locator

_WHOLE = " ."  # ends the line of a task: without the rest of its line it would be let go too early
_SCANS = 64  # questions that are answered from the text of a sheet: to sort its edges takes about as long
_CHUNK = 1 << 20  # bytes that are read at once
_KEPT_MOST = 1 << 25  # characters of sheets that are remembered
_SEGMENTS_MOST = 64  # that the tasks of one sheet are in


class Sheet:
    """What one sheet says, as of the last time that it was read.

    A process that ends one task looks for that in the text. One that asks more often sorts the edges first.
    """

    __slots__ = (
        "_asked",
        "_disk",
        "_first",
        "_followers",
        "_last",
        "_left",
        "_needs",
        "_offset",
        "_text",
        "has_all_names",
        "met",
        "path",
    )

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.met: set[str] = set()
        """The tasks that are noted as done."""
        self.has_all_names = False
        """Whether it was seen to have a name in the segment of each task that it is about."""
        self._left: set[str] = set()
        self._text = ""
        self._offset = 0
        self._asked = 0
        self._needs: dict[str, list[str]] = {}
        self._followers: dict[str, list[str]] = {}
        self._first: dict[str, int] = {}
        """The place of the first need of each task that may be unmet: what is met stays so."""
        self._last = -1
        """Where the line of the last task that may wait ends."""

    def read(self) -> None:
        """Read what was appended since the last time; a line that is cut off or broken says nothing."""
        content = self._disk.read_at(self.path, self._offset, _CHUNK)
        while (
            content
            and len(content) % _CHUNK == 0
            and (more := self._disk.read_at(self.path, self._offset + len(content), _CHUNK))
        ):
            content += more
        whole = content.rfind(b"\n") + 1
        self._offset += whole
        text = content[:whole].decode("ascii", "replace")
        if whole and not self._text:
            rows, _, text = text.partition("\n\n")  # what is appended begins with an empty line
            self._text = "\n" + rows.removesuffix("\n") + "\n"
            self._last = len(self._text)
        for line in text.split("\n"):
            if len(line) == ids.LENGTH:
                self.met.add(line)
            elif line.startswith("-"):
                self._left.add(line[1:])

    @property
    def length(self) -> int:
        """How long the lines of its tasks are."""
        return len(self._text)

    def needs(self, task: str) -> list[str]:
        """Return what this task waited for when it was added; nothing if it is not in the sheet."""
        if not self._sorted():
            at = self._text.find(f"\n{task} ")
            return [] if at < 0 else _row(self._text, at + 1)[1]
        return self._needs.get(task, [])

    def followers(self, other: str) -> list[str]:
        """Return the tasks that were added to come after this one."""
        return [task for task, _ in self._rows_with(other)]

    def _rows_with(self, other: str) -> list[tuple[str, list[str]]]:
        """Return the tasks that were added to come after this one, each with all that it waited for."""
        if self._sorted():
            return [(task, self._needs[task]) for task in self._followers.get(other, ())]
        found, at = [], self._text.find(f" {other} ")
        while at >= 0:
            found.append(_row(self._text, self._text.rfind("\n", 0, at) + 1))
            at = self._text.find(f" {other} ", self._text.find("\n", at))
        return [row for row in found if row[1]]

    def _sorted(self) -> bool:
        """Whether the edges are sorted by their tasks; from the `_SCANS`th question on they are."""
        self._asked += 1
        if self._asked == _SCANS:
            for line in self._text.split("\n"):
                task, others = _row(line, 0)
                if others and task not in self._needs:
                    self._needs[task] = others
                    for other in others:
                        self._followers.setdefault(other, []).append(task)
        return self._asked >= _SCANS

    def append(self, line: str) -> None:
        """Append a line, unless the sheet is gone, because none of its tasks waits; what was cut off before it spoils nothing."""
        try:
            self._disk.append(self.path, f"\n{line}\n".encode(), create=False)
        except FileNotFoundError:
            return

    def is_waiting(self, task: str) -> bool:
        """Whether this task waits for one that is not noted as done."""
        return task not in self._left and self._is_open(task, self.needs(task))

    def _is_open(self, task: str, others: list[str]) -> bool:
        first = self._first.get(task, 0)
        while first < len(others) and others[first] in self.met:
            first += 1
        self._first[task] = first
        return first < len(others)

    def is_over(self) -> bool:
        """Whether none of its tasks waits."""
        # From the end, where those are that wait longest; a task that does not wait never does again.
        while self._last > 1:
            begin = self._text.rfind("\n", 0, self._last - 1) + 1
            task, others = _row(self._text, begin)
            if task not in self._left and self._is_open(task, others):
                return False
            self._last = begin
        return True

    def freed_by(self, other: str) -> list[str]:
        """Return the tasks that came after this one, and for which all that they waited for is noted as done."""
        rows = self._rows_with(other)
        return [task for task, others in rows if task not in self._left and not self._is_open(task, others)]

    def unmet(self, task: str) -> list[str]:
        """Return what this task waits for."""
        return [] if task in self._left else [other for other in self.needs(task) if other not in self.met]

    def tasks(self) -> Iterable[str]:
        """Return all tasks that were added with this sheet, and came after others."""
        self._asked = max(self._asked, _SCANS - 1)
        return self._needs if self._sorted() else ()

    def followed(self) -> set[str]:
        """Return all tasks that are not noted as done and that others came after."""
        self._asked = max(self._asked, _SCANS - 1)
        return self._followers.keys() - self.met if self._sorted() else set()

    def segments(self) -> set[str]:
        """Return the segments that the sheet has names in."""
        return set(filter(ids.is_segment, {id[: ids.SEGMENT] for id in self._text.split() if len(id) == ids.LENGTH}))


def _row(text: str, begin: int) -> tuple[str, list[str]]:
    """Return the task of the line that begins there, and what it waits for; nothing if that is not the whole line of a task."""
    end = text.find("\n", begin)
    line = text[begin:] if end < 0 else text[begin:end]
    if not line.endswith(_WHOLE):
        return "", []
    task, *others = line[: -len(_WHOLE)].split(" ")
    return task, others


class SheetReader:
    """Reads the sheets of a yard."""

    def __init__(self, disk: Disk, locator: Locator, root: str) -> None:
        self._disk = disk
        self._names = locator.names
        self._root = f"{root}/sheets"
        self._known: dict[str, Sheet] = {}
        self._kept = 0

    def of(self, segment: str, *, fresh: bool = True) -> list[Sheet]:
        """Return the sheets about tasks of this segment; not `fresh`: one that was read before as it was then."""
        folder = f"{self._root}/{segment}"
        if not self._disk.exists(folder):
            return []  # one lookup costs less than a listing
        return [self._sheet(f"{folder}/{name}", name, fresh) for name in self._names(folder) if ids.is_id(name)]

    def _sheet(self, path: str, name: str, fresh: bool) -> Sheet:
        sheet = self._known.get(name)
        if sheet is None:
            sheet = Sheet(self._disk, path)
            sheet.read()
            if self._kept + sheet.length > _KEPT_MOST:
                self._known, self._kept = {}, 0
            if sheet.length:  # else it is just being removed
                self._known[name] = sheet
                self._kept += sheet.length
            return sheet
        sheet.path = path
        if fresh:
            sheet.read()
        return sheet

    def _with(self, task: str) -> list[Sheet]:
        """Return the sheets that this task was added with, read anew: the lines of tasks are there before a sheet has a name."""
        found = [sheet for sheet in self.of(task[: ids.SEGMENT], fresh=False) if sheet.needs(task)]
        for sheet in found:
            sheet.read()
        return found

    def needs(self, id: str) -> list[str]:
        """Return what this task waits for."""
        return [other for sheet in self._with(id) for other in sheet.unmet(id)]

    def followers(self, id: str) -> list[str]:
        """Return the tasks that wait for this one."""
        found = []
        for sheet in self.of(id[: ids.SEGMENT], fresh=False):
            some = sheet.followers(id)
            if some:
                sheet.read()
                found += [task for task in some if id not in sheet.met and sheet.is_waiting(task)]
        return found

    def followed(self, segment: str) -> set[str]:
        """Return the tasks of this segment that others wait for."""
        return {id for sheet in self.of(segment) for id in sheet.followed() if id.startswith(segment)}

    def waiting(self, segment: str) -> dict[str, str]:
        """Return the tasks of this segment that wait for one that is not noted as done, with the paths of their sheets."""
        return {
            id: sheet.path
            for sheet in self.of(segment)
            for id in sheet.tasks()
            if id.startswith(segment) and sheet.is_waiting(id)
        }


class Sheets(SheetReader):
    """Writes and removes sheets as well."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.disk, context.locator, context.root)
        self._context = context

    def write(self, edges: Mapping[str, Collection[str]]) -> bool:
        """Write the edges of tasks that are about to be published into one sheet; return whether that is possible here."""
        segments = sorted({id[: ids.SEGMENT] for task, others in edges.items() for id in (task, *others)})
        if not edges or not self._context.local or len(segments) > _SEGMENTS_MOST:
            return False
        draft, name = self._context.draft(), next(iter(edges))
        content = "".join(f"{task} {' '.join(sorted(others))}{_WHOLE}\n" for task, others in edges.items())
        self._disk.create(draft, content.encode(), sync=False)
        try:
            for segment in segments:
                self._link(draft, f"{self._root}/{segment}", name)
        except OSError:
            for segment in segments:
                self._context.links.remove(f"{self._root}/{segment}/{name}")
            return False  # no hard links here: each edge is a file of its own then
        finally:
            self._disk.remove(draft)
        return True

    def _link(self, draft: str, folder: str, name: str) -> None:
        while True:
            self._context.mover.ensure(folder, sync=False)
            try:
                self._disk.link(draft, f"{folder}/{name}")
            except FileNotFoundError:
                continue  # another process has removed the empty folder
            return

    def meet(self, id: str) -> list[Sheet]:
        """Note that this task is done, in all sheets by which others come after it; return these."""
        found = [sheet for sheet in self.of(id[: ids.SEGMENT], fresh=False) if sheet.followers(id)]
        for sheet in found:
            if id not in sheet.met and self._context.local:
                sheet.append(id)
            sheet.read()
        return found

    def leave(self, id: str) -> None:
        """Note that this task is not in a sheet any more."""
        for sheet in self._with(id):
            if sheet.is_waiting(id) and self._context.local:
                sheet.append(f"-{id}")
                sheet.read()
                self.drop(sheet)

    def complete(self, sheet: Sheet) -> None:
        """Give a sheet the names that a killed adder did not: tasks that never came are looked for in their own segments."""
        name = sheet.path.rpartition("/")[2]
        for segment in () if sheet.has_all_names or sheet.is_over() else sorted(sheet.segments()):
            folder = f"{self._root}/{segment}"
            if not self._disk.exists(f"{folder}/{name}"):
                try:
                    self._context.mover.ensure(folder, sync=False)
                    self._disk.link(sheet.path, f"{folder}/{name}")
                except OSError:
                    return  # the sheet, or the empty folder, was removed just now; or another user's process has to do it
        sheet.has_all_names = True

    def drop(self, sheet: Sheet) -> None:
        """Remove a sheet of which no task waits."""
        if not sheet.is_over():
            return
        name = sheet.path.rpartition("/")[2]
        for segment in sheet.segments() | {name[: ids.SEGMENT]}:
            self._context.links.remove(f"{self._root}/{segment}/{name}")
            self._context.mover.drop(f"{self._root}/{segment}")
        gone = self._known.pop(name, None)
        self._kept -= 0 if gone is None else gone.length
