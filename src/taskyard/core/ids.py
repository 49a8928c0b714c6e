"""Task ids: one shape for every store, `sssstttttttttrrrrrrrr`, in lower-case Crockford base 32.

- Four characters of segment, where the task is kept: 1,048,576 segments.
- Nine of time: ticks of 1/32 ms since 2020, good until 2054.
- Eight of chance: 40 bits, because a rename onto an existing name overwrites it without an error.

Ids of one segment sort by time; `age_key` sorts across segments.

A short name is for people: `0-kf12`, the segment without leading zeros and the last characters of the id.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
EPOCH = 1_577_836_800_000  # 2020-01-01T00:00:00Z in milliseconds
SEGMENT = 4
LENGTH = 21
TIME = 9
SHORT = 4
"""The least number of characters from the end of an id in a short name.

In a full segment of 1,024 tasks, a given task shares its last four characters with another in 1,023 of 2^20 cases. So 39 %
of such segments have two alike, whose names are longer. With 100 tasks that happens in one yard of 212. A fifth character
would lengthen every name.
"""
TICKS = 32  # in a millisecond: finer than two adds can follow one another
_CHANCE_BITS = 40
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_DIGITS = str.maketrans(ALPHABET + "ilou", "0123456789abcdefghijklmnopqrstuv" + "!!!!")  # as `int` writes base 32


def base32(number: int, width: int) -> str:
    """Return the number in exactly `width` characters."""
    text = ""
    while len(text) < width:
        text = _PAIRS[number & 1023] + text
        number >>= 10
    return text[len(text) - width :]


def _eight(number: int) -> str:
    """Return the low 40 bits in eight characters: `base32` without its loop, for ids."""
    pairs = _PAIRS
    return f"{pairs[number >> 30 & 1023]}{pairs[number >> 20 & 1023]}{pairs[number >> 10 & 1023]}{pairs[number & 1023]}"


def number(text: str) -> int:
    """Return the value of a base 32 text."""
    return int(text.translate(_DIGITS), 32)


def chance(bits: int) -> int:
    """Return a random number of `bits` bits, from the kernel."""
    return int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)


def created(id: str) -> int:
    """Return when the task was made, in milliseconds since 1970, read from its id."""
    return ticks(id) // TICKS + EPOCH


def ticks(id: str) -> int:
    """Return when the task was made, in ticks since 2020, read from its id."""
    return number(id[SEGMENT : SEGMENT + TIME])


def age_key(id: str) -> str:
    """Return a key that sorts ids of all segments by age: time first, then chance."""
    return id[SEGMENT:]


def age_at(moment: int) -> str:
    """Return an age key that sorts no later than that of any task made at or after `moment`."""
    return base32(max(0, moment - EPOCH) * TICKS, TIME)


def is_id(text: str) -> bool:
    """Whether the text has the form of a whole id."""
    return len(text) == LENGTH and not text.strip(ALPHABET)


def is_segment(text: str) -> bool:
    """Whether the text has the form of a segment."""
    return len(text) == SEGMENT and not text.strip(ALPHABET)


def is_word(text: str) -> bool:
    """Whether the text has only characters of the alphabet of ids."""
    return not text.strip(ALPHABET)


def is_prefix(text: str) -> bool:
    """Whether the text could be the beginning of an id, long enough to name a segment."""
    return SEGMENT <= len(text) <= LENGTH and not text.strip(ALPHABET)


def short(id: str, length: int = SHORT) -> str:
    """Return the short name of this id, with `length` characters of its end."""
    return f"{id[:SEGMENT].lstrip('0') or '0'}-{id[-length:]}"


def shorten(wanted: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return the short name of each id in `wanted`, just long enough to fit no other id in `there`."""
    alike: dict[tuple[str, str], set[str]] = {(id[:SEGMENT], id[-SHORT:]): set() for id in wanted}
    for id in there:
        ends = alike.get((id[:SEGMENT], id[-SHORT:]))
        if ends is not None:
            ends.add(id)
    return [_shortest(id, alike[id[:SEGMENT], id[-SHORT:]] - {id}) for id in wanted]


def _shortest(id: str, others: set[str]) -> str:
    length = SHORT
    while any(other.endswith(id[-length:]) for other in others):
        length += 1  # ids of one segment differ after it, so the loop ends
    return short(id, length)


def pattern(text: str) -> str | None:
    """Return the pattern that stores look up: an id, its beginning, or `segment-end` of a short name; else None."""
    if len(text) > LENGTH + 1 or not text.isascii():
        return None
    segment, dash, end = text.lower().partition("-")
    if not dash:
        return segment if is_prefix(segment) else None
    if not 1 <= len(segment) <= SEGMENT or not SHORT <= len(end) <= LENGTH - SEGMENT:
        return None
    return f"{segment.rjust(SEGMENT, '0')}-{end}" if is_word(segment + end) else None


def ends(pattern: str) -> tuple[str, str]:
    """Return how the ids that fit this pattern begin and end."""
    begin, _, end = pattern.partition("-")
    return begin, end


def fits(pattern: str, id: str) -> bool:
    """Whether the pattern fits this id."""
    begin, end = ends(pattern)
    return id.startswith(begin) and id.endswith(end)


class Mint:
    """Makes ids that rise within one process, so that a batch keeps its order within one tick.

    If the store's time has not advanced, the chance part rises by a random step instead of being drawn anew.
    """

    __slots__ = ("_chance", "_time")

    def __init__(self) -> None:
        self._time = -1
        self._chance = 0

    def tail(self, now: float) -> str:
        """Return time and chance of a new id; `now` is the store's clock in milliseconds since 1970."""
        stamp = int((now - EPOCH) * TICKS)
        if stamp > self._time:
            self._time = stamp
            self._chance = chance(_CHANCE_BITS)
        else:
            self._chance += 1 + chance(16)
            if self._chance >> _CHANCE_BITS:
                self._time += 1
                self._chance = chance(_CHANCE_BITS)
        return f"{ALPHABET[self._time >> 40 & 31]}{_eight(self._time)}{_eight(self._chance)}"
