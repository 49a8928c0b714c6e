"""Moments for people to read: `3m ago`, `in 2h`. For display only, so this machine's clock is good enough."""

from __future__ import annotations

import time

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def milliseconds(text: str) -> int:
    """Convert `2026-01-31T12:00:00.123Z` to milliseconds since 1970, without the 4 ms that importing datetime costs."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    year -= month <= 2  # the year begins in March here, so that the leap day is its last
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    seconds = days * 86_400 + int(text[11:13]) * 3_600 + int(text[14:16]) * 60 + int(text[17:19])
    return seconds * 1000 + int(text[20:23])


def short(seconds: float) -> str:
    """Return a length of time in its largest unit: `45s`, `3m`, `2h`, `5d`."""
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{whole // size}{unit}"
    return "0s"


def age(ms: int) -> str:
    """Return how long ago this moment was."""
    return short(time.time() - ms / 1000)


def ago(text: str) -> str:
    """Return `3m ago`, or `in 3m` if the moment is still to come."""
    ahead = milliseconds(text) / 1000 - time.time()
    return f"in {short(ahead + 0.5)}" if ahead > 0 else f"{short(-ahead)} ago"


def moment(text: str) -> str:
    """Return the moment to the second, and how far away it is."""
    return f"{text[:19]}Z ({ago(text)})"
