"""JSON from files that anybody may have written: what is read here can be written out again, as JSON that all can read."""

from __future__ import annotations

import json
from math import isfinite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def no_constant(name: str) -> Any:
    """NaN and Infinity are Python's idea of JSON, and nobody else's."""
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):  # 1e999 is JSON, and Infinity is what Python would make of it
        raise ValueError(f"{text[:40]} is larger than any number here")
    return number


# The scanner alone, without the search for white space around the text, which takes as long again.
scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    parse_constant=no_constant, parse_float=_finite
).scan_once  # type: ignore[attr-defined]


def refuse_halves(content: bytes, value: Any) -> None:
    """`ValueError` if a text in the value has half of a character, which no UTF-8 can carry; only an escape brings one in."""
    if b"\\ud" in content or b"\\uD" in content:
        json.dumps(value, ensure_ascii=False).encode()


def read(content: bytes) -> Any:
    """The value in the file, or `ValueError`, or `RecursionError`."""
    value = json.loads(content.decode(), parse_constant=no_constant, parse_float=_finite)
    refuse_halves(content, value)
    return value
