"""`add`: one task, or many from JSON Lines."""

from __future__ import annotations

import os

from taskyard.core import ids
from taskyard.core.errors import Invalid, NotFound, Unavailable
from taskyard.core.signals import Interrupted, Stopping
from taskyard.doors.cli import values
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from taskyard.core.options import TaskOptions
    from taskyard.core.task import Task
    from taskyard.doors.cli.parser import Given
    from taskyard.yard.arguments import Added


def add(call: Call) -> Reply:
    """Add a task, or every task of a file."""
    given = call.given
    if given.flag("from"):
        return _add_many(call)
    kind = given.word(0)
    if kind is None:
        raise Invalid("add needs a KIND", hint="taskyard add build --title 'Build the docs', or --from FILE for many")
    if " " in kind.strip():
        raise _titled(kind)
    options = task_options(given)
    options.update(_related(options, _discovered_from(call)))  # type: ignore[typeddict-item]
    data = values.json_option(given, "data")
    task = call.yard.add(kind, data, wait=given.seconds("wait") or 0, **options)
    if not task.spooled:
        call.name(task)
    stands = f"the task {task.id} was added all the same" if task.created else ""
    data = {"task": task.as_dict(), "created": task.created}
    return Reply(spooled(call, data) if task.spooled else data, lambda: _line(task), stands=stands)


def spooled(call: Call, data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of an answer with `spooled`, and print where it is kept."""
    remark(f"taskyard: the yard is away: kept in the spool, and replayed when it is back ({call.yard.spool()['path']})")
    return {**data, "spooled": True}


def task_options(given: Given) -> TaskOptions:
    """Return the options of a task beside kind and data, as they were given."""
    return {
        "title": given.text("title"),
        "priority": given.integer("priority"),
        "delay": given.seconds("delay"),
        "not_before": given.text("not-before"),
        "expires": given.text("expires"),
        "timeout": given.seconds("timeout", least=0.001),
        "max_attempts": given.integer("max-attempts"),
        "lease": given.seconds("lease"),
        "assignee": given.text("assignee"),
        "mission": given.text("mission"),
        "key": given.text("key"),
        "verify": given.text("verify"),
        "review": given.flag("review") or None,
        "after": given.texts("after"),
        "parent": given.text("parent"),
        "uses": given.texts("uses"),
    }


def _discovered_from(call: Call) -> str | None:
    """Return the id of the task in whose command this runs, from the environment; None if this yard lacks it, or it has ended."""
    claim, task = os.environ.get("TASKYARD_CLAIM"), os.environ.get("TASKYARD_TASK")
    id = (claim or "").partition(".")[0] or task
    if not id or not ids.is_id(id):
        return None
    try:
        found = call.yard.get(id)
        # A shell keeps the variable after the ending; a worker's command may add its follow-ups last.
        return None if found.state.ended and task is None else found.id
    except NotFound:  # a task of another yard
        return None
    except Unavailable:  # an add goes to the spool, and it is of this yard if the worker that runs this says so
        return id if os.environ.get("TASKYARD") == call.yard.url else None


def _related(fields: Mapping[str, Any], origin: str | None) -> dict[str, Any]:
    """Return `parent` and `discovered_from` for a task added during the work on `origin`, where its fields lack them."""
    found = dict.fromkeys(("parent", "discovered_from"), origin) if origin is not None else {}
    return {name: value for name, value in found.items() if fields.get(name) is None}


def _line(task: Task) -> str:
    """Return the task's id, which scripts store; on a terminal, also its short name."""
    from taskyard.doors.cli import output

    return f"{task.id}  ({task.short} for short)" if output.on_terminal() else task.id


def _titled(text: str) -> Invalid:
    """Return the error for a title in place of the kind: other tools take a title there."""
    from shlex import quote

    return Invalid(
        f"{ascii(text)[:60]} is no KIND, which is one word for the sort of work",
        hint=f"say what is to be done with --title: taskyard add KIND --title {quote(text)[:80]}",
    )


def _add_many(call: Call) -> Reply:
    given = call.given
    others = [
        option.name for option in OPTIONS if option.name not in ("--from", "--wait") and option.name in given.values
    ]
    if given.words or others:
        extra = "KIND" if given.words else others[0]
        raise Invalid(
            f"--from and {extra} exclude each other", hint="kind, data and options stand in each line of the file"
        )
    files = given.texts("from") or []
    if len(files) > 1:
        raise Invalid(
            "--from was given more than once", hint="add one file after another: cat A B | taskyard add --from -"
        )
    lines = values.Lines(files[0])
    yard = call.yard  # opened before stdin is read, so that a missing yard is an error at once
    asked: list[int] = []

    def interrupt(number: int) -> None:
        asked.append(number)
        if len(asked) == 1:  # a later signal would interrupt the yard while it rolls the batch back
            raise KeyboardInterrupt

    try:
        with Stopping(interrupt):
            origin = _discovered_from(call)
            added = yard.add_many(
                ({**fields, **_related(fields, origin)} if isinstance(fields, dict) else fields for fields in lines),
                wait=given.seconds("wait") or 0,
            )
    except (Invalid, NotFound) as error:
        raise lines.blamed(error) from None
    except KeyboardInterrupt as interrupted:
        state = str(interrupted) or ("'taskyard list' tells whether any of the batch was added" if lines.at_end else "")
        raise Interrupted(asked[0] if asked else None, state or "nothing of the batch was added") from None
    stands = f"{_count(added)} all the same"
    data = {"ids": list(added), "created": added.created}
    return Reply(spooled(call, data) if added.spooled else data, lambda: _many(added), stands=stands)


def _many(added: Added) -> str:
    """Return the ids, one a line, in the order of the file; print how many are new."""
    remark(_count(added))
    return "\n".join(added)


def _count(added: Added) -> str:
    known = len(added) - added.created
    new = f"{added.created} task{'' if added.created == 1 else 's'} added"
    return f"{new}, {known} known already" if known else new


OPTIONS = (
    Option("--data", "JSON|@FILE|-", "what the worker needs to know: as JSON, from a file, or from stdin"),
    Option("--title", "TEXT", "one line for people"),
    Option("--priority", "0..9", "0 is handed out first (default 5)"),
    Option("--delay", "S", "not due before so long (30, 10m, 2h, 1d)"),
    Option("--not-before", "TIME", "not due before this moment (2026-01-31T12:00:00Z)"),
    Option(
        "--expires", "TIME|S", "cancelled unless a worker has started it by then (2026-01-31T12:00:00Z, or 10m, 2h)"
    ),
    Option("--timeout", "S", "stop an attempt that takes longer; counted as an error"),
    Option("--max-attempts", "N", "failed at this many errors (default 3)"),
    Option("--lease", "S", "how long a claim lasts without a heartbeat (default 30m)"),
    Option("--assignee", "NAME", "hand it to this worker only"),
    Option("--mission", "TEXT", "what it is a part of"),
    Option("--key", "TEXT", "add it once only, however often this is said: a known key gives the task that has it"),
    Option("--verify", "NAME", "have the worker run the check of this name before the task is done"),
    Option("--review", None, "done only when another one accepts the result ('taskyard accept ID')"),
    Option(
        "--after",
        "ID[:cancel|:run]",
        "not before this task is done, by id or key; :cancel and :run say what its failure means",
        many=True,
    ),
    Option("--parent", "ID", "the task that this one is a part of"),
    Option("--uses", "NAME", "not while another task runs that uses this", many=True),
    Option("--wait", "S", "wait so long for room, if the yard or the kind is full (max_todo)"),
    Option("--from", "FILE|-", "add a task for each line of JSON; every line is checked before the first is added"),
)

COMMANDS = {
    "add": Command(
        add,
        "Add a task and print its id; once it is printed, the task is safe. KIND says what sort of work it is, and workers claim by kind. "
        "A --key that is known gives its task again, "
        "if kind and data are the same; else exit 7. A task with --after is blocked until all of those are done. If one of them is failed or cancelled, it stays blocked until that one is retried and done; with ID:cancel it is cancelled too, and with ID:run it runs all the same. With --from each line is an object with kind, data, and the options by name; `ref` is a local name, by which `after` in any other line can refer to it; the ids are printed in the order of the lines. If one line is bad, or tasks come after one another, nothing is added. Run by the command of 'work', add notes its task as `parent` and `discovered_from`.",
        (
            (
                "taskyard add build --title 'Build the docs' --data '{\"target\": \"html\"}'",
                "one task, with what its worker needs",
            ),
            ("taskyard add deploy --priority 0 --delay 10m", "urgent, but not before ten minutes from now"),
            ("taskyard add ship --after 0-kf12 --after 1-p3xw", "only when both of these are done"),
            ("taskyard add report --after 0-kf12:run", "once that has ended, whether it is done or not"),
            ("taskyard add migrate --uses database", "never at the same time as another task that uses the database"),
            ("taskyard add nightly --key nightly-2026-01-31", "safe to repeat: there will be one such task"),
            (
                'echo \'{"kind": "build", "data": {"target": "pdf"}}\' | taskyard add --from -',
                "many tasks, one JSON object a line",
            ),
        ),
        words="[KIND]",
        most=1,
        options=OPTIONS,
        spare="say what is to be done with --title TEXT",
    ),
}
