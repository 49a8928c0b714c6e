"""Retention: ended tasks leave the yard for archive/, as compressed JSON Lines, with all that belongs to them.

A task is archived and synced before anything of it is removed. Its file goes to dead/ first, so that it is gone from its
state at one stroke; then its key, records, notes and edits; at last the file. Whoever finds it in dead/ can finish.
"""

from __future__ import annotations

import json
import time

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.stores.directory.log.pages import Pages
from taskyard.stores.directory.names import UNREADABLE
from taskyard.stores.directory.recovery.segments import retire
from taskyard.stores.directory.retention.archive import files, keep
from taskyard.stores.directory.retention.ended import ENDED, Endings
from taskyard.stores.directory.tasks.segment_index import PLACES, SegmentIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.show import Reader

SHARE = 20_000  # tasks that leave with one sweep at the most
LONG = 0.3  # seconds after which a sweep begins no other archive: somebody waits for the command that does it
_ARCHIVE = 1000  # tasks in one archive
_BYTES = 1 << 25  # of them: an archive is put together in memory
_MARKERS = 50  # of segments that are looked at with one prune
_WORTHWHILE = 500  # an unasked prune waits until there are so many, so that archives don't come in crumbs
_LATE = 3600.0  # seconds, or a tenth of the age: nothing waits longer than that for others to go with it


class Pruner:
    """Finds what may go, tells of it, and lets it go."""

    def __init__(self, context: Context, looking: Reader, adder: Adder, edges: Edges) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._reader = looking
        self._adder = adder
        self._edges = edges
        self._endings = Endings(context, adder.segments)
        self._pages = Pages(context)

    def by_retention(self, by: str) -> int:
        """As much as the yard's own settings ask for, a bounded share; nothing where they ask for nothing."""
        age, count = self._context.retention.age, self._context.retention.count
        if age is None and count is None:
            return 0
        now = self._context.clock.exact()
        surplus, enough = 0, _WORTHWHILE
        if count is not None:
            enough = min(_WORTHWHILE, count // 10 + 1)
            surplus = self._endings.count(count + enough) - count
        if age is None and surplus < enough:
            return 0
        tasks = self._chosen(None if age is None else now - age * 1000, surplus, SHARE)
        late = age is not None and tasks and now - tasks[0][0] > (age + min(_LATE, age / 10)) * 1000
        if len(tasks) < enough and not late:
            tasks = []
        gone, end = 0, time.monotonic() + LONG
        while gone < len(tasks) and (not gone or time.monotonic() < end):
            gone += self._archive_some(tasks[gone:], by, [])
        return gone + self._pages.prune(
            self._horizon(tasks[:gone], age, now), apply=True, end=time.monotonic() + LONG / 2
        )

    def plan(self, age: float | None, count: int | None, apply: bool, by: str) -> dict[str, Any]:
        """What would go, or with `apply` what went."""
        now = self._context.clock.exact()
        surplus = 0 if count is None else self._endings.count(count) - count
        tasks = self._chosen(None if age is None else now - age * 1000, surplus, None)
        oldest = min((ids.created(found.token.id) for _, found in tasks), default=None)
        archives = self.apply(tasks, by) if apply else []
        return {
            "tasks": len(archives) if apply else len(tasks),
            "events": self._pages.prune(self._horizon(tasks, age, now), apply),
            "oldest": oldest,
            "archives": sorted(set(archives)),
            "applied": apply,
            "kept": len(tasks) - len(archives) if apply else 0,
        }

    def _chosen(self, limit: float | None, surplus: int, most: int | None) -> list[tuple[int, Found]]:
        """The tasks that ended first: so many, and as many more as ended before the limit; at most `most`."""
        chosen: list[tuple[int, Found]] = []

        def wanted(moment: int) -> bool:
            return len(chosen) != most and (len(chosen) < surplus or (limit is not None and moment < limit))

        for pair in self._endings.oldest_first(wanted):
            chosen.append(pair)  # noqa: PERF402  one by one, because `wanted` looks at how many there are
        return self._edges.leaving(chosen)

    def _horizon(self, tasks: list[tuple[int, Found]], age: float | None, now: int) -> float:
        """The log goes back as far as the ended tasks do: to the last ending that is let go of, and to the age."""
        return max(tasks[-1][0] if tasks else 0, 0 if age is None else now - age * 1000)

    def apply(self, tasks: list[tuple[int, Found]], by: str) -> list[str]:
        """Archive and remove these; gives for each that went the archive that it is in."""
        gone: list[str] = []
        begin = 0
        while begin < len(tasks):
            begin += self._archive_some(tasks[begin : begin + _ARCHIVE], by, gone)
        return gone

    def _archive_some(self, tasks: list[tuple[int, Found]], by: str, gone: list[str]) -> int:
        """Archive and remove as many of these as one archive takes; gives how many were dealt with."""
        batch = tasks[:_ARCHIVE]
        segments = dict.fromkeys(found.token.id[: ids.SEGMENT] for _, found in batch)
        papers = {segment: own for segment in segments if (own := self._papers(segment)) is not None}
        archive, written, number = self._archive(batch, papers, by)
        gone += [archive for found in written if self._remove(found, papers[found.token.id[: ids.SEGMENT]])]
        for folder in dict.fromkeys(found.place[0] for found in written):
            self._context.mover.drop(folder)
        for segment in segments:
            self._drop(segment)
        self._retire()
        return number

    def _papers(self, segment: str) -> SegmentIndex | None:
        """What lies beside the tasks of this segment; None if that cannot be told, so that they stay."""
        try:
            return SegmentIndex(self._context.locator, self._root, segment)
        except PermissionError:
            return None

    def _archive(
        self, batch: list[tuple[int, Found]], papers: dict[str, SegmentIndex], by: str
    ) -> tuple[str, list[Found], int]:
        """Write as many of these down as fit into memory together; gives the archive, what is in it, and how many were read."""
        lines: list[str] = []
        written: list[Found] = []
        size = number = 0
        for ended_at, found in batch:
            if size > _BYTES:
                break
            number += 1
            own = papers.get(found.token.id[: ids.SEGMENT])
            if own is None:
                continue
            try:
                report = self._reader.of(found, ended_at, own)
                left = own.of("attempts", found.token.id)
                kept = files(self._disk, f"{own.folders['attempts']}/{found.token.id}") if left else []
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # moved on; or we cannot read all of it, and it stays
            entry = {
                "task": report.task.as_dict(),
                "history": report.history,
                "notes": report.notes,
                "stale_results": report.stale_results,
                "pruned_by": by,
            }
            if left:
                entry["files"] = kept
            lines.append(json.dumps(entry, ensure_ascii=False))
            written.append(found)
            size += len(lines[-1])
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(self._context.clock.now() // 1000))
        name = f"tasks-{stamp}-{ids.base32(ids.chance(20), 4)}.jsonl.gz"
        if lines:
            keep(self._context, name, [("\n".join(lines) + "\n").encode()])
        return name, written, number

    def _remove(self, found: Found, papers: SegmentIndex) -> bool:
        folder, name = found.place
        self._edges.mark(found.token.id, found.state)
        if not self._context.mover.move(f"{folder}/{name}", f"{self._root}/dead", name):
            return False
        return self._clear(name, papers)

    def finish(self, name: str) -> None:
        """Remove all that belongs to a task whose file is in dead/."""
        segment = name[: ids.SEGMENT]
        self._clear(name, SegmentIndex(self._context.locator, self._root, segment))
        self._drop(segment)

    def _clear(self, name: str, papers: SegmentIndex) -> bool:
        """Whether it is gone with all that belongs to it; not if another needs it after all."""
        id = name.split(".", 1)[0]
        path = f"{self._root}/dead/{name}"
        if not self._edges.bury(name, "taskyard"):
            return False  # added at this very moment
        try:
            self._adder.keys.release(path)
        except FileNotFoundError:
            return True
        except Invalid:
            pass  # a broken file tells no key; the key is let go of when somebody asks for it
        for place in ("results", "edits", "names"):
            for entry in papers.of(place, id):
                self._context.links.remove(f"{papers.folders[place]}/{entry}")
        if papers.of("attempts", id):
            self._disk.remove_tree(f"{papers.folders['attempts']}/{id}")
        self._disk.remove(path)
        return True

    def _retire(self) -> None:
        """Where tasks end by the thousand, a patrol that comes to one segment in five seconds is too slow for the markers."""
        names = self._context.locator.names
        there = sorted(filter(ids.is_segment, names(f"{self._root}/segments")))
        used = {segment for state in ENDED for segment in names(f"{self._root}/{state}")}
        idle = [segment for segment in there if segment not in used]
        begin = ids.chance(16) % (len(idle) or 1)  # some may have tasks that wait for long: not always the same ones
        for segment in (idle[begin:] + idle[:begin])[:_MARKERS]:
            retire(self._context, segment, there)

    def _drop(self, segment: str) -> None:
        for place in PLACES:
            self._context.mover.drop(f"{self._root}/{place}/{segment}")
