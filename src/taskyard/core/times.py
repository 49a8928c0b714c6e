"""Moments: integer milliseconds since 1970 inside, RFC 3339 UTC outside. Durations are in seconds."""

from __future__ import annotations

import time

from taskyard.core.errors import Invalid
from taskyard.core.words import shown

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMERAL = frozenset("0123456789.eE+-")  # float() would also take 1_0, blanks, and the digits of other scripts
LONGEST = 100 * 366 * 86400.0  # a century: beyond it a number is a mistake, not a delay

_DIGITS_GONE = str.maketrans("", "", "0123456789")

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
    # No regular expression: to load and compile one takes 1 ms of every command that ends a claim.
    if not isinstance(value, str) or len(value) != 24 or value.translate(_DIGITS_GONE) != "--T::.Z":
        return False
    marks = value[4] + value[7] + value[10] + value[13] + value[16] + value[19] + value[23]
    return marks == "--T::.Z" and "01" <= value[5:7] <= "12" and value[8:10] <= "31"


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
            hint="write it as 2026-01-31T12:00:00Z, with Z for UTC or an offset such as +02:00",
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
        raise Invalid(f"{name} must be between {least:.10g} and {most:.10g} seconds, not {shown(value)}")
    return float(number)


def numeral(text: str) -> float:
    """Return the number in this text, which must be in ASCII digits alone; raise `ValueError` if it is none."""
    if not _NUMERAL.issuperset(text):
        raise ValueError(text)
    return float(text)
