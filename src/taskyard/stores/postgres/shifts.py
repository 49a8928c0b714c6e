"""All moves but claims: one guarded statement each, or a short transaction if other tasks wait for the one that moves."""

from __future__ import annotations

from taskyard.core import draft as drafts
from taskyard.core import ids, moves
from taskyard.core.store_records import STALE_MOST
from taskyard.core.task import State
from taskyard.stores.postgres import driver, edges, queries
from taskyard.stores.postgres.add import related
from taskyard.stores.postgres.batching import BATCH, Combiner
from taskyard.stores.postgres.context import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.moves import Move
    from taskyard.core.task import Handle, Standing
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.pool import Rows
    from taskyard.stores.postgres.read import Reader

    Shift = tuple[Standing, Move, str]
    """A decided move of the task that stands there, and who asks for it."""


class Shifts:
    """Moves in one store."""

    def __init__(self, context: Context, reader: Reader) -> None:
        self._context = context
        self._reader = reader
        self._dones = Combiner(self._end_several)
        text = queries.load("moves")
        self._statements = {name: text[name] for name in ("revive", "edit")}
        for name in ("back", "end"):
            self._statements[name] = text[name].replace("{lapsed}", "")
            self._statements[f"{name} lapsed"] = text[name].replace(
                "{lapsed}", f"{text['passing_over']}\n{text['over']}"
            )

    def _alone(self, standing: Standing, move: Move, by: str) -> bool:
        """Make the move if the task still stands exactly there, and record how its claim ended."""
        if move.draft is not None:
            return self._rewrite(standing, move.draft, move, by)
        if move.event == "done":
            return self._end_one(standing, move, by)
        if move.event == "due":
            return self._wake_several([(standing, move, by)])[0]
        values = self._values(standing, move, by)
        if standing.state.ended:
            return self._revive(standing, move, values)
        if not move.to.ended:
            name = "back lapsed" if move.if_lapsed else "back"
            return bool(self._run(name, values))
        found = self._run("end lapsed" if move.if_lapsed else "end", values)
        if any(row[-1:] != (False,) for row in found):
            self._context.on_unsent()
        return bool(found)

    def _end_one(self, standing: Standing, move: Move, by: str) -> bool:
        done = (standing, move, by)
        if move.reviewer is not None:  # no claim holds it, and the other statements end claims
            return self._end_followed(*done)
        return self._dones.ask(done) or self._end_several_followed([done])[0] or self._end_followed(*done)

    def shift(self, shifts: Sequence[tuple[Standing, Move]], by: str) -> list[bool]:
        """Return which of these moves were made: dones by two statements, due tasks by another, the rest one by one."""
        if len(shifts) == 1:
            return [self._alone(*shifts[0], by)]
        made = [False] * len(shifts)
        for event, together in (
            ("done", self._end_several),
            ("done", self._end_several_followed),
            ("due", self._wake_several),
        ):
            alike = [number for number, (_, move) in enumerate(shifts) if move.event == event and not made[number]]
            for start in range(0, len(alike), BATCH):
                some = alike[start : start + BATCH]
                for number, done in zip(some, together([(*shifts[each], by) for each in some]), strict=True):
                    made[number] = done
        for number, (standing, move) in enumerate(shifts):
            if move.event == "done" and not made[number]:
                made[number] = self._end_followed(standing, move, by)
        for number, (standing, move) in enumerate(shifts):
            if move.event not in ("done", "due"):
                made[number] = self._alone(standing, move, by)
        return made

    def _end_several(self, endings: list[Shift]) -> list[bool]:
        """Return which of these dones one statement made: those of tasks that no others wait for."""
        return self._together("done", endings, _results)

    def _end_several_followed(self, endings: list[Shift]) -> list[bool]:
        """Return which of these dones one statement made, whose tasks others wait for; the rest is made one by one."""
        order = sorted(range(len(endings)), key=lambda number: ids.age_key(endings[number][0].id))
        made = [False] * len(endings)
        # In one order, so that no two batches deadlock.
        for number, done in zip(
            order, self._together("done_followed", [endings[number] for number in order], _results), strict=True
        ):
            made[number] = done
        if any(made):
            self._context.on_unsent()
        return made

    def _wake_several(self, wakings: list[Shift]) -> list[bool]:
        """Return which of these due tasks are in todo now; a locked one is left to the next sweep."""
        return self._together("wake", wakings, _targets)

    def _together(self, name: str, shifts: list[Shift], more: Callable[[list[Shift]], dict[str, Any]]) -> list[bool]:
        """Return which of these moves one statement made; of several of one task it is given the first."""
        firsts: dict[str, Shift] = {}
        for shift in shifts:
            firsts.setdefault(shift[0].id, shift)
        made = self._at_once(name, list(firsts.values()), more)
        return [shift is firsts[shift[0].id] and shift[0].id in made for shift in shifts]

    def _at_once(self, name: str, shifts: list[Shift], more: Callable[[list[Shift]], dict[str, Any]]) -> set[str]:
        """Return the ids of the tasks that one statement moved."""
        values = {
            "ages": driver.words([ids.age_key(standing.id) for standing, _, _ in shifts]),
            "ids": driver.words([standing.id for standing, _, _ in shifts]),
            "fences": driver.words([standing.fence for standing, _, _ in shifts]),
            "by": shifts[0][2],
            **more(shifts),
        }
        before: set[str] = set()

        def look(connection: Statements) -> None:
            """Collect the moves that were made though their answer was lost; the rest is sent again."""
            for shift in shifts:
                if self._was_made(connection, self._values(*shift)) is not None:
                    before.add(shift[0].id)

        return {row[0] for row in self._context.run("moves", name, values, look)} | before

    def _run(self, name: str, values: dict[str, Any]) -> Rows:
        return self._context.pool.run(
            self._statements[name], values, lambda connection: self._was_made(connection, values)
        )

    def _was_made(self, connection: Statements, values: dict[str, Any]) -> Rows | None:
        """Return a row if a move was made whose answer was lost, else None."""
        found = self._context.on(connection, "moves", "was_made", values)
        return [()] if found[0][0] else None

    def _values(self, standing: Standing, move: Move, by: str) -> dict[str, Any]:
        claim = moves.reviewed(standing, move)
        return {
            **place(standing.id),
            "project": self._context.project,
            "state": standing.state,
            "fence": standing.fence,
            "nonce": standing.nonce,
            "worker": claim.worker,
            "claim_fence": claim.fence,
            "claim_nonce": claim.nonce,
            "submitted": drafts.payload(move.result, "result") if move.submits else None,
            "to": move.to,
            "to_fence": move.fence,
            "errors": move.errors,
            "crashes": move.crashes,
            "delay": round(move.delay * 1000),
            "outcome": move.outcome,
            "reason": None if move.reason is None else drafts.compact(move.reason),
            "result": _result(move),
            "keeps": move.keeps_claim,
            "reviews": move.reviewer is not None,
            "event": move.event,
            "by": by,
            "more": _details(move),
            "logs_due": move.event in ("failed", "reaped"),
            "lifts": not moves.keeps_deadline(standing, move),
        }

    def _end_followed(self, standing: Standing, move: Move, by: str) -> bool:
        """End a task that is locked, or that no claim holds; unblock those that wait for it in the same transaction."""
        values = self._values(standing, move, by)

        def once(connection: Statements) -> bool:
            with connection.transaction():
                if not connection.rows(self._statements["end"], values):
                    return False
                event = {"id": standing.id, "by": by, "more": drafts.compact({"freed_by": standing.id})}
                self._context.on(connection, "moves", "free_followers", event)
                return True

        return self._made_in_transaction(once, values)

    def _made_in_transaction(self, once: Callable[[Statements], bool], values: dict[str, Any]) -> bool:
        """Whether the move was made, by `once` or by an attempt of it whose answer was lost; others may move with it."""
        made: bool = self._context.pool.attempt(
            once, lambda connection: True if self._was_made(connection, values) is not None else None
        )
        if made:
            self._context.on_unsent()
        return made

    def _revive(self, standing: Standing, move: Move, values: dict[str, Any]) -> bool:
        """Move an ended task back; it is blocked again if the tasks before it are still not done."""
        if move.to is not State.BLOCKED:
            return bool(self._run("revive", values))

        def once(connection: Statements) -> bool:
            context = self._context
            with connection.transaction():
                if not connection.rows(self._statements["revive"], values):
                    return False
                unmet = list(standing.unmet)
                context.on(connection, "moves", "follow", {"ages": [ids.age_key(id) for id in unmet]})
                left = [row[0] for row in context.on(connection, "moves", "needs", {"id": standing.id})]
                event = {
                    "id": standing.id,
                    "kind": standing.kind,
                    "fence": move.fence,
                    "worker": None,
                    "by": values["by"],
                }
                more = drafts.compact({"after": left or unmet})
                context.on(connection, "moves", "log_event", {**event, "event": "blocked", "more": more})
                if not left:
                    freed = drafts.compact({"freed_by": unmet[-1]})
                    context.on(
                        connection, "moves", "unblock", {"ids": [standing.id], "by": values["by"], "more": freed}
                    )
                context.on(connection, "moves", "cancel_doomed", {"ids": [standing.id], "by": values["by"]})
                return True

        return self._made_in_transaction(once, values)

    def _rewrite(self, standing: Standing, draft: Draft, move: Move, by: str) -> bool:
        """Make the task what the draft describes, if it still stands exactly there."""
        counted = isinstance(draft.expires, float)  # from now on
        values = {
            **self._values(standing, move, by),
            "title": draft.title,
            "data": draft.payload,
            "priority": draft.priority,
            "assignee": draft.assignee,
            "max_attempts": draft.max_attempts,
            "not_before": draft.not_before,
            "delay": round(draft.delay * 1000),
            "anew": move.due_anew,
            "expires": None if counted else draft.expires,
            "expires_in": round(draft.expires * 1000) if counted and draft.expires is not None else None,
            "timeout": draft.timeout,
            "expires_anew": move.expires_anew,
            "has_origin": any(value is not None for value in related(draft)),
            "ordered": move.unmet is not None,
            "after": _after(draft),
        }
        if move.unmet is None:
            return bool(self._run("edit", values))
        return self._made_in_transaction(
            lambda connection: edges.edit(self._context, connection, self._statements["edit"], standing, move, values),
            values,
        )

    def refuse(self, handle: Handle, verb: str, move: Move | None, by: str) -> None:
        """Log that a verb came too late, and keep its output once, however often it comes."""
        values = {
            **place(handle.id),
            "fence": handle.fence,
            "nonce": handle.nonce,
            "by": by,
            "more": drafts.compact({"verb": verb}),
            "brings": move is not None,
            "most": STALE_MOST,
            "outcome": None if move is None else move.outcome,
            "reason": None if move is None or move.reason is None else drafts.compact(move.reason),
            "result": None if move is None else drafts.payload(move.result, "result"),
        }
        self._context.run("moves", "refuse", values)


def _details(move: Move) -> str | None:
    """Return an event's further details as JSON."""
    details = move.details()
    return drafts.compact(details) if details else None


def _after(draft: Draft) -> list[str] | None:
    """Return what stands in the body: not null if the task has a row in `relation`, too."""
    return list(map(str, draft.after)) or ([] if any(value is not None for value in related(draft)) else None)


def _results(endings: list[Shift]) -> dict[str, Any]:
    """Return the values of several dones beyond where their tasks stand."""
    return {
        "nonces": driver.words([standing.nonce for standing, _, _ in endings]),
        "results": driver.array([_result(move) for _, move, _ in endings]),
        "tellers": driver.array([by for _, _, by in endings]),
    }


def _targets(wakings: list[Shift]) -> dict[str, Any]:
    """Return the same of several due tasks."""
    return {"to_fences": driver.words([move.fence for _, move, _ in wakings])}


def _result(move: Move) -> str | None:
    return None if move.result is None else drafts.payload(move.result, "result")
