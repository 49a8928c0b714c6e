"""A block of statements that are committed together."""

from __future__ import annotations

from taskyard.stores.postgres.libpq.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from taskyard.stores.postgres.libpq.connection import LibpqConnection


class Transaction:
    """A transaction, or a savepoint within another; an error rolls it back."""

    __slots__ = ("_connection", "_savepoint")

    def __init__(self, connection: LibpqConnection) -> None:
        self._connection = connection
        self._savepoint = f"taskyard_{connection.depth}" if connection.depth else None

    def __enter__(self) -> None:
        save = self._savepoint
        self._connection.execute(f"SAVEPOINT {save}" if save else "BEGIN ISOLATION LEVEL READ COMMITTED")
        self._connection.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, save = self._connection, self._savepoint
        connection.depth -= 1
        if error is None:
            connection.execute(f"RELEASE {save}" if save else "COMMIT")
            return
        if connection.closed:
            return
        try:
            connection.execute(f"ROLLBACK TO {save}; RELEASE {save}" if save else "ROLLBACK")
        except Error:
            return  # the error that leads here says more; the pool closes a connection that is still in a transaction
