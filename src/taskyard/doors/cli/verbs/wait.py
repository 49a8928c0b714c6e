"""`wait`: wait until tasks have ended."""

from __future__ import annotations

from taskyard.core.errors import Invalid, Stuck
from taskyard.core.task import State
from taskyard.doors.cli import bulk, filters
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.core.task import Task

_WORDS = "[ID...]"


def _ended(call: Call) -> list[Task]:
    """Return the tasks that are named, or that match, once all of them have ended."""
    given = call.given
    timeout = given.seconds("timeout")
    if bulk.by_filter(given):
        states = filters.states(given)
        return call.yard.wait(
            timeout=timeout,
            state=None if states is None else sorted(states),
            kind=given.texts("kind"),
            mission=given.text("mission"),
            worker=given.text("worker"),
        )
    if given.words:
        return bulk.as_myself(call).yard.wait(*given.words, timeout=timeout)
    raise Invalid(
        "wait needs an ID or a filter",
        hint=f"usage: taskyard wait {_WORDS}, or with --state, --kind, --mission or --worker",
    )


def wait(call: Call) -> Reply:
    """Wait until every one of the tasks, or all that match now, have ended."""
    try:
        tasks = _ended(call)
    except Stuck as stuck:
        return _stuck(stuck)

    def text() -> str:
        from taskyard.doors.cli import output

        if not tasks:
            remark("no such tasks")
        return "\n".join(f"{task.short}  {output.paint(task.state, task.state)}" for task in tasks)

    return Reply(
        {"tasks": [task.as_dict() for task in tasks]}, text, 0 if all(task.state is State.DONE for task in tasks) else 1
    )


def _stuck(stuck: Stuck) -> Reply:
    """Return the verdict on tasks of which one can never end by itself."""

    def text() -> str:
        from taskyard.doors.cli import output, replies

        replies.remark(f"taskyard: {stuck.message}\n  {stuck.hint}")
        return "\n".join(f"{task.short}  {output.paint(task.state, task.state)}" for task in stuck.tasks)

    return Reply({"tasks": [task.as_dict() for task in stuck.tasks], "why": stuck.why}, text, 1)


COMMANDS = {
    "wait": Command(
        wait,
        "Wait until every one of these tasks has ended. Exit 0 if all are done, 1 if one failed or was cancelled, 5 if the time is over first. "
        "With a filter in place of IDs: all tasks that match now, and without --state those that have not ended; later ones are not waited for. "
        "Exit 1 at once, and the reason, if one of them is blocked behind a task that failed or was cancelled: it would never end by itself.",
        (
            ("taskyard wait 0-kf12 0-p3xw", "until both have ended"),
            ("taskyard wait 0-kf12 --timeout 10m --json", "for ten minutes at most; the answer has the results"),
            ("taskyard wait --mission login", "until all that is open of one mission has ended"),
        ),
        words=_WORDS,
        most=None,
        options=(
            Option("--timeout", "S", "give up after so long (30, 10m, 2h)"),
            *(option for option in bulk.OPTIONS if option.name != "--yes"),
        ),
    ),
}
