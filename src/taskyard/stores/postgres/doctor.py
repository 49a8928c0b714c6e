"""Whether a database is a safe place for a yard: checks the server's release, settings, role and clock."""

from __future__ import annotations

import time

from taskyard.core.diagnosis import Diagnosis, Finding, green, refuse, warn
from taskyard.core.errors import TaskyardError
from taskyard.stores.postgres import driver, schema
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.postgres.watched_connection import WatchedConnection

_SKEW = 5.0  # seconds between two clocks that do no harm


def examine(url: str) -> Diagnosis:
    """Return all findings; raise `Unavailable` if the server cannot be reached."""
    address = Address(url)
    with driver.connect(address) as connection:
        checks = (_release, _durability, _role, _rights, _clock)
        try:
            findings = [_pooler(connection, address), *(check(connection) for check in checks)]
            findings.append(_project(connection, address))
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None
    if address.valkey is not None:
        from taskyard.stores.postgres.valkey import doctor

        findings.append(doctor.examine(address))
    return Diagnosis(address.label, findings)


def _value(connection: WatchedConnection, expression: str) -> Any:
    """Return the value of one SQL expression."""
    row = connection.execute(f"SELECT {expression}".encode()).fetchone()
    assert row is not None  # an expression always returns a row
    return row[0]


def _pooler(connection: WatchedConnection, address: Address) -> Finding:
    if connection.pid is not None:
        return green("pooler", "no pooler stands before the server")
    if address.pooler is not None:
        return green("pooler", f"a pooler stands before the server, said to be one of {address.pooler}s")
    reason = (
        "a pooler stands before the server, and is taken for one of transactions: who waits has to look, now and then"
    )
    return warn(
        "pooler", reason, "say which in the URL: pooler=transaction (perhaps with listen=URL), or pooler=session"
    )


def _rights(connection: WatchedConnection) -> Finding:
    if not _value(connection, "has_database_privilege(current_database(), 'TEMP')"):
        reason = "this role cannot make temporary tables, which adds of more than 50 tasks at once, prune and copy need"
        return warn("rights", reason, "have the database's owner say GRANT TEMPORARY ON DATABASE ... TO this role")
    return green("rights", "this role can make the temporary tables that adding many needs")


def _release(connection: WatchedConnection) -> Finding:
    major = connection.info.server_version // 10_000
    return green("release", f"PostgreSQL {major}", release=major)  # `driver.connect` refuses one that is too old


def _durability(connection: WatchedConnection) -> Finding:
    settings = {
        name: str(_value(connection, f"current_setting('{name}')"))
        for name in ("fsync", "full_page_writes", "synchronous_commit")
    }
    if settings["fsync"] == "off" or settings["full_page_writes"] == "off":
        reason = (
            "the server may lose or tear what was committed, when the power goes (fsync or full_page_writes is off)"
        )
        return warn("durability", reason, "turn both on, but for tests", **settings)
    if settings["synchronous_commit"] == "off":
        reason = "the last moments before a crash of the server may be lost (synchronous_commit is off)"
        return warn("durability", reason, "turn it on for this role or database", **settings)
    return green("durability", "what is committed survives a power cut", **settings)


def _role(connection: WatchedConnection) -> Finding:
    if _value(connection, "bool_or(rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname = current_user"):
        reason = "this role can reach every project in the database"
        return warn("role", reason, "give workers a role of their own, as docs/postgres.md tells")
    return green("role", "this role is bound by the rules of the database")


def _clock(connection: WatchedConnection) -> Finding:
    before = time.time()
    database = float(_value(connection, "extract(epoch FROM clock_timestamp())"))
    after = time.time()
    skew = database - (before + after) / 2
    measured = {"skew": round(skew, 3), "round_trip": round(after - before, 4)}
    if abs(skew) > _SKEW + (after - before):
        reason = f"the database's clock differs from this machine's by {skew:+.1f} s; leases go by the database's"
        return warn("clock", reason, "set both by NTP", **measured)
    return green("clock", f"the clocks agree to {abs(skew):.3f} s", **measured)


def _project(connection: WatchedConnection, address: Address) -> Finding:
    try:
        schema.read_project(connection, address)
    except driver.module().errors.InsufficientPrivilege as error:
        meant = driver.meaning(error, connection, address)
        assert isinstance(meant, TaskyardError)  # a refusal
        return refuse("project", meant.message, meant.hint or "")
    except TaskyardError as error:
        connection.rollback()
        return warn("project", error.message, error.hint or "make it with taskyard init")
    return green("project", f"the project {address.project} is there, with a schema that this version knows")
