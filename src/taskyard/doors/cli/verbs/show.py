"""`show`: everything about one task."""

from __future__ import annotations

import json

from taskyard.core import ids
from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Report
    from taskyard.core.task import Task

_AROUND = 1000  # tasks that wait for this one, or are parts of it, in the JSON
_NAMED = 20  # of them in the text


def show(call: Call) -> Reply:
    """Show the task, its ended attempts, its notes, and results that came too late."""
    yard, report = call.yard, call.yard.report(call.given.words[0])
    around = {
        "dependencies": yard.dependencies(report.task) if report.task.after else [],
        "dependents": report.followers(_AROUND),
        "children": report.children(_AROUND),
    }
    data = {
        "task": report.task.as_dict(),
        **around,
        "history": report.history,
        "notes": report.notes,
        "stale_results": report.stale_results,
    }
    return Reply(data, lambda: _page(report, around))


def _page(report: Report, around: dict[str, Any]) -> str:
    from taskyard.doors.cli import ages, output

    parts = [_task(report.task, around)]
    for title, entries in (
        ("History", report.history),
        ("Notes", report.notes),
        ("Stale results", report.stale_results),
    ):
        if entries:
            lines = (
                f"  {output.indented(output.plain(_entry(entry)), 4)} ({ages.ago(entry['at'])})" for entry in entries
            )
            parts.append("\n".join((output.paint(title, "heading"), *lines)))
    return "\n\n".join(parts)


def _task(task: Task, around: dict[str, Any]) -> str:
    from taskyard.doors.cli import ages, output

    head = f"{task.short}  {output.paint(task.state, task.state)}" + (
        f"  {output.plain(task.title)}" if task.title else ""
    )
    body = output.fields(
        (
            ("id", task.id),
            ("kind", f"{task.kind} (priority {task.priority})"),
            ("dropped as", task.dropped_as),
            ("mission", task.mission),
            ("assignee", task.assignee),
            ("after", ", ".join(map(_need, around["dependencies"][:_NAMED])) + _more(around["dependencies"]) or None),
            ("before", ", ".join(map(ids.short, around["dependents"][:_NAMED])) + _more(around["dependents"]) or None),
            ("parent", None if task.parent is None else ids.short(task.parent)),
            ("found by", None if task.discovered_from is None else ids.short(task.discovered_from)),
            ("children", ", ".join(map(ids.short, around["children"][:_NAMED])) + _more(around["children"]) or None),
            ("uses", ", ".join(task.uses) or None),
            ("created", ages.moment(task.created_at)),
            ("due", None if task.not_before is None or task.review == "pending" else ages.moment(task.not_before)),
            ("check", task.verify),
            ("review", task.review),
            ("evidence", task.evidence),
            ("attempts", f"{task.attempts} so far (failed at {task.max_attempts} errors)" if task.attempts else None),
            ("fence", str(task.fence) if task.fence else None),
            ("worker", task.worker),
            ("lease", None if task.lease_until is None else f"until {ages.moment(task.lease_until)}"),
            ("progress", None if task.progress is None else f"{task.progress:.0%}"),
            ("error", task.error),
            ("data", output.json_text(task.data)),
            ("result", output.json_text(task.result)),
        )
    )
    return f"{head}\n{body}"


def _need(entry: dict[str, Any]) -> str:
    """Return one task that this one comes after: its name, its state, and what its failure means unless that blocks."""
    policy = "" if entry["on_failure"] == "block" else f" ({entry['on_failure']})"
    return f"{entry['short']} {entry['state'] or 'pruned'}{policy}"


def _more(entries: list[Any]) -> str:
    return f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""


def _entry(entry: dict[str, Any]) -> str:
    """Return one attempt, note or stale result as a line, without empty fields."""
    said = f"fence {entry['fence']}  {entry['worker']}"
    if entry.get("outcome"):
        said += f"  {entry['outcome']}"
    said += "".join(f": {entry[name]}" for name in ("reason", "text") if entry.get(name))
    result = entry.get("result")
    return said if result is None else f"{said}: {json.dumps(result, ensure_ascii=False)}"


COMMANDS = {
    "show": Command(
        show,
        "Show everything about one task: itself, the tasks that it comes after with their states, how earlier attempts ended, the notes that workers left, and results that came too late to count.",
        (
            ("taskyard show 0-kf12", "a short name as 'list' shows it, an id, or the beginning of one"),
            ("taskyard show 0-kf12 --json", "every field, for a program"),
        ),
        words="ID",
        least=1,
        most=1,
    ),
}
