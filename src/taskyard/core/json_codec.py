"""JSON by the C code of the json package, without the package: that compiles regular expressions, 2 ms of a claim's 25.

What this cannot read goes to the package, which raises the error with its place.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_json: Any
try:
    import _json
except ImportError:  # a Python without that C code
    _json = None
if hasattr(sys, "gettotalrefcount"):  # a debug build aborts where `scan` catches a SystemError
    import json.decoder  # noqa: F401  the C code looks for it


def _refuse(value: object) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def encoder(item: str, key: str, nan: bool) -> Callable[[Any], str]:
    """Return a function that writes JSON with these separators, not limited to ASCII; with `nan`, also NaN and Infinity."""
    if _json is None:
        from json import JSONEncoder

        return JSONEncoder(ensure_ascii=False, allow_nan=nan, separators=(item, key)).encode
    make_encoder, encode_text = _json.make_encoder, _json.encode_basestring

    def encode(value: Any) -> str:
        if type(value) is str:
            return encode_text(value)  # type: ignore[no-any-return]
        # The first argument holds what is being encoded, to find circles: it must be new for each call.
        return "".join(make_encoder({}, _refuse, encode_text, None, key, item, False, False, nan)(value, 0))

    return encode


def scanner(
    parse_float: Callable[[str], float] = float, parse_constant: Callable[[str], Any] = float
) -> Callable[[str, int], tuple[Any, int]]:
    """Return a function that reads one JSON value at a place in a text, without white space around it, and where it ends.

    It raises `StopIteration` where no value begins, else `ValueError`.
    """
    if _json is None:
        from json import JSONDecoder

        decoder = JSONDecoder(parse_float=parse_float, parse_constant=parse_constant)
        return decoder.scan_once  # type: ignore[attr-defined, no-any-return]
    rules = _Rules()
    rules.parse_float, rules.parse_constant = parse_float, parse_constant
    scan_once = _json.make_scanner(rules)

    def scan(text: str, at: int) -> tuple[Any, int]:
        try:
            return scan_once(text, at)  # type: ignore[no-any-return]
        except SystemError:
            # For its error the C code looks among the loaded modules, and up to Python 3.11 raises nothing if it finds none.
            import json.decoder  # noqa: F401  the C code looks for it

            return scan_once(text, at)  # type: ignore[no-any-return]

    return scan


class _Rules:
    """What the C scanner wants to know of a decoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_int = int
    parse_float: Callable[[str], float]
    parse_constant: Callable[[str], Any]


compact = encoder(",", ":", nan=False)
encode = encoder(", ", ": ", nan=True)
scan = scanner()


def whole(text: str, scan: Callable[[str, int], tuple[Any, int]] = scan) -> Any:
    """Return the one value in this text; raise `StopIteration` or `ValueError` without a place, or `RecursionError`."""
    text = text.strip(" \t\n\r")
    value, end = scan(text, 0)
    if end != len(text):
        raise ValueError("more than one value")
    return value


def read(text: str) -> Any:
    """Return the one value in this text; raise `ValueError` with its place, or `RecursionError`."""
    try:
        return whole(text)
    except (StopIteration, ValueError):
        import json

        return json.loads(text)


def decode(content: bytes) -> Any:
    """Return the one value in these bytes; raise `ValueError` or `RecursionError`."""
    try:
        return whole(content.decode())
    except (StopIteration, ValueError):
        import json

        return json.loads(content)  # raises with the place; or it is UTF-16
