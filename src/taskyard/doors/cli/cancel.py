"""`cancel` and `retry`: end a task, or make it ready again, even if a worker holds it."""

from __future__ import annotations

from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply


def cancel(call: Call) -> Reply:
    """Cancel a task."""
    task = call.yard.cancel(call.given.words[0], call.given.text("reason"))
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


def retry(call: Call) -> Reply:
    """Make a task ready now, or put a file that was set aside back into the drop box."""
    name = call.given.words[0]
    task = call.yard.retry(name)
    if task is None:
        return Reply({"task": None, "given_back": name}, lambda: f"{name} was taken in")
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


COMMANDS = {
    "cancel": Command(
        cancel,
        "Call a task off. A worker that holds it loses its claim, and hears so at its next verb. A task that has ended: exit 7.",
        (('taskyard cancel 0-kf12 --reason "not needed any more"', "nobody is handed this task again"),),
        words="ID",
        least=1,
        most=1,
        options=(Option("--reason", "TEXT", "why; goes into the log, and to the worker's history if one held it"),),
    ),
    "retry": Command(
        retry,
        "Have a failed or cancelled task tried anew, its attempts counted from zero, or a waiting one now. Any other: exit 7. "
        "The NAME of a file that was set aside ('taskyard list' shows them) puts it, corrected or not, back into the drop box.",
        (
            ("taskyard retry 0-kf12", "back to todo, and history is kept"),
            ("taskyard retry order-17", "take in failed/order-17.json, now that it is put right"),
        ),
        words="ID|NAME",
        least=1,
        most=1,
    ),
}
