"""Handing out, renewing, taking over."""

from __future__ import annotations

import time

from taskyard.core import draft, ids, moves
from taskyard.core.errors import Conflict, Unavailable
from taskyard.stores.postgres import driver, queries, rows
from taskyard.stores.postgres.batching import BATCH, Combiner
from taskyard.stores.postgres.context import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from taskyard.core.moves import Move
    from taskyard.core.store_records import Grant, Want
    from taskyard.core.task import Handle, Standing
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.pool import Rows
    from taskyard.stores.postgres.read import Reader

_TRIES = 50
_PAUSE = 0.02  # seconds before another look at a task that somebody has locked
_WISHES = 64  # different sorts of claims that are remembered


class Claims:
    """Claims of one store."""

    def __init__(self, context: Context, reader: Reader) -> None:
        self._context = context
        self._reader = reader
        self._combiners: dict[Any, Combiner] = {}
        self.lost_races = 0

    def claim(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out the most urgent, oldest tasks that serve, or the one that is named, or held and taken over."""
        if want.over is not None and want.move is not None:
            return self._take_over(want.over, want.move, nonces[0], want.worker)
        if want.id is not None:
            return [self._named(want, nonces[0])]
        if len(nonces) > 1:
            return self._many(want, nonces)
        grant = self._one(want, nonces[0])
        return [] if grant is None else [grant]

    def _one(self, want: Want, nonce: str) -> Grant | None:
        """One task, asked for together with what other threads ask for at this moment."""
        key = (want.terms, want.kinds)
        combiner = self._combiners.get(key)
        if combiner is None:
            if len(self._combiners) >= _WISHES:
                self._combiners.clear()  # whoever is served by one has it in hand
            combiner = self._combiners[key] = Combiner(lambda nonces: self._several(want, nonces))
        grant: Grant | None = combiner.ask(nonce)
        return grant

    def _many(self, want: Want, nonces: Sequence[str]) -> list[Grant]:
        """Hand out as many of the most urgent, oldest tasks that serve as there are nonces, or tasks."""
        grants: list[Grant] = []
        for start in range(0, len(nonces), BATCH):
            some = nonces[start : start + BATCH]
            try:
                found = self._serve(self._values(want, some))
            except Unavailable:
                if not grants:
                    raise
                break  # what was won is to be told of; who asks for more will hear of the trouble
            grants.extend(sorted(found, key=lambda grant: (grant.standing.priority, ids.age_key(grant.standing.id))))
            if len(found) < len(some):
                break
        return grants

    def _several(self, want: Want, nonces: list[str]) -> list[Grant | None]:
        """A task for each of these, as far as there are any."""
        found = {grant.standing.nonce: grant for grant in self._serve(self._values(want, nonces))}
        return [found.get(nonce) for nonce in nonces]

    def _serve(self, values: dict[str, Any]) -> list[Grant]:
        def mine(connection: Connection[Any]) -> Rows | None:
            held = {"worker": values["worker"], "nonces": values["nonces"]}
            return self._context.on(connection, "claims", "mine", held) or None

        claimed = self._context.pool.run(queries.load("claims")["claim"], values, mine)
        return [rows.Won(row, self._context.policy) for row in claimed]

    def _values(self, want: Want, nonces: Sequence[str]) -> dict[str, Any]:
        worker, lease, usual, _ = want.terms
        return {
            "project": self._context.project, "worker": worker, "kinds": None if want.kinds is None else driver.array(sorted(want.kinds)),
            "age": None, "fence": None, "nonces": driver.words(nonces), "lease": lease, "usual": usual, "default": self._context.policy.lease,
        }  # fmt: skip

    def _named(self, want: Want, nonce: str) -> Grant:
        """The very task that is named, or the reason why not."""
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
            uses = self._reader.get(standing.id).task.uses
            for resource, id, _ in self._context.run("claims", "holder", {"uses": uses}) if uses else ():
                raise moves.in_use(standing, resource, self._reader.stand(id))
            self.lost_races += 1
            time.sleep(_PAUSE)  # locked for a moment, or moved: look again
        raise Conflict(
            f"task {standing.short} is locked in a transaction that somebody has open",
            hint="claim it again when that has ended",
        )

    def _take_over(self, standing: Standing, move: Move, nonce: str, by: str) -> list[Grant]:
        """The same claim under the move's fence and a new nonce, if it is not over."""
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

    def renew(self, standing: Standing, progress: float | None, note: str | None) -> int | None:
        """Begin the lease anew and give its end, or None if the claim is over."""
        values = {
            **place(standing.id), "fence": standing.fence, "nonce": standing.nonce,
            "progress": None if progress is None else float(progress), "note": None if note is None else draft.compact(note),
            "more": None if note is None else draft.compact({"text": note}), "token": None if note is None else driver.new_token(),
        }  # fmt: skip
        said = time.monotonic()

        def noted(connection: Connection[Any]) -> Rows | None:
            return self._noted(connection, values, said)

        try:
            found = self._context.run("claims", "renew", values, None if note is None else noted, urgent=True)
        except driver.module().errors.UniqueViolation as error:
            if not driver.was_said(error):
                raise
            found = self._context.pool.attempt(noted, urgent=True)
        return found[0][0] if found else None

    def holding(self, handles: Sequence[Handle]) -> list[bool]:
        """Which of these claims still hold their tasks."""
        ages = driver.words(ids.age_key(handle.id) for handle in handles)
        held = set(self._context.run("claims", "holding", {"ages": ages}, urgent=True))
        return [(handle.id, handle.fence, handle.nonce) in held for handle in handles]

    def _noted(self, connection: Connection[Any], values: dict[str, Any], said: float) -> Rows | None:
        """The renewed lease of a note whose answer was lost, if it is there: these words of this claim, since they were said."""
        [(now,)] = self._context.on(connection, "outages", "now")
        since = now - round((time.monotonic() - said) * 1000) - 1
        return self._context.on(connection, "outages", "noted", {**values, "since": since}) or None
