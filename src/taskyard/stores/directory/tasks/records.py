"""What claims leave behind: one record for each way a claim ended, notes and progress, and late output.

    results/<seg>/<claim>.<outcome>.json       written before the move it belongs to, created exclusively, never replaced
    results/<seg>/<claim>.stale-<digest>.json  late output, of a claim that was over
    results/<seg>/<id>.<fence>.cancelled.json  why a task without a holder was cancelled, by its fence since then
    attempts/<seg>/<id>/<claim>/               notes.jsonl and progress.json, only if there are any

A record does not end a claim; the task's new name does. A done task's name holds the claim that ended it, and so selects
that claim's `done` record. A late worker can write such a record, but never publish it.
"""

from __future__ import annotations

import json
from io import BytesIO

from taskyard.core import ids
from taskyard.core.store_records import STALE_MOST
from taskyard.core.task import Handle, State
from taskyard.core.times import is_moment, rfc3339
from taskyard.stores.directory.dropbox import json_text
from taskyard.stores.directory.names import UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.task import Standing
    from taskyard.stores.directory.filesystem.disk import Disk
    from taskyard.stores.directory.filesystem.links import Links
    from taskyard.stores.directory.names import Token
    from taskyard.stores.directory.tasks.segment_index import SegmentIndex

    Written = tuple[Handle, str, dict[str, Any]]

_TRIES = 100
_NOTE_LEAST = len('{"claim":"","text":"","at":""}')  # bytes of a line that can be a note
_BY_HOLDER = ("done", "error", "released")
_OUTPUT = ("done", "error")
_BARE = "bare"
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

    def write_cancel(self, id: str, move: Move, by: str, at: int, sync: bool) -> None:
        """Record why a task that no worker holds is about to be cancelled."""
        record = {"task": id, "fence": move.fence, "reason": move.reason, "at": rfc3339(at), "by": by}
        self._publish(id, cancel_name(id, move.fence), record, sync)

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
        for handle, kind, record in records:
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
        ordered = sorted(claims, key=lambda handle: handle.fence)
        for position, handle in enumerate(ordered):
            own = claims[handle]
            after = next((_tally(claims[later]) for later in ordered[position + 1 :]), (token.errors, token.crashes))
            later = [other.fence for other in (*ordered, *([] if current is None else [current]))]
            numbers = (handle.fence, min((fence for fence in later if fence > handle.fence), default=None), token.fence)
            counted = _counted(own, state if handle == current else None, after, _moved(own, numbers, state))
            for kind, record in own.items():
                entry = {"claim": str(handle), **record}
                if kind == counted:
                    history.append({name: entry.get(name) for name in _ENTRY})
                elif record.get("outcome") in _OUTPUT and not (handle == current and state is State.PROCESSING):
                    stale.append({name: entry.get(name) for name in (*_ENTRY, "result")})
        bare = papers is not None and not papers.of("attempts", token.id)
        for entry in history:
            folder = f"{self._root}/attempts/{token.id[: ids.SEGMENT]}/{token.id}/{entry['claim']}"
            entry["workdir"] = folder if not bare and self._disk.exists(folder) else None
        stale.sort(key=lambda entry: (entry["fence"], str(entry["at"])))
        return history, stale

    def note(self, handle: Handle, worker: str | None, text: str, at: int) -> None:
        """Add a note to the claim's own folder."""
        line = json.dumps(
            {"claim": str(handle), "fence": handle.fence, "worker": worker, "text": text, "at": rfc3339(at)},
            ensure_ascii=False,
        )
        self._disk.append(f"{self.folder(handle)}/notes.jsonl", line.encode() + b"\n")

    def progress(self, handle: Handle, value: float) -> None:
        """Set the progress of the claim's work."""
        draft = self._draft()
        self._disk.create(draft, json.dumps({"progress": value}).encode(), sync=False)
        self._disk.rename(draft, f"{self.folder(handle)}/progress.json")

    def notes(self, id: str, *, whole: bool = False) -> list[dict[str, Any]]:
        """Return all notes on the task, in the order of its claims."""
        notes: list[dict[str, Any]] = []
        for claim in sorted(self._list(f"{self._root}/attempts/{id[: ids.SEGMENT]}/{id}", whole), key=_fence):
            content = self._content(f"{self._root}/attempts/{id[: ids.SEGMENT]}/{id}/{claim}/notes.jsonl", whole)
            lines = BytesIO(content or b"")  # one by one: there may be millions of lines that are no notes
            notes += [note for line in lines if len(line) > _NOTE_LEAST and (note := _parsed(line)) and _is_note(note)]
        return notes

    def progress_of(self, token: Token) -> float | None:
        """Return the last progress of the current claim, or None."""
        claim = f"{token.id}.{token.fence}.{token.nonce}"
        content = self._content(f"{self._root}/attempts/{token.id[: ids.SEGMENT]}/{token.id}/{claim}/progress.json")
        progress = ((content and _parsed(content)) or {}).get("progress")
        return progress if isinstance(progress, int | float) and 0 <= progress <= 1 else None

    def path(self, handle: Handle) -> str:
        """Return the path of the claim's folder, whether it exists or not."""
        return f"{self._root}/attempts/{handle.id[: ids.SEGMENT]}/{handle.id}/{handle}"

    def folder(self, handle: Handle) -> str:
        """Return the claim's folder; make it if it is missing."""
        folder = self.path(handle)
        self._links.keep(folder)
        if not self._disk.exists(folder):
            self._ensure(folder)
        return folder

    def _publish(self, id: str, name: str, record: dict[str, Any], sync: bool) -> bool:
        folder = f"{self._root}/results/{id[: ids.SEGMENT]}"
        draft = self._draft()
        self._disk.create(draft, json.dumps(record, ensure_ascii=False).encode() + b"\n", sync)
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
            if name.startswith(id) and len(parts) == 5 and parts[1].isascii() and parts[1].isdigit():
                record = self._read(id, name, whole)
                if record is not None and _is_record(record):
                    found.append((Handle(id, int(parts[1]), parts[2]), parts[3], record))
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


def _moved(records: dict[str, dict[str, Any]], numbers: tuple[int, int | None, int], state: State) -> list[str]:
    """Return how the claim may have been ended by others or given up, without the ways that `numbers` rule out.

    `numbers` are the fences of the claim, of the next claim or None, and of the task. A resumed claim has the next fence. A
    cancelled task has that fence too; a claim after it has a higher one, because the retry between them takes one.
    """
    ways = [kind for kind in _WAYS if kind in records]
    fence, following, now = numbers
    if following == fence + 1 and "resumed" in ways:
        return ["resumed"]
    if following is None and now == fence + 1 and state is State.CANCELLED and "cancelled" in ways:
        return ["cancelled"]
    # A late cancel cancels the task as it is by then: that takes one fence more, and so does its retry.
    if following is None:
        late = (now == fence + 2 and state is State.CANCELLED) or (now == fence + 3 and state is State.TODO)
        was_cancelled = now > fence + 1 and not late
    else:
        was_cancelled = following > fence + 2 and following != fence + 4
    ruled_out = ("resumed",) if was_cancelled else ("resumed", "cancelled")
    left = [kind for kind in ways if kind not in ruled_out]
    return left or ways


def _counted(
    records: dict[str, dict[str, Any]], state: State | None, after: tuple[int, int] | None, ways: list[str]
) -> str | None:
    """Return which record of one claim counts; `state` is the task's if the claim is its newest, else None."""
    if state is State.PROCESSING:
        return None  # records may exist, but nothing has been moved yet
    if state is State.DONE:
        return _BARE if _BARE in records else "done"
    if state is State.FAILED:
        return "error"
    # The claim is over, and a `done` that counted would be in the task's name. If holder and janitor were about to
    # end it at the same time, the task's fence and counters afterwards show whose move was made.
    if len(ways) > 1 and after is not None:
        tally = _tally(records)
        if tally is not None:
            steps = {"crash": (0, 1), "error": (1, 0), "released": (0, 0), "cancelled": (0, 0), "resumed": (0, 0)}
            ways.sort(key=lambda kind: after != (tally[0] + steps[kind][0], tally[1] + steps[kind][1]))
    return ways[0] if ways else None


def _tally(records: dict[str, dict[str, Any]]) -> tuple[int, int] | None:
    """Return errors and crashes before this claim, if a record of it has them."""
    return next(((record["errors"], record["crashes"]) for record in records.values() if "errors" in record), None)


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
    if move.result is not None:
        record["result"] = move.result
    return record


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        value = json_text.read(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_record(value: dict[str, Any]) -> bool:
    """Whether this has the form of a record: any program that can write here may have put something else in its place."""
    texts = all(isinstance(value.get(name), str | None) for name in ("worker", "reason", "by", "claim"))
    counts = all(type(value.get(name, 0)) is int for name in ("fence", "errors", "crashes"))
    paired = ("errors" in value) == ("crashes" in value)
    return texts and counts and paired and isinstance(value.get("outcome"), str) and is_moment(value.get("at"))


def _is_note(value: dict[str, Any]) -> bool:
    texts = all(isinstance(value.get(name), str) for name in ("claim", "text"))
    return texts and isinstance(value.get("worker"), str | None) and is_moment(value.get("at"))


def _fence(claim: str) -> int:
    parts = claim.split(".")
    return int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdigit() else 0
