"""Puts right what dead processes have left: any process may do it, at any time, any number of times.

Nothing is removed after a single look. What has an owner is left alone while the owner lives. What has none is first
moved to dead/, out of reach of other processes, and looked at once more there.
"""

from __future__ import annotations

import re

from taskyard.core import ids
from taskyard.core.errors import Conflict, Invalid, NotFound
from taskyard.core.task import State
from taskyard.core.times import rfc3339
from taskyard.stores.directory.dropbox import dropped_names, file_format
from taskyard.stores.directory.dropbox.intake import FILE_MOST, own_key
from taskyard.stores.directory.dropbox.rejected import BOX, stem_of
from taskyard.stores.directory.log.intents import is_ending, moves
from taskyard.stores.directory.log.lines import LINE_MOST, after_torn, pieces
from taskyard.stores.directory.log.reader import parse_event
from taskyard.stores.directory.names import SUFFIX, UNREADABLE, Token
from taskyard.stores.directory.recovery.batches import BatchRecovery
from taskyard.stores.directory.recovery.children import ChildRecovery
from taskyard.stores.directory.recovery.edges import EdgeRecovery
from taskyard.stores.directory.recovery.liveness import INCARNATION
from taskyard.stores.directory.recovery.missing import Missing
from taskyard.stores.directory.recovery.segments import PATIENCE, SegmentRecovery
from taskyard.stores.directory.tasks.schedules import empty_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.dropbox.intake import Intake
    from taskyard.stores.directory.dropbox.rejected import Rejected
    from taskyard.stores.directory.log.intents import Move
    from taskyard.stores.directory.retention.prune import Pruner
    from taskyard.stores.directory.tasks.add import Adder
    from taskyard.stores.directory.tasks.edges import Edges
    from taskyard.stores.directory.tasks.locate import Found

# Our names for files that are being written; others are not ours.
DRAFT = re.compile(r"(?:[0-9]+-[0-9a-hjkmnp-tv-z]{8}\.[0-9]+|(?:init|made)-[0-9a-hjkmnp-tv-z]{8})")
_LAST_LOOK = 10_000  # milliseconds in dead/ before a file is removed: the process that moved it may still look at it
_SHARE = 500  # leftovers that one round puts right
_HOUR = len("2026-01-31T12")
_PIECE = 1 << 20  # bytes of the log that are searched at once


class CrashRecovery:
    """Looks through the places where a killed process leaves things."""

    def __init__(
        self, context: Context, adder: Adder, intake: Intake, rejected: Rejected, pruner: Pruner, edges: Edges
    ) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._adder = adder
        self._intake = intake
        self._rejected = rejected
        self._pruner = pruner
        self._missed = Missing(context)
        self._segment_recovery = SegmentRecovery(context, self._missed)
        self._edges = edges
        self._edge_recovery = EdgeRecovery(context, edges, self._missed)
        self._child_recovery = ChildRecovery(context, self._missed)
        self._batches = BatchRecovery(context, adder, edges)
        self._writers = context.writers()

    def mend(self, by: str) -> int:
        """Do one bounded round; return how many things were put right."""
        now = self._context.clock.exact()
        mended = self._finish_adds(now, by)
        mended += self._clear_dead_folder(now)
        mended += self._log_for_dead_writers(now, by)
        mended += self._log_for_shells(now, by)
        mended += self._edge_recovery.walk(now, by)
        mended += self._child_recovery.walk(now)
        mended += self._segment_recovery.walk(now)
        self._forget_dead_workers()
        self._pruner.by_retention(by)
        return mended

    # Events that a killed process could not log any more

    def _log_for_dead_writers(self, now: int, by: str) -> int:
        logged = 0
        own = self._context.writer.open()
        for tag in self._writers.dead(own, now, PATIENCE)[:_SHARE]:
            hold = self._writers.take(tag)
            if hold is None:
                continue  # another janitor does it
            try:
                logged += self._log_for(tag, self._writers.intents(tag), now, by)
            except PermissionError:
                continue  # a user who may look has to decide whether the move was made
            finally:
                self._disk.close(hold)
        return logged

    def _log_for_shells(self, now: int, by: str) -> int:
        """The same for shells. Their notes are read before their liveness is checked: a shell that lived has logged its note."""
        logged = 0
        for tag in self._writers.shells()[:_SHARE]:
            intents = self._writers.intents(tag)
            if not self._writers.is_left(tag, bool(intents), now, PATIENCE):
                continue
            hold = self._writers.take(tag)
            if hold is None:
                continue
            try:
                logged += self._log_for(tag, intents, now, by)
            except (FileNotFoundError, PermissionError):
                continue
            finally:
                self._disk.close(hold)
        return logged

    def _log_for(self, tag: str, intents: list[dict[str, Any]], now: int, by: str) -> int:
        self._batches.finish_of(tag, by)
        if intents:
            self._context.log.end_line(now)
        missing = self._missing(intents)
        if missing:
            # Another process may have made the same move, and be about to log it. One that has no such note is dead or
            # has logged it. So the living are checked first, and then the log again.
            living = self._writers.noted(_moves(missing), tag, now, PATIENCE)
            missing = self._unlogged(missing)
            if _moves(missing) & living:
                return 0  # left for a later sweep
        for event in missing:
            self._context.log.log_again(event, now)
        for intent in intents:
            self._edge_recovery.finish(intent, by)
        self._writers.forget(tag)
        return len(missing)

    def _forget_dead_workers(self) -> None:
        """Remove the locks of dead workers that have no claims left to be reaped."""
        claims = [
            token for token in map(Token.parse, self._disk.listdir(self._context.processing)) if token is not None
        ]
        incarnations = {(token.nonce or "")[:INCARNATION] for token in claims}
        self._context.liveness.remove_dead(incarnations.__contains__)

    def _missing(self, intents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the events of these intents that happened and are not in the log; the log is read once for all."""
        events: dict[tuple[str, str, int], dict[str, Any]] = {}
        for intent in intents:
            for event in self._added(intent) if "tasks" in intent else [intent] if self._happened(intent) else []:
                for one in (event, *self._blocked(event)):
                    # Two threads may have noted the same move, and one of them has made it.
                    events.setdefault((_alike(one)[0], one["task"], one["fence"]), one)
        return self._unlogged(list(events.values())) if events else []

    def _added(self, intent: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of those new tasks of a batch that exist."""
        events = []
        for task in intent["tasks"]:
            found = self._found(task)
            if found is not None:
                at = rfc3339(ids.created(task))
                event = {"at": at, "event": "added", "task": task, "fence": 0, "kind": found.token.lane.kind}
                events.append(event | {"worker": None, "by": intent.get("by")})
        return events

    def _blocked(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the second event of a move into blocked/, if the task is still there."""
        found = self._found(event["task"]) if event.get("event") in ("added", "retried") else None
        if found is None or found.state is not State.BLOCKED or found.token.fence != event["fence"]:
            return []
        return [{**event, "event": "blocked", "worker": None, "after": self._edges.needs(event["task"])}]

    def _found(self, task: str) -> Found | None:
        try:
            return self._context.locator.find(task)
        except NotFound:
            return None

    def _happened(self, event: dict[str, Any]) -> bool:
        """Whether the move of this event was made, by the task's own name and the records of its claims."""
        if event.get("event") in ("noted", "refused", "set_aside") or not ids.is_id(str(event.get("task"))):
            return False
        found = self._found(event["task"])
        if found is None:
            return False
        token, fence = found.token, int(event["fence"])
        if token.fence != fence:
            return token.fence > fence and (not is_ending(event) or self._has_failed(found, event))
        if event["event"] == "claimed":
            return bool(token.worker == event["worker"])
        if (found.state is State.CANCELLED) != (event["event"] == "cancelled") and not is_ending(event):
            return False  # another move to the same fence was made
        # A claim's own ending keeps the claim's fence, so only the place shows whether it was made.
        return not is_ending(event) or not self._is_processing(token)

    def _has_failed(self, found: Found, event: dict[str, Any]) -> bool:
        """Whether a claim's own ending was made before later moves: none follows a done, and only a retry a failure."""
        records = self._context.records
        history, _ = records.history(found.token, found.state, 0, records.all(found.token.id))
        return event["event"] == "failed" and any(
            entry["fence"] == int(event["fence"]) and entry["outcome"] == "error" for entry in history
        )

    def _is_processing(self, token: Token) -> bool:
        return any(
            name.startswith(f"{token.id}.{token.fence}.") for name in self._disk.listdir(self._context.processing)
        )

    def _unlogged(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the events that the log does not have, by the fence of their move; the log is read once for all."""
        marks = {
            f'"event":"{name}","task":"{event["task"]}","fence":{event["fence"]},'.encode(): position
            for position, event in enumerate(events)
            for name in _alike(event)
        }
        since = min((str(event.get("at") or "")[:_HOUR] for event in events), default="")
        logged = self._logged(marks, since)
        return [event for position, event in enumerate(events) if position not in logged]

    def _logged(self, marks: dict[bytes, int], since: str) -> set[int]:
        """Return the positions whose mark is in the log, from this hour on."""
        folder = f"{self._root}/events"
        logged: set[int] = set()
        for name in self._disk.listdir(folder):
            if name[:_HOUR] < since:
                continue
            kept = b""  # the beginning of a line that continues
            for piece in pieces(self._disk, f"{folder}/{name}", _PIECE):
                text, end, rest = (kept + piece).rpartition(b"\n")
                logged |= {
                    position for mark, position in marks.items() if position not in logged and _holds(text + end, mark)
                }
                kept = rest if len(rest) <= LINE_MOST else b""
        return logged

    # Files that are being added

    def _finish_adds(self, now: int, by: str) -> int:
        listed = self._disk.listdir(f"{self._root}/tmp")
        finished = self._batches.finish_left(listed, now, by)
        self._missed.look_again(listed, now)
        for name in listed[: 20 * _SHARE]:
            if finished >= _SHARE:
                break
            path = f"{self._root}/tmp/{name}"
            try:
                if ids.is_id(name[: -len(SUFFIX)]) and name.endswith(SUFFIX):
                    finished += self._finish_add(path, name[: -len(SUFFIX)], now)
                elif name.endswith(BOX):
                    finished += self._finish_drop(path, name.split(".", 1)[0], now, by)
                elif DRAFT.fullmatch(name):
                    finished += self._discard(path, name.split(".", 1)[0], now)
            except (Invalid, Conflict):
                continue  # it cannot be finished
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # its owner, or another janitor, was quicker; or it is not ours
        return finished

    def _finish_add(self, path: str, id: str, now: int) -> int:
        """Finish an add whose key is taken; give up any other file that has not changed for long."""
        if self._disk.links(path) > 1:
            return int(self._adder.help_in(id, self._disk.read(path)))
        if now - self._disk.changed_at(path) < PATIENCE:
            return 0
        self._disk.rename(path, f"{self._root}/dead/{id}{SUFFIX}")
        return 1

    def _finish_drop(self, path: str, owner: str, now: int, by: str) -> int:
        """Finish a dropped file that a process was adding under its taskId when it died, or when a call failed."""
        is_ours = owner == self._context.writer.tag and now - self._disk.changed_at(path) > PATIENCE
        if not is_ours and not self._is_left(path, owner, now):
            return 0
        stem = stem_of(path)
        mine = self._rejected.box(stem)
        self._disk.rename(path, mine)
        if self._rejected.is_placed(mine):
            self._disk.unlink(mine)
            return 1
        try:
            draft = file_format.draft(file_format.parse(self._disk.examine(mine, FILE_MOST).content))
            draft.key = draft.key or own_key(path)
            holder = self._adder.keys.holder(draft)
            if holder is not None:
                dropped_names.note(self._context, holder, stem)
                self._disk.unlink(mine)  # its own task: the key, the kind and the data are the same
                return 1
        except (Invalid, Conflict, NotFound, PermissionError):
            pass  # the drop box looks at it again
        while not self._rejected.renamed(mine, f"{self._root}/todo/{stem}{SUFFIX}"):
            stem += "~"
        self._intake.take(by, _SHARE)
        return 1

    def _discard(self, path: str, owner: str, now: int) -> int:
        """Remove a draft of a record or note that was never given its name; its writer had no answer yet."""
        if not self._is_left(path, owner, now):
            return 0
        if self._disk.is_folder(path):
            empty_out(self._disk, path)
            self._context.mover.drop(path)
        else:
            self._disk.unlink(path)
        return 1

    def _is_left(self, path: str, owner: str, now: int) -> bool:
        """Whether the owner of this file is dead; if the owner has left no file, whether the last change is long ago."""
        if self._writers.is_known(owner):
            return not self._writers.is_alive(owner, now)
        return now - self._disk.changed_at(path) > PATIENCE

    def _clear_dead_folder(self, now: int) -> int:
        """Look once more at what was given up: a file that has another name after all is added."""
        cleared = 0
        for name in self._disk.listdir(f"{self._root}/dead")[:_SHARE]:
            if name.startswith("."):
                continue  # not ours: a doctor tries whether files can be moved here
            path = f"{self._root}/dead/{name}"
            try:
                self._clear_dead_file(path, name, now)
                cleared += 1
            except Invalid:
                continue
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # another janitor was quicker, or it is not ours
        return cleared

    def _clear_dead_file(self, path: str, name: str, now: int) -> None:
        id = name[: -len(SUFFIX)]
        if Token.parse(name) is not None:
            self._pruner.finish(name)
        elif ids.is_id(id) and self._disk.links(path) > 1:
            self._adder.help_in(id, self._disk.read(path), path)
        elif now - self._disk.changed_at(path) > _LAST_LOOK:
            self._adder.keys.restore(path, name)
            self._disk.unlink(path)


def _moves(events: list[dict[str, Any]]) -> set[Move]:
    return {move for event in events for move in moves(event)}


def _holds(text: bytes, mark: bytes) -> bool:
    """Whether an event that can be read has this mark; one in a torn line does not count."""
    at = text.find(mark)
    while at >= 0:
        begin, end = text.rfind(b"\n", 0, at) + 1, text.index(b"\n", at)
        line = text[begin:end]
        event = after_torn(line) or line
        if mark in event and parse_event(event) is not None:
            return True
        at = text.find(mark, end)
    return False


def _alike(event: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of events that may be logged for the same move."""
    if event["event"] == "blocked":
        return ("blocked",)
    if is_ending(event):
        return ("done", "failed")
    others = ("added", "released", "reaped", "due", "unblocked", "cancelled", "retried", "edited", "set_aside")
    # A claim's final failure has the claim's own fence, so a failure does not show that the claim was logged.
    return (*others, "claimed") if event["event"] == "claimed" else (*others, "claimed", "failed")
