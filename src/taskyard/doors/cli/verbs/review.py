"""`accept` and `reject`: a person, or another worker, judges what was submitted for review."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply


def accept(call: Call) -> Reply:
    """Accept what was submitted."""
    task = call.yard.accept(call.given.words[0])
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}: accepted by {task.worker}")


def reject(call: Call) -> Reply:
    """Reject what was submitted, with a note."""
    note = call.given.text("note")
    if note is None:
        raise Invalid("reject needs a note", hint="say what is missing: --note TEXT; the next worker reads it")
    task = call.yard.reject(call.given.words[0], note)
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state} again, with the note")


_HINT = "A worker cannot review what it did itself. A task that does not wait for review: exit 7."

COMMANDS = {
    "accept": Command(
        accept,
        f"Accept what a worker has submitted for a task that was added with --review: the task is done, and what comes after it goes on. {_HINT}",
        (
            ("taskyard show 0-kf12", "what was submitted: the result stands in the history"),
            ("taskyard accept 0-kf12", "it is good"),
        ),
        words="ID",
        least=1,
        most=1,
    ),
    "reject": Command(
        reject,
        "Reject what a worker has submitted. The task goes back to todo at once, and no attempt is counted. Its next worker reads the note in the "
        f"claim's history. {_HINT}",
        (("taskyard reject 0-kf12 --note 'the tests are missing'", "it is to be done again"),),
        words="ID",
        least=1,
        most=1,
        options=(Option("--note", "TEXT", "what is missing: the next worker reads it"),),
    ),
}
