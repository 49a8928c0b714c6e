"""Check every task: it is in one state, under a legal name, with the content, key, edit and record of that name."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.task import State
from taskyard.stores.directory.dropbox import file_format
from taskyard.stores.directory.dropbox.intake import FILE_MOST
from taskyard.stores.directory.fsck import legal_names, times
from taskyard.stores.directory.log.intents import UNSEEN
from taskyard.stores.directory.names import Lane, Token
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.fsck.folders import TaskFolder
    from taskyard.stores.directory.fsck.log import LogAudit
    from taskyard.stores.directory.fsck.records import RecordAudit
    from taskyard.stores.directory.tasks.keys import Keys

    Problem = tuple[str, str]

_FLOW = (State.BLOCKED, State.TODO, State.WAITING)


class TaskAudit:
    """Checks the tasks of one segment at a time."""

    def __init__(self, audit: AuditContext, record_audit: RecordAudit, log_audit: LogAudit, keys: Keys) -> None:
        self._audit = audit
        self._disk = audit.disk
        self._root = audit.root
        self._record_audit = record_audit
        self._log_audit = log_audit
        self._keys = keys
        self.keyed: set[int] = set()
        """The inodes of tasks whose key is right."""
        self.misplaced: set[str] = set()
        """Ids of tasks that exist in a place where a lookup by id does not find them."""
        self.in_wrong_lane: set[str] = set()
        """Ids of tasks in a lane that is not the one of their content."""

    def check(self, segment: str, task_folders: list[TaskFolder], running: list[str]) -> dict[str, list[Found]]:
        """Check all tasks of this segment, and return where each was found."""
        seen: dict[str, list[Found]] = {}
        for place in task_folders:
            if place.state in _FLOW:
                self._gather(seen, segment, place.state, place.folder, self._audit.names(place.folder), place)
        self._gather(seen, segment, State.PROCESSING, f"{self._root}/processing", running)
        for place in task_folders:
            if place.state not in _FLOW:
                self._gather(seen, segment, place.state, place.folder, self._audit.names(place.folder), place)
        for several in seen.values():
            if len(several) > 1:
                several.sort(key=lambda found: found.token.fence)  # stable: of equal ones the later seen is last
                self._twice(several)
            self._judge(several[-1])
        return seen

    def _gather(
        self,
        seen: dict[str, list[Found]],
        segment: str,
        state: State,
        folder: str,
        names: list[str],
        place: TaskFolder | None = None,
    ) -> None:
        lane = None if place is None else place.lane
        self._audit.count(str(state), len(names))
        for name in names:
            token = legal_names.parse(state, name, lane)
            if token is None:
                token = self._misnamed(state, folder, name, lane)
                if token is None:
                    continue
            if token.id[: ids.SEGMENT] != segment:
                what = f"a task of segment {token.id[: ids.SEGMENT]}"
                still_holds = self._audit.stays(f"{folder}/{name}")
                self._audit.suspect("misplaced", (folder, name), what, still_holds, token.id, token)
                self.misplaced.add(token.id)
                continue
            seen.setdefault(token.id, []).append(Found(state, (folder, name), token))

    def _misnamed(self, state: State, folder: str, name: str, lane: Any) -> Token | None:
        """Parse an illegal name less strictly; return None if it does not even have an id."""
        token = Token.parse(name, lane)
        if token is None:
            task = self._id_in(f"{folder}/{name}")
            self._audit.stray(folder, name, f"no name of a task in {state}", task)
            return None
        still_holds = self._audit.stays(f"{folder}/{name}")
        self._audit.suspect("name_illegal", (folder, name), f"no legal name in {state}", still_holds, token.id, token)
        return token

    def _id_in(self, path: str) -> str | None:
        """Return the id in the file's content."""
        try:
            id = str(_whole(self._disk.inspect(path, FILE_MOST)[1])["id"])
        except (OSError, Invalid):
            return None
        self.misplaced.add(id)
        return id

    def _twice(self, several: list[Found]) -> None:
        """Check an id that was seen under two names: the task has moved meanwhile, or both names exist at once."""
        kept = several[-1]
        for found in several[:-1]:

            def both(found: Found = found) -> bool:
                # No name is used twice, so a name that exists before and after has existed all the time.
                return all(map(self._audit.has, (found.path, kept.path, found.path)))

            if both():
                same = self._disk.same_file(found.path, kept.path)
                what = f"also in {kept.path.removeprefix(self._root + '/')}"
                code = "two_names" if same else "two_files"
                self._audit.suspect(code, found.place, what, both, found.token.id, found.token)

    # One task

    def _judge(self, found: Found) -> None:
        for code, what in self._problems(found, first=True):
            still_holds = self._asker(found, code)
            self._audit.suspect(code, found.place, what, still_holds, found.token.id, found.token)
            if code == "lane_differs":
                self.in_wrong_lane.add(found.token.id)

    def _asker(self, found: Found, code: str) -> Callable[[], bool]:
        return lambda: any(code == other for other, _ in self._problems(found))

    def _problems(self, found: Found, first: bool = False) -> list[Problem]:
        """Return what is wrong with the task of this name; nothing if the task has moved since."""
        folder, name = found.place
        try:
            status, content = self._disk.inspect(found.path, FILE_MOST)
        except FileNotFoundError:
            return []
        except OSError:
            if first:
                self._audit.inspected(folder, name, FILE_MOST, found.token.id)
            return []
        if (status.st_mode & 0o170000) != 0o100000:
            if first:
                self._audit.inspected(folder, name, FILE_MOST, found.token.id)
            return []
        problems = [*self._content_problems(found, status.st_ino, status.st_ctime_ns // 1_000_000, content)]
        problems += times.problems(self._audit, found, status.st_ctime_ns // 1_000_000)
        problems += self._record_audit.problems(found)
        problems += self._compared_with_log(found, status.st_ctime_ns // 1_000_000)
        # A task that has moved meanwhile takes its files with it.
        return problems if not problems or self._audit.has(found.path) else []

    def _content_problems(self, found: Found, inode: int, moved_at: int, content: bytes) -> Iterator[Problem]:
        """Check the task's file, its edit and its key."""
        token = found.token
        if not content.startswith(task_file.MARK):
            if token.dropped:
                yield from self._dropped(found, moved_at, content)
            elif token.body is None:
                yield from _broken(found, "its file was not written by Taskyard" if content else "its file is empty")
        else:
            try:
                fields = _whole(content)
            except Invalid as error:
                yield from _broken(found, error.message)
            else:
                if fields["id"] != token.id:
                    yield "id_differs", f"its file is that of task {fields['id']!a}"
                elif token.body is None:
                    yield from self._lane(found, fields)
                yield from self._key(fields, inode)
        if token.body is not None:
            yield from self._edited(found)

    def _dropped(self, found: Found, moved_at: int, content: bytes) -> Iterator[Problem]:
        """Check a dropped file; it may be half written for a moment, by an editor."""
        try:
            file_format.draft(file_format.parse(content))
        except Invalid as error:
            if self._audit.now - moved_at > self._audit.context.settle:
                yield from _broken(found, error.message)

    def _edited(self, found: Found) -> Iterator[Problem]:
        token = found.token
        path = self._audit.context.edits.path(token.id, token.body or "")
        try:
            fields = _whole(self._disk.inspect(path, FILE_MOST)[1])
        except FileNotFoundError:
            yield "body_missing", f"{path.removeprefix(self._root + '/')} is not there"
        except OSError as error:
            yield "body_broken", f"its edit cannot be read: {error.strerror}"
        except Invalid as error:
            yield "body_broken", f"its edit is broken: {error.message}"
        else:
            if fields["id"] != token.id:
                yield "body_broken", f"its edit is one of task {fields['id']!a}"
            else:
                yield from self._lane(found, fields)

    def _key(self, fields: dict[str, Any], inode: int) -> Iterator[Problem]:
        key = fields.get("key")
        if key is None:
            return
        path = self._keys.path(str(key))
        try:
            status, content = self._disk.inspect(path, FILE_MOST)
        except FileNotFoundError:
            yield "key_missing", f"its key {key!a} has no file"
            return
        except OSError:
            return  # the check of keys reports it
        if status.st_ino == inode:
            self.keyed.add(inode)
            return
        try:
            holder = _whole(content)["id"]
        except Invalid:
            return  # the check of keys reports it
        if holder == fields["id"]:
            yield "key_copied", f"the file of its key {key!a} is a copy"
        else:
            yield "key_taken", f"its key {key!a} is that of task {holder!a}"

    # The log

    def _compared_with_log(self, found: Found, moved_at: int) -> Iterator[Problem]:
        """Compare the name with the log, which was read before the name."""
        from taskyard.stores.directory.fsck.log import LEADS

        token, logged = found.token, self._log_audit.logged_tasks.get(found.token.id)
        if logged is not None and logged.fence > token.fence:
            yield (
                "state_behind",
                f"the log has {logged.event!r} with fence {logged.fence}, and its name has {token.fence}",
            )
            return
        if logged is not None and logged.fence == token.fence and found.state not in LEADS[logged.event]:
            yield "log_differs", f"the log has {logged.event!r} with its fence, and it is in {found.state}"
            return
        if not self._log_audit.has_hour(moved_at) or self._log_audit.intended(token.id) or self._is_unseen(moved_at):
            return
        claimed = logged is not None and logged.knows(token.fence)
        ended = logged is not None and logged.fence == token.fence and logged.event != "claimed"
        if token.nonce is not None and found.state is not State.PROCESSING and not (claimed and ended):
            yield (
                ("unlogged", "one of its last two moves")
                if claimed or ended
                else (
                    "unlogged_ending",
                    f"neither the claim of fence {token.fence} nor its ending is in the log",
                )
            )
        elif token.nonce is not None and not claimed:
            yield "unlogged", f"the claim of fence {token.fence} is not in the log"

    def _lane(self, found: Found, fields: dict[str, Any]) -> Iterator[Problem]:
        """Compare the lane with the content, unless the task has ended: then no claim chooses it by its lane."""
        lane, mission = found.token.lane, fields.get("mission")
        if found.state.ended:
            return
        if lane.mission is None and self._audit.context.is_before_missions(found.token.id):
            mission = None
        said = Lane.of(fields["priority"], fields["kind"], fields.get("assignee"), mission)
        if said.text != lane.text:
            yield "lane_differs", f"in lane {lane.text}, and its content says {said.text}"

    def _is_unseen(self, moved_at: int) -> bool:
        """Return whether the move's event may still be in the cache of another machine."""
        return not self._audit.context.local and self._audit.now - moved_at < 2 * UNSEEN


def _broken(found: Found, why: str) -> Iterator[Problem]:
    """Report a broken file, unless the task has failed already: a claim fails a task whose file is broken."""
    if found.state is not State.FAILED:
        yield "broken", why


def _whole(content: bytes) -> dict[str, Any]:
    """Parse a task's own file; raise `Invalid` if it is not complete from its first to its last byte."""
    if not content.startswith(task_file.MARK):
        raise Invalid("not written by Taskyard" if content else "empty")
    fields = task_file.decode(content)
    if not content.endswith(b"}\n") or not {"id", "kind", "priority", "data"} <= fields.keys():
        raise Invalid("the task's file is not whole: its end or its beginning is not that of a task")
    return fields
