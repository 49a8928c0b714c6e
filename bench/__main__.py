"""Measure this machine: `make bench`, or `python -m bench operations processes seam flat day waking crew shell postgres ringing` for some of it."""

from __future__ import annotations

import sys

from bench import crew, day, flat, operations, postgres, processes, ringing, seam, shell, waking
from bench.yards import scratch

PARTS = {
    "operations": operations.report,
    "processes": processes.report,
    "seam": seam.report,
    "flat": flat.report,
    "day": day.report,
    "waking": waking.report,
    "crew": crew.report,
    "shell": shell.report,
    "postgres": postgres.report,
    "ringing": ringing.report,
}


def main() -> int:
    for name in sys.argv[1:] or PARTS:
        with scratch() as folder:
            PARTS[name](folder)
        print()
    return 0


raise SystemExit(main())
