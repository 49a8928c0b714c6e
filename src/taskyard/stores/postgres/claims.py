"""Claiming, renewing and taking over tasks."""

from __future__ import annotations

import time

from taskyard.core import draft, ids, moves, order
from taskyard.core.errors import Conflict, Unavailable
from taskyard.core.limits import Reached
from taskyard.stores.postgres import driver, queries, rows
from taskyard.stores.postgres.batching import BATCH, Combiner
from taskyard.stores.postgres.context import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Want
    from taskyard.core.task import Handle, Standing
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.missions import PostgresMissions
    from taskyard.stores.postgres.pool import Rows
    from taskyard.stores.postgres.read import Reader

_TRIES = 50
_PAUSE = 0.02  # seconds before the next look at a task that is locked
_COMBINERS_MOST = 64  # sorts of claims that have a combiner


class Claims:
    """Claims of one store."""

    def __init__(self, context: Context, reader: Reader, missions: PostgresMissions) -> None:
        self._context = context
        self._reader = reader
        self._missions = missions
        self._combiners: dict[Any, Combiner] = {}
        self.lost_races = 0

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the most urgent, oldest tasks that `want` allows, or the one that it names or takes over."""
        if want.over is not None and want.move is not None:
            return self._take_over(want.over, want.move, nonces[0], want.by)
        if want.id is not None:
            return [self._named(want, nonces[0])]
        if want.mission is not None:
            self._missions.gather()
        if len(nonces) > 1:
            return self._many(want, nonces)
        grant = self._one(want, nonces[0])
        return [] if grant is None else [grant]

    def _one(self, want: Want, nonce: str) -> Grant | None:
        """Claim one task, in one statement with the claims of other threads at this moment."""
        key = (want.terms, want.by, want.kinds, want.mission)
        combiner = self._combiners.get(key)
        if combiner is None:
            if len(self._combiners) >= _COMBINERS_MOST:
                self._combiners.clear()  # threads that use one of them keep their reference
            combiner = self._combiners[key] = Combiner(lambda nonces: self._several(want, nonces))
        grant: Grant | None = combiner.ask(nonce)
        return grant

    def _many(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Claim the most urgent, oldest tasks that `want` allows, one for each nonce as far as there are any."""
        grants: list[Grant] = []
        for start in range(0, len(nonces), BATCH):
            some = nonces[start : start + BATCH]
            try:
                found = self._serve(self._values(want, some))
            except Unavailable:
                if not grants:
                    raise
                break  # return what was won; the next call raises if the trouble lasts
            grants.extend(sorted(found, key=self._rank))
            if len(found) < len(some):
                break
        return grants

    def _rank(self, grant: Grant) -> order.Rank:
        return order.rank(grant.standing.priority, grant.standing.id, self._context.policy.ageing)

    def _several(self, want: Want, nonces: list[str]) -> list[Grant | None]:
        """Claim one task for each nonce; None where there are too few."""
        found = {grant.standing.nonce: grant for grant in self._serve(self._values(want, nonces))}
        return [found.get(nonce) for nonce in nonces]

    def _serve(self, values: dict[str, Any]) -> list[Grant]:
        def mine(connection: Statements) -> Rows | None:
            held = {"worker": values["worker"], "nonces": values["nonces"]}
            return self._context.on(connection, "claims", "mine", held) or None

        statement = "claim" if values["mission"] is None else "claim_of_mission"
        if values["ageing"] is not None and values["age"] is None:
            statement += "_aged"
        claimed = self._context.pool.run(queries.load("claims")[statement], values, mine)
        return [rows.Won(row, self._context.policy) for row in claimed]

    def _values(self, want: Want, nonces: Sequence[str]) -> dict[str, Any]:
        worker, lease, usual, _ = want.terms
        return {
            "project": self._context.project, "worker": worker, "kinds": None if want.kinds is None else driver.array(sorted(want.kinds)),
            "age": None, "fence": None, "nonces": driver.words(nonces), "lease": lease, "usual": usual, "default": self._context.policy.lease,
            "mission": want.mission, "ageing": self._context.policy.ageing, "by": want.by,
        }  # fmt: skip

    def _named(self, want: Want, nonce: str) -> Grant:
        """Claim the task that `want.id` names, or raise the reason why not."""
        assert want.id is not None
        values = self._values(want, [nonce])
        for _ in range(_TRIES):
            standing = self._reader.stand(want.id)
            moves.claimed(standing, want.worker)
            values |= {"age": ids.age_key(standing.id), "fence": standing.fence}
            grants = self._serve(values)
            if grants:
                return grants[0]
            [(everything, kinds)] = self._context.run("upkeep", "paused")
            if everything or standing.kind in kinds:
                raise moves.paused(standing, whole=everything)
            self._refuse_limited(standing)
            uses = self._reader.get(standing.id).task.uses
            for resource, id, _, held in self._context.run("claims", "holder", {"uses": uses}) if uses else ():
                raise moves.in_use(standing, resource, held, self._reader.stand(id))
            self.lost_races += 1
            time.sleep(_PAUSE)  # locked for a moment, or moved: look again
        raise Conflict(
            f"task {standing.short} is locked in a transaction that somebody has open",
            hint="claim it again when that has ended",
        )

    def _refuse_limited(self, standing: Standing) -> None:
        """Raise `Conflict` if a limit of the task's kind, or a quota of the team, is reached."""
        for row in (*self._context.run("teams", "reached"), *self._context.run("reasons", "reached")):
            reached = Reached(*row)
            if reached.team is not None or reached.kind == standing.kind:
                raise moves.limited(standing, reached, self._context.run("reasons", "now")[0][0])

    def _take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> list[Grant]:
        """Return the same claim under the move's fence and a new nonce, if it is not over."""
        values = {
            **place(standing.id), "fence": standing.fence, "nonce": standing.nonce, "to_fence": move.fence, "to_nonce": nonce,
            "outcome": move.outcome, "reason": None if move.reason is None else draft.compact(move.reason), "event": move.event, "by": by,
        }  # fmt: skip
        mine = {"worker": standing.worker, "nonces": [nonce]}
        found = self._context.run(
            "claims",
            "take_over",
            values,
            lambda connection: self._context.on(connection, "claims", "mine", mine) or None,
        )
        return [rows.Won(row, self._context.policy) for row in found]

    def renew(self, standing: Standing, progress: float | None, note: str | None, by: str | None = None) -> int | None:
        """Restart the lease and return its end, or None if the claim is over."""
        values = {
            **place(standing.id), "fence": standing.fence, "nonce": standing.nonce,
            "progress": None if progress is None else float(progress), "note": None if note is None else draft.compact(note),
            "more": None if note is None else draft.compact({"text": note}), "token": None if note is None else driver.new_token(),
            "by": by or standing.worker,
        }  # fmt: skip
        sent_at = time.monotonic()

        def noted(connection: Statements) -> Rows | None:
            return self._noted(connection, values, sent_at)

        try:
            found = self._context.run("claims", "renew", values, None if note is None else noted, urgent=True)
        except driver.errors() as error:
            if not driver.is_repeated(error):
                raise
            found = self._context.pool.attempt(noted, urgent=True)
        return found[0][0] if found else None

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Return which of these claims still hold their tasks."""
        ages = driver.words(ids.age_key(handle.id) for handle in handles)
        held = set(self._context.run("claims", "holding", {"ages": ages}, urgent=True))
        return [(handle.id, handle.fence, handle.nonce) in held for handle in handles]

    def _noted(self, connection: Statements, values: dict[str, Any], sent_at: float) -> Rows | None:
        """Return the renewed lease if the note was stored and only its answer was lost.

        The note is recognised by its text, its claim and a time after `sent_at`.
        """
        [(now,)] = self._context.on(connection, "outages", "now")
        since = now - round((time.monotonic() - sent_at) * 1000) - 1
        return self._context.on(connection, "outages", "noted", {**values, "since": since}) or None
