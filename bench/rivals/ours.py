"""Taskyard: one claim and one done at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
import taskyard.stores.postgres.store
from bench.rivals.load import DATA
from taskyard.stores.postgres import driver

if TYPE_CHECKING:
    from bench.rivals.load import Tally

driver.module()  # imported before the race begins, as the others import theirs


def fill(dsn: str, count: int) -> None:
    with taskyard.init(dsn) as yard:
        yard.add_many({"kind": "noop", "data": DATA} for _ in range(count))


def drain(dsn: str, tally: Tally) -> None:
    with taskyard.open(dsn, worker="bench") as yard:
        while (claim := yard.claim()) is not None:
            claim.done()
            tally.count()
