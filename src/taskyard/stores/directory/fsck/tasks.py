"""Every task: in one place, under a legal name, with the content, key, edit and record that its name speaks of."""

from __future__ import annotations

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.core.task import State
from taskyard.stores.directory.dropbox import file_format
from taskyard.stores.directory.dropbox.intake import FILE_MOST
from taskyard.stores.directory.fsck import legal_names, times
from taskyard.stores.directory.log.intents import UNSEEN
from taskyard.stores.directory.names import Token
from taskyard.stores.directory.tasks import task_file
from taskyard.stores.directory.tasks.locate import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.fsck.folders import Place
    from taskyard.stores.directory.fsck.log import LogAudit
    from taskyard.stores.directory.fsck.records import RecordAudit
    from taskyard.stores.directory.tasks.keys import Keys

    Problem = tuple[str, str]

_FLOW = (State.BLOCKED, State.TODO, State.WAITING)


class Tasks:
    """Looks at all tasks of one segment after the other."""

    def __init__(self, scene: Scene, papers: RecordAudit, chronicle: LogAudit, keys: Keys) -> None:
        self._scene = scene
        self._disk = scene.disk
        self._root = scene.root
        self._papers = papers
        self._chronicle = chronicle
        self._keys = keys
        self.keyed: set[int] = set()
        """The inodes of tasks whose key is in its place."""
        self.elsewhere: set[str] = set()
        """Ids of tasks that are there, but where nobody finds them."""
        self.astray: set[str] = set()
        """Ids of tasks that are in a lane which is not theirs."""

    def check(self, segment: str, places: list[Place], running: list[str]) -> dict[str, list[Found]]:
        """Look at all tasks of this segment, and give where each was seen."""
        seen: dict[str, list[Found]] = {}
        for place in places:
            if place.state in _FLOW:
                self._gather(seen, segment, place.state, place.folder, self._scene.names(place.folder), place)
        self._gather(seen, segment, State.PROCESSING, f"{self._root}/processing", running)
        for place in places:
            if place.state not in _FLOW:
                self._gather(seen, segment, place.state, place.folder, self._scene.names(place.folder), place)
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
        place: Place | None = None,
    ) -> None:
        lane = None if place is None else place.lane
        self._scene.count(str(state), len(names))
        for name in names:
            token = legal_names.parse(state, name, lane)
            if token is None:
                token = self._misnamed(state, folder, name, lane)
                if token is None:
                    continue
            if token.id[: ids.SEGMENT] != segment:
                what = f"a task of segment {token.id[: ids.SEGMENT]}"
                again = self._scene.stays(f"{folder}/{name}")
                self._scene.suspect("misplaced", (folder, name), what, again, token.id, token)
                self.elsewhere.add(token.id)
                continue
            seen.setdefault(token.id, []).append(Found(state, (folder, name), token))

    def _misnamed(self, state: State, folder: str, name: str, lane: Any) -> Token | None:
        """What a name that is not legal here tells all the same."""
        token = Token.parse(name, lane)
        if token is None:
            task = self._id_in(f"{folder}/{name}")
            self._scene.stray(folder, name, f"no name of a task in {state}", task)
            return None
        again = self._scene.stays(f"{folder}/{name}")
        self._scene.suspect("name_illegal", (folder, name), f"no legal name in {state}", again, token.id, token)
        return token

    def _id_in(self, path: str) -> str | None:
        """Whose file this is, by its content."""
        try:
            id = str(_whole(self._disk.inspect(path, FILE_MOST)[1])["id"])
        except (OSError, Invalid):
            return None
        self.elsewhere.add(id)
        return id

    def _twice(self, several: list[Found]) -> None:
        """One id in two places: it moved meanwhile, or both names are there at one moment."""
        kept = several[-1]
        for found in several[:-1]:

            def both(found: Found = found) -> bool:
                # No name comes twice, so what is there before and after was there all the time.
                return all(map(self._scene.has, (found.path, kept.path, found.path)))

            if both():
                same = self._disk.same_file(found.path, kept.path)
                what = f"also in {kept.path.removeprefix(self._root + '/')}"
                code = "two_names" if same else "two_files"
                self._scene.suspect(code, found.place, what, both, found.token.id, found.token)

    # One task

    def _judge(self, found: Found) -> None:
        for code, what in self._problems(found, first=True):
            again = self._asker(found, code)
            self._scene.suspect(code, found.place, what, again, found.token.id, found.token)
            if code == "lane_differs":
                self.astray.add(found.token.id)

    def _asker(self, found: Found, code: str) -> Callable[[], bool]:
        return lambda: any(code == other for other, _ in self._problems(found))

    def _problems(self, found: Found, first: bool = False) -> list[Problem]:
        """What is wrong with the task of this very name, as long as it has it; nothing if it has moved on."""
        folder, name = found.place
        try:
            status, content = self._disk.inspect(found.path, FILE_MOST)
        except FileNotFoundError:
            return []
        except OSError:
            if first:
                self._scene.inspected(folder, name, FILE_MOST, found.token.id)
            return []
        if (status.st_mode & 0o170000) != 0o100000:
            if first:
                self._scene.inspected(folder, name, FILE_MOST, found.token.id)
            return []
        problems = [*self._said(found, status.st_ino, status.st_ctime_ns // 1_000_000, content)]
        problems += times.judged(self._scene, found, status.st_ctime_ns // 1_000_000)
        problems += self._papers.judged(found)
        problems += self._told(found, status.st_ctime_ns // 1_000_000)
        # What is missing beside a task that has moved on meanwhile is not missing.
        return problems if not problems or self._scene.has(found.path) else []

    def _said(self, found: Found, inode: int, moved_at: int, content: bytes) -> Iterator[Problem]:
        """What is wrong with the task's file, its edit, and its key."""
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
                    yield from _lane(found, fields)
                yield from self._key(fields, inode)
        if token.body is not None:
            yield from self._edited(found)

    def _dropped(self, found: Found, moved_at: int, content: bytes) -> Iterator[Problem]:
        """A file that came through the drop box may be in somebody's editor, for a moment."""
        try:
            file_format.draft(file_format.parse(content))
        except Invalid as error:
            if self._scene.now - moved_at > self._scene.context.settle:
                yield from _broken(found, error.message)

    def _edited(self, found: Found) -> Iterator[Problem]:
        token = found.token
        path = self._scene.context.edits.path(token.id, token.body or "")
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
                yield from _lane(found, fields)

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
            return  # told of by itself
        if status.st_ino == inode:
            self.keyed.add(inode)
            return
        try:
            holder = _whole(content)["id"]
        except Invalid:
            return  # told of by itself
        if holder == fields["id"]:
            yield "key_copied", f"the file of its key {key!a} is a copy"
        else:
            yield "key_taken", f"its key {key!a} is that of task {holder!a}"

    # The log

    def _told(self, found: Found, moved_at: int) -> Iterator[Problem]:
        """Where the log and the name don't agree; the log was read before this name was seen."""
        from taskyard.stores.directory.fsck.log import LEADS

        token, story = found.token, self._chronicle.stories.get(found.token.id)
        if story is not None and story.fence > token.fence:
            yield (
                "state_behind",
                f"the log has {story.event!r} with fence {story.fence}, and its name has {token.fence}",
            )
            return
        if story is not None and story.fence == token.fence and found.state not in LEADS[story.event]:
            yield "log_differs", f"the log has {story.event!r} with its fence, and it is in {found.state}"
            return
        if not self._chronicle.has_hour(moved_at) or self._chronicle.intended(token.id) or self._is_unseen(moved_at):
            return
        claimed = story is not None and story.knows(token.fence)
        ended = story is not None and story.fence == token.fence and story.event != "claimed"
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

    def _is_unseen(self, moved_at: int) -> bool:
        """Whether the move's event may be in the cache of another machine, which writes it out in its own time."""
        return not self._scene.context.local and self._scene.now - moved_at < 2 * UNSEEN


def _broken(found: Found, why: str) -> Iterator[Problem]:
    """What claims find broken ends in failed/ with the reason: there it is dealt with."""
    if found.state is not State.FAILED:
        yield "broken", why


def _lane(found: Found, fields: dict[str, Any]) -> Iterator[Problem]:
    """Nobody chooses an ended task by its lane any more."""
    lane = found.token.lane
    if found.state.ended:
        return
    said = (fields["priority"], fields["kind"], fields.get("assignee"))
    if said != (lane.priority, lane.kind, lane.assignee):
        own = f"{said[0]}-{said[1]}" + (f"@{said[2]}" if said[2] is not None else "")
        yield "lane_differs", f"in lane {lane.text}, and its content says {own}"


def _whole(content: bytes) -> dict[str, Any]:
    """The fields of a task's own file, or `Invalid` if it is not one from its first to its last byte."""
    if not content.startswith(task_file.MARK):
        raise Invalid("not written by Taskyard" if content else "empty")
    fields = task_file.decode(content)
    if not content.endswith(b"}\n") or not {"id", "kind", "priority", "data"} <= fields.keys():
        raise Invalid("the task's file is not whole: its end or its beginning is not that of a task")
    return fields
