"""What claims leave behind: one record for each way a claim ended, notes and progress, and late output.

    results/<seg>/<claim>.<outcome>.json       written before the move it belongs to, created exclusively, never replaced
    results/<seg>/<claim>.stale-<digest>.json  late output, of a claim that was over
    results/<seg>/<id>.<fence>.cancelled.json  why a task without a holder was cancelled, by its fence since then
    results/<seg>/<id>.<fence>.retried.json    how an ended task stood when it was retried, by its fence until then
    attempts/<seg>/<id>/<claim>/               notes.jsonl and progress.json, only if there are any

A record does not end a claim; the task's new name does. A done task's name holds the claim that ended it, and so selects
that claim's `done` record. A late worker can write such a record, but never publish it.
"""

from __future__ import annotations

from io import BytesIO

from taskyard.core import ids
from taskyard.core.json_codec import encode
from taskyard.core.store_records import STALE_MOST
from taskyard.core.task import Handle, State
from taskyard.core.times import is_moment, rfc3339
from taskyard.stores.directory.dropbox import json_text
from taskyard.stores.directory.names import UNREADABLE, attempt_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.moves import Move, Reviewer
    from taskyard.core.task import Standing
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links
    from taskyard.stores.directory.names import Token
    from taskyard.stores.directory.tasks.segment_index import SegmentIndex

    Written = tuple[Handle, str, dict[str, Any]]
    Seen = tuple[int, State | None, tuple[int, int] | None]
    """How a task stood at one moment: its fence, its state or None if a claim had that fence, its errors and crashes if known."""

_TRIES = 100
_NOTE_LEAST = len('{"claim":"","text":"","at":""}')  # bytes of a line that can be a note
_NOTE_BEGIN = b'{"claim":'  # of every note; within one the quotes of a text are escaped
_BY_HOLDER = ("done", "error", "released")
_OUTPUT = ("done", "error")
_BARE = "bare"
_RETRIED = "retried"
_STALE = "stale-"
_WAYS: tuple[str, ...] = ("crash", "cancelled", "resumed", "error", "released")
_ENTRY = ("claim", "fence", "worker", "outcome", "reason", "at")


class Records:
    """Reads and writes them."""

    def __init__(
        self, disk: Disk, bounds: Links, root: str, draft: Callable[[], str], ensure: Callable[[str], None]
    ) -> None:
        self._disk = disk
        self._links = bounds
        self._root = root
        self._draft = draft
        self._ensure = ensure

    def write(self, handle: Handle, move: Move, standing: Standing, by: str, at: int, sync: bool) -> bool:
        """Record how the claim is about to end, whole and once; a holder's second, different ending becomes stale.

        Return whether the record agrees with this move.
        """
        record = _record(handle, move, standing.worker, by, at)
        record["errors"], record["crashes"] = standing.errors, standing.crashes
        if self._publish(handle.id, f"{handle}.{move.outcome}.json", record, sync) or move.outcome not in _BY_HOLDER:
            return True
        self.keep_stale(handle, move, standing.worker, by, at)
        return self._says(handle, move)

    def write_review(
        self, handle: Handle, move: Move, reviewer: Reviewer, by: str, at: int, sync: bool
    ) -> dict[str, Any]:
        """Record how a reviewer judges; return the record of this outcome that stands: this one, or the first."""
        record = {**_record(handle, move, reviewer.worker, by, at), "review": reviewer.word}
        record["errors"], record["crashes"] = move.errors, move.crashes
        name = f"{handle}.{move.outcome}.json"
        if self._publish(handle.id, name, record, sync):
            return record
        first = self._read(handle.id, name)
        if first is None or not _is_record(first):
            return record  # what cannot be read judges nothing
        if sync:
            self._disk.sync(f"{self._root}/results/{handle.id[: ids.SEGMENT]}")  # its writer may have failed to sync it
        return {"review": None, **first}

    def write_cancel(self, id: str, move: Move, by: str, at: int, sync: bool) -> None:
        """Record why a task that no worker holds is about to be cancelled."""
        record = {"task": id, "fence": move.fence, "reason": move.reason, "at": rfc3339(at), "by": by}
        self._publish(id, cancel_name(id, move.fence), record, sync)

    def write_retry(self, standing: Standing, by: str, at: int, sync: bool) -> None:
        """Record how an ended task stands that is about to be retried: the retry begins its counters anew.

        It is true of every retry: nothing else moves an ended task.
        """
        record = {
            "task": standing.id,
            "fence": standing.fence,
            "state": standing.state,
            "errors": standing.errors,
            "crashes": standing.crashes,
            "at": rfc3339(at),
            "by": by,
        }
        self._publish(standing.id, f"{standing.id}.{standing.fence}.{_RETRIED}.json", record, sync)

    def error(
        self, token: Token, state: State, history: list[dict[str, Any]], names: list[str] | None = None
    ) -> str | None:
        """Return why the task was cancelled, if a reason was given; else the reason of its newest failed attempt."""
        if state is State.CANCELLED:
            held = history[-1] if history and history[-1]["fence"] == token.fence - 1 else None
            if held is not None and held["outcome"] == "cancelled" and held["reason"] is not None:
                return str(held["reason"])
            name = cancel_name(token.id, token.fence)
            record = self._read(token.id, name) if names is None or name in names else None
            if record is not None and isinstance(record.get("reason"), str):
                return str(record["reason"])
        return next((entry["reason"] for entry in reversed(history) if entry["outcome"] in ("error", "crash")), None)

    def _says(self, handle: Handle, move: Move) -> bool:
        written = self._read(handle.id, f"{handle}.{move.outcome}.json")
        return written is not None and (written.get("result"), written.get("reason")) == (move.result, move.reason)

    def keep_stale(self, handle: Handle, move: Move, worker: str | None, by: str, at: int) -> None:
        """Keep output that does not count, unless the same output is kept already."""
        if self._says(handle, move):
            self._disk.sync(f"{self._root}/results/{handle.id[: ids.SEGMENT]}")  # its writer may have failed to sync it
            return
        late = [kind for _, kind, _ in self.all(handle.id) if kind.startswith(_STALE)]
        if len(late) >= STALE_MOST:
            return
        worker = worker or self.holder(handle) or by
        import json
        from hashlib import sha256

        digest = sha256(json.dumps([move.outcome, move.result, move.reason], sort_keys=True).encode()).hexdigest()[:12]
        self._publish(handle.id, f"{handle}.{_STALE}{digest}.json", _record(handle, move, worker, by, at), sync=True)

    def holder(self, handle: Handle) -> str | None:
        """Return the worker that held the claim, if a record names it; the caller may be another worker."""
        return next((record.get("worker") for claim, _, record in self.all(handle.id) if claim == handle), None)

    def result(self, token: Token, records: list[Written]) -> Any:
        """Return the result of a done task: that of its own claim, or None if that had none."""
        if not token.has_result:
            return None
        own = (Handle(token.id, token.fence, token.nonce or ""), "done")
        return next((record.get("result") for handle, kind, record in records if (handle, kind) == own), None)

    def history(
        self, token: Token, state: State, ended_at: int, records: list[Written], papers: SegmentIndex | None = None
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return how the task's claims ended, oldest first, and the late results."""
        claims: dict[Handle, dict[str, dict[str, Any]]] = {}
        moments: list[Seen] = [(token.fence, None if token.nonce else state, (token.errors, token.crashes))]
        for handle, kind, record in records:
            if kind == _RETRIED:
                moments.append((handle.fence, State(record["state"]), (record["errors"], record["crashes"])))
            elif not _is_unmade(record, handle, token):
                claims.setdefault(handle, {})[kind] = record
        current = Handle(token.id, token.fence, token.nonce) if token.nonce else None
        if current is not None and state is State.DONE and not token.has_result:
            # A done without a result has no record; its name holds everything.
            without = {
                "fence": token.fence,
                "worker": token.worker,
                "outcome": "done",
                "reason": None,
                "at": rfc3339(ended_at),
            }
            claims.setdefault(current, {})[_BARE] = without
        history, stale = [], []
        moments += [(handle.fence, None, _tally(own)) for handle, own in claims.items()]
        moments.sort(key=lambda seen: seen[0])
        for handle in sorted(claims, key=lambda handle: handle.fence):
            own = claims[handle]
            counted = _ending(own, state) if handle == current else _given_up(own, handle.fence, moments)
            for kind, record in own.items():
                entry = {"claim": str(handle), **record}
                if kind == counted:
                    history.append({name: entry.get(name) for name in _ENTRY})
                    if kind == "released" and "result" in entry:
                        history[-1]["result"] = entry["result"]  # submitted, to be accepted by another one
                elif _is_late(kind, record) and not (handle == current and state is State.PROCESSING):
                    stale.append({name: entry.get(name) for name in (*_ENTRY, "result")})
        self._add_folders(history, token.id, papers)
        stale.sort(key=lambda entry: (entry["fence"], str(entry["at"])))
        return history, stale

    def _add_folders(self, history: list[dict[str, Any]], id: str, papers: SegmentIndex | None) -> None:
        bare = papers is not None and not papers.of("attempts", id)
        for entry in history:
            folder = f"{self._root}/attempts/{id[: ids.SEGMENT]}/{id}/{entry['claim']}"
            entry["workdir"] = folder if not bare and self._disk.exists(folder) else None

    def note(self, handle: Handle, worker: str | None, text: str, at: int) -> None:
        """Add a note to the claim's own folder."""
        line = encode({"claim": str(handle), "fence": handle.fence, "worker": worker, "text": text, "at": rfc3339(at)})
        self._disk.append(f"{self.folder(handle)}/notes.jsonl", line.encode() + b"\n")

    def progress(self, handle: Handle, value: float) -> None:
        """Set the progress of the claim's work."""
        draft = self._draft()
        self._disk.create(draft, encode({"progress": value}).encode(), sync=False)
        self._disk.rename(draft, f"{self.folder(handle)}/progress.json")

    def notes(self, id: str, *, whole: bool = False) -> list[dict[str, Any]]:
        """Return all notes on the task, in the order of its claims."""
        notes: list[dict[str, Any]] = []
        for claim in sorted(self._list(f"{self._root}/attempts/{id[: ids.SEGMENT]}/{id}", whole), key=_fence):
            content = self._content(f"{self._root}/attempts/{id[: ids.SEGMENT]}/{id}/{claim}/notes.jsonl", whole)
            lines = BytesIO(content or b"")  # one by one: there may be millions of lines that are no notes
            notes += [note for line in lines if len(line) > _NOTE_LEAST and (note := _noted(line)) and _is_note(note)]
        return notes

    def progress_of(self, token: Token) -> float | None:
        """Return the last progress of the current claim, or None."""
        claim = f"{token.id}.{token.fence}.{token.nonce}"
        content = self._content(f"{self._root}/attempts/{token.id[: ids.SEGMENT]}/{token.id}/{claim}/progress.json")
        progress = ((content and _parsed(content)) or {}).get("progress")
        return progress if isinstance(progress, int | float) and 0 <= progress <= 1 else None

    def folder(self, handle: Handle) -> str:
        """Return the claim's folder; make it if it is missing."""
        folder = attempt_folder(self._root, handle)
        self._links.keep(folder)
        if not self._disk.exists(folder):
            self._ensure(folder)
        return folder

    def _publish(self, id: str, name: str, record: dict[str, Any], sync: bool) -> bool:
        folder = f"{self._root}/results/{id[: ids.SEGMENT]}"
        draft = self._draft()
        self._disk.create(draft, encode(record).encode() + b"\n", sync)
        self._links.keep(folder)
        for _ in range(_TRIES):
            try:
                published = self._disk.publish(draft, f"{folder}/{name}")
                break
            except FileNotFoundError:
                self._ensure(folder)  # missing; or made a moment ago, and dropped by a sweep because it was empty
        else:
            published = self._disk.publish(draft, f"{folder}/{name}")
        if sync:
            self._disk.sync(folder)
        return published

    def all(self, id: str, names: list[str] | None = None, *, whole: bool = False) -> list[Written]:
        """Return every readable record of the task, with these names or all: its claim, its kind, its content.

        With `whole`, here and below, a record that may not be read is an error: the caller is about to remove the originals.
        """
        found = []
        for name in self._list(f"{self._root}/results/{id[: ids.SEGMENT]}") if names is None else names:
            parts = name.split(".")
            if not name.startswith(id) or not parts[1].isascii() or not parts[1].isdigit():
                continue
            if len(parts) == 5:
                record = self._read(id, name, whole)
                if record is not None and _is_record(record):
                    found.append((Handle(id, int(parts[1]), parts[2]), parts[3], record))
            elif parts[2] == _RETRIED:
                record = self._read(id, name, whole)
                if record is not None and _is_retry(record):
                    found.append((Handle(id, int(parts[1]), ""), _RETRIED, record))
        return found

    def _read(self, id: str, name: str, whole: bool = False) -> dict[str, Any] | None:
        content = self._content(f"{self._root}/results/{id[: ids.SEGMENT]}/{name}", whole)
        return None if content is None else _parsed(content)

    def _content(self, path: str, whole: bool = False) -> bytes | None:
        try:
            return self._disk.read(path) if self._links.holds(path.rpartition("/")[0]) else None
        except OSError as error:
            if error.errno not in UNREADABLE or (whole and isinstance(error, PermissionError)):
                raise
            return None

    def _list(self, folder: str, whole: bool = False) -> list[str]:
        try:
            return self._disk.listdir(folder) if self._links.holds(folder.rpartition("/")[0]) else []
        except OSError as error:
            if error.errno not in UNREADABLE or (whole and isinstance(error, PermissionError)):
                raise
            return []


def cancel_name(id: str, fence: int) -> str:
    """Return the name of the record of why a task that no worker held was cancelled."""
    return f"{id}.{fence}.cancelled.json"


def _ending(records: dict[str, dict[str, Any]], state: State) -> str | None:
    """Return which record counts of the claim that the task's name holds."""
    if state is State.DONE:
        return _BARE if _BARE in records else "done"
    return "error" if state is State.FAILED else None  # records of a held task may exist, but nothing was moved yet


def _given_up(records: dict[str, dict[str, Any]], fence: int, moments: list[Seen]) -> str | None:
    """Return which record counts of a claim that is over, by how the task was seen since; `moments` are in order.

    If holder and others were about to end it at the same time, there are several. A resumed claim has the very next
    fence, and no claim comes so soon after another ending. A cancelled task has that fence too, in its own state.
    """
    ways = [kind for kind in _WAYS if kind in records]
    if any(seen[:2] == (fence, State.FAILED) for seen in moments):
        return "error"  # of the ended states that can be retried, only this one keeps the fence of its claim
    seen = next((seen for seen in moments if seen[0] > fence), None)
    if len(ways) < 2 or seen is None:
        return ways[0] if ways else None
    seen_fence, state, after = seen
    if seen_fence == fence + 1:
        sure = "cancelled" if state is State.CANCELLED else "resumed" if state is None else ""
        if sure in ways:
            return sure
    ways = [kind for kind in ways if kind not in ("cancelled", "resumed")] or ways
    before = _tally(records)
    if before is not None and after is not None:
        steps = {"crash": (0, 1), "error": (1, 0)}
        counts = {kind: tuple(map(sum, zip(before, steps.get(kind, (0, 0)), strict=True))) for kind in ways}
        ways.sort(key=lambda kind: counts[kind] != after)
    return ways[0]


def _tally(records: dict[str, dict[str, Any]]) -> tuple[int, int] | None:
    """Return errors and crashes before this claim, if a record of it has them."""
    return next(((record["errors"], record["crashes"]) for record in records.values() if "errors" in record), None)


def _is_late(kind: str, record: dict[str, Any]) -> bool:
    """Whether this is output that came too late; who accepts brings nothing of its own."""
    return kind.startswith(_STALE) or (record.get("outcome") in _OUTPUT and "review" not in record)


def _is_unmade(record: dict[str, Any], handle: Handle, token: Token) -> bool:
    """Whether this is the word of a reviewer that was killed before its move: the next one makes that, or accepts."""
    return "review" in record and handle.fence == token.fence and handle.nonce != token.nonce


def _record(handle: Handle, move: Move, worker: str | None, by: str, at: int) -> dict[str, Any]:
    record = {
        "claim": str(handle),
        "fence": handle.fence,
        "worker": worker,
        "outcome": move.outcome,
        "reason": move.reason,
        "at": rfc3339(at),
        "by": by,
    }
    if move.result is not None or move.submits:
        record["result"] = move.result
    return record


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        value = json_text.read(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _noted(line: bytes) -> dict[str, Any] | None:
    """Return the note in this line, or behind one that a killed process, or a full disk, has torn."""
    note = _parsed(line)
    if note is None:
        from taskyard.stores.directory.log.lines import after_torn

        note = _parsed(after_torn(line, _NOTE_BEGIN))
    return note


def _is_record(value: dict[str, Any]) -> bool:
    """Whether this has the form of a record: any program that can write here may have put something else in its place."""
    texts = all(isinstance(value.get(name), str | None) for name in ("worker", "reason", "by", "claim"))
    counts = all(type(value.get(name, 0)) is int for name in ("fence", "errors", "crashes"))
    paired = ("errors" in value) == ("crashes" in value)
    return texts and counts and paired and isinstance(value.get("outcome"), str) and is_moment(value.get("at"))


def _is_retry(value: dict[str, Any]) -> bool:
    counts = all(type(value.get(name)) is int for name in ("errors", "crashes"))
    return counts and value.get("state") in (State.FAILED, State.CANCELLED)


def _is_note(value: dict[str, Any]) -> bool:
    texts = all(isinstance(value.get(name), str) for name in ("claim", "text"))
    return texts and isinstance(value.get("worker"), str | None) and is_moment(value.get("at"))


def _fence(claim: str) -> int:
    parts = claim.split(".")
    return int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdigit() else 0
