"""`edit`: change a task that no worker holds."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli import values
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def edit(call: Call) -> Reply:
    """Change the given fields, and leave the others as they are."""
    given = call.given
    changes: dict[str, Any] = {
        "priority": given.integer("priority"),
        "delay": given.seconds("delay"),
        "not_before": given.text("not-before"),
        "max_attempts": given.integer("max-attempts"),
        "timeout": given.seconds("timeout", least=0.001),
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    for name in ("title", "assignee", "expires"):
        if given.flag(name):
            changes[name] = given.text(name) or None
    if given.flag("data"):
        changes["data"] = values.json_option(given, "data")
    if given.flag("after") and given.flag("no-after"):
        raise Invalid("--after and --no-after exclude each other", hint="--after ID replaces the whole list")
    if given.flag("after") or given.flag("no-after"):
        changes["after"] = given.texts("after") or None
    task = call.yard.edit(given.words[0], **changes)
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is edited: {task.state}")


COMMANDS = {
    "edit": Command(
        edit,
        "Change a task that no worker holds: in todo, waiting or blocked. What is not named stays as it is, the id and the history too. "
        "A task that is held or has ended: exit 7.",
        (
            ("taskyard edit 0-kf12 --priority 0 --title 'Fix the login first'", "more urgent, and it says why"),
            ("taskyard edit 0-kf12 --assignee '' --delay 0", "anybody may have it, now"),
            ("taskyard edit 0-kf12 --after 1-p3xw --after 1-x2ab:run", "it comes after these two, and no others"),
            ("taskyard edit 0-kf12 --no-after", "it waits for nothing any more"),
            ('taskyard edit 0-kf12 --data \'{"target": "pdf"}\'', "the data as a whole is replaced"),
        ),
        words="ID",
        least=1,
        most=1,
        options=(
            Option("--title", "TEXT", "one line for people; '' takes it away"),
            Option("--data", "JSON|@FILE|-", "what the worker needs to know: as JSON, from a file, or from stdin"),
            Option("--priority", "0..9", "0 is handed out first"),
            Option("--assignee", "NAME", "hand it to this worker only; '' is anybody"),
            Option("--delay", "S", "not due before so long from now (30, 10m, 2h, 1d); 0 is now"),
            Option("--not-before", "TIME", "not due before this moment (2026-01-31T12:00:00Z)"),
            Option(
                "--expires", "TIME|S", "cancelled unless a worker has started it by then; '' takes the deadline away"
            ),
            Option("--timeout", "S", "stop an attempt that takes longer; counted as an error"),
            Option("--max-attempts", "N", "failed at this many errors"),
            Option(
                "--after",
                "ID[:cancel|:run]",
                "not before this task is done, in place of all that it came after",
                many=True,
            ),
            Option("--no-after", None, "it comes after nothing"),
        ),
    ),
}
