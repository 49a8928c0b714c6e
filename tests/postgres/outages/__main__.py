"""`python -m tests.postgres.outages [--tasks N] [--json] [SCENARIO...]`: a line of figures for each; exit 1 if one is not as promised."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from tests.postgres.outages.scenarios import APART, SCENARIOS, apart

COLUMNS = (
    "tasks",
    "seconds",
    "executions",
    "kills",
    "outages",
    "held_through",
    "refused_late",
    "first_claim",
    "all_back",
)
_APART = "TASKYARD_OUTAGES_APART"


def told_of(name: str, tasks: int) -> dict[str, Any]:
    """The figures of one scenario, and what is wrong with it."""
    if name in APART and _APART not in os.environ:
        words = apart(sys.executable, "-m", "tests.postgres.outages", name, "--tasks", str(tasks), "--json")
        done = subprocess.run(words, env={**os.environ, _APART: "1"}, stdout=subprocess.PIPE, text=True, check=False)
        assert done.stdout, f"{name} has ended with {done.returncode}, and said nothing"
        told: dict[str, Any] = json.loads(done.stdout)
        return told
    figures = SCENARIOS[name](tasks)
    return {name: figures[name] for name in (*COLUMNS, "wrong")}


def main() -> int:
    """All that were asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []])
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    good = True
    if not given.json:
        print("| scenario | " + " | ".join(column.replace("_", " ") for column in COLUMNS) + " | verdict |", flush=True)
        print("|---" * (len(COLUMNS) + 2) + "|")
    for name in given.scenario or SCENARIOS:
        told = told_of(name, given.tasks)
        good = good and not told["wrong"]
        if given.json:
            print(json.dumps(told))
            continue
        figures = [
            f"{told[column]:.1f}" if isinstance(told[column], float) else str(told[column]) for column in COLUMNS
        ]
        print(
            f"| {name.replace('_', ' ')} | {' | '.join(figures)} | {'; '.join(told['wrong']) or 'legal'} |", flush=True
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
