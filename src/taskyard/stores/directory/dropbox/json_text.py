"""Reads JSON that any program may have written, and accepts only what can be written as JSON again."""

from __future__ import annotations

from taskyard.core.json_codec import encode, scanner, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which only Python takes for JSON."""
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in _INFINITE:  # 1e999 is JSON, but Python makes Infinity of it
        raise ValueError(f"{text[:40]} is larger than any number here")
    return number


_INFINITE = frozenset((float("inf"), float("-inf")))  # `math` would be a shared library to load, for one function
scan = scanner(_finite, no_constant)


def refuse_halves(content: bytes, value: Any) -> None:
    """Raise `ValueError` for half a surrogate pair, which UTF-8 cannot encode; only an escape can bring one in."""
    if b"\\ud" in content or b"\\uD" in content:
        encode(value).encode()


def read(content: bytes) -> Any:
    """Parse the content; raise `ValueError` or `RecursionError`."""
    try:
        value = whole(content.decode(), scan)
    except (StopIteration, ValueError):
        import json

        value = json.loads(content.decode(), parse_constant=no_constant, parse_float=_finite)  # raises with the place
    refuse_halves(content, value)
    return value
