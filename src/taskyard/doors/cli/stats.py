"""`stats`: how many tasks of each kind are in each state."""

from __future__ import annotations

from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

_NAMED = 10  # files that the text names; the JSON has all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stats(call: Call) -> Reply:
    """Count the tasks."""
    data = call.yard.stats()
    return Reply(data, lambda: _table(data))


def _table(data: dict[str, Any]) -> str:
    from taskyard.doors.cli import output, pause

    states = [str(state) for state in data["counts"]]
    rows = [_row(kind, counts, states) for kind, counts in data["kinds"].items()]
    rows.append(_row("all", data["counts"], states))
    table = output.table(("KIND", *states, "total"), rows, right=frozenset(range(1, len(states) + 2)))
    beside = (
        _files("set aside", data["set_aside"], "'taskyard list --state failed' tells why"),
        _files("dropped", data["dropped"], "taken in by the next claim, list or sweep"),
        _guests(data["guests"]),
        not_tasks(data["not_tasks"]),
    )
    return "\n".join(filter(None, (table, *beside, pause.told(data["paused"]))))


def _files(where: str, number: int, about: str) -> str:
    return f"{where}: {number} file{'' if number == 1 else 's'} ({about})" if number else ""


def _guests(numbers: dict[str, int]) -> str:
    """Return, as text, how many files other programs hold or have ended by moving them between folders."""
    some = ", ".join(f"{number} {state}" for state, number in numbers.items())
    return f"other programs' files: {some} ('taskyard list' names them)" if some else ""


def not_tasks(others: list[dict[str, str | None]]) -> str:
    """Return, as text, the files in todo/ that are no tasks, each with the reason."""
    from taskyard.doors.cli import output

    some = "; ".join(f"{entry['name']} ({entry['reason']})" for entry in others[:_NAMED])
    more = f"; and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return output.plain(f"no tasks in todo/: {some}{more}") if some else ""


def _row(name: str, counts: dict[str, int], states: list[str]) -> tuple[str, ...]:
    return (name, *(str(counts.get(state) or "-") for state in states), str(sum(counts.values())))


COMMANDS = {
    "stats": Command(
        stats,
        "Count the tasks of each kind in each state, the files that were set aside or lie in the drop box, and those that other programs hold "
        "or have done by the folders alone; name what lies in todo/ and is no task; tell what is paused. Nothing is changed.",
        (
            ("taskyard stats", "a table for people"),
            (
                "taskyard stats --json",
                '{"counts": {"todo": 3, ...}, "kinds": {"build": {"todo": 3}}, "set_aside": 0, "guests": {}, "not_tasks": [], "paused": {...}, "dropped": 0, ...}',
            ),
        ),
    ),
}
