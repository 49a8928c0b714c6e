"""psycopg, imported when it is first needed (0.15 s), and the meaning of its errors."""

from __future__ import annotations

import select
import time

from taskyard.core import ids
from taskyard.core.errors import Away, Invalid, TaskyardError, Unavailable
from taskyard.stores.postgres import queries
from taskyard.stores.postgres.address import HINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.watched_connection import WatchedConnection

OLDEST = 140000
ENCODING = "UTF8"
FIRST_TIMEOUT = 10  # seconds to connect to a server for the first time
# the same for a server that was there before: it is tried again soon, and its return must not be missed
CONNECT_TIMEOUT = 4
# If packets are dropped silently, the kernel gives up after a few unanswered keepalives (seconds), or after the same
# time with unacknowledged data (milliseconds). The kernel's default limits are hours.
_KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
_REPEATED_CONSTRAINT = "token_pkey"
# What a server says that is there and does not let this role in; libpq keeps its code to itself. In another language the
# server counts as away: what is spooled then waits until the URL is put right.
_TURNED_AWAY = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "not permitted",
    "no password supplied",
)
_RETRIED_STATES = ("40001", "40P01")  # serialization failure, deadlock: nothing was done, and a retry is enough


class Lost(Exception):
    """The connection broke: the last statement was executed, or was not, or the server's process `pid` will yet execute it."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


def connect(address: Address, conninfo: str | None = None, *, again: bool = False) -> WatchedConnection:
    """Open a connection in autocommit mode, with Taskyard's settings if no pooler shares it."""
    psycopg = module()
    from taskyard.stores.postgres import watched_connection

    target = conninfo or address.conninfo
    try:
        given = psycopg.conninfo.conninfo_to_dict(target)
    except psycopg.ProgrammingError:
        raise Invalid(
            f"{address.where} is no URL that PostgreSQL's library understands",
            hint=f"{HINT}; other words after ? are libpq's parameters",
        ) from None
    usual: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT, "application_name": "taskyard", **_KEEPALIVES}
    options = {key: usual[key] for key in usual if key not in given}
    # whatever the URL or the environment names: a task's text may have any character
    options["client_encoding"] = ENCODING
    first = {} if again or "connect_timeout" in given else {"connect_timeout": FIRST_TIMEOUT}
    try:
        opened = watched_connection.WatchedConnection.connect(target, autocommit=True, **{**options, **first})
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from None
    except psycopg.ProgrammingError as error:
        raise Invalid(f"the URL of {address.where} cannot be used: {first_line(error)}", hint=HINT) from None
    if opened.info.server_version < OLDEST:
        version = opened.info.server_version // 10000
        opened.close()
        raise Unavailable(f"PostgreSQL at {address.where} is version {version}", hint="Taskyard needs 14 or newer")
    encoding = opened.info.parameter_status("server_encoding")
    if encoding not in (ENCODING, None):  # some poolers do not report it
        opened.close()
        raise Unavailable(
            f"the database at {address.where} keeps text as {encoding}, which has no place for many characters",
            hint=f"name a database with the encoding {ENCODING} (CREATE DATABASE ... ENCODING '{ENCODING}' TEMPLATE template0)",
        )
    opened.reconnect = (target, options)
    opened.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    pooler = address.pooler if conninfo is None else None
    try:
        if pooler == "transaction" or not _configure(opened, pooler == "session", _patience(given, again)):
            opened.pooled = True
            # the next transaction may run on another server connection, which has no prepared statements
            opened.prepare_threshold = None
    except psycopg.Error as error:
        opened.close()
        raise unreachable(address, error) from None
    return opened


def _patience(given: dict[str, Any], again: bool) -> float:
    """Return the seconds in which a new connection must answer: a pooler may accept a client that it cannot serve."""
    given_timeout = int(given.get("connect_timeout") or 0)
    return float(given_timeout if given_timeout > 0 else CONNECT_TIMEOUT if again else FIRST_TIMEOUT)


def _configure(opened: WatchedConnection, is_session: bool, patience: float) -> bool:
    """Set the session's settings unless a pooler shares it; set `opened.pid` if libpq knows the server process.

    A pooler reports a number to libpq that is no process. One that pools transactions would pass the settings on to
    other applications. So every pooler that is not known to pool sessions is taken for such a one, before anything is
    set.
    """
    reported = opened.info.backend_pid
    statement = queries.load("connect")["configure"].format(pid=reported, always=is_session)
    [[is_known, settled]] = exchange(opened, statement, patience)
    if is_known == "t":
        opened.pid = reported
    return settled == "t"


def execute(connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool | None = None) -> Any:
    """Execute a statement and return its cursor, with rows as tuples whatever the connection's row factory is."""
    cursor = connection.cursor(row_factory=module().rows.tuple_row)
    return cursor.execute(statement.encode(), values, prepare=prepare)


def rows(connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool | None = None) -> Any:
    """Return all rows of a statement; an empty list if it returns none."""
    cursor = execute(connection, statement, values, prepare)
    # Not `description`, which makes an object for every column: a tenth of what a claim costs here.
    return cursor.fetchall() if cursor.pgresult.nfields else []


def is_traceable(connection: Connection[Any]) -> bool:
    """Whether a lost statement can be cancelled before it is retried; a caller's own connection never retries."""
    return getattr(connection, "pid", 0) is not None


def new_token() -> str:
    """Draw a token by which the server recognises a retried statement."""
    return ids.base32(ids.chance(100), 20)


def is_repeated(error: Any) -> bool:
    """Whether the server refuses a statement because one with the same token was executed before."""
    return bool(error.diag.constraint_name == _REPEATED_CONSTRAINT)


def array(items: Iterable[object]) -> str:
    """Write a list as a PostgreSQL array; the driver's own way costs as much as sending the statement."""
    return "{" + ",".join(["NULL" if item is None else _quoted(str(item)) for item in items]) + "}"


def words(items: Iterable[object]) -> str:
    """The same for items that consist of letters and digits."""
    return "{" + ",".join(map(str, items)) + "}"


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def exchange(connection: Connection[Any], message: str, patience: float) -> list[list[str | None]]:
    """Send a message of several statements and return the last row of each, as text.

    Raises the driver's `OperationalError` after `patience` seconds.
    """
    psycopg = module()
    wire, end = connection.pgconn, time.monotonic() + patience
    wire.send_query(message.encode())
    found: list[list[str | None]] = []
    while True:
        unsent = wire.flush()
        if not unsent and not wire.is_busy():
            result = wire.get_result()
            if result is None:
                return found
            if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
            if result.ntuples:
                values = [result.get_value(result.ntuples - 1, column) for column in range(result.nfields)]
                found.append([None if value is None else value.decode() for value in values])
            continue
        if not is_ready(wire.socket, end - time.monotonic(), writes=bool(unsent)):
            raise psycopg.OperationalError(f"no answer in {patience:g} s")
        wire.consume_input()


def is_ready(descriptor: int, seconds: float, *, writes: bool = False) -> bool:
    """Wait until this can be read, or also written; return whether it can. `select.select` takes no descriptor over 1023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | (select.POLLOUT if writes else 0))
    return bool(poll.poll(max(0.0, seconds) * 1000))


def module() -> Any:
    """Import the driver; raise `Unavailable` with the way to install it."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise Unavailable(
            f"a yard in PostgreSQL needs the driver psycopg: {error}",
            hint="install it with: pip install 'taskyard[postgres]'",
        ) from None
    return psycopg


def meaning(error: Exception, connection: Connection[Any], address: Address) -> Exception | None:
    """Translate an error of the driver; None if a retry is enough."""
    state = getattr(error, "sqlstate", None) or ""
    meant: Exception | None = error
    if state in _RETRIED_STATES:
        meant = None
    elif state.startswith(("57P", "08")) or connection.closed or connection.broken:
        meant = Lost(first_line(error), getattr(connection, "pid", None))
    elif state == "25006":
        connection.close()
        hint = "it is a standby, or read-only: name the primary, or wait until it is one; or this role's default_transaction_read_only is on"
        meant = _refused(address, error, hint)
    elif state in ("3F000", "42P01", "42883"):
        meant = missing(address)
    elif state in ("42P07", "42723", "42703"):
        hint = "the schema taskyard there is somebody else's, or was changed by hand: name another database; nothing was changed in this one"
        meant = _refused(address, error, hint)
    elif state == "42501":
        meant = _refused(address, error, "have the database's owner grant this role what docs/postgres.md names")
    elif state[:2] in ("22", "25", "53", "55", "57", "58", "XX"):
        meant = _refused(address, error, "try again; the server's log tells more")
    return meant


def refusal(error: Exception, connection: Connection[Any], address: Address) -> Exception:
    """Translate an error for a caller that does not retry by itself."""
    meant = meaning(error, connection, address)
    if meant is None or isinstance(meant, Lost):
        return Unavailable(
            f"PostgreSQL at {address.where} broke off: {first_line(error)}",
            hint="see that the server runs, and say the same once more",
        )
    return meant


def unreachable(address: Address, error: Exception) -> Unavailable:
    """The error for a server that does not answer, or that does not let this role in."""
    sort = Unavailable if any(words in str(error) for words in _TURNED_AWAY) else Away
    return sort(
        f"PostgreSQL at {address.where} cannot be reached: {first_line(error)}",
        hint="check the host, the database, the role and its password, that the server runs, and that a pooler there has a connection free;"
        " then try again",
    )


def missing(address: Address) -> TaskyardError:
    """The error for a server that has no such yard."""
    return Unavailable(
        f"there is no yard {address.project!r} in {address.where}",
        hint="check the URL, its project= and whether that was given to this role, or make one with: taskyard init URL",
    )


def _refused(address: Address, error: Exception, hint: str) -> Unavailable:
    return Unavailable(f"PostgreSQL at {address.where} refuses: {first_line(error)}", hint=hint)


def first_line(error: Exception) -> str:
    """Return an error's message without the details that the server adds."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
