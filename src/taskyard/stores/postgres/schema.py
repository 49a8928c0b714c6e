"""The schema in a database: numbered migrations, each run once, and the projects in it."""

from __future__ import annotations

import os
import time

from taskyard.core import ids
from taskyard.core.errors import Unavailable
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.watched_connection import WatchedConnection

_FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
_OLDEST_CLIENT = "-- min_client: "
CLIENT = 28
"""The schema number that this version was written for."""
_LOCK_PATIENCE = "300ms"  # for one lock: every other client of the table queues behind the attempt
_PATIENCE = 60.0  # seconds until the migration gives up
_CLASHES = 4
_PAUSE = 1.0  # seconds between two attempts, in which other clients go on


class Migration:
    """One numbered step: its file, and the oldest client that can work with the result."""

    __slots__ = ("min_client", "name", "statements", "version")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.version = int(name.partition("_")[0])
        first = text.partition("\n")[0]
        self.min_client = int(first[len(_OLDEST_CLIENT) :]) if first.startswith(_OLDEST_CLIENT) else self.version
        self.statements = text


class ProjectRow:
    """What the database holds about a project."""

    __slots__ = ("epoch", "has_team", "isolation", "now", "project", "settings")

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.project: int = row[0]
        self.settings: str = row[1]
        self.epoch: int = row[2]
        self.now: int = row[3]
        self.isolation: str = row[4]
        self.has_team: bool = row[7]


def known() -> list[Migration]:
    """Return every migration that this version has, in order."""
    found = []
    for name in sorted(os.listdir(_FOLDER)):
        if name.endswith(".sql"):
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                found.append(Migration(name.removesuffix(".sql"), file.read()))
    return found


def read_project(connection: Statements, address: Address) -> ProjectRow:
    """Read the project; raise `Unavailable` if it is missing, or its schema does not fit this version."""
    try:
        [row] = connection.rows(queries.load("schema")["read_project"], {"name": address.project})
    except driver.errors() as error:
        if error.sqlstate not in (driver.UNDEFINED_TABLE, driver.UNDEFINED_SCHEMA):
            raise
        raise driver.missing(address) from None
    version, min_client = row[5], row[6]
    if version is None:
        raise driver.missing(address)
    _check_version(version, min_client, address)
    if row[0] is None:
        raise driver.missing(address)
    return ProjectRow(row)


def _check_version(version: int, min_client: int, address: Address) -> None:
    """Raise `Unavailable` for a schema that this version cannot work with."""
    if version < CLIENT:
        raise Unavailable(
            f"the schema in {address.where} is number {version}, and this version needs {CLIENT}",
            hint="bring it up to date with: taskyard migrate (old clients can go on meanwhile)",
        )
    if min_client > CLIENT:
        raise Unavailable(
            f"the schema in {address.where} is number {version}, and clients must know at least number {min_client}",
            hint=f"this version knows number {CLIENT}: install a newer Taskyard here",
        )


def make(url: str) -> bool:
    """Make the schema, if there is none, and the project in it; return whether the project is new."""
    address = Address(url)
    with driver.connect(address) as connection:
        try:
            if not _applied(connection):
                migrate_on(connection, address)
            applied = _applied(connection)
            _check_version(max(applied), max(applied.values()), address)
            made = _make_project(connection, address)
            read_project(connection, address)
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None
    return made


def _make_project(connection: WatchedConnection, address: Address) -> bool:
    """Return whether the project is new; an existing one needs no right to make projects."""
    statements, values = queries.load("schema"), {"name": address.project, "settings": "{}"}
    if connection.execute(statements["has_project"], values).fetchone() is not None:
        return False
    try:
        return connection.execute(statements["make_project"], values).fetchone() is not None
    except driver.module().errors.InsufficientPrivilege:
        raise Unavailable(
            f"this role has no project {address.project!r} in {address.where}, and cannot make one",
            hint="have the schema's owner make it, and give it to this role: SELECT taskyard.give_project('PROJECT', 'ROLE')",
        ) from None


def migrate(url: str, *, check: bool = False, new_epoch: bool = False) -> dict[str, Any]:
    """Run the pending migrations, or list them with `check`; return the schema's number and their names.

    With `new_epoch`, every handle from before becomes invalid.
    """
    address = Address(url)
    with driver.connect(address) as connection:
        try:
            pending = _pending(connection) if check else migrate_on(connection, address)
            applied = _applied(connection)
            version = max(applied, default=0)
            _check_version(max(version, CLIENT), max(applied.values(), default=0), address)
            if new_epoch and not check:
                with connection.transaction():
                    connection.execute("LOCK TABLE taskyard.task, taskyard.ended IN EXCLUSIVE MODE")
                    connection.execute(queries.load("schema")["new_epoch"])
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None
    summary: dict[str, Any] = {"version": version, "known": CLIENT}
    summary["pending" if check else "applied"] = [one.name for one in pending]
    return {**summary, "new_epoch": True} if new_epoch else summary


def migrate_on(connection: WatchedConnection, address: Address) -> list[Migration]:
    """Run the pending migrations in one transaction, one caller at a time; retry while the tables are busy."""
    errors = driver.module().errors
    end = time.monotonic() + _PATIENCE
    clashes = 0
    while True:
        try:
            with connection.transaction():
                return _run_pending(connection)
        except errors.LockNotAvailable:
            if time.monotonic() > end:
                raise Unavailable(
                    f"the tables in {address.where} are in use, and the migration found no moment for itself in {_PATIENCE:g} s",
                    hint="nothing was changed; try again, or look in pg_stat_activity for a transaction that is left open",
                ) from None
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateFunction):
            clashes += 1  # another client makes the same schema, with a version that uses another lock
            if clashes == _CLASHES:
                raise
        time.sleep(_PAUSE * (0.5 + ids.chance(8) / 256))


def _run_pending(connection: WatchedConnection) -> list[Migration]:
    statements = queries.load("schema")
    connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_PATIENCE}'".encode())
    connection.execute(statements["lock"])
    if not _applied(connection):
        connection.execute(statements["make_migrations"])
    pending = _pending(connection)
    for one in pending:
        connection.execute(one.statements.encode())
        values = {"version": one.version, "name": one.name, "min_client": one.min_client}
        connection.execute(statements["applied_one"], values)
    return pending


def _pending(connection: WatchedConnection) -> list[Migration]:
    applied = _applied(connection)
    return [one for one in known() if one.version not in applied]


def _applied(connection: WatchedConnection) -> dict[int, int]:
    """Return the migrations that were run, each with the oldest client that can work with the result."""
    statements = queries.load("schema")
    row = connection.execute(statements["has_migrations"]).fetchone()
    if row is None or not row[0]:
        return {}
    return dict(connection.execute(statements["applied"]).fetchall())
