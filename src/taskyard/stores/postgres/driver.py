"""psycopg, imported once it is needed (0.15 s), and what its errors mean to users."""

from __future__ import annotations

import select
import time

from taskyard.core import ids
from taskyard.core.errors import Invalid, TaskyardError, Unavailable
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
FIRST_TIMEOUT = 10  # seconds to connect to a server of which nothing is known yet
CONNECT_TIMEOUT = 4  # the same for one that was there: it is tried again, and must not be missed when it is back
# Where the network is cut without a word, the kernel gives a connection up after a few unanswered questions (seconds), and after as
# long with something on its way (milliseconds). Its own limits are hours.
_KEEPING = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
_SAID_BEFORE = "token_pkey"
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing was done, and once more is all it needs


class Lost(Exception):
    """The connection broke: what was just said may have been done or not, or be done yet by the server's process `pid`, if known."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


def connect(address: Address, conninfo: str | None = None, *, again: bool = False) -> WatchedConnection:
    """A new connection, on which each statement is a transaction of its own unless told otherwise."""
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
    usual: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT, "application_name": "taskyard", **_KEEPING}
    options = {key: usual[key] for key in usual if key not in given}
    options["client_encoding"] = (
        ENCODING  # whatever the URL or the environment says: a task's text may have any character
    )
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
    if encoding not in (ENCODING, None):  # some poolers do not tell
        opened.close()
        raise Unavailable(
            f"the database at {address.where} keeps text as {encoding}, which has no place for many characters",
            hint=f"name a database with the encoding {ENCODING} (CREATE DATABASE ... ENCODING '{ENCODING}' TEMPLATE template0)",
        )
    opened.again = (target, options)
    opened.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    pooler = address.pooler if conninfo is None else None
    try:
        if pooler == "transaction" or not _settle(opened, pooler == "session", _patience(given, again)):
            opened.pooled = True
            opened.prepare_threshold = None  # the next transaction may run on another connection, which knows no names
    except psycopg.Error as error:
        opened.close()
        raise unreachable(address, error) from None
    return opened


def _patience(given: dict[str, Any], again: bool) -> float:
    """Seconds in which a new connection has to answer: a pooler may log in whom it has no connection for."""
    said = int(given.get("connect_timeout") or 0)
    return float(said if said > 0 else CONNECT_TIMEOUT if again else FIRST_TIMEOUT)


def _settle(opened: WatchedConnection, is_session: bool, patience: float) -> bool:
    """Set what statements mean, if the connection is all its own; which server process it has, if libpq knows that one.

    A pooler tells libpq a number that is no process. One that pools transactions would give the settings to other applications:
    so what is not known to pool sessions is taken for one of those, before anything is set.
    """
    told = opened.info.backend_pid
    statement = queries.load("connect")["settle"].format(pid=told, always=is_session)
    [[is_told, settled]] = asked(opened, statement, patience)
    if is_told == "t":
        opened.pid = told
    return settled == "t"


def say(connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool | None = None) -> Any:
    """The cursor of a statement, with rows as tuples whatever the connection's owner likes."""
    cursor = connection.cursor(row_factory=module().rows.tuple_row)
    return cursor.execute(statement.encode(), values, prepare=prepare)


def rows(connection: Connection[Any], statement: str, values: dict[str, Any], prepare: bool | None = None) -> Any:
    """All rows of a statement; none of one that gives none."""
    cursor = say(connection, statement, values, prepare)
    # Not `description`, which makes an object for every column: a tenth of what a claim costs here.
    return cursor.fetchall() if cursor.pgresult.nfields else []


def is_traceable(connection: Connection[Any]) -> bool:
    """Whether a statement that is lost on it can be ended before it is said again; on a caller's own nothing is said again."""
    return getattr(connection, "pid", 0) is not None


def new_token() -> str:
    """A word by which the server knows a statement that was said before."""
    return ids.base32(ids.chance(100), 20)


def was_said(error: Any) -> bool:
    """Whether the server refuses a statement because one with the same token was made."""
    return bool(error.diag.constraint_name == _SAID_BEFORE)


def array(items: Iterable[object]) -> str:
    """A list as PostgreSQL writes it; the driver's own way costs as much as sending the statement."""
    return "{" + ",".join(["NULL" if item is None else _quoted(str(item)) for item in items]) + "}"


def words(items: Iterable[object]) -> str:
    """The same of what is letters and digits alone."""
    return "{" + ",".join(map(str, items)) + "}"


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def asked(connection: Connection[Any], message: str, patience: float) -> list[list[str | None]]:
    """The last row, as text, of each statement in a message that gives one; an error of the driver if that takes too long."""
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
        sockets = [wire.socket]
        if not any(select.select(sockets, sockets if unsent else [], [], max(0.0, end - time.monotonic()))[:2]):
            raise psycopg.OperationalError(f"no answer in {patience:g} s")
        wire.consume_input()


def module() -> Any:
    """The driver, or how to get it."""
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
    """What an error of the driver is to be told as; None if saying it once more is all it needs."""
    state = getattr(error, "sqlstate", None) or ""
    told: Exception | None = error
    if state in _AGAIN:
        told = None
    elif state.startswith(("57P", "08")) or connection.closed or connection.broken:
        told = Lost(first_line(error), getattr(connection, "pid", None))
    elif state == "25006":
        connection.close()
        hint = "it is a standby, or read-only: name the primary, or wait until it is one; or this role's default_transaction_read_only is on"
        told = _refused(address, error, hint)
    elif state in ("3F000", "42P01", "42883"):
        told = missing(address)
    elif state in ("42P07", "42723", "42703"):
        hint = "the schema taskyard there is somebody else's, or was changed by hand: name another database; nothing was changed in this one"
        told = _refused(address, error, hint)
    elif state == "42501":
        told = _refused(address, error, "have the database's owner grant this role what docs/postgres.md names")
    elif state[:2] in ("22", "25", "53", "55", "57", "58", "XX"):
        told = _refused(address, error, "try again; the server's log tells more")
    return told


def refusal(error: Exception, connection: Connection[Any], address: Address) -> Exception:
    """The same to whoever says a thing once, and does not try again by itself."""
    told = meaning(error, connection, address)
    if told is None or isinstance(told, Lost):
        return Unavailable(
            f"PostgreSQL at {address.where} broke off: {first_line(error)}",
            hint="see that the server runs, and say the same once more",
        )
    return told


def unreachable(address: Address, error: Exception) -> Unavailable:
    """There is no server, or none that answers."""
    return Unavailable(
        f"PostgreSQL at {address.where} cannot be reached: {first_line(error)}",
        hint="check the host, the database, the role and its password, that the server runs, and that a pooler there has a connection free;"
        " then try again",
    )


def missing(address: Address) -> TaskyardError:
    """There is a server, and no such yard in it."""
    return Unavailable(
        f"there is no yard {address.project!r} in {address.where}",
        hint="check the URL, its project= and whether that was given to this role, or make one with: taskyard init URL",
    )


def _refused(address: Address, error: Exception, hint: str) -> Unavailable:
    return Unavailable(f"PostgreSQL at {address.where} refuses: {first_line(error)}", hint=hint)


def first_line(error: Exception) -> str:
    """What an error says, without the details that the server adds."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
