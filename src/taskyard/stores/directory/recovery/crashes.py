"""Putting right what the dead have left: everything here may be done by anybody, at any time, any number of times.

Nothing is removed on the evidence of one look. What has an owner is left alone while the owner lives; what has none
is first moved to dead/, where nobody else can reach it, and looked at once more there.
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
from taskyard.stores.directory.log.lines import pieces
from taskyard.stores.directory.names import SUFFIX, UNREADABLE, Token
from taskyard.stores.directory.recovery.edges import EdgeRecovery
from taskyard.stores.directory.recovery.liveness import INCARNATION
from taskyard.stores.directory.recovery.missing import Missing
from taskyard.stores.directory.recovery.segments import PATIENCE, SegmentRecovery

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

DRAFT = re.compile(
    r"(?:[0-9]+-[0-9a-hjkmnp-tv-z]{8}\.[0-9]+|(?:init|made)-[0-9a-hjkmnp-tv-z]{8})"
)  # what we name files while they are written; others are not ours
_LAST_LOOK = 10_000  # milliseconds in dead/ before a file is removed: whoever put it there may still look at it
_SHARE = 500  # leftovers that one mend puts right
_HOUR = len("2026-01-31T12")
_PIECE = 1 << 20  # bytes of the log that are searched at once


class CrashRecovery:
    """Looks through the places where a killed process leaves things."""

    def __init__(
        self, context: Context, adder: Adder, ingest: Intake, aside: Rejected, pruning: Pruner, edges: Edges
    ) -> None:
        self._context = context
        self._disk = context.disk
        self._root = context.root
        self._adder = adder
        self._intake = ingest
        self._rejected = aside
        self._pruner = pruning
        self._missed = Missing(context)
        self._segment_recovery = SegmentRecovery(context, self._missed)
        self._edges = edges
        self._edge_recovery = EdgeRecovery(context, edges, self._missed)
        self._writers = context.writers()

    def mend(self, by: str) -> int:
        """One bounded round; how many things were put right."""
        now = self._context.clock.exact()
        mended = self._finish_adds(now, by)
        mended += self._bury(now)
        mended += self._log_for_the_dead(now, by)
        mended += self._log_for_shells(now, by)
        mended += self._edge_recovery.walk(now, by)
        mended += self._segment_recovery.walk(now)
        self._forget_dead_workers()
        self._pruner.by_retention(by)
        return mended

    # Events that a killed process could not log any more

    def _log_for_the_dead(self, now: int, by: str) -> int:
        logged = 0
        own = self._context.writer.open()
        for tag in self._writers.dead(own, now, PATIENCE)[:_SHARE]:
            hold = self._writers.take(tag)
            if hold is None:
                continue  # another janitor is at it
            try:
                logged += self._log_for(tag, self._writers.intents(tag), now, by)
            except PermissionError:
                continue  # whether the move was made is for those to tell who may look
            finally:
                self._disk.close(hold)
        return logged

    def _log_for_shells(self, now: int, by: str) -> int:
        """The same for shells. What they have noted is read before it is asked whether they live: one that lived has logged it."""
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
        missing = self._missing(intents)
        if missing:
            # The move may be that of another who had the same in mind, and is about to log it. Whoever is not is gone, or
            # has logged it: so those are asked first, and then the log once more.
            living = self._writers.noted(_moves(missing), tag, now, PATIENCE)
            missing = self._unlogged(missing)
            if _moves(missing) & living:
                return 0  # left for a later sweep
        for event in missing:
            self._context.log.log_again(event, now)
        for intent in intents:
            self._edge_recovery.after(intent, by)
        self._writers.forget(tag)
        return len(missing)

    def _forget_dead_workers(self) -> None:
        """The lock of a dead worker is of use for as long as there are claims of its to be reaped."""
        claims = [
            token for token in map(Token.parse, self._disk.listdir(self._context.processing)) if token is not None
        ]
        incarnations = {(token.nonce or "")[:INCARNATION] for token in claims}
        self._context.liveness.bury(incarnations.__contains__)

    def _missing(self, intents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The events of these intents that took place and are not in the log; the log is read once for all."""
        events: dict[tuple[str, str, int], dict[str, Any]] = {}
        for intent in intents:
            for event in self._added(intent) if "tasks" in intent else [intent] if self._happened(intent) else []:
                for one in (event, *self._blocked(event)):
                    # Two threads may have had the same move in mind, and one of them has made it.
                    events.setdefault((_alike(one)[0], one["task"], one["fence"]), one)
        return self._unlogged(list(events.values())) if events else []

    def _added(self, intent: dict[str, Any]) -> list[dict[str, Any]]:
        """The events of a batch of new tasks, as far as they are there."""
        events = []
        for task in intent["tasks"]:
            found = self._found(task)
            if found is not None:
                at = rfc3339(ids.created(task))
                event = {"at": at, "event": "added", "task": task, "fence": 0, "kind": found.token.lane.kind}
                events.append(event | {"worker": None, "by": intent.get("by")})
        return events

    def _blocked(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """The second event of a move that has led into blocked/, if the task is still there."""
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
        """Whether the move of this event was made, by the task's own name and by what its claims have left."""
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
            return False  # another move to the same number was made
        # A claim's own ending keeps the number that the claim has, so only the place tells whether it was made.
        return not is_ending(event) or not self._is_processing(token)

    def _has_failed(self, found: Found, event: dict[str, Any]) -> bool:
        """Whether a claim's own ending was made in spite of the moves after it: none follows a done, and a retry a failure."""
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
        """Those that the log does not tell of, by the fence that their move led to; the log is read once for all."""
        marks = {
            f'"event":"{name}","task":"{event["task"]}","fence":{event["fence"]},'.encode(): position
            for position, event in enumerate(events)
            for name in _alike(event)
        }
        since = min((str(event.get("at") or "")[:_HOUR] for event in events), default="")
        logged = self._logged(marks, since)
        return [event for position, event in enumerate(events) if position not in logged]

    def _logged(self, marks: dict[bytes, int], since: str) -> set[int]:
        """The positions whose mark is in the log, from this hour on."""
        folder = f"{self._root}/events"
        logged: set[int] = set()
        for name in self._disk.listdir(folder):
            if name[:_HOUR] < since:
                continue
            tail = b""
            for piece in pieces(self._disk, f"{folder}/{name}", _PIECE):
                text = tail + piece
                logged |= {position for mark, position in marks.items() if position not in logged and mark in text}
                tail = piece[-200:]
        return logged

    # Files on their way in

    def _finish_adds(self, now: int, by: str) -> int:
        finished = 0
        listed = self._disk.listdir(f"{self._root}/tmp")
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
                continue  # nothing that we could finish
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # its owner, or another janitor, was quicker; or it is nothing of ours
        return finished

    def _finish_add(self, path: str, id: str, now: int) -> int:
        """A file whose key is taken is as good as added; any other that nobody has touched for long was given up."""
        if self._disk.links(path) > 1:
            return int(self._adder.help_in(id, self._disk.read(path)))
        if now - self._disk.changed_at(path) < PATIENCE:
            return 0
        self._disk.rename(path, f"{self._root}/dead/{id}{SUFFIX}")
        return 1

    def _finish_drop(self, path: str, owner: str, now: int, by: str) -> int:
        """A dropped file that was being added under its taskId by somebody who died."""
        if not self._is_left(path, owner, now):
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
            pass  # whatever it is, it is looked at again where it came from
        while not self._rejected.renamed(mine, f"{self._root}/todo/{stem}{SUFFIX}"):
            stem += "~"
        self._intake.take(by, _SHARE)
        return 1

    def _discard(self, path: str, owner: str, now: int) -> int:
        """A draft of a record or note that was never given its name; its writer was not told that it is kept."""
        if not self._is_left(path, owner, now):
            return 0
        if self._disk.is_folder(path):
            self._context.mover.drop(path)
        else:
            self._disk.unlink(path)
        return 1

    def _is_left(self, path: str, owner: str, now: int) -> bool:
        """Whether the owner of this file is dead; of an owner that has left no sign of itself, whether it is long ago."""
        if self._writers.is_known(owner):
            return not self._writers.is_alive(owner, now)
        return now - self._disk.changed_at(path) > PATIENCE

    def _bury(self, now: int) -> int:
        """The last look at what was given up: a file that has another name after all is put in its place."""
        buried = 0
        for name in self._disk.listdir(f"{self._root}/dead")[:_SHARE]:
            if name.startswith("."):
                continue  # nothing of ours: a doctor tries whether files can be moved here
            path = f"{self._root}/dead/{name}"
            try:
                self._bury_one(path, name, now)
                buried += 1
            except Invalid:
                continue
            except OSError as error:
                if error.errno not in UNREADABLE:
                    raise
                continue  # another janitor was quicker; or it is nothing of ours
        return buried

    def _bury_one(self, path: str, name: str, now: int) -> None:
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


def _alike(event: dict[str, Any]) -> tuple[str, ...]:
    """The events that can stand for the same move."""
    if event["event"] == "blocked":
        return ("blocked",)
    if is_ending(event):
        return ("done", "failed")
    others = ("added", "released", "reaped", "due", "unblocked", "cancelled", "retried", "edited", "set_aside")
    # A claim's final failure has the claim's own number, so a failure says nothing of whether the claim was logged.
    return (*others, "claimed") if event["event"] == "claimed" else (*others, "claimed", "failed")
