"""The verbs of whoever holds a claim: heartbeat, note, done, fail, release."""

from __future__ import annotations

from taskyard.doors.cli.grammar import Command, Option
from taskyard.doors.cli.replies import Call, Reply
from taskyard.errors import Invalid
from taskyard.task import Handle, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.claim import Claim
    from taskyard.task import Task


def heartbeat(call: Call) -> Reply:
    """Begin the lease anew."""
    progress = call.given.number("progress")
    until = _held(call, call.given.word(0)).heartbeat(progress, call.given.text("note"))

    def text() -> str:
        from taskyard.doors.cli import ages

        return f"yours until {ages.moment(until)}"

    return Reply({"lease_until": until}, text)


def note(call: Call) -> Reply:
    """Leave a word for whoever works on the task next."""
    *handle, text = call.given.words
    if not handle and _is_handle(text):
        raise Invalid("note needs a text after the handle", hint="usage: taskyard note [HANDLE] TEXT")
    held = _held(call, handle[0] if handle else None)
    held.note(text)
    return _reply(call, held, lambda task: f"noted on {task.short}")


def done(call: Call) -> Reply:
    """End the task, with a result if there is one."""
    result = None
    if call.given.flag("result"):
        from taskyard.doors.cli import values

        result = values.json_option(call.given, "result")
    held = _held(call, call.given.word(0))
    if held.holds() and held.task.verify is not None:
        from taskyard.doors.cli import verifying

        verifying.check(call.yard, held, result)
    held.done(result)
    return _reply(call, held, lambda task: f"{task.short} is {task.state}")


def fail(call: Call) -> Reply:
    """Give up with a reason."""
    held = _held(call, call.given.word(0))
    again = not call.given.flag("no-retry")
    reason = call.given.text("reason")
    if reason is None:
        held.fail(retry=again)
    else:
        held.fail(reason, retry=again)
    return _reply(call, held, _what_follows)


def release(call: Call) -> Reply:
    """Hand the task back untouched."""
    held = _held(call, call.given.word(0))
    held.release()
    return _reply(call, held, lambda task: f"{task.short} is handed back: {task.state}")


def _held(call: Call, handle: str | None) -> Claim:
    text = call.handle(handle)  # before the yard is opened: a malformed handle is wrong whatever the yard says
    return call.yard.held(text)


def _is_handle(text: str) -> bool:
    try:
        Handle.parse(text)
    except Invalid:
        return False
    return True


def _reply(call: Call, held: Claim, text: Callable[[Task], str]) -> Reply:
    task = call.yard.get(Handle.parse(held.handle).id)
    return Reply({"task": task.as_dict()}, lambda: text(task))


def _what_follows(task: Task) -> str:
    if task.state is State.WAITING:
        return f"{task.short} is waiting to be tried again ({task.attempts} of {task.max_attempts} attempts used)"
    return f"{task.short} is {task.state}"


_HANDLE_HINT = "HANDLE is what 'taskyard claim' printed; without it $TASKYARD_CLAIM is used. A claim that is over: exit 4, and nothing is changed. A mistyped handle: exit 2."

COMMANDS = {
    "heartbeat": Command(
        heartbeat,
        f"Renew the lease of a claim, and say how far the work is. {_HANDLE_HINT}",
        (
            ("taskyard heartbeat HANDLE", "the task stays mine for another lease"),
            (
                'taskyard heartbeat --progress 0.5 --note "half of the files"',
                "the same from inside a worker's command, with a word for the others",
            ),
        ),
        words="[HANDLE]",
        most=1,
        options=(
            Option("--progress", "0..1", "how much of the work is done"),
            Option("--note", "TEXT", "leave a note with it"),
        ),
    ),
    "note": Command(
        note,
        f"Leave a word for whoever works on the task next; it outlives this claim, and renews its lease. {_HANDLE_HINT}",
        (
            (
                'taskyard note HANDLE "the tests need network access"',
                "whoever claims the task after me reads this in 'taskyard show'",
            ),
        ),
        words="[HANDLE] TEXT",
        least=1,
        most=2,
    ),
    "done": Command(
        done,
        "End the task. Said again with the same handle and result it gives the same answer, so a lost reply is safe to repeat. With another "
        f"result, or after fail: exit 7, and the first ending stands. {_HANDLE_HINT}",
        (
            ("taskyard done HANDLE", "the work is finished"),
            (
                'taskyard done HANDLE --result \'{"url": "https://example.org/1"}\'',
                "with a result for whoever waits for it",
            ),
            ("./report | taskyard done --result -", "inside a worker's command, with the result from stdin"),
        ),
        words="[HANDLE]",
        most=1,
        options=(Option("--result", "JSON|@FILE|-", "the result: as JSON, from a file, or from stdin"),),
    ),
    "fail": Command(
        fail,
        f"Give up with an error. The task is tried again later while attempts are left, else it is failed. {_HANDLE_HINT}",
        (
            (
                'taskyard fail HANDLE --reason "the server answers 500"',
                "tried again after a while, by whoever claims it then",
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
    "release": Command(
        release,
        f"Hand the task back untouched; it can be claimed at once, and no attempt is counted. {_HANDLE_HINT}",
        (("taskyard release HANDLE", "somebody else may have it"),),
        words="[HANDLE]",
        most=1,
    ),
}
