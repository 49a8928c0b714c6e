"""`stats`: how many tasks of each kind are in each state, how old they are, and how fast they move."""

from __future__ import annotations

from taskyard.core import reasons
from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

_NAMED = 10  # files that the text names; the JSON has all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stats(call: Call) -> Reply:
    """Count the tasks."""
    given = call.given
    metrics, output = given.flag("prometheus"), given.text("output")
    if output is not None and not metrics:
        raise Invalid("--output writes metrics", hint="say --prometheus as well")
    if metrics and given.flag("mission"):
        raise Invalid("--prometheus is about the whole yard", hint="leave out --mission")
    data = call.yard.stats(given.text("mission"), exact=given.flag("exact"))
    return _metrics(data, output) if metrics else Reply(data, lambda: _table(data, given.text("mission")))


def _metrics(data: dict[str, Any], output: str | None) -> Reply:
    """Return the figures for Prometheus, or write them into this file."""
    from taskyard.core.metrics import prometheus
    from taskyard.doors.cli.files import write_whole

    text = prometheus(data)
    if output is None:
        return Reply({**data, "prometheus": text}, lambda: text.removesuffix("\n"))
    write_whole(output, text)
    return Reply({**data, "output": output}, lambda: "")


def _table(data: dict[str, Any], mission: str | None) -> str:
    from taskyard.doors.cli import output

    states = [str(state) for state in data["counts"]]
    rows = [_row(kind, counts, states) for kind, counts in data["kinds"].items()]
    rows.append(_row("all", data["counts"], states))
    table = output.table(("KIND", *states, "total"), rows, right=frozenset(range(1, len(states) + 2)))
    beside = (
        "" if mission is None else "of the whole yard:",
        _rates(data["rates"], frozenset(data["approximate"])),
        _ages(data["oldest_ready"], data["ages"]),
        _estimates(data["approximate"]),
        _files("set aside", data["set_aside"], "'taskyard list --state failed' tells why"),
        _files("dropped", data["dropped"], _when_taken(data["full"])),
        "" if data["dropped"] else reasons.full(data["full"]),
        _guests(data["guests"]),
        not_tasks(data["not_tasks"]),
    )
    return "\n".join(filter(None, (table, *beside, reasons.paused(data["paused"]))))


def _when_taken(full: list[dict[str, Any]]) -> str:
    """Return when dropped files are taken in."""
    return f"taken in when there is room: {reasons.full(full)}" if full else "taken in by the next claim, list or sweep"


def _rates(rates: dict[str, dict[str, int]], approximate: frozenset[str]) -> str:
    """Return, as text, what happened in the last minute and hour; "~" stands before an estimate."""
    parts = []
    for span, numbers in rates.items():
        about = "~" if f"rates.{span}" in approximate else ""
        some = ", ".join(f"{about}{number} {event}" for event, number in numbers.items() if number)
        if some:
            parts.append(f"last {span}: {some}")
    return "\n".join(parts)


def _ages(oldest: dict[str, Any] | None, ages: dict[str, float | None]) -> str:
    """Return, as text, the oldest task in todo, and the age of the oldest in other states."""
    from taskyard.doors.cli.ages import short

    parts = [] if oldest is None else [f"{oldest['short']} in todo, {short(oldest['age'])}"]
    parts += [f"{state} {short(age)}" for state, age in ages.items() if age is not None and state != "todo"]
    return f"oldest: {'; '.join(parts)}" if parts else ""


def _estimates(approximate: list[str]) -> str:
    """Return, as text, whether some counts are estimates, and how to count all."""
    some = any(name.startswith("counts.") for name in approximate)
    return "counts are estimates from a sample ('taskyard stats --exact' counts every task)" if some else ""


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
    return output.plain(f"in todo/, and no task: {some}{more}") if some else ""


def _row(name: str, counts: dict[str, int], states: list[str]) -> tuple[str, ...]:
    return (name, *(str(counts.get(state) or "-") for state in states), str(sum(counts.values())))


COMMANDS = {
    "stats": Command(
        stats,
        "Count the tasks of each kind in each state, the files that were set aside or lie in the drop box, and those that other programs hold "
        "or have done by the folders alone; name what lies in todo/ and is no task; tell what is paused. Then what was added, claimed, done, failed, reaped and "
        "refused in the last minute and hour, and the oldest tasks. Very large numbers may be estimates: 'approximate' names them. Nothing is changed. --prometheus prints "
        "the same as metrics, in the text format that Prometheus and node exporters read; docs/monitoring.md names them.",
        (
            ("taskyard stats", "a table for people"),
            (
                "taskyard stats --json",
                '{"counts": {"todo": 3, ...}, "kinds": {"build": {"todo": 3}}, "set_aside": 0, "guests": {}, "not_tasks": [], "paused": {...}, "dropped": 0, "oldest_ready": {"id": ..., "short": "0-kf12", "age": 12.5}, "rates": {"minute": {"done": 4, ...}, ...}, "approximate": [], ...}',
            ),
            ("taskyard stats --mission launch", "the same of one mission's tasks"),
            (
                "taskyard stats --prometheus --output /var/lib/node_exporter/taskyard.prom",
                "for a node exporter's textfile collector; the file is replaced at once",
            ),
        ),
        options=(
            Option("--mission", "TEXT", "count only tasks of this mission"),
            Option("--exact", None, "count every task, however many there are"),
            Option("--prometheus", None, "as metrics, in the text format 0.0.4"),
            Option("--output", "FILE", "write the metrics into this file, and print nothing"),
        ),
    ),
}
