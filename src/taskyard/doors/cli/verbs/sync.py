"""`sync`: a TASKS.md in two-way sync with the yard."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.sync import Options


def sync(call: Call) -> Reply:
    """Sync a file, or print what a sync would do."""
    from taskyard.doors.tasksmd import sync as syncing

    path, options = call.given.words[0], _options(call)
    if os.path.isdir(path):
        raise Invalid(f"{path} is a directory", hint=f"name the file: {os.path.join(path, 'TASKS.md')}")
    look = call.given.flag("status")
    report = (syncing.status if look else syncing.sync)(call.yard, path, options)
    return Reply(report.as_dict(), lambda: _text(report, look), code=int(look and bool(report.conflicts)))


def _options(call: Call) -> Options:
    from taskyard.doors.tasksmd.sync import Options

    given = call.given
    return Options(
        call.worker or call.yard.named or _person(),
        given.text("mission"),
        given.text("kind") or "task",
        given.text("dialect"),
        given.flag("removals"),
    )


def _person() -> str:
    """Return the name of the person at this machine, under which a checked box is done."""
    from taskyard.core import words

    for variable in ("LOGNAME", "USER"):
        try:
            return words.worker(os.environ.get(variable))
        except Invalid:
            continue
    return "sync"


def _text(report: Report, look: bool) -> str:
    parts = [
        f"{len(some)} {what}"
        for some, what in (
            (report.added, "new from the file"),
            (report.edited, "edited in the file"),
            (report.ended, "with a status from the file"),
            (report.removed, "deleted in the file"),
            (report.shown, "changed by the yard"),
        )
        if some
    ]
    first = f"{report.path}: {report.rows} task{'' if report.rows == 1 else 's'}, {', '.join(parts) or 'in sync'}"
    lines = [f"  {notice['message']}" for notice in report.notices]
    lines += [
        f"  conflict in line {one['line']}, {one['row']}: the {one['field']} is {one['file']!a} in the file, {one['yard']!a} in the yard"
        for one in report.conflicts
    ]
    return "\n".join([f"{first} (nothing was changed)" if look else first, *lines])


COMMANDS = {
    "sync": Command(
        sync,
        "FILE is Markdown that people plan in: tables with the columns id, status and description; check-lists; or sections named Todo, In Progress and Done. New lines become tasks, and get their "
        "ids written behind them; edited words are edited in the yard; a checked box is done, in the name of --worker. What workers do shows in the file. Whatever neither side has changed stays byte for byte. "
        "If both sides have edited the same field, a remark says so in the file until either is edited again. A file without --mission has the tasks that have none. Conflict markers of a merge, a file that was cut off, or "
        "one that has lost most of its tasks: exit 7, and nothing is changed. See docs/tasksmd.md.",
        (
            ("taskyard sync TASKS.md", "both ways, once"),
            ("taskyard sync TASKS.md --mission launch", "the plan of one mission"),
            ("taskyard sync TASKS.md --status", "what differs, and what is in conflict; exit 1 if something is"),
        ),
        words="FILE",
        least=1,
        most=1,
        options=(
            Option("--status", None, "print what a sync would do, and change nothing"),
            Option("--mission", "NAME", "the mission whose tasks the file has; needed once, then it is known"),
            Option("--kind", "KIND", "the kind of tasks that new lines become; without it: task"),
            Option("--dialect", "NAME", "for a file without any task: mosaic (a table), tasks.md, checklist or board"),
            Option("--removals", None, "end the tasks of deleted lines, however many those are"),
        ),
    ),
}
