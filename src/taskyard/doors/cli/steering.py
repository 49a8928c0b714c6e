"""`cancel`, `retry` and `wait`: from outside, on tasks that others work on."""

from __future__ import annotations

from taskyard.doors.cli.grammar import Command, Option
from taskyard.doors.cli.replies import Call, Reply
from taskyard.task import State


def cancel(call: Call) -> Reply:
    """Call a task off."""
    task = call.yard.cancel(call.given.words[0], call.given.text("reason"))
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


def retry(call: Call) -> Reply:
    """Have a task tried now, or a file that was set aside taken in."""
    name = call.given.words[0]
    task = call.yard.retry(name)
    if task is None:
        return Reply({"task": None, "given_back": name}, lambda: f"{name} was taken in")
    return Reply({"task": task.as_dict()}, lambda: f"{task.short} is {task.state}")


def wait(call: Call) -> Reply:
    """Wait until every one of the tasks has ended."""
    timeout = call.given.seconds("timeout")
    tasks = call.yard.wait(*call.given.words, timeout=timeout)

    def text() -> str:
        from taskyard.doors.cli import paper

        return "\n".join(f"{task.short}  {paper.paint(task.state, task.state)}" for task in tasks)

    return Reply(
        {"tasks": [task.as_dict() for task in tasks]}, text, 0 if all(task.state is State.DONE for task in tasks) else 1
    )


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
    "wait": Command(
        wait,
        "Wait until every one of these tasks has ended. Exit 0 if all are done, 1 if one failed or was cancelled, 5 if the time is over first.",
        (
            ("taskyard wait 0-kf12 0-p3xw", "until both have ended"),
            ("taskyard wait 0-kf12 --timeout 10m --json", "for ten minutes at most; the answer has the results"),
        ),
        words="ID...",
        least=1,
        most=None,
        options=(Option("--timeout", "S", "give up after so long (30, 10m, 2h)"),),
    ),
}
