"""Reads JSON that any program may have written, and accepts only what can be written as JSON again."""

from __future__ import annotations

import json
from math import isfinite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which only Python takes for JSON."""
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):  # 1e999 is JSON, but Python makes Infinity of it
        raise ValueError(f"{text[:40]} is larger than any number here")
    return number


# The scanner alone, without the search for white space around the text, which takes as long again.
scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    parse_constant=no_constant, parse_float=_finite
).scan_once  # type: ignore[attr-defined]


def refuse_halves(content: bytes, value: Any) -> None:
    """Raise `ValueError` for half a surrogate pair, which UTF-8 cannot encode; only an escape can bring one in."""
    if b"\\ud" in content or b"\\uD" in content:
        json.dumps(value, ensure_ascii=False).encode()


def read(content: bytes) -> Any:
    """Parse the content; raise `ValueError` or `RecursionError`."""
    value = json.loads(content.decode(), parse_constant=no_constant, parse_float=_finite)
    refuse_halves(content, value)
    return value
