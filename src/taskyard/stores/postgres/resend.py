"""Adding what comes out of a spool: once only, however often it is replayed, and also if the first attempt was executed."""

from __future__ import annotations

from taskyard.core.errors import Conflict
from taskyard.core.task import State
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.add import TRIES, Adder, Batch, Raced
from taskyard.stores.postgres.checkout import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from taskyard.core.draft import Draft
    from taskyard.core.task import Task
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context
    from taskyard.stores.postgres.read import Reader


class Resender(Adder):
    """Adds drafts that have ids, once only for a token; `sent` is what `Away` reported of the first attempt, if there was one."""

    def __init__(self, context: Context, reader: Reader, token: str, sent: dict[str, Any] | None) -> None:
        super().__init__(context, reader)
        self._token = token
        self._sent = sent

    def add(self, drafts: Sequence[Draft], by: str) -> list[Task]:
        """Store these tasks, unless that was done before; return them as they are."""
        for _ in range(TRIES):
            try:
                tasks: list[Task] = self._context.pool.attempt(
                    lambda connection: self._resent(connection, Batch(drafts, self._token, alone=True), by)
                )
            except Raced:
                continue
            return tasks
        raise Conflict("the tasks that are named here keep moving under other hands", hint="try again")

    def _resent(self, connection: Statements, batch: Batch, by: str) -> list[Task]:
        found = None if self._sent is None else self._sent_before(connection, batch, self._sent)
        if found is not None:
            return found
        try:
            return self._once(connection, batch, by)
        except driver.errors() as error:
            if error.sqlstate != driver.UNIQUE_VIOLATION:  # of the token, or of an id
                raise
            ids = {**batch.given, **batch.known}
            there = self._reader.tasks(connection, sorted(set(ids.values())))
            if not there and not driver.is_repeated(error):
                raise
            return self._replayed_before(batch, ids, there)

    def _sent_before(self, connection: Statements, batch: Batch, sent: dict[str, Any]) -> list[Task] | None:
        """End the first attempt if the server has not executed it yet; return its tasks if it has."""
        if sent["pids"]:
            self._context.on(connection, "outages", "end_sent", {"pids": sent["pids"], "ago": sent["ago"]})
            if self._context.on(connection, "outages", "half_committed", {"pids": sent["pids"]}):
                raise Busy(f"PostgreSQL at {self._context.address.where} waits for its synchronous standby")
        first = Batch(batch.drafts)
        first.chances = sent["chances"]
        self._know_keys(connection, first)
        return self._found(connection, first, sent["since"])

    def _replayed_before(self, batch: Batch, ids: dict[int, str], there: dict[str, Task]) -> list[Task]:
        """Return the tasks of a batch that was replayed before; what was pruned since is returned as it was added."""
        most = self._context.policy.max_attempts
        return [there.get(id) or batch.drafts[place].task(id, State.TODO, None, most) for place, id in ids.items()]
