"""Python's values as parameters of a statement, and the values of a result as Python's: the types that the store uses.

Both as psycopg has them: the same type is named for a parameter, so that the server finds the same function, and a result
comes back as the same value. A type that is not listed is refused.
"""

from __future__ import annotations

from taskyard.core import json_codec
from taskyard.stores.postgres.libpq.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

_UNKNOWN = 0  # the server finds the type
_BOOL, _FLOAT = 16, 701
_INTEGERS = ((1 << 15, 21), (1 << 31, 23), (1 << 63, 20))  # the first of these types in which a number has room
_NUMERIC = 1700
_ARRAYS = {_UNKNOWN: _UNKNOWN, _BOOL: 1000, 21: 1005, 23: 1007, 20: 1016, _FLOAT: 1022, _NUMERIC: 1231}
_FIRST_OWN = 16384  # types that the database has made itself; those here are enumerations, which are texts
_statements: dict[str, tuple[bytes, tuple[str, ...]]] = {}


def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with `$1` for `%(name)s`, and the names in the order of their numbers."""
    known = _statements.get(statement)
    if known is None:
        first, *parts = statement.split("%(")
        text, names = [first], dict[str, int]()
        for part in parts:
            name, _, rest = part.partition(")s")
            text.append(f"${names.setdefault(name, len(names) + 1)}{rest}")
        known = _statements[statement] = "".join(text).replace("%%", "%").encode(), tuple(names)
    return known


def parameters(names: Iterable[str], values: Mapping[str, Any]) -> tuple[list[int], list[bytes | None]]:
    """Return the type and the text of each parameter."""
    pairs = [_parameter(values[name]) for name in names]
    return [oid for oid, _ in pairs], [text for _, text in pairs]


def _parameter(value: Any) -> tuple[int, bytes | None]:
    if value is None:
        return _UNKNOWN, None
    if isinstance(value, str):
        return _UNKNOWN, _encoded(value)
    if isinstance(value, list):
        return _array(value)
    return _type(value), _plain(value).encode()


def _encoded(text: str) -> bytes:
    encoded = text.encode()
    if b"\0" in encoded:
        raise Error("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return encoded


def _type(value: Any) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return next((oid for bound, oid in _INTEGERS if -bound <= value < bound), _NUMERIC)
    if isinstance(value, float):
        return _FLOAT
    raise Error(f"a value of the type {type(value).__name__} cannot be sent")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(int(value)) if isinstance(value, int) else str(float(value))


def _array(items: Sequence[Any]) -> tuple[int, bytes]:
    """Return a list as an array: of the widest type of its numbers, or of a type that the server finds."""
    given = [item for item in items if item is not None]
    if not given or isinstance(given[0], str):
        found = _UNKNOWN
    elif isinstance(given[0], int) and not isinstance(given[0], bool):
        found = _type(max(given, key=lambda number: number if number >= 0 else -number - 1))
    else:
        found = _type(given[0])
    return _ARRAYS[found], _encoded("{" + ",".join(map(_item, items)) + "}")


def _item(item: Any) -> str:
    if item is None:
        return "NULL"
    if not isinstance(item, str):
        return _plain(item)
    text = item.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def copied(row: Iterable[object]) -> bytes:
    """Return a row in the text format of COPY."""
    return b"\t".join(map(_copied_value, row)) + b"\n"


def _copied_value(value: object) -> bytes:
    _, text = _parameter(value)
    if text is None:
        return b"\\N"
    for plain, escaped in ((b"\\", b"\\\\"), (b"\t", b"\\t"), (b"\n", b"\\n"), (b"\r", b"\\r")):
        text = text.replace(plain, escaped)
    return text


def loader(oid: int) -> Callable[[bytes], Any]:
    """Return what makes a Python value of a text of this type."""
    found = _LOADERS.get(oid)
    if found is None:
        if oid < _FIRST_OWN:
            raise Error(f"the server answers with a value of the type {oid}, which cannot be read here")
        return bytes.decode
    return found


def _arrays(load: Callable[[bytes], Any]) -> Callable[[bytes], list[Any]]:
    """Return what reads an array of one dimension."""

    def items(text: bytes) -> list[Any]:
        if text[:1] != b"{" or b"{" in text[1:2]:
            raise Error("the server answers with an array of several dimensions, which cannot be read here")
        return [None if item is None else load(item) for item in _split(text[1:-1])]

    return items


def _split(text: bytes) -> list[bytes | None]:
    """Return the items of an array's text: one in quotes has backslashes before quotes and backslashes."""
    if b'"' not in text:
        return [None if item == b"NULL" else item for item in text.split(b",")] if text else []
    found: list[bytes | None] = []
    at = 0
    while at <= len(text):
        if text[at : at + 1] == b'"':
            item, at = _quoted(text, at + 1)
            found.append(item)
        else:
            end = text.find(b",", at)
            end = len(text) if end < 0 else end
            found.append(None if text[at:end] == b"NULL" else text[at:end])
            at = end
        at += 1  # the comma
    return found


def _quoted(text: bytes, at: int) -> tuple[bytes, int]:
    """Return the item whose first character is here, and where its closing quote ends."""
    parts: list[bytes] = []
    while True:
        quote, escape = text.index(b'"', at), text.find(b"\\", at)
        if escape < 0 or quote < escape:
            return b"".join([*parts, text[at:quote]]), quote + 1
        parts += [text[at:escape], text[escape + 1 : escape + 2]]
        at = escape + 2


def _true(text: bytes) -> bool:
    return text == b"t"


_LOADERS: dict[int, Callable[[bytes], Any]] = {
    16: _true, 1000: _arrays(_true),
    **dict.fromkeys((20, 21, 23, 26), int), **dict.fromkeys((1005, 1007, 1016), _arrays(int)),
    **dict.fromkeys((700, 701), float),
    # char, name, text, unknown, bpchar, varchar, void
    **dict.fromkeys((18, 19, 25, 705, 1042, 1043, 2278), bytes.decode), 1009: _arrays(bytes.decode),
    114: json_codec.decode, 3802: json_codec.decode,
}  # fmt: skip
