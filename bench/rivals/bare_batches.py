"""The bare loop with a hundred tasks for each of its two commits."""

from __future__ import annotations

from bench.rivals import bare
from bench.rivals.load import Tally

fill = bare.fill


def drain(dsn: str, tally: Tally) -> None:
    bare.drain(dsn, tally, batch=100)
