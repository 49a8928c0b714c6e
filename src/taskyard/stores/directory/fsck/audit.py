"""One audit: the log first, then the states, segment by segment; what looks wrong is looked at again before it is told."""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.stores.directory.fsck.context import Scene
from taskyard.stores.directory.fsck.edges import Ties
from taskyard.stores.directory.fsck.folders import Folders
from taskyard.stores.directory.fsck.keys import Keyring
from taskyard.stores.directory.fsck.leftovers import Corners
from taskyard.stores.directory.fsck.log import LogAudit
from taskyard.stores.directory.fsck.records import RecordAudit
from taskyard.stores.directory.fsck.tasks import Tasks
from taskyard.stores.directory.names import begins_with_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.fsck.findings import Suspect
    from taskyard.stores.directory.fsck.log import Story
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.keys import Keys

ROUND = 256  # segments, about 262,000 tasks, whose stories are in memory at a time; the log is read once for each round
_LOOKS = 2  # more at whatever looked wrong
_PAUSE = 0.05  # seconds before each of them: every move that was under way at the first is made then
_RELIST = 0.2  # seconds that a listing of processing/ is good enough for


class Audit:
    """Looks at everything once, and at what looked wrong again and again."""

    def __init__(
        self, context: Context, keys: Keys, edges: Edges, progress: Callable[[str], object] | None = None
    ) -> None:
        self.scene = Scene(context, progress)
        self._root = context.root
        self._terrain = Folders(self.scene)
        self.chronicle = LogAudit(self.scene)
        self._papers = RecordAudit(self.scene, self.chronicle)
        self._tasks = Tasks(self.scene, self._papers, self.chronicle, keys)
        self._ties = Ties(self.scene, edges)
        self._keyring = Keyring(self.scene, keys)
        self._corners = Corners(self.scene)
        self._running: dict[str, list[str]] = {}
        self._listed = 0.0
        self.found: dict[tuple[str, str], Suspect] = {}

    def run(self) -> list[Suspect]:
        """All findings, in the order in which they were made."""
        segments = self._terrain.survey()
        for begin in range(0, len(segments) or 1, ROUND):
            self._round(segments[begin : begin + ROUND])
        # Segments of which only the log tells.
        known = set(segments)
        told = sorted(segment for segment in self.chronicle.told if segment not in known)
        for begin in range(0, len(told), ROUND):
            self._round(told[begin : begin + ROUND])
        self._guarded(self._keyring.check, self._tasks.keyed, self._tasks.elsewhere)
        self._guarded(self._corners.check)
        self._guarded(self.chronicle.gaps)
        about = {suspect.task[: ids.SEGMENT] for suspect in self.scene.suspects if suspect.task is not None}
        if about:
            self._guarded(self.chronicle.read, sorted(about))  # what the log says of the tasks of keys
        self._confirm()
        return list(self.found.values())

    def _round(self, segments: list[str]) -> None:
        self._guarded(self.chronicle.read, segments)
        for number, segment in enumerate(segments):
            self.scene.tell(f"{number} of {len(segments)} segments, {self.tasks:,} tasks")
            self._guarded(self._segment, segment)
        self._guarded(self._lost)
        self._confirm()

    def _segment(self, segment: str) -> None:
        self._papers.read(segment)
        seen = self._tasks.check(segment, self._terrain.places.get(segment, []), self._held(segment))
        stories = self.chronicle.stories
        for id in seen:
            story = stories.get(id)
            if story is not None:
                story.seen = True
        self._papers.compare(segment, seen)
        self._ties.check(segment, seen)
        self._corners.marker(segment, seen, self._tasks.astray)

    def _held(self, segment: str) -> list[str]:
        """What is held of this segment's tasks, by a listing that is not old."""
        if time.monotonic() - self._listed > _RELIST:
            self._running = {}
            for name in filter(begins_with_id, self.scene.names(f"{self._root}/processing")):
                self._running.setdefault(name[: ids.SEGMENT], []).append(name)
            self._listed = time.monotonic()
        return self._running.get(segment, [])

    @property
    def tasks(self) -> int:
        """How many tasks were looked at."""
        states = ("todo", "waiting", "blocked", "processing", "done", "failed", "cancelled")
        return sum(self.scene.counts.get(state, 0) for state in states)

    # Tasks that only the log knows

    def _lost(self) -> None:
        """Only ended tasks leave the yard, and they go to the archive first."""
        missing = {
            id: story
            for id, story in self.chronicle.stories.items()
            if not story.seen and not story.gone and id not in self._tasks.elsewhere
        }
        # Most were pruned long ago. Of the others: what is nowhere now was in the archive before it left, so that is read once more.
        nowhere = {id for id in missing.keys() - self.chronicle.archived(set(missing)) if self.scene.is_nowhere(id)}
        for id in nowhere - self.chronicle.archived(nowhere):
            if not self._is_on_its_way(id):
                self._tell_lost(id, missing[id])

    def _tell_lost(self, id: str, story: Story) -> None:
        code = "ending_lost" if story.ended else "task_lost"
        what = f"the last that the log tells of it is {story.event!r} with fence {story.fence}"
        place = (f"{self._root}/events", id)
        self.scene.suspect(code, place, what, lambda: self.scene.is_nowhere(id) and not self._is_on_its_way(id), id)

    def _is_on_its_way(self, id: str) -> bool:
        """Whether its file is in dead/ or tmp/, or back in the drop box, at this moment."""
        if any(self.scene.has(f"{self._root}/{place}/{id}.json") for place in ("tmp", "todo")):
            return True
        return any(name.startswith(id) for name in self.scene.names(f"{self._root}/dead"))

    # Reader again

    def _guarded(self, check: Callable[..., object], *args: object) -> None:
        """What the filesystem refuses in the midst of a check is a finding, and no reason to stop."""
        try:
            check(*args)
        except OSError as error:
            self.scene.unreadable(str(error.filename or self._root), error)

    def _confirm(self) -> None:
        """Keep what stays as it was; whoever was about to put it right has had the time for it."""
        suspects, self.scene.suspects = self.scene.suspects, []
        for _ in range(_LOOKS):
            if suspects:
                time.sleep(_PAUSE)
                self.scene.tell(f"looking again at {len(suspects)} things")
                self._guarded(self.chronicle.catch_up)
                suspects = [suspect for suspect in suspects if self._still(suspect)]
        self.scene.suspects = []  # what the second looks came across was seen by the first
        for suspect in _first(suspects):
            story = self.chronicle.stories.get(suspect.task or "")
            if story is not None:
                suspect.known, suspect.ended = story.fence, story.ended
            self.found.setdefault((suspect.code, suspect.path + (suspect.task or "") + suspect.what), suspect)

    def _still(self, suspect: Suspect) -> bool:
        try:
            return bool(suspect.again())
        except OSError as error:
            return suspect.code == "unreadable" or error.filename is None


def _first(suspects: Iterable[Suspect]) -> Iterable[Suspect]:
    """What cannot be looked into has nothing else wrong with it that could be told."""
    blind = {
        suspect.path for suspect in suspects if suspect.code in ("unreadable", "folder_odd", "symlink", "not_a_file")
    }
    return [
        suspect
        for suspect in suspects
        if suspect.path not in blind or suspect.code in ("unreadable", "folder_odd", "symlink", "not_a_file")
    ]
