"""What the parts of a store share: its connections, its project, its settings."""

from __future__ import annotations

import time
from copy import copy

from taskyard.core import backlog, ids, json_codec, settings, task_names
from taskyard.core.errors import Invalid
from taskyard.core.retry import Policy
from taskyard.stores.postgres import driver, queries, schema
from taskyard.stores.postgres.pool import Bound, Pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.pool import Rows


class Context:
    """One open project."""

    def __init__(self, address: Address, durability: str | None, *, brief: bool = False) -> None:
        self.address = address
        self.brief = brief
        """Whether this process lives for one command, and does without what takes long to load."""
        pool = Pool(address, durability, brief=brief)
        self.pool: Pool | Bound = pool
        try:
            found: schema.ProjectRow = pool.attempt(lambda connection: schema.read_project(connection, address))
            self.server_ahead = found.now - milliseconds()
            """Milliseconds by which the server's time was ahead of this process's monotonic clock at the opening, or less."""
            settings.refuse_unfinished(json_codec.read(found.settings).get("copy_of"), address.label)
        except BaseException:
            pool.close()
            raise
        self.project = found.project
        pool.on_return = self._extend_leases
        self.epoch = found.epoch
        self.now = found.now
        """The newest database time that this process has seen (milliseconds since 1970)."""
        if found.isolation != "read committed":
            pool.isolation = found.isolation
            pool.drain()
        self.on_unsent: Callable[[], object] = lambda: None
        """Called after a commit that moved tasks which the verb does not name."""
        self.is_within = False
        """Whether statements are part of the caller's own transaction."""
        self.policy = Policy()
        self.heed_settings(found.settings)
        self.heed_team(self.run("teams", "heeded")[0][0] if found.has_team else None)

    def heed_settings(self, written: str) -> None:
        """Work by these settings."""
        self.settings_text = written
        given = settings.parse(json_codec.read(written), f"the settings of project {self.address.project!r}")
        self.policy.become(given.policy)
        self.checks, self.retention = given.checks, given.retention
        self.bounds = backlog.bounds(given.max_todo, given.kinds)

    def heed_team(self, written: str | None) -> None:
        """Work by these quotas of the project's team; most projects have none."""
        quotas = {} if written is None else json_codec.read(written)
        self.team_todo: int | None = quotas.get("max_todo")
        """How many tasks may wait for a worker in all projects of the team; None without such a quota."""
        self.shares_running = quotas.get("max_running") is not None
        """Whether a claim that ends here makes room in the other projects of the team."""

    def _extend_leases(self, connection: Statements, away: float) -> None:
        """Extend the leases: for `away` seconds no process could reach the database to renew them."""
        self._record_outage(connection, "returned", {"away": round(away * 1000)})

    def took_over(self) -> None:
        """Extend the leases: the server was a standby until now, so no process could reach a primary."""
        self.pool.attempt(lambda connection: self._record_outage(connection, "took_over", {}))

    def _record_outage(self, connection: Statements, outage: str, values: dict[str, Any]) -> None:
        try:
            self.on(connection, "outages", outage, values)
        except driver.errors() as error:
            if error.sqlstate != driver.NO_RIGHT:
                raise
            # the role has fewer rights than a project gives: it works, and leases end at their time

    def within(self, connection: Any) -> Context:
        """Return the same project on the caller's connection."""
        twin = copy(self)
        twin.is_within = True
        twin.on_unsent = lambda: None  # not committed yet
        twin.pool = bound = Bound(self.address, connection, self.project)
        # Two statements: one that names a missing table would end the caller's transaction.
        there = self.on(bound.connection, "schema", "has_migrations") == [(True,)]
        if not there or self.on(bound.connection, "schema", "which_project") != [(self.address.project,)]:
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
        recover: Callable[[Statements], Rows | None] | None = None,
        *,
        urgent: bool = False,
    ) -> Rows:
        """Run a named statement in this project and return its rows; an urgent one does not queue behind others."""
        statement = queries.load(file)[name]
        return self.pool.run(statement, {"project": self.project, **(values or {})}, recover, urgent=urgent)

    def on(self, connection: Statements, file: str, name: str, values: dict[str, Any] | None = None) -> Rows:
        """The same on a connection that is in a transaction."""
        found: Rows = connection.rows(queries.load(file)[name], {"project": self.project, **(values or {})})
        return found

    # Names are looked up within one segment's range of an index. A prepared plan from the time when the tables were
    # empty would read whole tables instead: these two statements are planned each time.

    def named(self, pattern: str) -> str:
        """Return the id of the one task that matches this pattern; a whole id is returned unchecked."""
        if ids.is_id(pattern):
            return pattern
        return only(pattern, [row[1] for row in self._planned("add", "named", patterns([pattern]))])

    def alike(self, wanted: Sequence[str]) -> Iterator[str]:
        """Return the ids in the segments of `wanted` that have the same end as one of them."""
        segments, ends = {id[: ids.SEGMENT] for id in wanted}, {id[-ids.SHORT :] for id in wanted}
        values = {"segments": sorted(segments), "ends": sorted(ends), "length": ids.SHORT}
        return (row[0] for row in self._planned("read", "alike", values))

    def _planned(self, file: str, name: str, values: dict[str, Any]) -> Rows:
        return self.pool.run(queries.load(file)[name], {"project": self.project, **values}, prepare=False)


def milliseconds() -> int:
    """Return the time of this process's monotonic clock, in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def place(id: str) -> dict[str, Any]:
    """Return the values that locate the task of a whole id in a statement."""
    return {"id": id, "age": ids.age_key(id)}


def patterns(wanted: Sequence[str]) -> dict[str, Any]:
    """Return these patterns as values for the statement `named`."""
    begins, ends = zip(*map(ids.ends, wanted), strict=True)
    return {"begins": list(begins), "ends": list(ends)}


def only(pattern: str, found: list[str]) -> str:
    """Return the only id in `found`; raise `NotFound` if there is none, `Conflict` if there are several."""
    if not found:
        raise task_names.unknown(pattern)
    if len(found) > 1:
        raise task_names.ambiguous(pattern, found)
    return found[0]
