"""What lies beside tasks: records of how claims ended, edits, and the folders of attempts."""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.core.task import State
from taskyard.stores.directory.fsck import legal_names
from taskyard.stores.directory.recovery.segments import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from re import Pattern

    from taskyard.stores.directory.fsck.context import Scene
    from taskyard.stores.directory.fsck.log import LogAudit
    from taskyard.stores.directory.tasks.locate import Found

    Seen = dict[str, list[Found]]

_MOST = 1 << 23  # bytes of a record that are read: several times the largest result
_STALE = "stale-"


class RecordAudit:
    """Reads all papers of one segment, before its tasks are looked at: whatever counts was written before the move."""

    def __init__(self, scene: Scene, chronicle: LogAudit) -> None:
        self._scene = scene
        self._root = scene.root
        self._chronicle = chronicle
        self._sound: set[str] = set()
        self._claims: dict[str, list[tuple[int, str, str]]] = {}
        self._edits: list[str] = []
        self._attempts: list[str] = []

    def read(self, segment: str) -> None:
        """Read every record, and list the rest."""
        self._sound, self._claims = set(), {}
        folder = f"{self._root}/results/{segment}"
        for name in self._scene.folders(folder, lambda name: _is_of(legal_names.RECORD, name, segment)):
            self._scene.count("records")
            self._record(folder, name)
        edits = f"{self._root}/edits/{segment}"
        several = self._scene.folders(edits, lambda name: _is_of(legal_names.EDIT, name, segment))
        self._edits = [name for name in several if self._scene.is_plain(edits, name)]
        attempts = f"{self._root}/attempts/{segment}"
        some = self._scene.folders(attempts, lambda name: ids.is_id(name) and name.startswith(segment))
        self._attempts = list(some)
        for id in self._attempts:
            self._claimed(f"{attempts}/{id}", id)

    def _claimed(self, folder: str, id: str) -> None:
        for name in self._scene.folders(folder, lambda name: name.startswith(id) and legal_names.CLAIM.fullmatch(name)):
            self._scene.count("attempts", self._scene.is_plain(folder, name, is_folder=True))

    def _record(self, folder: str, name: str) -> None:
        id, fence, nonce, kind, _ = name.split(".")
        if self._is_sound(folder, name):
            self._sound.add(name)
            self._claims.setdefault(id, []).append((int(fence), nonce, kind))
            return
        if self._scene.inspected(folder, name, _MOST, id) is not None:
            what = "empty, cut off, or not of the claim in its name"

            def again() -> bool:
                return self._scene.has(f"{folder}/{name}") and not self._is_sound(folder, name)

            self._scene.suspect("record_broken", (folder, name), what, again, id)

    def _is_sound(self, folder: str, name: str) -> bool:
        claim, _, kind = name.removesuffix(".json").rpartition(".")
        try:
            record = json.loads(self._scene.disk.inspect(f"{folder}/{name}", _MOST)[1])
            return bool(record["claim"] == claim and (record["outcome"] == kind or kind.startswith(_STALE)))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    # Beside one task

    def judged(self, found: Found) -> Iterator[tuple[str, str]]:
        """Whether the record is there that an ended task's name speaks of."""
        token = found.token
        folder = f"{self._root}/results/{token.id[: ids.SEGMENT]}"
        claim = f"{token.id}.{token.fence}.{token.nonce}"
        if found.state is State.DONE and token.has_result:
            if not self._has(folder, f"{claim}.done.json"):
                yield "record_missing", f"the result of {claim} is not there"
        elif found.state is State.FAILED and token.nonce is not None:
            if not self._has(folder, f"{claim}.error.json"):
                yield "reason_missing", f"no record of how {claim} failed"
        elif found.state is State.FAILED:
            crash = f"{token.id}.{token.fence - 1}."
            names = self._scene.context.locator.names(folder)
            if not any(name.startswith(crash) and name.endswith(".crash.json") for name in names):
                yield "reason_missing", f"no record of a crash with fence {token.fence - 1}"

    def _has(self, folder: str, name: str) -> bool:
        """One that is there and broken is told of by itself."""
        return name in self._sound or self._scene.has(f"{folder}/{name}")

    # Beside all tasks of the segment

    def compare(self, segment: str, seen: Seen) -> None:
        """RecordAudit of no task, and records that don't fit the task that they are of."""
        for id, claims in self._claims.items():
            if id in seen:
                self._fences(segment, id, claims, seen[id])
            else:
                self._orphan("results", segment, id, ".".join(map(str, (id, *claims[0]))) + ".json")
        for name in self._edits:
            several = seen.get(name[: ids.LENGTH], [])
            if not any(found.token.body == name[ids.LENGTH + 1 : -5] for found in several):
                self._orphan("edits", segment, name[: ids.LENGTH], name)
        for id in self._attempts:
            if id not in seen:
                self._orphan("attempts", segment, id, id)

    def _orphan(self, place: str, segment: str, id: str, name: str) -> None:
        """What a patrol removes once it was left alone for long."""
        folder = f"{self._root}/{place}/{segment}"
        path = f"{folder}/{name}"
        if self._scene.age(path) <= PATIENCE:
            return

        def again() -> bool:
            found = self._scene.find(id)
            if found is None:
                return self._scene.has(path) and not self._scene.blind
            return place == "edits" and found.token.body != name[ids.LENGTH + 1 : -5] and self._scene.has(path)

        self._scene.suspect("orphan", (folder, name), "of a task that is gone or has moved on", again, id)

    def _fences(self, segment: str, id: str, claims: list[tuple[int, str, str]], several: list[Found]) -> None:
        found = max(several, key=lambda found: found.token.fence)
        folder = f"{self._root}/results/{segment}"
        nonces: dict[int, set[str]] = {}
        for fence, nonce, kind in claims:
            name = f"{id}.{fence}.{nonce}.{kind}.json"
            there = self._both(f"{folder}/{name}", found.path)
            if not kind.startswith(_STALE):
                nonces.setdefault(fence, set()).add(nonce)
                if fence > found.token.fence or (fence == found.token.fence and found.token.nonce is None):
                    what = f"of a claim with fence {fence}, and the task has {found.token.fence}"
                    self._scene.suspect("record_ahead", (folder, name), what, there, id, found.token)
                    continue
            self._known(folder, name, id, fence)
        for fence, some in nonces.items():
            if len(some) > 1:
                what = f"{len(some)} claims with fence {fence}"
                self._scene.suspect("fence_twice", found.place, what, self._scene.stays(found.path), id)

    def _known(self, folder: str, name: str, id: str, fence: int) -> None:
        """Whether the log knows the claim of this record, if it tells of the task and of that time at all."""
        path = f"{folder}/{name}"

        def unknown() -> bool:
            story = self._chronicle.stories.get(id)
            if story is None or story.knows(fence) or self._chronicle.intended(id):
                return False
            return self._scene.has(path) and self._chronicle.has_hour(self._scene.now - self._scene.age(path))

        if unknown():
            self._scene.suspect("record_unknown", (folder, name), "of a claim that the log does not know", unknown, id)

    def _both(self, one: str, other: str) -> Callable[[], bool]:
        return lambda: self._scene.has(one) and self._scene.has(other)


def _is_of(shape: Pattern[str], name: str, segment: str) -> bool:
    return bool(name.startswith(segment) and shape.fullmatch(name))
