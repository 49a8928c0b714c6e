"""`release`: the holder hands a task back, or an overseer takes the claims back that match a filter."""

from __future__ import annotations

import os

from taskyard.doors.cli import bulk
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.verbs.done import HANDLE_HINT, held_claim, task_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.replies import Call, Reply


def release(call: Call) -> Reply:
    """Give the task back, without a failed attempt; or every task that matches."""
    given = call.given
    # A command of a worker has its claim in the environment, and `--worker` has always been its name there.
    own = bool(os.environ.get("TASKYARD_CLAIM")) and not any(map(given.flag, ("kind", "mission", "yes")))
    if not own and bulk.by_filter(given):
        return bulk.chosen(call, "release", given.text("reason"))
    held = held_claim(bulk.as_myself(call), given.word(0))
    held.release(reason=given.text("reason"))
    return task_reply(call, held, lambda task: f"{task.short} is handed back: {task.state}")


COMMANDS = {
    "release": Command(
        release,
        f"Hand the task back untouched; it can be claimed at once, and no attempt is counted. {HANDLE_HINT} "
        "With a filter in place of HANDLE, every task that matches is taken from its holder, whose claim is over then: they are counted "
        "first, and it asks on a terminal whether that is meant; elsewhere it wants --yes.",
        (
            ("taskyard release HANDLE", "somebody else may have it"),
            ("taskyard release --worker ada", "all that ada holds, because ada is gone for good"),
        ),
        words="[HANDLE]",
        most=1,
        options=(
            Option("--reason", "TEXT", "why; goes into the log and the task's history"),
            *(option for option in bulk.OPTIONS if option.name != "--state"),
        ),
    ),
}
