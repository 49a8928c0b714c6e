"""What the parts of a store stand on: its connections, its project, its settings."""

from __future__ import annotations

import json
from copy import copy

from taskyard import ids, settings
from taskyard.errors import Ambiguous, Invalid, NotFound
from taskyard.stores.postgres import driver, queries, schema
from taskyard.stores.postgres.pool import Bound, Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.pool import Rows


class Ground:
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

    def within(self, connection: Any) -> Ground:
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
    ) -> Rows:
        """The rows that a named statement gives in this project."""
        return self.pool.run(queries.load(file)[name], {"project": self.project, **(values or {})}, recover)

    def on(self, connection: Connection[Any], file: str, name: str, values: dict[str, Any] | None = None) -> Rows:
        """The same on a connection that is in a transaction."""
        found: Rows = driver.rows(connection, queries.load(file)[name], {"project": self.project, **(values or {})})
        return found

    def named(self, id: str) -> str:
        """The whole id of the one task that begins so; a whole id is taken as it is, there or not."""
        if ids.is_id(id):
            return id
        return only(id, [row[1] for row in self.run("adding", "named", {"prefixes": [id]})])


def place(id: str) -> dict[str, Any]:
    """Where to look for the task of a whole id."""
    return {"id": id, "age": ids.age_key(id)}


def only(prefix: str, found: list[str]) -> str:
    """The one task of these; or that there is none, or more than one."""
    if not found:
        raise unknown(prefix)
    if len(found) > 1:
        shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise Ambiguous(f"more than one task starts with {prefix}: {shown}", hint="give more of the id")
    return found[0]


def unknown(id: str) -> NotFound:
    """No task has this id."""
    return NotFound(f"no task has the id {id}", hint="'taskyard list' shows the ids that there are")
