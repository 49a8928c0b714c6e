"""One answer of the server."""

from __future__ import annotations

from taskyard.stores.postgres.libpq import values
from taskyard.stores.postgres.libpq.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_TUPLES, _COPY_IN = 2, 4  # libpq's status of results
_FAILED = (5, 7)
_PRIMARY, _SQLSTATE, _CONSTRAINT = map(ord, "MCn")  # fields of an error


class Result:
    """One answer: its texts, or what the server refuses. libpq's own is freed at once."""

    __slots__ = ("_texts", "_types", "failure", "wants_rows")

    @classmethod
    def next(cls, library: Any, wire: Any) -> Self | None:
        """Return the next answer to what was sent; None if there are no more."""
        pointer = library.PQgetResult(wire)
        if not pointer:
            return None
        try:
            return cls(library, pointer)
        finally:
            library.PQclear(pointer)

    def __init__(self, library: Any, pointer: Any) -> None:
        status = library.PQresultStatus(pointer)
        self.wants_rows = status == _COPY_IN
        self.failure = _failure(library, pointer) if status in _FAILED else None
        self._types: list[int] = []
        self._texts: list[list[bytes | None]] = []
        columns = range(library.PQnfields(pointer)) if status == _TUPLES else ()
        if columns:  # rows without any are none, as with psycopg
            self._types = [library.PQftype(pointer, column) for column in columns]
            value, is_null = library.PQgetvalue, library.PQgetisnull
            self._texts = [
                [value(pointer, row, column) or (None if is_null(pointer, row, column) else b"") for column in columns]
                for row in range(library.PQntuples(pointer))
            ]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as Python's values."""
        loaders = [values.loader(oid) for oid in self._types]
        return [
            tuple([None if text is None else load(text) for load, text in zip(loaders, row, strict=True)])
            for row in self._texts
        ]

    def last(self) -> list[str | None] | None:
        """Return the last row as texts; None if there is none."""
        return [None if text is None else text.decode() for text in self._texts[-1]] if self._texts else None


def _failure(library: Any, pointer: Any) -> Error:
    def field(code: int) -> str | None:
        found = library.PQresultErrorField(pointer, code)
        return None if found is None else found.decode(errors="replace")

    whole = library.PQresultErrorMessage(pointer).decode(errors="replace")
    primary = field(_PRIMARY)
    # Without the severity before it, which is in the server's language.
    text = whole[whole.find(primary) :] if primary and primary in whole else whole
    return Error(text.strip() or "no error details available", field(_SQLSTATE), field(_CONSTRAINT))
