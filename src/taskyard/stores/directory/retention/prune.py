"""Prune: move ended tasks to archive/ as compressed JSON Lines, with their records, notes, edits and files.

A task is archived and synced before anything of it is removed. One rename moves its file from its state to dead/. Then its
key, records, notes and edits are removed, and last the file. Any sweep can finish this for a file in dead/.
"""

from __future__ import annotations

import json
import time

from taskyard.core import abandonment, ids
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.stores.directory.layout import CHILDREN
from taskyard.stores.directory.log.pages import Pages
from taskyard.stores.directory.names import UNREADABLE
from taskyard.stores.directory.recovery.segments import retire
from taskyard.stores.directory.retention.archive import files, write_archive
from taskyard.stores.directory.retention.ended import ENDED, EndedTasks
from taskyard.stores.directory.tasks.children import Children
from taskyard.stores.directory.tasks.segment_index import PLACES, SegmentIndex
from taskyard.stores.directory.tasks.task_file import decode
from taskyard.stores.directory.tasks.task_file import draft as read_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Query
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.retention.needed import Needed
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.locate import Found
    from taskyard.stores.directory.tasks.show import Reader

SHARE = 20_000  # tasks that one sweep prunes at most
LONG = 0.3  # seconds after which a sweep begins no other archive: a user waits for the command that runs it
_ARCHIVE = 1000  # tasks in one archive
_BYTES = 1 << 25  # of one archive, which is put together in memory
_MARKERS = 50  # of segments that one prune checks
_WORTHWHILE = 500  # tasks that a sweep waits for, so that archives do not become small
_LATE = 3600.0  # seconds, or a tenth of the age: a task waits no longer for others


class Pruner:
    """Finds the tasks that may leave, archives them and removes them."""

    def __init__(self, context: Context, reader: Reader, adder: Adder, needed: Needed) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._reader = reader
        self._adder = adder
        self._needed = needed
        self._children = Children(context)
        self._ended = EndedTasks(context, adder.segments)
        self._pages = Pages(context)

    def by_retention(self, by: str) -> int:
        """Prune what the yard's settings ask for, at most `SHARE` tasks; return how many tasks and events left."""
        age, count = self._context.retention.age, self._context.retention.count
        if age is None and count is None:
            return 0
        now = self._context.clock.exact()
        surplus, enough = 0, _WORTHWHILE
        if count is not None:
            enough = min(_WORTHWHILE, count // 10 + 1)
            surplus = self._ended.count(count + enough) - count
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

    def plan(self, age: float | None, count: int | None, apply: bool, by: str, only: Query | None) -> dict[str, Any]:
        """Return what a prune would remove, or with `apply` has removed; `only` says of which tasks, and then spares the log."""
        now = self._context.clock.exact()
        limit = None if age is None else now - age * 1000
        if only is None:
            tasks = self._chosen(limit, 0 if count is None else self._ended.count(count) - count, None)
        else:
            tasks = self._matching(only, limit, count)
        oldest = min((ids.created(found.token.id) for _, found in tasks), default=None)
        archives = self.apply(tasks, by) if apply else []
        return {
            "tasks": len(archives) if apply else len(tasks),
            "events": self._pages.prune(self._horizon(tasks, age, now), apply) if only is None else 0,
            "oldest": oldest,
            "archives": sorted(set(archives)),
            "applied": apply,
            "kept": len(tasks) - len(archives) if apply else 0,
        }

    def _chosen(self, limit: float | None, surplus: int, most: int | None) -> list[tuple[int, Found]]:
        """Return the `surplus` tasks that ended first and all that ended before `limit`; at most `most` of them."""
        chosen: list[tuple[int, Found]] = []

        def wanted(moment: int) -> bool:
            return len(chosen) != most and (len(chosen) < surplus or (limit is not None and moment < limit))

        for pair in self._ended.oldest_first(wanted):
            chosen.append(pair)  # noqa: PERF402  one by one, because `wanted` reads the length
        return self._needed.leaving(chosen)

    def _matching(self, only: Query, limit: float | None, count: int | None) -> list[tuple[int, Found]]:
        """Return of the tasks that match those that ended before `limit`, and those beyond the newest `count`."""
        ended = [pair for pair in self._ended.oldest_first(lambda _: True) if self._matches(only, pair[1])]
        surplus = 0 if count is None else len(ended) - count
        return self._needed.leaving(
            [pair for at, pair in enumerate(ended) if at < surplus or (limit is not None and pair[0] < limit)]
        )

    def _matches(self, only: Query, found: Found) -> bool:
        if only.states is not None and found.state not in only.states:
            return False
        if not only.wants(found.token.lane.kind, None) or (only.ids is not None and found.token.id not in only.ids):
            return False
        if only.worker not in (None, found.token.worker):
            return False
        try:
            return only.mission is None or only.mission == read_task(self._context.edits.read(*found.place)).mission
        except (OSError, TaskyardError):
            return False  # gone, or broken, so that its mission is not known

    def _horizon(self, tasks: list[tuple[int, Found]], age: float | None, now: int) -> float:
        """Return the time before which events leave: the ending of the last pruned task, or the age if that is later."""
        return max(tasks[-1][0] if tasks else 0, 0 if age is None else now - age * 1000)

    def apply(self, tasks: list[tuple[int, Found]], by: str) -> list[str]:
        """Archive and remove these tasks; return the name of the archive for each that was removed."""
        gone: list[str] = []
        begin = 0
        while begin < len(tasks):
            abandonment.check_between_moves()
            begin += self._archive_some(tasks[begin : begin + _ARCHIVE], by, gone)
        return gone

    def _archive_some(self, tasks: list[tuple[int, Found]], by: str, gone: list[str]) -> int:
        """Archive and remove as many of these as fit into one archive; return how many were processed."""
        batch = tasks[:_ARCHIVE]
        segments = dict.fromkeys(found.token.id[: ids.SEGMENT] for _, found in batch)
        indexes = {segment: index for segment in segments if (index := self._index(segment)) is not None}
        archive, written, number = self._archive(batch, indexes, by)
        gone += [archive for found in written if self._remove(found, indexes[found.token.id[: ids.SEGMENT]])]
        for folder in dict.fromkeys(found.place[0] for found in written):
            self._context.mover.drop(folder)
        for segment in segments:
            self._drop(segment)
        self._retire()
        return number

    def _index(self, segment: str) -> SegmentIndex | None:
        """Index the files beside the segment's tasks; return None if they cannot be read, so that the tasks stay."""
        try:
            return SegmentIndex(self._context.locator, self._root, segment)
        except PermissionError:
            return None

    def _archive(
        self, batch: list[tuple[int, Found]], indexes: dict[str, SegmentIndex], by: str
    ) -> tuple[str, list[Found], int]:
        """Write an archive of up to `_BYTES`; return its name, the tasks in it, and how many tasks were read."""
        lines: list[str] = []
        written: list[Found] = []
        size = number = 0
        for ended_at, found in batch:
            if size > _BYTES:
                break
            number += 1
            index = indexes.get(found.token.id[: ids.SEGMENT])
            if index is None:
                continue
            try:
                report = self._reader.of(found, ended_at, index)
                left = index.of("attempts", found.token.id)
                kept = files(self._disk, f"{index.folders['attempts']}/{found.token.id}") if left else []
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # the task has moved, or cannot be read completely and stays
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
            write_archive(self._context, name, [("\n".join(lines) + "\n").encode()])
        return name, written, number

    def _remove(self, found: Found, index: SegmentIndex) -> bool:
        folder, name = found.place
        self._needed.mark(found.token.id, found.state)
        if not self._context.mover.move(f"{folder}/{name}", f"{self._root}/dead", name):
            return False
        return self._clear(name, index)

    def finish(self, name: str) -> None:
        """Remove all files of a task whose own file is in dead/."""
        segment = name[: ids.SEGMENT]
        self._clear(name, SegmentIndex(self._context.locator, self._root, segment))
        self._drop(segment)

    def _clear(self, name: str, index: SegmentIndex) -> bool:
        """Remove the task and all its files; return False if a new task needs it."""
        id = name.split(".", 1)[0]
        path = f"{self._root}/dead/{name}"
        if not self._needed.bury(name, "taskyard"):
            return False  # a task that needs it was added just now
        try:
            fields = decode(self._disk.read(path))
            if not self._adder.keys.release(fields.get("key"), path):
                return False  # an add lets go of its key at this moment; a sweep goes on here
            if ids.is_id(str(fields.get("parent"))):
                self._children.forget(fields["parent"], id)
        except FileNotFoundError:
            return True
        except Invalid:
            pass  # a broken file has no readable key; the next add under that key releases it
        for place in ("results", "edits", "names"):
            for entry in index.of(place, id):
                self._context.links.remove(f"{index.folders[place]}/{entry}")
        if index.of("attempts", id):
            self._disk.remove_tree(f"{index.folders['attempts']}/{id}")
        self._children.forget_all(id)
        self._disk.remove(path)
        return True

    def _retire(self) -> None:
        """Remove markers of unused segments: a sweep checks one segment in five seconds, too slow for many tasks."""
        names = self._context.locator.names
        marked = sorted(filter(ids.is_segment, names(f"{self._root}/segments")))
        used = {segment for state in ENDED for segment in names(f"{self._root}/{state}")}
        idle = [segment for segment in marked if segment not in used]
        begin = ids.chance(16) % (len(idle) or 1)  # some may have tasks that wait for long: not always the same ones
        for segment in (idle[begin:] + idle[:begin])[:_MARKERS]:
            retire(self._context, segment, marked)

    def _drop(self, segment: str) -> None:
        for place in (*PLACES, CHILDREN):
            self._context.mover.drop(f"{self._root}/{place}/{segment}")
