"""Proves that every task is in one legal state.

Moves are transactions, so there is nothing that a repair could finish: a finding is a change by hand, or a bug.
"""

from __future__ import annotations

import time
from collections import Counter

from taskyard.core import plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.stores.postgres.context import Context

HINT = "somebody has changed the tables by hand, or this is a bug of Taskyard; look at its rows, and restore them from a backup"


def audit(context: Context) -> dict[str, Any]:
    """Return the `verdict`, what was `checked`, and the `findings`, all from one moment."""
    began = time.monotonic()
    findings = [
        {
            "code": code,
            "class": "damage",
            "where": context.address.label,
            "task": id,
            "what": what,
            "hint": HINT,
            "did": None,
            "repaired": False,
        }
        for code, id, what in [*context.run("fsck", "audit"), *_cycles(context)]
    ]
    [(tasks, events)] = context.run("fsck", "count")
    return {
        "verdict": "damaged" if findings else "clean",
        "checked": {"tasks": tasks, "events": events, "seconds": round(time.monotonic() - began, 3)},
        "counts": dict(Counter(str(entry["code"]) for entry in findings)),
        "findings": findings,
    }


def _cycles(context: Context) -> Iterator[tuple[str, str, str]]:
    """Yield code, task and path of tasks that come after one another, so that none of them can ever start."""
    after: dict[str, list[str]] = {}
    for id, other in context.run("fsck", "ahead"):
        after.setdefault(id, []).append(other)
    for path in plan.cycles(after, lambda one: after.get(one, [])):
        yield "cycle", path[0], plan.shown(path)
