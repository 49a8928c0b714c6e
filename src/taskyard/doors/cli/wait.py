"""`wait`: wait until tasks have ended."""

from __future__ import annotations

from taskyard.core.task import State
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply


def wait(call: Call) -> Reply:
    """Wait until every one of the tasks has ended."""
    timeout = call.given.seconds("timeout")
    tasks = call.yard.wait(*call.given.words, timeout=timeout)

    def text() -> str:
        from taskyard.doors.cli import output

        return "\n".join(f"{task.short}  {output.paint(task.state, task.state)}" for task in tasks)

    return Reply(
        {"tasks": [task.as_dict() for task in tasks]}, text, 0 if all(task.state is State.DONE for task in tasks) else 1
    )


COMMANDS = {
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
