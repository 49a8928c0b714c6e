"""Check the files beside tasks: records of how claims ended, edits, and the folders of attempts."""

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

    from taskyard.stores.directory.fsck.context import AuditContext
    from taskyard.stores.directory.fsck.log import LogAudit
    from taskyard.stores.directory.tasks.locate import Found

    Seen = dict[str, list[Found]]

_MOST = 1 << 23  # bytes of a record that are read, several times the largest result
_STALE = "stale-"


class RecordAudit:
    """Reads all records of one segment before its tasks: a record is written before the move that it belongs to."""

    def __init__(self, audit: AuditContext, log_audit: LogAudit) -> None:
        self._audit = audit
        self._root = audit.root
        self._log_audit = log_audit
        self._sound: set[str] = set()
        self._claims: dict[str, list[tuple[int, str, str]]] = {}
        self._claimless: list[str] = []
        """Records that belong to a task, and to none of its claims."""
        self._edits: list[str] = []
        self._attempts: list[str] = []

    def read(self, segment: str) -> None:
        """Read every record, and list the rest."""
        self._sound, self._claims, self._claimless = set(), {}, []
        folder = f"{self._root}/results/{segment}"
        for name in self._audit.folders(folder, lambda name: _is_record(name, segment)):
            self._audit.count("records")
            self._record(folder, name)
        edits = f"{self._root}/edits/{segment}"
        several = self._audit.folders(edits, lambda name: _is_of(legal_names.EDIT, name, segment))
        self._edits = [name for name in several if self._audit.is_plain(edits, name)]
        attempts = f"{self._root}/attempts/{segment}"
        some = self._audit.folders(attempts, lambda name: ids.is_id(name) and name.startswith(segment))
        self._attempts = list(some)
        for id in self._attempts:
            self._claimed(f"{attempts}/{id}", id)

    def _claimed(self, folder: str, id: str) -> None:
        for name in self._audit.folders(folder, lambda name: name.startswith(id) and legal_names.CLAIM.fullmatch(name)):
            self._audit.count("attempts", self._audit.is_plain(folder, name, is_folder=True))

    def _record(self, folder: str, name: str) -> None:
        id = name[: ids.LENGTH]
        if self._is_sound(folder, name):
            self._sound.add(name)
            if legal_names.NO_CLAIM.fullmatch(name):
                self._claimless.append(name)
            else:
                _, fence, nonce, kind, _ = name.split(".")
                self._claims.setdefault(id, []).append((int(fence), nonce, kind))
            return
        if self._audit.inspected(folder, name, _MOST, id) is not None:
            what = "empty, cut off, or not of the claim in its name"

            def still_holds() -> bool:
                return self._audit.has(f"{folder}/{name}") and not self._is_sound(folder, name)

            self._audit.suspect("record_broken", (folder, name), what, still_holds, id)

    def _is_sound(self, folder: str, name: str) -> bool:
        claim, _, kind = name.removesuffix(".json").rpartition(".")
        try:
            record = json.loads(self._audit.disk.inspect(f"{folder}/{name}", _MOST)[1])
            if legal_names.NO_CLAIM.fullmatch(name):
                content = record["reason"] if kind == "cancelled" else record["state"]
                return f"{record['task']}.{record['fence']}" == claim and isinstance(content, str)
            return bool(record["claim"] == claim and (record["outcome"] == kind or kind.startswith(_STALE)))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    # Records of one task

    def problems(self, found: Found) -> Iterator[tuple[str, str]]:
        """Check that the record exists that the name of an ended task refers to."""
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
            names = self._audit.context.locator.names(folder)
            if not any(name.startswith(crash) and name.endswith(".crash.json") for name in names):
                yield "reason_missing", f"no record of a crash with fence {token.fence - 1}"

    def _has(self, folder: str, name: str) -> bool:
        """Return whether the record exists; a broken one has a suspect of its own."""
        return name in self._sound or self._audit.has(f"{folder}/{name}")

    # Records of all tasks of the segment

    def compare(self, segment: str, seen: Seen) -> None:
        """Find records of no task, and records that contradict their task."""
        for id, claims in self._claims.items():
            if id in seen:
                self._fences(segment, id, claims, seen[id])
            else:
                self._orphan("results", segment, id, ".".join(map(str, (id, *claims[0]))) + ".json")
        for name in self._claimless:
            if name[: ids.LENGTH] not in seen:
                self._orphan("results", segment, name[: ids.LENGTH], name)
        for name in self._edits:
            several = seen.get(name[: ids.LENGTH], [])
            if not any(found.token.body == name[ids.LENGTH + 1 : -5] for found in several):
                self._orphan("edits", segment, name[: ids.LENGTH], name)
        for id in self._attempts:
            if id not in seen:
                self._orphan("attempts", segment, id, id)

    def _orphan(self, place: str, segment: str, id: str, name: str) -> None:
        """Add a suspect for a file without a task, if it is so old that a sweep would remove it."""
        folder = f"{self._root}/{place}/{segment}"
        path = f"{folder}/{name}"
        if self._audit.age(path) <= PATIENCE:
            return

        def still_holds() -> bool:
            found = self._audit.find(id)
            if found is None:
                return self._audit.has(path) and not self._audit.incomplete
            return place == "edits" and found.token.body != name[ids.LENGTH + 1 : -5] and self._audit.has(path)

        self._audit.suspect("orphan", (folder, name), "of a task that is gone or has moved on", still_holds, id)

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
                    self._audit.suspect("record_ahead", (folder, name), what, there, id, found.token)
                    continue
            self._known(folder, name, id, fence)
        for fence, some in nonces.items():
            if len(some) > 1:
                what = f"{len(some)} claims with fence {fence}"
                self._audit.suspect("fence_twice", found.place, what, self._audit.stays(found.path), id)

    def _known(self, folder: str, name: str, id: str, fence: int) -> None:
        """Check that the log has the claim of this record, if it has the task and that hour at all."""
        path = f"{folder}/{name}"

        def unknown() -> bool:
            logged = self._log_audit.logged_tasks.get(id)
            if logged is None or logged.knows(fence) or self._log_audit.intended(id):
                return False
            return self._audit.has(path) and self._log_audit.has_hour(self._audit.now - self._audit.age(path))

        if unknown():
            self._audit.suspect("record_unknown", (folder, name), "of a claim that the log does not know", unknown, id)

    def _both(self, one: str, other: str) -> Callable[[], bool]:
        return lambda: self._audit.has(one) and self._audit.has(other)


def _is_record(name: str, segment: str) -> bool:
    return _is_of(legal_names.RECORD, name, segment) or _is_of(legal_names.NO_CLAIM, name, segment)


def _is_of(shape: Pattern[str], name: str, segment: str) -> bool:
    return bool(name.startswith(segment) and shape.fullmatch(name))
