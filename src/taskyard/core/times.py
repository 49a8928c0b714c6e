"""Moments: integer milliseconds since 1970 inside, RFC 3339 UTC outside. Durations are in seconds."""

from __future__ import annotations

import time

from taskyard.core.errors import Invalid
from taskyard.core.words import shown

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMERAL = frozenset("0123456789.eE+-")  # float() would also take 1_0, blanks, and the digits of other scripts
LONGEST = 100 * 366 * 86400.0  # a century: beyond it a number is a mistake, not a delay

_WRITTEN = r"[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"

_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_seconds: dict[int, str] = {}  # events come in bursts, and strftime costs more than writing the line


def ticks() -> float:
    """Return seconds of a clock that runs on while the machine is suspended, as leases do; the monotonic clock stops then."""
    return time.clock_gettime(_TICKS)


def rfc3339(ms: int) -> str:
    """Return the moment as `2026-01-31T12:00:00.123Z`."""
    second = ms // 1000
    text = _seconds.get(second)
    if text is None:
        if len(_seconds) > 100:
            _seconds.clear()
        text = _seconds[second] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
    return f"{text}.{ms % 1000:03d}Z"


def is_moment(value: object) -> bool:
    """Whether this is a moment as `rfc3339` writes it; any program may have written the text of a file."""
    import re

    return isinstance(value, str) and re.fullmatch(_WRITTEN, value) is not None


def moment(value: object, name: str) -> int:
    """Return milliseconds since 1970 from an RFC 3339 text with an offset, or an aware datetime."""
    from datetime import datetime

    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Invalid(f"{name} is not a time: {shown(value)}", hint="write it as 2026-01-31T12:00:00Z") from None
    if not isinstance(value, datetime):
        raise Invalid(f"{name} must be a time, not {type(value).__name__}", hint="write it as 2026-01-31T12:00:00Z")
    if value.tzinfo is None:
        raise Invalid(
            f"{name} has no time zone: {value.isoformat()}",
            hint="end it with Z for UTC, or with an offset such as +02:00",
        )
    ms = round(value.timestamp() * 1000)
    if not 0 <= ms < 10**13:
        raise Invalid(f"{name} is out of range: {value.isoformat()}")
    return ms


def seconds(value: object, name: str, *, least: float = 0.0, most: float = LONGEST) -> float:
    """Return a duration in seconds from a number, or a text such as `90`, `1.5s`, `10m`, `2h`, `1d`."""
    number = value
    if isinstance(value, str):
        text, unit = (value[:-1], _UNITS[value[-1]]) if value[-1:] in _UNITS else (value, 1.0)
        try:
            number = numeral(text) * unit
        except ValueError:
            raise Invalid(f"{name} is not a duration: {shown(value)}", hint="write seconds, or 10m, 2h, 1d") from None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise Invalid(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not least <= number <= most:  # also false for NaN
        raise Invalid(f"{name} must be between {least:g} and {most:g} seconds, not {shown(value)}")
    return float(number)


def numeral(text: str) -> float:
    """Return the number in this text, which must be in ASCII digits alone; raise `ValueError` if it is none."""
    if not _NUMERAL.issuperset(text):
        raise ValueError(text)
    return float(text)
