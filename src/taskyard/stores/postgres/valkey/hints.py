"""What a store sends to Valkey after each commit: who holds what, what is ready, and what has changed.

Trouble with Valkey raises nothing: the move is made. Other processes then read it in the log, a moment later.
"""

from __future__ import annotations

import hashlib

from taskyard.core import ids, times
from taskyard.core.draft import compact
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.store_records import Query, Trail
from taskyard.core.task import State
from taskyard.stores.postgres.valkey.keys import Keys
from taskyard.stores.postgres.valkey.server import Server, Trouble, script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Want
    from taskyard.core.task import Standing, Task
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.log import PostgresLog
    from taskyard.stores.postgres.read import Reader
    from taskyard.stores.postgres.upkeep import Upkeep

    Act = tuple[str | int | float, ...]
    Hint = tuple[str, str]
    """A popped hint: the list that it was in, and the id."""

_PAGE = 500  # hints or events in one step
_PAGES_MOST = 20  # pages of hints after a loss: more ready tasks than that keep all workers busy
_NO_WORKER = "*"  # asks for what is ready for anybody: no worker is called so
_UNNAMED = ("noted", "refused")  # events that may come twice under one fence


class Hints:
    """The hints of one open project."""

    def __init__(self, context: Context, reader: Reader, log: PostgresLog, upkeep: Upkeep) -> None:
        assert context.address.valkey is not None
        self._context, self._reader, self._log, self._upkeep = context, reader, log, upkeep
        self.keys = Keys(context.address.project)
        self.server = Server(context.address.valkey)
        self._script = script()
        self._digest = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()
        self.popped: list[Hint] = []
        """Hints that a blocking pop has brought, and no claim has used yet."""

    # After each verb

    def added(self, tasks: Iterable[Task], by: str) -> None:
        """Push new tasks to the lists; those that were known before are there already."""
        acts: list[Act] = []
        for task in tasks:
            if task.created:
                acts.append(self._say("added", task.id, task.kind, task.state, task.fence, None, by))
                if task.state is State.TODO:
                    acts.append(_push(task.id, task.kind, task.priority, task.assignee))
        self.make(acts)

    def claimed(self, want: Want, grants: Sequence[Grant]) -> None:
        """These claims were won; hints that led to other tasks are given back."""
        acts: list[Act] = []
        popped, self.popped = self.popped, []
        event = "claimed" if want.move is None else want.move.event
        for grant in grants:
            won = grant.standing
            acts.append(("pull", won.id, won.kind, won.priority, won.assignee or ""))
            acts.append(self._take(won, grant.lease_until))
            acts.append(self._say(event, won.id, won.kind, won.state, won.fence, won.worker, want.by))
        mine = {grant.standing.id for grant in grants}
        if grants:
            acts.extend(_give_back(hint) for hint in popped if hint[1] not in mine)
        elif popped and self._are_ready(popped):
            acts.append(("held_back",))
        self.make(acts)

    def _are_ready(self, popped: list[Hint]) -> bool:
        """Whether one of these hints leads to a task that is in todo and was not handed out: something holds it back."""
        named = [id for _, id in popped if ids.is_id(id)]
        try:
            return any(task.state is State.TODO for task in self._upkeep.stand_all(named).values())
        except TaskyardError:
            return False

    def renewed(self, standing: Standing, until: int, noted: bool) -> None:
        """The claim's lease began anew."""
        self.make([self._take(standing, until)])
        if noted:
            self.catch_up()

    def shifted(self, shifts: Sequence[tuple[Standing, Move]], made: Sequence[bool], by: str) -> None:
        """These moves were made."""
        acts: list[Act] = []
        for (before, move), is_made in zip(shifts, made, strict=True):
            if not is_made:
                continue
            assignee, priority = before.assignee, before.priority
            if move.draft is not None:
                assignee, priority = move.draft.assignee, move.draft.priority
            if before.nonce is not None:
                acts.append(("free", before.id, f"{before.id}.{before.fence}.{before.nonce}"))
            if before.state is State.TODO:
                acts.append(("pull", before.id, before.kind, before.priority, before.assignee or ""))
            acts.append(self._say(move.event, before.id, before.kind, move.to, move.fence, before.worker, by))
            if move.to is State.TODO:
                acts.append(_push(before.id, before.kind, priority, assignee))
        if acts:
            acts.append(("freed",))
        self.make(acts)

    def look(self, why: str) -> None:
        """Everybody who waits must look: something changed that concerns no single task."""
        self.make([("look", why)])

    # What the log and the tables know

    def catch_up(self) -> bool:
        """Send what the log has and no process has sent yet; return whether there was something."""
        try:
            before = (self.server.get(self.keys.cursor) or b"").decode(errors="replace")
            events, after = self._unsent(before)
            self.make([("advance", before, after), *self._told(events)])
            return bool(events)
        except (Trouble, TaskyardError):
            return False

    def _unsent(self, cursor: str) -> tuple[list[dict[str, Any]], str]:
        """Return what the log has from this cursor on; what it had lately, if the cursor is lost or none of the log's."""
        try:
            if cursor:
                return self._log.read(Trail(cursor=cursor, limit=_PAGE))
        except Invalid:
            pass  # somebody wrote something else there, or the database was set back
        return self._log.read(Trail(cursor=self._log.lately(), limit=_PAGE))

    def _told(self, events: list[dict[str, Any]]) -> Iterable[Act]:
        """Return the messages of these events, and hints of those tasks that are ready now."""
        named = {event["task"] for event in events if event["task"]}
        now = self._upkeep.stand_all(list(named)) if named else {}
        last: dict[str, str] = {}
        for event in events:
            if not event["task"]:  # of the yard itself, such as a pause
                yield ("look", event["event"])
            task = now.get(event["task"])
            state = None if task is None else task.state
            name = (
                ""
                if event["event"] in _UNNAMED or not event["task"]
                else f"{event['task']}.{event['fence']}.{event['event']}"
            )
            last[event["task"]] = name or last.get(event["task"], "")
            more = {"v": 1, "project": self._context.address.project, **event, "state": state}
            yield ("say", name, compact(more))
        for task in now.values():
            if task.state is State.TODO:
                yield (*_push(task.id, task.kind, task.priority, task.assignee), last[task.id])
        if any(event["event"] not in ("added", "claimed", "noted", "refused") for event in events):
            yield ("freed",)

    def refill(self, pages: int = 1) -> int:
        """Put what is ready into the hand-out lists, `pages` pages of it at most; return how many tasks that were."""
        number, cursor, rows = 0, None, []
        try:
            rows = self._context.run("read", "assigned", {"limit": _PAGE})
            self.make([_push(*row) for row in rows])
            for _ in range(pages):
                page, cursor = self._reader.find(Query(taker=_NO_WORKER, limit=_PAGE, cursor=cursor))
                self.make([_push(task.id, task.kind, task.priority, task.assignee) for task in page])
                number += len(page)
                if cursor is None:
                    break
        except TaskyardError:
            return number  # the caller asks the database next, and meets the same trouble
        return number + len(rows)

    def rebuild(self, generation: str) -> bool:
        """After a loss: begin a new generation of hints, if no other process was quicker, and fill its lists."""
        [is_mine] = self.server.ask(("SET", self.keys.generation, generation, "NX"))
        if not is_mine:
            return False
        self.refill(_PAGES_MOST)
        return True

    def give_back(self, hints: Iterable[Hint]) -> None:
        """Put popped hints back: this process does not claim."""
        self.make([_give_back(hint) for hint in hints])

    # How

    def make(self, acts: Sequence[Act]) -> None:
        """Make these acts as one step, if Valkey serves."""
        if not acts:
            return
        text = compact(acts)
        try:
            [answer] = self.server.answers(("EVALSHA", self._digest, 1, self.keys.prefix, text))
            if type(answer).__name__ == "NoScriptError":  # of the library, which is not loaded for a name
                self.server.ask(("EVAL", self._script, 1, self.keys.prefix, text))
            elif isinstance(answer, Exception):
                raise self.server.failed(answer)
        except Trouble:
            return

    def _say(
        self, event: str, id: str, kind: str, state: State, fence: int, worker: str | None, by: str
    ) -> tuple[str, str, str]:
        message = {
            "v": 1, "project": self._context.address.project, "event": event, "task": id, "kind": kind, "state": state,
            "fence": fence, "worker": worker, "by": by,
        }  # fmt: skip
        return ("say", f"{id}.{fence}.{event}", compact(message))

    def _take(self, standing: Standing, until: int) -> Act:
        claim = f"{standing.id}.{standing.fence}.{standing.nonce}"
        lock = {
            "task": standing.id, "worker": standing.worker, "fence": standing.fence, "claim": claim,
            "until": times.rfc3339(until),
        }  # fmt: skip
        return ("take", standing.id, standing.fence, compact(lock), max(1, round(standing.lease * 1000)))

    def close(self) -> None:
        """Close the connection."""
        self.server.close()


def _push(id: str, kind: str, priority: int, assignee: str | None) -> Act:
    return ("push", id, kind, priority, assignee or "", ids.created(id))


def _give_back(hint: Hint) -> Act:
    """Return the hint to where it was: its list names priority, and kind or worker."""
    priority, _, name = hint[0].rpartition("}:ready:")[2].partition(":")
    kind, assignee = ("*", name[1:]) if name.startswith("@") else (name, "")
    return ("push", hint[1], kind, int(priority), assignee, ids.created(hint[1]) if ids.is_id(hint[1]) else 0)
