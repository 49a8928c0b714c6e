"""The error of this driver, with what the store asks an error for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Error(Exception):
    """What the server, or libpq, says about a statement or a connection."""

    def __init__(self, text: str, sqlstate: str | None = None, constraint_name: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.constraint_name = constraint_name

    @property
    def diag(self) -> Self:
        """Where psycopg's errors have the name of the constraint."""
        return self
