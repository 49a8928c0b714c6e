"""`stats`: how many tasks of each kind are in each state."""

from __future__ import annotations

from taskyard.doors.cli.grammar import Command
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stats(call: Call) -> Reply:
    """Count the tasks."""
    data = call.yard.stats()
    return Reply(data, lambda: _table(data))


def _table(data: dict[str, Any]) -> str:
    from taskyard.doors.cli import paper, pausing

    states = [str(state) for state in data["counts"]]
    rows = [_row(kind, counts, states) for kind, counts in data["kinds"].items()]
    rows.append(_row("all", data["counts"], states))
    table = paper.table(("KIND", *states, "total"), rows, right=frozenset(range(1, len(states) + 2)))
    return "\n".join(filter(None, (table, _aside(data["set_aside"]), pausing.told(data["paused"]))))


def _aside(number: int) -> str:
    if not number:
        return ""
    return f"set aside: {number} file{'' if number == 1 else 's'} ('taskyard list --state failed' tells why)"


def _row(name: str, counts: dict[str, int], states: list[str]) -> tuple[str, ...]:
    return (name, *(str(counts.get(state) or "-") for state in states), str(sum(counts.values())))


COMMANDS = {
    "stats": Command(
        stats,
        "Count the tasks of each kind in each state, and the files that were set aside; tell what is paused.",
        (
            ("taskyard stats", "a table for people"),
            (
                "taskyard stats --json",
                '{"counts": {"todo": 3, ...}, "kinds": {"build": {"todo": 3}}, "set_aside": 0, "paused": {...}}',
            ),
        ),
    ),
}
