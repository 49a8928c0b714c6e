"""Taskyard: its own worker with a hundred slots, whose claims and endings share statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taskyard
from bench.rivals import ours

if TYPE_CHECKING:
    from bench.rivals.load import Tally

fill = ours.fill


def drain(dsn: str, tally: Tally) -> None:
    with taskyard.open(dsn, worker="bench") as yard:
        worker = taskyard.Worker(yard)

        @worker.handles("noop")
        def noop(_: object) -> None:
            tally.count()

        worker.run(concurrency=100, drain=True)
