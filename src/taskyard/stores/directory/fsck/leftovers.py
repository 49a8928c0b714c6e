"""Check what belongs to no single task: markers, workers, writers, turns, pauses, archives, tmp/ and dead/."""

from __future__ import annotations

import json
import re
import zlib

from taskyard.core import ids
from taskyard.stores.directory import names
from taskyard.stores.directory.fsck import legal_names, log
from taskyard.stores.directory.log.intents import LOOK, SHELL
from taskyard.stores.directory.names import SUFFIX, Lane
from taskyard.stores.directory.recovery.crashes import DRAFT
from taskyard.stores.directory.recovery.missing import NOTE
from taskyard.stores.directory.recovery.segments import PATIENCE

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
        self._paused()
        self._archives()

    def marker(self, segment: str, seen: dict[str, list[Found]], in_wrong_lane: set[str]) -> None:
        """Check a segment's marker, which has the time and the lane of its opening."""
        folder, path = f"{self._root}/segments", f"{self._root}/segments/{segment}"
        tokens = (several[-1].token for id, several in seen.items() if id not in in_wrong_lane)
        lanes = {token.lane.text for token in tokens if token.body is None}
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

    def _paused(self) -> None:
        folder = f"{self._root}/paused"
        for name in self._audit.folders(folder, lambda name: name == names.PAUSED_ALL or legal_names.is_word(name)):
            self._audit.count("pauses")
            self._audit.inspected(folder, name, 1)

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
