"""Everything that is no task and lies beside none: markers, workers, writers, turns, pauses, archives, tmp/ and dead/."""

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
    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.log.intents import Writers
    from taskyard.stores.directory.tasks.locate import Found

_MARKER = re.compile(rb"[0-9]{1,15} ([^\n]+)")
_CLOCK = "clock"
_COUNT = "lost_races"


class Corners:
    """Looks at the rest of the yard."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._disk = scene.disk
        self._root = scene.root

    def check(self) -> None:
        """All but the markers, which are looked at with the tasks of their segments."""
        self._on_the_way()
        self._writers()
        self._workers()
        for name in self._scene.folders(f"{self._root}/turns", names.is_turn):
            self._scene.count("turns", self._scene.is_plain(f"{self._root}/turns", name))
        self._paused()
        self._archives()

    def marker(self, segment: str, seen: dict[str, list[Found]], astray: set[str]) -> None:
        """A segment's marker tells when and for which lane it was opened."""
        folder, path = f"{self._root}/segments", f"{self._root}/segments/{segment}"
        own = (several[-1].token for id, several in seen.items() if id not in astray)
        came = {token.lane.text for token in own if token.body is None}
        if self._scene.has(path):
            self._scene.count("segments")
            problem = self._marked(segment, came)
            if problem is not None:
                self._scene.suspect(
                    problem[0], (folder, segment), problem[1], lambda: self._marked(segment, came) == problem
                )
        elif seen:
            one = next(iter(seen.values()))[-1]
            what, gone = f"it has {len(seen)} tasks", self._scene.lacks(path)
            self._scene.suspect("marker_missing", (folder, segment), what, gone, None, one.token)

    def _marked(self, segment: str, came: set[str]) -> tuple[str, str] | None:
        looked = self._scene.inspected(f"{self._root}/segments", segment, 512)
        match = None if looked is None else _MARKER.match(looked[1])
        if looked is None:
            return None
        text = "" if match is None else match[1].decode("utf-8", "replace")
        if Lane.parse(text) is None:
            return "marker_broken", f"it begins {looked[1][:40].decode('utf-8', 'replace')!a}"
        if came and text not in came:
            return "marker_lane", f"it says {text}, and its tasks came in by {', '.join(sorted(came)[:3])}"
        return None

    def _on_the_way(self) -> None:
        """What a dead process left in tmp/ or dead/; in tmp/ anything that is young may be somebody's."""
        for place in ("tmp", "dead"):
            folder = f"{self._root}/{place}"
            for name in self._scene.names(folder):
                path = f"{folder}/{name}"
                if name == _CLOCK or self._scene.age(path) <= PATIENCE:
                    continue
                named = ids.is_id(name.removesuffix(SUFFIX)) or ids.is_id(name.removesuffix(NOTE))
                known = place == "dead" or DRAFT.match(name) or named
                what = (
                    "left there for more than 10 minutes"
                    if known
                    else "not the yard's, and there for more than 10 minutes"
                )
                self._scene.suspect("leftover", (folder, name), what, self._scene.stays(path))

    def _writers(self) -> None:
        folder = f"{self._root}/writers"
        writers = self._scene.context.writers()
        for name in self._scene.folders(folder, _is_writer):
            self._scene.count("writers")
            if (
                not self._scene.is_plain(folder, name)
                or name == _COUNT
                or name.endswith((".new", LOOK))
                or name == self._scene.context.writer.tag
            ):
                continue
            try:
                if self._is_left(writers, name):
                    there = self._scene.stays(f"{folder}/{name}")
                    self._scene.suspect("dead_writer", (folder, name), "its process is gone", there)
            except OSError as error:
                self._scene.unreadable(f"{folder}/{name}", error)

    def _is_left(self, writers: Writers, name: str) -> bool:
        """Whether a dead process has left this file; that of a shell is of interest only with an event in it."""
        if not name.endswith(SHELL):
            return not writers.is_alive(name, self._scene.now)
        return bool(writers.intents(name)) and writers.is_left(name, True, self._scene.now, PATIENCE)

    def _workers(self) -> None:
        folder = f"{self._root}/workers"
        for name in self._scene.folders(folder, legal_names.WORKER.fullmatch):
            self._scene.count("workers")
            self._worker(folder, name)

    def _worker(self, folder: str, name: str) -> None:
        if self._is_worker(folder, name) or self._scene.inspected(folder, name, 1) is None:
            return
        what = "it does not tell kernel, device and inode"
        self._scene.suspect("worker_broken", (folder, name), what, lambda: not self._is_worker(folder, name))

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
        for name in self._scene.folders(folder, lambda name: name == names.PAUSED_ALL or legal_names.is_word(name)):
            self._scene.count("pauses")
            self._scene.inspected(folder, name, 1)

    def _archives(self) -> None:
        folder = f"{self._root}/archive"
        for name in self._scene.folders(folder, legal_names.ARCHIVE.fullmatch):
            self._scene.tell("unpacking archives")
            self._scene.count("archives")
            self._archive(folder, name)

    def _archive(self, folder: str, name: str) -> None:
        path = f"{folder}/{name}"
        problem = self._packed(path)
        if problem is not None and self._scene.inspected(folder, name, 1) is not None:
            self._scene.suspect("archive_broken", (folder, name), problem, lambda: self._packed(path) is not None)

    def _packed(self, path: str) -> str | None:
        """What is wrong with this archive, if anything is."""
        try:
            for _ in log.unpacked(self._scene, path):
                pass
        except (zlib.error, EOFError) as error:
            return str(error) if self._scene.has(path) else None
        except OSError:
            return None
        return None


def _is_writer(name: str) -> bool:
    return name == _COUNT or bool(legal_names.WRITER.fullmatch(name) or legal_names.SHELL.fullmatch(name))
