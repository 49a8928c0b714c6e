"""A worker of ours beside guests, as a process: `python hand.py FOLDER NAME`; some of its tasks take longer than their leases."""

from __future__ import annotations

import sys
import threading
import time

import taskyard

LEASE = 0.4


def main(place: str, name: str) -> None:
    """Claim and end tasks until stdin ends."""
    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    told.start()
    with taskyard.open(place, worker=name) as yard:
        if name.endswith("-vouched"):
            yard.vouch(LEASE)
        turn = 0
        while told.is_alive():
            claim = yard.claim(wait=0.2, lease=LEASE)
            if claim is None:
                continue
            turn += 1
            if turn % 40 == 0:
                time.sleep(2.5 * LEASE)
            try:
                claim.done({"by": name} if turn % 2 else None)
            except taskyard.ClaimLost:
                continue


if __name__ == "__main__":
    main(*sys.argv[1:])
