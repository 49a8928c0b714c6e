"""Check what belongs to no single task: markers, workers, writers, turns, leaders, pauses, slots, missions, schedules, archives, tmp/ and dead/."""

from __future__ import annotations

import json
import re
import zlib
from functools import partial

from taskyard.core import ids
from taskyard.stores.directory import layout, leadership, names
from taskyard.stores.directory.fsck import legal_names, log
from taskyard.stores.directory.log.intents import LOOK, SHELL
from taskyard.stores.directory.names import SUFFIX, Lane
from taskyard.stores.directory.recovery.crashes import DRAFT
from taskyard.stores.directory.recovery.missing import NOTE
from taskyard.stores.directory.recovery.segments import PATIENCE
from taskyard.stores.directory.tasks import missions, schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.log.intents import Writers
    from taskyard.stores.directory.tasks.locate import Found

_MARKER = re.compile(rb"[0-9]{1,15} ([^\n]+)")
_CLOCK = "clock"
_COUNT = "lost_races"


class LeftoverAudit:
    """Checks the rest of the yard."""

    def __init__(self, audit: AuditContext) -> None:
        self._audit = audit
        self._disk = audit.disk
        self._root = audit.root

    def check(self) -> None:
        """Check all but the markers, which are checked with the tasks of their segments."""
        self._temporary()
        self._writers()
        self._workers()
        for name in self._audit.folders(f"{self._root}/turns", names.is_turn):
            self._audit.count("turns", self._audit.is_plain(f"{self._root}/turns", name))
        for name in self._audit.folders(f"{self._root}/{leadership.FOLDER}", leadership.is_leader):
            self._audit.count("leaders", self._audit.is_plain(f"{self._root}/{leadership.FOLDER}", name))
        self._kinds("paused", "pauses")
        self._kinds("asked", "asked")
        self._pace()
        self._missions()
        self._schedules()
        self._archives()

    def marker(self, segment: str, seen: dict[str, list[Found]], in_wrong_lane: set[str]) -> None:
        """Check a segment's marker, which has the time and the lane of its opening."""
        folder, path = f"{self._root}/segments", f"{self._root}/segments/{segment}"
        tokens = (several[-1].token for id, several in seen.items() if id not in in_wrong_lane)
        lanes = {token.lane.plain for token in tokens if token.body is None}
        if self._audit.has(path):
            self._audit.count("segments")
            problem = self._marker_problem(segment, lanes)
            if problem is not None:
                self._audit.suspect(
                    problem[0], (folder, segment), problem[1], lambda: self._marker_problem(segment, lanes) == problem
                )
        elif seen:
            one = next(iter(seen.values()))[-1]
            what, gone = f"it has {len(seen)} tasks", self._audit.lacks(path)
            self._audit.suspect("marker_missing", (folder, segment), what, gone, None, one.token)

    def _marker_problem(self, segment: str, lanes: set[str]) -> tuple[str, str] | None:
        looked = self._audit.inspected(f"{self._root}/segments", segment, 512)
        match = None if looked is None else _MARKER.match(looked[1])
        if looked is None:
            return None
        text = "" if match is None else match[1].decode("utf-8", "replace")
        if Lane.parse(text) is None:
            return "marker_broken", f"it begins {looked[1][:40].decode('utf-8', 'replace')!a}"
        if lanes and text not in lanes:
            return "marker_lane", f"it says {text}, and its tasks came in by {', '.join(sorted(lanes)[:3])}"
        return None

    def _temporary(self) -> None:
        """Find what a dead process has left in tmp/ or dead/; a young file may belong to a running process."""
        for place in ("tmp", "dead"):
            folder = f"{self._root}/{place}"
            for name in self._audit.names(folder):
                path = f"{folder}/{name}"
                if name == _CLOCK or self._audit.age(path) <= PATIENCE:
                    continue
                named = ids.is_id(name.removesuffix(SUFFIX)) or ids.is_id(name.removesuffix(NOTE))
                known = place == "dead" or DRAFT.match(name) or named
                what = (
                    "left there for more than 10 minutes"
                    if known
                    else "not the yard's, and there for more than 10 minutes"
                )
                self._audit.suspect("leftover", (folder, name), what, self._audit.stays(path))

    def _writers(self) -> None:
        folder = f"{self._root}/writers"
        writers = self._audit.context.writers()
        for name in self._audit.folders(folder, _is_writer):
            self._audit.count("writers")
            if (
                not self._audit.is_plain(folder, name)
                or name == _COUNT
                or name.endswith((".new", LOOK))
                or name == self._audit.context.writer.tag
            ):
                continue
            try:
                if self._is_left(writers, name):
                    there = self._audit.stays(f"{folder}/{name}")
                    self._audit.suspect("dead_writer", (folder, name), "its process is gone", there)
            except OSError as error:
                self._audit.unreadable(f"{folder}/{name}", error)

    def _is_left(self, writers: Writers, name: str) -> bool:
        """Return whether a dead process has left this file; a shell's file counts only if it has an event."""
        if not name.endswith(SHELL):
            return not writers.is_alive(name, self._audit.now)
        return bool(writers.intents(name)) and writers.is_left(name, True, self._audit.now, PATIENCE)

    def _workers(self) -> None:
        folder = f"{self._root}/workers"
        for name in self._audit.folders(folder, legal_names.WORKER.fullmatch):
            self._audit.count("workers")
            self._worker(folder, name)

    def _worker(self, folder: str, name: str) -> None:
        if self._is_worker(folder, name) or self._audit.inspected(folder, name, 1) is None:
            return
        what = "it does not tell kernel, device and inode"
        self._audit.suspect("worker_broken", (folder, name), what, lambda: not self._is_worker(folder, name))

    def _is_worker(self, folder: str, name: str) -> bool:
        try:
            note = json.loads(self._disk.inspect(f"{folder}/{name}", 1 << 16)[1])
            return bool({"kernel", "device", "inode"} <= note.keys())
        except FileNotFoundError:
            return True
        except (OSError, ValueError, AttributeError):
            return False

    def _kinds(self, name: str, counted: str) -> None:
        """Check a folder of empty files that are named for kinds."""
        folder = f"{self._root}/{name}"
        for kind in self._audit.folders(folder, lambda kind: kind == names.PAUSED_ALL or legal_names.is_word(kind)):
            self._audit.count(counted)
            self._audit.inspected(folder, kind, 1)

    def _pace(self) -> None:
        """Check the slots of kinds that have a rate."""
        top = f"{self._root}/pace"
        for kind in self._audit.folders(top, legal_names.is_word):
            if not self._audit.is_plain(top, kind, is_folder=True):
                continue
            for block in self._audit.folders(f"{top}/{kind}", legal_names.BLOCK.fullmatch):
                folder = f"{top}/{kind}/{block}"
                if self._audit.is_plain(f"{top}/{kind}", block, is_folder=True):
                    for name in self._audit.folders(folder, legal_names.SLOT.fullmatch):
                        self._audit.count("slots", self._audit.is_plain(folder, name))

    def _missions(self) -> None:
        folder = f"{self._root}/{layout.MISSIONS}"
        for name in self._audit.folders(folder, legal_names.MISSION.fullmatch):
            self._audit.count("missions", name.endswith(missions.SAID))
            if self._is_mission(folder, name) or self._audit.inspected(folder, name, 1) is None:
                continue
            broken = partial(self._is_broken_mission, folder, name)
            self._audit.suspect("mission_broken", (folder, name), "it is not what Taskyard writes there", broken)

    def _is_broken_mission(self, folder: str, name: str) -> bool:
        return not self._is_mission(folder, name)

    def _is_mission(self, folder: str, name: str) -> bool:
        try:
            content = self._disk.inspect(f"{folder}/{name}", 1 << 20)[1]
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return content.strip().isdigit() if name == layout.SINCE else missions.parsed(content, name) is not None

    def _schedules(self) -> None:
        top = f"{self._root}/{layout.SCHEDULES}"
        for name in self._audit.folders(top, legal_names.is_word):
            folder = f"{top}/{name}"
            self._audit.count("schedules")
            if not self._audit.is_plain(top, name, is_folder=True):
                continue
            for file in self._audit.folders(folder, schedules.is_legal):
                if ids.is_id(file.removesuffix(SUFFIX)) and self._audit.age(f"{folder}/{file}") > PATIENCE:
                    left = self._audit.stays(f"{folder}/{file}")
                    self._audit.suspect("leftover", (folder, file), "a task that no tick has selected", left)
            if self._is_broken_schedule(folder, name):
                broken = partial(self._is_broken_schedule, folder, name)
                self._audit.suspect("schedule_broken", (top, name), "it is not what Taskyard writes there", broken)

    def _is_broken_schedule(self, folder: str, name: str) -> bool:
        """Return whether the folder has no schedule in it; a listing may miss its token while that is renamed."""
        for _ in range(schedules.LOOKS):
            try:
                said = self._disk.inspect(f"{folder}/{schedules.SAID}", schedules.SAID_MOST)[1]
                if schedules.parsed(said, self._disk.listdir(folder), name) is not None:
                    return False
            except FileNotFoundError:
                return self._audit.has(folder)
            except OSError:
                return True
        return True

    def _archives(self) -> None:
        folder = f"{self._root}/archive"
        for name in self._audit.folders(folder, legal_names.ARCHIVE.fullmatch):
            self._audit.report_progress("unpacking archives")
            self._audit.count("archives")
            self._archive(folder, name)

    def _archive(self, folder: str, name: str) -> None:
        path = f"{folder}/{name}"
        problem = self._archive_problem(path)
        if problem is not None and self._audit.inspected(folder, name, 1) is not None:
            self._audit.suspect(
                "archive_broken", (folder, name), problem, lambda: self._archive_problem(path) is not None
            )

    def _archive_problem(self, path: str) -> str | None:
        """Return why the archive cannot be unpacked; None if it can."""
        try:
            for _ in log.unpacked(self._audit, path):
                pass
        except (zlib.error, EOFError) as error:
            return str(error) if self._audit.has(path) else None
        except OSError:
            return None
        return None


def _is_writer(name: str) -> bool:
    return name == _COUNT or bool(legal_names.WRITER.fullmatch(name) or legal_names.SHELL.fullmatch(name))
