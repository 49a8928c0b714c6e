"""One process of a race: `python -m bench.rivals NAME DSN` is ready, waits for a line, drains, and tells what it did."""

from __future__ import annotations

import sys
from importlib import import_module

from bench.rivals.load import Tally


def main(name: str, dsn: str) -> None:
    queue = import_module(f"bench.rivals.{name}")
    print("ready", flush=True)
    sys.stdin.readline()
    tally = Tally()
    queue.drain(dsn, tally)
    print(tally.ended, tally.start, tally.last, flush=True)


main(*sys.argv[1:])
