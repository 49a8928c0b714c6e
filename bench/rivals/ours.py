"""Taskyard: one claim and one done at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from bench.rivals.load import DATA

if TYPE_CHECKING:
    from bench.rivals.load import Tally


def fill(dsn: str, count: int) -> None:
    with taskyard.init(dsn) as yard:
        yard.add_many({"kind": "noop", "data": DATA} for _ in range(count))


def drain(dsn: str, tally: Tally) -> None:
    with taskyard.open(dsn, worker="bench") as yard:
        while (claim := yard.claim()) is not None:
            claim.done()
            tally.count()
