"""Measure this machine: `make bench`, or `python -m bench NAME...` for some of the `PARTS`."""

from __future__ import annotations

import sys

from bench import (
    agents,
    backpressure,
    board,
    boards,
    churn,
    copying,
    crew,
    day,
    dirq,
    flat,
    gateway,
    graphs,
    growth,
    growth_postgres,
    idle,
    operations,
    orchestrate,
    postgres,
    processes,
    projects,
    ringing,
    seam,
    shell,
    spool,
    tasksmd,
    uses,
    waking,
)
from bench.yards import scratch


def _grow(folder: str) -> None:
    growth.report(folder)
    growth_postgres.report(folder)


PARTS = {
    "operations": operations.report,
    "dirq": dirq.report,
    "processes": processes.report,
    "seam": seam.report,
    "flat": flat.report,
    "flat-postgres": flat.report_postgres,
    "day": day.report,
    "waking": waking.report,
    "crew": crew.report,
    "shell": shell.report,
    "postgres": postgres.report,
    "ringing": ringing.report,
    "churn": churn.report,
    "copying": copying.report,
    "growth": _grow,
    "graphs": graphs.report,
    "agents": agents.report,
    "backpressure": backpressure.report,
    "gateway": gateway.report,
    "board": board.report,
    "boards": boards.report,
    "uses": uses.report,
    "spool": spool.report,
    "idle": idle.report,
    "orchestrate": orchestrate.report,
    "projects": projects.report,
    "tasksmd": tasksmd.report,
}


def main() -> int:
    for name in sys.argv[1:] or PARTS:
        with scratch() as folder:
            PARTS[name](folder)
        print()
    return 0


raise SystemExit(main())
