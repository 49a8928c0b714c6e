"""One audit: it reads the log first, then the states by segment, and checks each suspect again before it is a finding."""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.stores.directory.fsck.children import ChildAudit
from taskyard.stores.directory.fsck.context import AuditContext
from taskyard.stores.directory.fsck.edges import EdgeAudit
from taskyard.stores.directory.fsck.folders import FolderAudit
from taskyard.stores.directory.fsck.keys import KeyAudit
from taskyard.stores.directory.fsck.leftovers import LeftoverAudit
from taskyard.stores.directory.fsck.log import LogAudit
from taskyard.stores.directory.fsck.records import RecordAudit
from taskyard.stores.directory.fsck.tasks import TaskAudit
from taskyard.stores.directory.names import begins_with_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.fsck.findings import Suspect
    from taskyard.stores.directory.fsck.log import LoggedTask
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.keys import Keys

ROUND = 256  # segments, about 262,000 tasks, that are in memory at a time; the log is read once for each round
_REPEATS = 2  # further checks of each suspect
_PAUSE = 0.05  # seconds before each of them: moves that were under way have ended by then
_CANNOT_BE_READ = ("unreadable", "folder_odd", "symlink", "not_a_file")
_RELIST = 0.2  # seconds after which processing/ is listed again


class Audit:
    """Checks the whole yard once, and each suspect again."""

    def __init__(
        self, context: Context, keys: Keys, edges: Edges, progress: Callable[[str], object] | None = None
    ) -> None:
        self.context = AuditContext(context, progress)
        self._root = context.root
        self._folder_audit = FolderAudit(self.context)
        self.log_audit = LogAudit(self.context)
        self._record_audit = RecordAudit(self.context, self.log_audit)
        self._task_audit = TaskAudit(self.context, self._record_audit, self.log_audit, keys)
        self._edge_audit = EdgeAudit(self.context, edges)
        self._child_audit = ChildAudit(self.context)
        self._key_audit = KeyAudit(self.context, keys)
        self._leftover_audit = LeftoverAudit(self.context)
        self._running: dict[str, list[str]] = {}
        self._listed = 0.0
        self.found: dict[tuple[str, str], Suspect] = {}

    def run(self) -> list[Suspect]:
        """Return all findings, in the order in which they were found."""
        segments = self._folder_audit.survey()
        for begin in range(0, len(segments) or 1, ROUND):
            self._round(segments[begin : begin + ROUND])
        only_logged = sorted(self.log_audit.segments.difference(segments))
        for begin in range(0, len(only_logged), ROUND):
            self._round(only_logged[begin : begin + ROUND])
        self._guarded(self._edge_audit.cycles)
        self._guarded(self._key_audit.check, self._task_audit.keyed, self._task_audit.misplaced)
        self._guarded(self._leftover_audit.check)
        self._guarded(self.log_audit.gaps)
        about = {suspect.task[: ids.SEGMENT] for suspect in self.context.suspects if suspect.task is not None}
        if about:
            self._guarded(self.log_audit.read, sorted(about))  # for the tasks of suspect keys
        self._confirm()
        return list(self.found.values())

    def _round(self, segments: list[str]) -> None:
        self._guarded(self.log_audit.read, segments)
        for number, segment in enumerate(segments):
            self.context.report_progress(f"{number} of {len(segments)} segments, {self.tasks:,} tasks")
            self._guarded(self._segment, segment)
        self._guarded(self._lost)
        self._confirm()

    def _segment(self, segment: str) -> None:
        self._record_audit.read(segment)
        seen = self._task_audit.check(segment, self._folder_audit.task_folders.get(segment, []), self._held(segment))
        logged_tasks = self.log_audit.logged_tasks
        for id in seen:
            logged = logged_tasks.get(id)
            if logged is not None:
                logged.seen = True
        self._record_audit.compare(segment, seen)
        self._edge_audit.check(segment, seen)
        self._child_audit.check(segment, seen)
        self._leftover_audit.marker(segment, seen, self._task_audit.in_wrong_lane)

    def _held(self, segment: str) -> list[str]:
        """Return the names of this segment's tasks in processing/, by a listing at most `_RELIST` old."""
        if time.monotonic() - self._listed > _RELIST:
            self._running = {}
            for name in filter(begins_with_id, self.context.names(f"{self._root}/processing")):
                self._running.setdefault(name[: ids.SEGMENT], []).append(name)
            self._listed = time.monotonic()
        return self._running.get(segment, [])

    @property
    def tasks(self) -> int:
        """The number of tasks that were checked."""
        states = ("todo", "waiting", "blocked", "processing", "done", "failed", "cancelled")
        return sum(self.context.counts.get(state, 0) for state in states)

    # Tasks that only the log has

    def _lost(self) -> None:
        """Find tasks that are in the log, but neither in the yard nor in its archive."""
        missing = {
            id: logged
            for id, logged in self.log_audit.logged_tasks.items()
            if not logged.seen and not logged.gone and id not in self._task_audit.misplaced
        }
        # Most were pruned long ago. A task that is pruned now is archived before it leaves, so the archive is read again.
        nowhere = {id for id in missing.keys() - self.log_audit.archived(set(missing)) if self.context.is_nowhere(id)}
        for id in nowhere - self.log_audit.archived(nowhere):
            if not self._is_moving(id):
                self._suspect_lost(id, missing[id])

    def _suspect_lost(self, id: str, logged: LoggedTask) -> None:
        code = "ending_lost" if logged.ended else "task_lost"
        what = f"the last that the log tells of it is {logged.event!r} with fence {logged.fence}"
        place = (f"{self._root}/events", id)
        self.context.suspect(code, place, what, lambda: self.context.is_nowhere(id) and not self._is_moving(id), id)

    def _is_moving(self, id: str) -> bool:
        """Return whether the task's file is in dead/, in tmp/, or back in the drop box."""
        if any(self.context.has(f"{self._root}/{place}/{id}.json") for place in ("tmp", "todo")):
            return True
        return any(name.startswith(id) for name in self.context.names(f"{self._root}/dead"))

    # Checking again

    def _guarded(self, check: Callable[..., object], *args: object) -> None:
        """Run a check; an error of the file system is a suspect, and does not stop the audit."""
        try:
            check(*args)
        except OSError as error:
            self.context.unreadable(str(error.filename or self._root), error)

    def _confirm(self) -> None:
        """Check the suspects again, and keep those that still hold: moves that were under way have ended by then."""
        suspects, self.context.suspects = self.context.suspects, []
        for _ in range(_REPEATS):
            if suspects:
                time.sleep(_PAUSE)
                self.context.report_progress(f"looking again at {len(suspects)} things")
                self._guarded(self.log_audit.catch_up)
                suspects = [suspect for suspect in suspects if self._still_holds(suspect)]
        self.context.suspects = []  # the repeated checks have found nothing that the first has not
        for suspect in _explained_once(suspects):
            logged = self.log_audit.logged_tasks.get(suspect.task or "")
            if logged is not None:
                suspect.logged_fence, suspect.logged_ended = logged.fence, logged.ended
            self.found.setdefault((suspect.code, suspect.path + (suspect.task or "") + suspect.what), suspect)

    def _still_holds(self, suspect: Suspect) -> bool:
        try:
            return bool(suspect.still_holds())
        except OSError as error:
            return suspect.code == "unreadable" or error.filename is None


def _explained_once(suspects: Iterable[Suspect]) -> Iterable[Suspect]:
    """Drop other suspects of a path that cannot be read: the cause of all of them is that."""
    unread = {suspect.path for suspect in suspects if suspect.code in _CANNOT_BE_READ}
    return [suspect for suspect in suspects if suspect.path not in unread or suspect.code in _CANNOT_BE_READ]
