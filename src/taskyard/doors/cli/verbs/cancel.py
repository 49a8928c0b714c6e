"""`cancel` and `retry`: end tasks, or make them ready again, even if a worker holds them."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli import bulk
from taskyard.doors.cli.parser import Command, Given, Option
from taskyard.doors.cli.replies import Call, Reply


def cancel(call: Call) -> Reply:
    """Cancel one task, several, or all that match."""
    names, reason = call.given.words, call.given.text("reason")
    if _by_filter(call.given, "cancel"):
        return bulk.chosen(call, "cancel", reason)
    bulk.as_myself(call)
    if len(names) > 1:
        return bulk.several(call, "cancel", names, reason)
    task = call.yard.cancel(names[0], reason)
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


def retry(call: Call) -> Reply:
    """Make one task, several, or all that match ready now, or put a file that was set aside back into the drop box."""
    names = call.given.words
    if _by_filter(call.given, "retry"):
        return bulk.chosen(call, "retry")
    bulk.as_myself(call)
    if len(names) > 1:
        return bulk.several(call, "retry", names)
    task = call.yard.retry(names[0])
    if task is None:
        return Reply({"task": None, "given_back": names[0]}, lambda: f"{names[0]} was taken in")
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


def _by_filter(given: Given, verb: str) -> bool:
    if bulk.by_filter(given):
        return True
    if not given.words:
        raise Invalid(
            f"{verb} needs an ID or a filter",
            hint=f"usage: taskyard {verb} ID..., or with --state, --kind, --mission or --worker",
        )
    return False


COMMANDS = {
    "cancel": Command(
        cancel,
        "Call a task off. A worker that holds it loses its claim, and hears so at its next verb. A task that has ended: exit 7. "
        "Several IDs: those that cannot be cancelled are named, and the exit is 1. With a filter in place of IDs, all that match and have not ended: "
        "they are counted first, and it asks on a terminal whether that is meant; elsewhere it wants --yes.",
        (
            ('taskyard cancel 0-kf12 --reason "not needed any more"', "no worker is handed this task again"),
            ("taskyard cancel --kind build --state todo,waiting", "all builds that no worker holds, once you say yes"),
            ("taskyard cancel --mission login --yes --json", "a whole mission, by a program"),
        ),
        words="[ID...]",
        most=None,
        options=(
            Option("--reason", "TEXT", "why; goes into the log, and to the worker's history if one held it"),
            *bulk.OPTIONS,
        ),
    ),
    "retry": Command(
        retry,
        "Have a failed or cancelled task tried anew, its attempts counted from zero, or a waiting one now. Any other: exit 7. "
        "The NAME of a file that was set aside ('taskyard list' shows them) puts it, corrected or not, back into the drop box. "
        "Several IDs, or a filter in place of them, as with 'cancel'; a filter without --state chooses what is failed, cancelled or waiting.",
        (
            ("taskyard retry 0-kf12", "back to todo, and history is kept"),
            ("taskyard retry --state failed --kind build", "all builds that failed, once you say yes"),
            ("taskyard retry order-17", "take in failed/order-17.json, now that it is put right"),
        ),
        words="[ID...|NAME]",
        most=None,
        options=bulk.OPTIONS,
    ),
}
