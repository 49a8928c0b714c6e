"""Opens connections by one of two drivers, and says what their errors mean.

psycopg takes 0.1 s to load, and is imported when it is first needed. A process of one command does without it, if it can
(`libpq`).
"""

from __future__ import annotations

import select

from taskyard.core import ids
from taskyard.core.errors import Away, Invalid, TaskyardError, Unavailable
from taskyard.stores.postgres import queries
from taskyard.stores.postgres.address import HINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.connection import Connection, Statements
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
UNIQUE_VIOLATION, NO_RIGHT, UNDEFINED_TABLE, UNDEFINED_SCHEMA = "23505", "42501", "42P01", "3F000"
_RETRIED_STATES = ("40001", "40P01")  # serialization failure, deadlock: nothing was done, and a retry is enough


class Lost(Exception):
    """The connection broke: the last statement was executed, or was not, or the server's process `pid` will yet execute it."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


def opener(*, brief: bool) -> Callable[..., Connection]:
    """Return what opens connections: of a process that lives for one command, or of one that lasts."""
    return connect_briefly if brief else connect


def connect(address: Address, conninfo: str | None = None, *, again: bool = False) -> WatchedConnection:
    """Open a connection by psycopg, in autocommit mode, with Taskyard's settings if no pooler shares it."""
    psycopg = module()
    from taskyard.stores.postgres.watched_connection import WatchedConnection

    target = conninfo or address.conninfo
    try:
        given = psycopg.conninfo.conninfo_to_dict(target)
    except psycopg.ProgrammingError:
        raise _no_url(address) from None
    options, first = _options(given, again)
    try:
        opened = WatchedConnection.connect(target, autocommit=True, **{**options, **first})
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from None
    except psycopg.ProgrammingError as error:
        raise Invalid(f"the URL of {address.where} cannot be used: {first_line(error)}", hint=HINT) from None
    opened.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    opened.reconnect = (target, options)
    _prepare(opened, address, None if conninfo else address.pooler, _patience(given, again))
    return opened


def connect_briefly(address: Address, conninfo: str | None = None, *, again: bool = False) -> Connection:
    """Open the same connection by libpq alone; by psycopg where that cannot be done."""
    from taskyard.stores.postgres.libpq import library

    loaded = library.load()
    if loaded is None:
        return connect(address, conninfo, again=again)
    from taskyard.stores.postgres.libpq import connecting
    from taskyard.stores.postgres.libpq.connection import LibpqConnection
    from taskyard.stores.postgres.libpq.errors import Error

    _note_errors(Error)
    target = conninfo or address.conninfo
    try:
        given = connecting.parse(loaded, target)
    except Error:
        raise _no_url(address) from None
    options, first = _options(given, again)
    try:
        opened = LibpqConnection(loaded, target, {**options, **first})
    except connecting.Unsuited:
        return connect(address, conninfo, again=again)
    except Error as error:
        raise unreachable(address, error) from None
    opened.reconnect = (target, options)
    _prepare(opened, address, None if conninfo else address.pooler, _patience(given, again))
    return opened


def _options(given: dict[str, Any], again: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters beside those of the URL, and what differs at the first connection."""
    usual: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT, "application_name": "taskyard", **_KEEPALIVES}
    options = {key: usual[key] for key in usual if key not in given}
    # whatever the URL or the environment names: a task's text may have any character
    options["client_encoding"] = ENCODING
    return options, {} if again or "connect_timeout" in given else {"connect_timeout": FIRST_TIMEOUT}


def _prepare(opened: Connection, address: Address, pooler: str | None, patience: float) -> None:
    """Check the server, and make Taskyard's settings if no pooler shares the connection."""
    if opened.server_version < OLDEST:
        version = opened.server_version // 10000
        opened.close()
        raise Unavailable(f"PostgreSQL at {address.where} is version {version}", hint="Taskyard needs 14 or newer")
    encoding = opened.parameter("server_encoding")
    if encoding not in (ENCODING, None):  # some poolers do not report it
        opened.close()
        raise Unavailable(
            f"the database at {address.where} keeps text as {encoding}, which has no place for many characters",
            hint=f"name a database with the encoding {ENCODING} (CREATE DATABASE ... ENCODING '{ENCODING}' TEMPLATE template0)",
        )
    try:
        if pooler == "transaction" or not _configure(opened, pooler == "session", patience):
            opened.pooled = True
            # the next transaction may run on another server connection, which has no prepared statements
            opened.never_prepare()
    except errors() as error:
        opened.close()
        raise unreachable(address, error) from None


def _no_url(address: Address) -> Invalid:
    return Invalid(
        f"{address.where} is no URL that PostgreSQL's library understands",
        hint=f"{HINT}; other words after ? are libpq's parameters",
    )


def _patience(given: dict[str, Any], again: bool) -> float:
    """Return the seconds in which a new connection must answer: a pooler may accept a client that it cannot serve."""
    given_timeout = int(given.get("connect_timeout") or 0)
    return float(given_timeout if given_timeout > 0 else CONNECT_TIMEOUT if again else FIRST_TIMEOUT)


def _configure(opened: Connection, is_session: bool, patience: float) -> bool:
    """Set the session's settings unless a pooler shares it; set `opened.pid` if libpq knows the server process.

    A pooler reports a number to libpq that is no process. One that pools transactions would pass the settings on to
    other applications. So every pooler that is not known to pool sessions is taken for such a one, before anything is
    set.
    """
    reported = opened.reported_pid
    statement = queries.load("connect")["configure"].format(pid=reported, always=is_session)
    [[is_known, settled]] = opened.exchange(statement, patience)
    if is_known == "t":
        opened.pid = reported
    return settled == "t"


def new_token() -> str:
    """Draw a token by which the server recognises a retried statement."""
    return ids.base32(ids.chance(100), 20)


def is_repeated(error: Any) -> bool:
    """Whether the server refuses a statement because one with the same token was executed before."""
    return bool(error.sqlstate == UNIQUE_VIOLATION and error.diag.constraint_name == _REPEATED_CONSTRAINT)


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
    _note_errors(psycopg.Error)
    return psycopg


def callers(connection: Any) -> Statements:
    """Return the caller's own connection of psycopg with what the verbs use."""
    from taskyard.stores.postgres.psycopg_statements import CallersConnection

    return CallersConnection(connection)


_errors: tuple[Any, ...] = ()


def errors() -> tuple[Any, ...]:
    """Return the errors of the drivers that this process has loaded, for an `except`; each has a `sqlstate`."""
    return _errors


def _note_errors(error: type[Exception]) -> None:
    global _errors  # noqa: PLW0603  a process has each driver once
    if error not in _errors:
        _errors = (*_errors, error)


def meaning(error: Exception, connection: Any, address: Address) -> Exception | None:
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


def refusal(error: Exception, connection: Any, address: Address) -> Exception:
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
