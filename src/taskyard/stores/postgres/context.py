"""What the parts of a store stand on: its connections, its project, its settings."""

from __future__ import annotations

import json
from copy import copy

from taskyard.core import ids, settings, task_names
from taskyard.core.errors import Invalid
from taskyard.stores.postgres import driver, queries, schema
from taskyard.stores.postgres.pool import Bound, Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.pool import Rows


class Context:
    """One open project."""

    def __init__(self, address: Address, durability: str | None) -> None:
        self.address = address
        pool = Pool(address, durability)
        self.pool: Pool | Bound = pool
        try:
            greeting: schema.Greeting = pool.attempt(lambda connection: schema.greet(connection, address))
            settings.refuse_unfinished(json.loads(greeting.settings).get("copy_of"), address.label)
        except BaseException:
            pool.close()
            raise
        self.project = greeting.project
        pool.returned = self._returned
        self.epoch = greeting.epoch
        self.now = greeting.now
        """The newest moment of the database's own time that was heard of."""
        if greeting.isolation != "read committed":
            pool.isolation = greeting.isolation
            pool.drain()
        given = settings.parse(json.loads(greeting.settings), f"the settings of project {address.project!r}")
        self.policy = given.policy
        self.checks = given.checks
        self.retention = given.retention

    def _returned(self, connection: Connection[Any], away: float) -> None:
        """The database could not be reached for so many seconds: that must cost nobody a lease."""
        self._told(connection, "returned", {"away": round(away * 1000)})

    def took_over(self) -> None:
        """The server was a standby, and is the primary now: nobody could reach a database in between."""
        self.pool.attempt(lambda connection: self._told(connection, "took_over", {}))

    def _told(self, connection: Connection[Any], outage: str, values: dict[str, Any]) -> None:
        try:
            self.on(connection, "outages", outage, values)
        except driver.module().errors.InsufficientPrivilege:
            return  # a role that somebody gave less than a project: it can work, and leases end for it as ever

    def within(self, connection: Any) -> Context:
        """The same project on a connection of the caller's own."""
        twin = copy(self)
        twin.pool = Bound(self.address, connection, self.project)
        # Two questions: one that names a table which is not there would end the caller's transaction.
        there = self.on(connection, "schema", "ledger") == [(True,)]
        if not there or self.on(connection, "schema", "which_project") != [(self.address.project,)]:
            raise Invalid(
                f"conn= is a connection to another database than {self.address.where}",
                hint="connect to the database that the yard is in",
            )
        return twin

    def run(
        self,
        file: str,
        name: str,
        values: dict[str, Any] | None = None,
        recover: Callable[[Connection[Any]], Rows | None] | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """The rows that a named statement gives in this project; an urgent one queues behind no other."""
        statement = queries.load(file)[name]
        return self.pool.run(statement, {"project": self.project, **(values or {})}, recover, urgent=urgent)

    def on(self, connection: Connection[Any], file: str, name: str, values: dict[str, Any] | None = None) -> Rows:
        """The same on a connection that is in a transaction."""
        found: Rows = driver.rows(connection, queries.load(file)[name], {"project": self.project, **(values or {})})
        return found

    # Names are looked for within one segment's range of an index. A plan that a connection has kept since the tables were
    # empty would read all of them instead: these two statements are planned each time.

    def named(self, pattern: str) -> str:
        """The id of the one task that fits this pattern; a whole id is taken as it is, there or not."""
        if ids.is_id(pattern):
            return pattern
        return only(pattern, [row[1] for row in self._planned("add", "named", patterns([pattern]))])

    def alike(self, wanted: Sequence[str]) -> Iterator[str]:
        """The ids in these ids' segments that end like one of them."""
        segments, ends = {id[: ids.SEGMENT] for id in wanted}, {id[-ids.SHORT :] for id in wanted}
        values = {"segments": sorted(segments), "ends": sorted(ends), "length": ids.SHORT}
        return (row[0] for row in self._planned("read", "alike", values))

    def _planned(self, file: str, name: str, values: dict[str, Any]) -> Rows:
        return self.pool.run(queries.load(file)[name], {"project": self.project, **values}, prepare=False)


def place(id: str) -> dict[str, Any]:
    """Where to look for the task of a whole id."""
    return {"id": id, "age": ids.age_key(id)}


def patterns(wanted: Sequence[str]) -> dict[str, Any]:
    """These patterns as the statement that looks for them is given them."""
    begins, ends = zip(*map(ids.ends, wanted), strict=True)
    return {"begins": list(begins), "ends": list(ends)}


def only(pattern: str, found: list[str]) -> str:
    """The one task of these; or that there is none, or more than one."""
    if not found:
        raise task_names.unknown(pattern)
    if len(found) > 1:
        raise task_names.ambiguous(pattern, found)
    return found[0]
