"""The seam between the store and its drivers: what a connection can do, whichever of the two has opened it.

`watched_connection` has the one on psycopg, for processes that last; `libpq` has the one for processes of one command.
Nothing here is loaded at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any


class Statements(Protocol):
    """What the verbs of the store use; the caller's own connection can do this too."""

    @property
    def is_traceable(self) -> bool:
        """Whether a lost statement can be cancelled before it is retried; a caller's own connection never retries."""

    def rows(self, statement: str, values: Mapping[str, Any], prepare: bool | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows as tuples; an empty list if it returns none."""

    def copy(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Send these rows by a COPY statement."""

    def transaction(self) -> AbstractContextManager[object]:
        """A block of statements that are committed together, or none of them; within another, a savepoint."""


class Connection(Statements, Protocol):
    """A connection of the store's own, in autocommit mode; one thread uses it at a time."""

    pooled: bool
    """Whether the next transaction may run on another server connection, which has other settings."""
    pid: int | None
    """The server process of this connection; None behind a pooler, where it is not known."""
    reconnect: tuple[str, dict[str, Any]] | None
    """How a second connection is opened to check on this one; None while this one is being opened."""

    @property
    def closed(self) -> bool:
        """Whether this connection can be used no more."""

    @property
    def broken(self) -> bool:
        """Whether it was the other side, or the network, that closed it."""

    @property
    def is_idle(self) -> bool:
        """Whether no statement and no transaction is under way."""

    @property
    def server(self) -> tuple[str, int]:
        """The host and the port of the server that answers."""

    @property
    def server_version(self) -> int:
        """The release of the server, such as 180001."""

    @property
    def reported_pid(self) -> int:
        """The number that the server, or a pooler, gives for its process."""

    def parameter(self, name: str) -> str | None:
        """Return a setting that the server reports by itself; None if it does not."""

    def exchange(self, message: str, patience: float) -> list[list[str | None]]:
        """Send a message of several statements and return the last row of each, as text.

        Raises the driver's error after `patience` seconds.
        """

    def notified(self) -> list[str]:
        """Return the channels of the notifications that have arrived."""

    def another(self) -> Connection:
        """Open a second connection in the same way, to check on this one."""

    def never_prepare(self) -> None:
        """Prepare no statement from now on."""

    def fileno(self) -> int:
        """Return the socket; raises the driver's error if there is none."""

    def cancel(self) -> None:
        """Ask the server to cancel the statement that it executes."""

    def close(self) -> None:
        """Close the connection."""
