"""`done` and `fail`: the holder of a claim ends it."""

from __future__ import annotations

from taskyard.core.task import Handle, State
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.core.task import Task
    from taskyard.yard.claim import Claim


def done(call: Call) -> Reply:
    """End the task as done, with its result if one was given."""
    result = None
    if call.given.flag("result"):
        from taskyard.doors.cli import values

        result = values.json_option(call.given, "result")
    held = held_claim(call, call.given.word(0))
    held.done(result)
    return task_reply(call, held, _what_is_done)


def _what_is_done(task: Task) -> str:
    if task.review == "pending":
        return f"{task.short} waits for review: another one says 'taskyard accept {task.short}', or reject"
    return f"{task.short} is {task.state}"


def fail(call: Call) -> Reply:
    """End the attempt as failed, with a reason."""
    held = held_claim(call, call.given.word(0))
    again = not call.given.flag("no-retry")
    reason = call.given.text("reason")
    if reason is None:
        held.fail(retry=again)
    else:
        held.fail(reason, retry=again)
    return task_reply(call, held, _what_follows)


def held_claim(call: Call, handle: str | None) -> Claim:
    """Return the claim of this handle, or of $TASKYARD_CLAIM."""
    text = call.handle(handle)  # before the yard is opened: a malformed handle is wrong in any yard
    return call.yard.held(text)


def task_reply(call: Call, held: Claim, text: Callable[[Task], str]) -> Reply:
    """Return a reply with the task as it is now."""
    if call.yard.is_spooled(held.ref):
        from taskyard.doors.cli.verbs.add import spooled

        known = {"id": held.id, "fence": held.fence, "state": str(State.PROCESSING)}
        return Reply(spooled(call, {"task": known}), lambda: f"{held.id} is ended as soon as the yard is back")
    task = call.yard.get(Handle.parse(held.handle).id)
    return Reply({"task": task.as_dict()}, lambda: text(task))


def _what_follows(task: Task) -> str:
    if task.state is State.WAITING:
        return f"{task.short} is waiting to be tried again ({task.attempts} of {task.max_attempts} attempts used)"
    return f"{task.short} is {task.state}"


HANDLE_HINT = "HANDLE is what 'taskyard claim' printed; without it $TASKYARD_CLAIM is used. A claim that is over: exit 4, and nothing is changed. A mistyped handle: exit 2."

COMMANDS = {
    "done": Command(
        done,
        "End the task. Said again with the same handle and result it gives the same answer, so a lost reply is safe to repeat. With another "
        f"result, or after fail: exit 7, and the first ending stands. {HANDLE_HINT}",
        (
            ("taskyard done HANDLE", "the work is finished"),
            (
                'taskyard done HANDLE --result \'{"url": "https://example.org/1"}\'',
                "with a result for those who wait for it",
            ),
            ("./report | taskyard done --result -", "inside a worker's command, with the result from stdin"),
        ),
        words="[HANDLE]",
        most=1,
        options=(Option("--result", "JSON|@FILE|-", "the result: as JSON, from a file, or from stdin"),),
    ),
    "fail": Command(
        fail,
        f"Give up with an error. The task is tried again later while attempts are left, else it is failed. {HANDLE_HINT}",
        (
            (
                'taskyard fail HANDLE --reason "the server answers 500"',
                "tried again after a while, by the worker that claims it then",
            ),
            (
                'taskyard fail HANDLE --reason "no such customer" --no-retry',
                "failed for good, whatever attempts are left",
            ),
        ),
        words="[HANDLE]",
        most=1,
        options=(
            Option("--reason", "TEXT", "what went wrong: the next attempt reads it"),
            Option("--no-retry", None, "trying again is of no use"),
        ),
    ),
}
