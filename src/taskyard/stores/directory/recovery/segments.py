"""Walks through one segment at a time: removes what belongs to no task, duplicate names, and empty folders."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import NotFound
from taskyard.core.task import State
from taskyard.stores.directory.names import Lane, Token
from taskyard.stores.directory.tasks.locate import NO_FOLDER
from taskyard.stores.directory.tasks.segment_index import PLACES
from taskyard.stores.directory.tasks.segments import RECENT, Segments, next_number
from taskyard.stores.directory.tasks.uses_index import UsesIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.recovery.missing import Missing
    from taskyard.stores.directory.tasks.locate import Found

PATIENCE = 600_000  # milliseconds that something must have been left alone before it counts as left behind
_PER_ROUND = 5_000  # milliseconds: each sweep takes the next segment


def retire(context: Context, segment: str, segments: list[str]) -> None:
    """Remove the marker of a segment that has no tasks any more and takes no new ones."""
    there = segments[::-1]
    newest = next_number(there)[0]
    path = f"{context.root}/segments/{segment}"
    if segment in there[newest : newest + RECENT] or context.disk.is_folder(path):
        return
    # One above the newest is unused, or was filled until a moment ago.
    if segment in there[:newest] and not is_left(context.disk, path, context.clock.now()):
        return
    try:
        if context.locator.matching(segment) or context.locator.matching(segment, closely=True):
            return
        if any(context.locator.moved.tasks(segment)):
            return
    except PermissionError:
        return  # there may be tasks in folders that are not readable
    UsesIndex(context).drop(segment)
    Segments(context).remove(segment)


def is_left(disk: Disk, path: str, now: int) -> bool:
    """Whether this has not changed for so long that no process works on it."""
    try:
        return now - disk.changed_at(path) > PATIENCE
    except OSError as error:
        if error.errno not in NO_FOLDER:
            raise
        return False


class SegmentRecovery:
    """Tidies one segment, chosen by the clock, so that all sweeping processes share the work."""

    def __init__(self, context: Context, missing: Missing) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._missing = missing

    def walk(self, now: int) -> int:
        """Tidy this round's segment; return how many things were put right."""
        segments = sorted(filter(ids.is_segment, self._disk.listdir(f"{self._root}/segments")))
        if not segments:
            return 0
        try:
            return self._tidy(segments[now // _PER_ROUND % len(segments)], segments, now)
        except PermissionError:
            return 0  # another user's folder: its content is unknown, so nothing counts as left over

    def _tidy(self, segment: str, segments: list[str], now: int) -> int:
        tasks = self._context.locator.matching(segment)
        mended = self._orphans(segment, tasks, now) + self.twins(segment)
        self._drop_empty(segment, now)
        if not tasks:
            retire(self._context, segment, segments)
        return mended

    def _orphans(self, segment: str, tasks: dict[str, Found], now: int) -> int:
        """Remove records, edits and folders of tasks that are gone, and edits that no name selects."""
        removed = 0
        looked: dict[str, Found | bool] = {}
        for place in PLACES:
            folder = f"{self._root}/{place}/{segment}"
            for name in self._context.locator.names(folder):
                if not ids.is_id(name[: ids.LENGTH]) or self._belongs(place, name, tasks):
                    continue  # in use, or not ours
                if is_left(self._disk, f"{folder}/{name}", now) and self._is_orphan(place, name, now, looked):
                    self._disk.remove_tree(f"{folder}/{name}")
                    removed += 1
        return removed

    def _is_orphan(self, place: str, name: str, now: int, looked: dict[str, Found | bool]) -> bool:
        """Whether this is an orphan: its task does not select it, or is gone for good; one look for each task."""
        id = name[: ids.LENGTH]
        if id not in looked:
            try:
                looked[id] = self._context.locator.find(id)
            except NotFound:
                looked[id] = self._missing.is_gone(id, now, PATIENCE)
        found = looked[id]
        return found if isinstance(found, bool) else not self._belongs(place, name, {id: found})

    def _belongs(self, place: str, name: str, tasks: dict[str, Found]) -> bool:
        found = tasks.get(name[: ids.LENGTH])
        if place == "edits":
            return found is not None and found.token.body == name[ids.LENGTH + 1 : -5]
        return found is not None

    def twins(self, segment: str) -> int:
        """Remove the older of two names of one file, which a power cut may bring back.

        Only if both are one inode at this moment. It is always the name that a move leads away from: the lower fence;
        or, of a claim and its own ending, the claim. Had the task just moved, the name that is removed would be gone
        already.
        """
        removed = 0
        seen: dict[str, tuple[int, str]] = {}
        for folder, lane in self._folders(segment):
            for name in self._context.locator.names(folder):
                token = Token.parse(name, lane) if name.startswith(segment) else None
                if token is None:
                    continue
                path = f"{folder}/{name}"
                known = seen.get(token.id)
                if known is not None:
                    low, high = known, (token.fence, path)
                    if low[0] > high[0]:
                        low, high = high, low
                    if self._disk.same_file(low[1], high[1]):
                        self._disk.remove(low[1])
                        removed += 1
                        seen[token.id] = high
                        continue
                seen[token.id] = (token.fence, path)
        return removed

    def _folders(self, segment: str) -> list[tuple[str, Lane | None]]:
        locator = self._context.locator
        folders: list[tuple[str, Lane | None]] = []
        for text in locator.names(f"{self._root}/todo"):
            lane = Lane.of_folder(text)
            if lane is not None:
                folders.append((f"{self._root}/todo/{text}/{segment}", lane))
        folders += [(f"{self._root}/waiting/{name}/{segment}", None) for name in locator.names(f"{self._root}/waiting")]
        folders.append((self._context.processing, None))
        folders += [
            (f"{self._root}/{state}/{segment}", None)
            for state in (State.BLOCKED, State.DONE, State.FAILED, State.CANCELLED)
        ]
        return folders

    def _drop_empty(self, segment: str, now: int) -> None:
        """Remove folders of this segment that have been empty for a while, and lanes without a segment."""
        for folder, lane in self._folders(segment):
            if folder != self._context.processing and is_left(self._disk, folder, now):
                self._context.mover.drop(folder)
                if lane is not None:
                    self._context.mover.drop(folder.rpartition("/")[0])
        attempts = f"{self._root}/attempts/{segment}"
        for task in self._context.locator.names(attempts):
            for claim in self._context.locator.names(f"{attempts}/{task}"):
                if is_left(self._disk, f"{attempts}/{task}/{claim}", now):
                    self._context.mover.drop(f"{attempts}/{task}/{claim}")
            self._context.mover.drop(f"{attempts}/{task}")
        for place in PLACES:
            self._context.mover.drop(f"{self._root}/{place}/{segment}")
