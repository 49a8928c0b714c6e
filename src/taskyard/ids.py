"""Task ids: one shape for every store, `sssstttttttttrrrrrrrr`, in lower-case Crockford base 32.

Four characters of segment (where the task is kept: 1,048,576 segments), nine of time (ticks of 1/32 ms since 2020, good
until 2054), eight of chance (40 bits, because a rename onto an existing name overwrites it without a word). Ids of one
segment sort by time; `age_key` sorts across segments.
"""

from __future__ import annotations

import os

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
EPOCH = 1_577_836_800_000  # 2020-01-01T00:00:00Z in milliseconds
SEGMENT = 4
LENGTH = 21
TIME = 9
_TICKS = 32  # in a millisecond: finer than two adds can follow one another
_CHANCE_BITS = 40
_LETTERS = frozenset(ALPHABET)
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


def base32(number: int, width: int) -> str:
    """The number in exactly `width` characters."""
    text = ""
    while len(text) < width:
        text = _PAIRS[number & 1023] + text
        number >>= 10
    return text[len(text) - width :]


def number(text: str) -> int:
    """The value of a base 32 text."""
    value = 0
    for letter in text:
        value = value * 32 + _VALUES[letter]
    return value


def chance(bits: int) -> int:
    """A random number of so many bits, from the kernel."""
    return int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)


def created(id: str) -> int:
    """When the task was made, in milliseconds since 1970, read from its id."""
    return number(id[SEGMENT : SEGMENT + TIME]) // _TICKS + EPOCH


def age_key(id: str) -> str:
    """Sorts ids of all segments by age: time first, then chance."""
    return id[SEGMENT:]


def age_at(moment: int) -> str:
    """An age key that no task made at this moment or later comes before."""
    return base32(max(0, moment - EPOCH) * _TICKS, TIME)


def is_id(text: str) -> bool:
    """Whether this is a whole id, by its form."""
    return len(text) == LENGTH and _LETTERS.issuperset(text)


def is_segment(text: str) -> bool:
    """Whether this names a segment."""
    return len(text) == SEGMENT and _LETTERS.issuperset(text)


def is_word(text: str) -> bool:
    """Whether this is written in the alphabet of ids."""
    return _LETTERS.issuperset(text)


def is_prefix(text: str) -> bool:
    """Whether this could be the beginning of an id, long enough to name a segment."""
    return SEGMENT <= len(text) <= LENGTH and _LETTERS.issuperset(text)


class Mint:
    """Makes ids that rise within one process, so that a batch keeps its order within one tick.

    Where the store's time did not move on, the chance part goes up by a random step instead of being drawn anew.
    """

    __slots__ = ("_chance", "_time")

    def __init__(self) -> None:
        self._time = -1
        self._chance = 0

    def tail(self, now: float) -> str:
        """Time and chance of a new id, for a store whose clock says `now` milliseconds since 1970."""
        stamp = int((now - EPOCH) * _TICKS)
        if stamp > self._time:
            self._time = stamp
            self._chance = chance(_CHANCE_BITS)
        else:
            self._chance += 1 + chance(16)
            if self._chance >> _CHANCE_BITS:
                self._time += 1
                self._chance = chance(_CHANCE_BITS)
        return base32(self._time, TIME) + base32(self._chance, LENGTH - SEGMENT - TIME)
