"""Read a whole yard for a copy, without writing anything and without a lock.

What a killed process has left half done is refused: the janitor of this yard can repair it, the janitor of another store
cannot.
"""

from __future__ import annotations

from taskyard.core import ids, needs
from taskyard.core.draft import digest
from taskyard.core.errors import Conflict, Invalid, Unavailable
from taskyard.core.settings import refuse_unfinished
from taskyard.core.task import Handle, State
from taskyard.core.transfer import Entry, Facts, TaskCopy, cancel_reason, moment, ordered, plain
from taskyard.stores.directory import layout, names
from taskyard.stores.directory.dropbox import dropped_names
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.filesystem.links import Links
from taskyard.stores.directory.log.reader import LogReader
from taskyard.stores.directory.names import NO_FILE, Lane, Token
from taskyard.stores.directory.tasks import missions, schedules, task_file
from taskyard.stores.directory.tasks.edits import Edits
from taskyard.stores.directory.tasks.locate import Found, Locator
from taskyard.stores.directory.tasks.records import Records
from taskyard.stores.directory.tasks.segment_index import SegmentIndex
from taskyard.stores.directory.tasks.sheets import SheetReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.core.schedule import Schedule
    from taskyard.core.settings import Settings

    Folder = tuple[State, str, Lane | None, list[str] | None]
    """State, path, lane and the names to read; None means all names in the folder."""

_CHUNK = 1 << 20
_BY_SEGMENT = (State.BLOCKED, State.DONE, State.FAILED, State.CANCELLED)


class YardReader:
    """Reads the tasks, the log and the files of one yard."""

    def __init__(self, root: str, unfinished: bool = False) -> None:
        self.root = root
        self._unfinished = unfinished
        """Whether this may be a copy that was killed: then a broken task is no error, and the copy writes it anew."""
        self.disk = Disk()
        self.settings: Settings = layout.load(root)
        bounds = Links(self.disk, root)
        self._locator = Locator(self.disk, bounds, root, self.settings.policy.lease)
        self._records = Records(self.disk, bounds, root, _refuse_to_write, _refuse_to_write_to)
        self._edits = Edits(self.disk, bounds, root, _refuse_to_write, _refuse_to_write_to)
        self._sheets = SheetReader(self.disk, self._locator, root)
        self._log_reader = LogReader(self.disk, f"{root}/events")
        self._folders: dict[str, list[Folder]] = {}
        """The folders that hold tasks, by segment."""
        self._done: dict[str, set[str]] = {}
        """The ids of done tasks, by segment."""
        self.broken: list[str] = []
        """Ids of ended tasks whose file cannot be read."""
        self.irregular: list[str] = []
        """Paths that are no regular files, and are not copied."""

    def refuse_unfinished(self) -> None:
        """Raise an error if this yard is an unfinished copy."""
        refuse_unfinished(self.settings.copy_of, self.root)

    # The yard as a whole

    def facts(self) -> Facts:
        """Read the settings and state of the whole yard, as they are now."""
        given, untrusted = layout.settings(self.root)
        paused, kinds = names.paused(self._locator.names(f"{self.root}/paused"))
        facts = Facts(paused, kinds, given)
        if untrusted:
            facts.warnings.append(
                "another user wrote the checks in its yard.json, so they are not copied: the user whose workers run them must write them"
            )
        folder = f"{self.root}/{layout.MISSIONS}"
        facts.missions = missions.copied(
            (name, self.disk.read_at(f"{folder}/{name}", 0)) for name in self._locator.names(folder)
        )
        facts.schedules = schedules.copied(self._schedules())
        facts.held = sorted(map(str, self._held()))
        facts.dropped = sum(map(names.is_dropped, self.disk.listdir(f"{self.root}/todo")))
        marked = filter(ids.is_segment, self._locator.names(f"{self.root}/segments"))
        facts.highest = max(map(ids.number, marked), default=-1)
        logged = any(event["task"] for event in self.events())
        facts.is_empty = not (logged or facts.dropped or self.segments() or any(self.files(with_progress=True)))
        return facts

    def _schedules(self) -> Iterator[Schedule]:
        top = f"{self.root}/{layout.SCHEDULES}"
        for name in self._locator.names(top):
            files = self._locator.names(f"{top}/{name}")
            if schedules.SAID in files:
                said = self.disk.read_at(f"{top}/{name}/{schedules.SAID}", 0, schedules.SAID_MOST)
                found = schedules.parsed(said, files, name)
                if found is not None:
                    yield found[0]

    def segments(self) -> list[str]:
        """List the segments that have tasks, in order."""
        self._folders, self._done = {}, {}
        for text in self._locator.names(f"{self.root}/todo"):
            lane = Lane.of_folder(text)
            if lane is not None:
                self._gather(State.TODO, f"{self.root}/todo/{text}", lane)
        for bucket in self._locator.names(f"{self.root}/waiting"):
            self._gather(State.WAITING, f"{self.root}/waiting/{bucket}", None)
        running: dict[str, list[str]] = {}
        for name in self.disk.listdir(f"{self.root}/processing"):
            if Token.parse(name) is not None:
                running.setdefault(name[: ids.SEGMENT], []).append(name)
        for segment, some in running.items():
            folder = (State.PROCESSING, f"{self.root}/processing", None, some)
            self._folders.setdefault(segment, []).append(folder)
        for state in _BY_SEGMENT:
            self._gather(state, f"{self.root}/{state}", None)
        return sorted(filter(self._has_tasks, self._folders))

    def _has_tasks(self, segment: str) -> bool:
        """Return whether the segment has tasks; its folders stay for a while after the last task has left."""
        for _, folder, _, some in self._folders[segment]:
            if any(
                names.counted_lane(name) is not None for name in (self._locator.names(folder) if some is None else some)
            ):
                return True
        return False

    def _gather(self, state: State, folder: str, lane: Lane | None) -> None:
        for segment in self._locator.names(folder):
            if ids.is_segment(segment):
                self._folders.setdefault(segment, []).append((state, f"{folder}/{segment}", lane, None))

    def _found(self, segment: str) -> dict[str, Found]:
        """Find the tasks of the segment, by id; of two files of one task, the one with the higher fence."""
        seen: dict[str, Found] = {}
        for state, folder, lane, some in self._folders.get(segment, ()):
            for name in self._locator.names(folder) if some is None else some:
                token = Token.parse(name, lane)
                if token is None or not token.id.startswith(segment):
                    continue
                if token.id not in seen or seen[token.id].token.fence <= token.fence:
                    seen[token.id] = Found(state, (folder, name), token)
        return seen

    def tokens(self, segment: str) -> list[Token]:
        """Return the parsed file names of the segment's tasks."""
        return [found.token for found in self._found(segment).values()]

    # Tasks

    def tasks(self, segment: str) -> Iterator[TaskCopy]:
        """Read the tasks of one segment, in the order of their ids."""
        index = SegmentIndex(self._locator, self.root, segment)
        waiting = {*self._locator.names(f"{self.root}/needs/{segment}"), *self._sheets.waiting(segment)}
        found = self._found(segment)
        for id in sorted(found):
            try:
                yield self._task_copy(found[id], index, id in waiting)
            except FileNotFoundError:
                continue  # the task has moved since it was listed; the next pass reads it

    def _task_copy(self, found: Found, index: SegmentIndex, has_needs: bool) -> TaskCopy:
        token, state = found.token, found.state
        fields, own = self._content(found)
        is_held, is_over = state is State.PROCESSING, state.ended
        stamp = self.disk.changed_at(found.path) if is_held or is_over else 0
        named = index.of("results", token.id)
        records = self._records.all(token.id, named)
        history, stale = self._records.history(token, state, stamp, records, index)
        entries = ordered(_entries(history, token.id))
        notes = self._records.notes(token.id) if index.of("attempts", token.id) else []
        key = fields.get("key")
        not_before, expires, timeout = map(fields.get, ("not_before", "expires", "timeout"))
        result = self._records.result(token, records) if state is State.DONE else None
        return TaskCopy(
            id=token.id,
            kind=token.lane.kind,
            state=str(state),
            priority=token.lane.priority,
            assignee=token.lane.assignee,
            fence=token.fence,
            errors=token.errors,
            crashes=token.crashes,
            max_attempts=token.max_attempts,
            lease=token.own_lease,
            uses=list(fields.get("uses") or ()),
            due=token.due if state in (State.WAITING, State.BLOCKED) else None,
            title=fields.get("title"),
            mission=fields.get("mission"),
            key=key,
            added=None if key is None else self._added_digest(found, key, own),
            after=needs.encode(fields.get("after") or ()),
            verify=fields.get("verify"),
            not_before=None if not_before is None else moment(not_before),
            data=plain(fields.get("data")),
            needs=self._needs(token.id, state, has_needs),
            worker=token.worker,
            nonce=token.nonce,
            held_for=token.lease if is_held else None,
            progress=self._records.progress_of(token) if is_held else None,
            result=None if result is None else plain(result),
            dropped_as=next(map(dropped_names.read, index.of("names", token.id)), None),
            cancel_reason=cancel_reason(state, self._records.error(token, state, history, named), entries),
            parent=fields.get("parent"),
            discovered_from=fields.get("discovered_from"),
            expires=None if expires is None else moment(expires),
            bound=token.deadline and not is_over,
            timeout=None if timeout is None else float(timeout),
            history=entries,
            notes=ordered(_entries(notes, token.id)),
            stale=ordered(_entries(stale, token.id)),
            ended_at=stamp if is_over else None,
            claim_lease=token.lease,
        )

    def _content(self, found: Found) -> tuple[dict[str, Any], bytes]:
        """Return the task's current fields, with its edits, and the bytes of its file as it was added."""
        token = found.token
        try:
            own = self.disk.read(found.path)
            try:
                content = own if token.body is None else self._edits.edited(token.id, token.body)
            except FileNotFoundError:
                raise Invalid("the edit that replaced its file is gone") from None
            return task_file.decode(content), own
        except (Invalid, OSError) as error:
            if isinstance(error, OSError) and error.errno not in NO_FILE:
                raise
            if not found.state.ended and not self._unfinished:
                raise Conflict(
                    f"task {token.id} cannot be copied, because its file cannot be read: {error}",
                    hint=f"look at {found.path}; 'taskyard cancel {token.id}' takes it out of the way",
                ) from None
            if token.id not in self.broken:
                self.broken.append(token.id)
            return {}, b""

    def _added_digest(self, found: Found, key: str, own: bytes) -> str | None:
        """Return the digest of the data that was added under the key; None if the key belongs to another task."""
        from taskyard.stores.directory.tasks.keys import path_of

        if not own or not self.disk.same_file(found.path, path_of(self.root, key)):
            return None
        return task_file.added(own) or digest(plain(task_file.decode(own)["data"]))

    def _needs(self, id: str, state: State, has_needs: bool) -> list[str]:
        """Return the ids of the tasks that must be done before this one and are not.

        Raise `Conflict` if a process was killed before it could unblock the task.
        """
        if state not in (State.BLOCKED, State.CANCELLED):
            return []
        listed = self._locator.names(f"{self.root}/needs/{id[: ids.SEGMENT]}/{id}") if has_needs else []
        noted = sorted({*filter(ids.is_id, listed), *(self._sheets.needs(id) if has_needs else ())})
        if self._unfinished:
            return noted
        if state is State.BLOCKED and (not noted or any(map(self._is_done, noted))):
            raise Conflict(
                f"task {id} is blocked although all that must be done before it may be done: somebody was killed over it",
                hint="'taskyard janitor' in that yard puts it right, after a few rounds at the most; then copy",
            )
        return [other for other in noted if not self._is_done(other)]

    def _is_done(self, id: str) -> bool:
        segment = id[: ids.SEGMENT]
        if segment not in self._done:
            if len(self._done) > 1000:
                self._done.clear()
            listed = self._locator.names(f"{self.root}/done/{segment}")
            self._done[segment] = {name[: ids.LENGTH] for name in listed}
        return id in self._done[segment]

    # The rest

    def events(self) -> Iterator[dict[str, Any]]:
        """Read the log, in the order in which it was written."""
        return self._log_reader.all()

    def files(self, with_progress: bool) -> Iterator[str]:
        """List the files of attempts, of refused drops, and of the archive."""
        held = {str(handle) for handle in self._held()}
        for segment in sorted(self._locator.names(f"{self.root}/attempts")):
            for id in sorted(self._locator.names(f"{self.root}/attempts/{segment}")):
                for claim in sorted(self._locator.names(f"{self.root}/attempts/{segment}/{id}")):
                    # Notes, and the progress of a held task, are copied with the task.
                    keep_progress = with_progress and claim not in held
                    skipped = ("notes.jsonl",) if keep_progress else ("notes.jsonl", "progress.json")
                    yield from self._below(f"attempts/{segment}/{id}/{claim}", skipped)
        for name in sorted(self.listed("failed")):
            if not ids.is_segment(name) and not self.disk.is_folder(f"{self.root}/failed/{name}"):
                yield from self._if_regular(f"failed/{name}")
        for name in sorted(self.listed("archive")):
            yield from self._if_regular(f"archive/{name}")

    def listed(self, folder: str) -> list[str]:
        """The names in a folder of the yard, without the probes of a doctor: those come and go at any moment."""
        names = self._locator.names(f"{self.root}/{folder}")
        return [name for name in names if not name.startswith(layout.DOCTOR_PREFIX)]

    def _held(self) -> Iterator[Handle]:
        """Yield the handles of the claims that hold a task."""
        for name in self._locator.names(f"{self.root}/processing"):
            token = Token.parse(name)
            if token is not None:
                yield Handle(token.id, token.fence, token.nonce or "")

    def _below(self, folder: str, skipped: tuple[str, ...] = ()) -> Iterator[str]:
        """List every file in this folder and below it, without those named in `skipped` in the folder itself."""
        for name in sorted(self._locator.names(f"{self.root}/{folder}")):
            path = f"{folder}/{name}"
            if self.disk.is_folder(f"{self.root}/{path}"):
                yield from self._below(path)
            elif name not in skipped:
                yield from self._if_regular(path)

    def _if_regular(self, path: str) -> Iterator[str]:
        try:
            if self.disk.is_file(f"{self.root}/{path}"):
                yield path
            elif path not in self.irregular:
                self.irregular.append(path)
        except FileNotFoundError:
            return

    def chunks(self, path: str) -> Iterator[bytes]:
        """Read a file in chunks: at least one if the file exists, none if it does not."""
        if not self.disk.exists(f"{self.root}/{path}"):
            return
        yield b""
        offset = 0
        while chunk := self.disk.read_at(f"{self.root}/{path}", offset, _CHUNK):
            yield chunk
            offset += len(chunk)

    def identity(self) -> object:
        """Return a value that is equal for all paths of this directory."""
        return "directory", *self.disk.which(self.root)


def _entries(reported: list[dict[str, Any]], id: str) -> list[Entry]:
    """Make entries of a task's history, notes or stale results; skip those that name no claim of this task."""
    entries = []
    for entry in reported:
        parts = str(entry["claim"]).split(".")
        if len(parts) != 3 or parts[0] != id or not (parts[1].isascii() and parts[1].isdigit()):
            continue
        result, is_submitted = entry.get("result"), entry.get("outcome") == "released" and "result" in entry
        entries.append(
            Entry(
                int(parts[1]),
                parts[2],
                entry["worker"],
                moment(entry["at"]),
                entry.get("outcome"),
                entry["text"] if "text" in entry else entry.get("reason"),
                None if result is None and not is_submitted else plain(result),
            )
        )
    return entries


def _refuse_to_write() -> str:
    raise Unavailable("a yard that is copied from is not written to")


def _refuse_to_write_to(folder: str) -> None:
    raise Unavailable(f"a yard that is copied from is not written to: {folder}")
