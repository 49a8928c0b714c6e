"""What the store asks of a connection (`connection.Statements`), done by psycopg.

Imported together with psycopg, and not before.
"""

from __future__ import annotations

from typing import Any

from psycopg import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Statements:
    """The statements of a connection that has a `cursor` of psycopg's."""

    cursor: Any

    @property
    def is_traceable(self) -> bool:
        """Whether a lost statement can be cancelled before it is retried; a caller's own connection never retries."""
        return True

    def rows(self, statement: str, values: Mapping[str, Any], prepare: bool | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a statement, as tuples whatever the connection's row factory is."""
        cursor = self.cursor(row_factory=rows.tuple_row)
        cursor.execute(statement.encode(), values, prepare=prepare)
        # Not `description`, which makes an object for every column: a tenth of what a claim costs here.
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.pgresult.nfields else []
        return found

    def copy(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Send these rows by a COPY statement."""
        with self.cursor().copy(statement) as copy:
            for row in rows:
                copy.write_row(row)


class CallersConnection(Statements):
    """The caller's own connection, with the same statements."""

    def __init__(self, connection: Any) -> None:
        self.cursor = connection.cursor
        self.transaction = connection.transaction
