"""`heartbeat` and `note`: the holder of a claim renews it."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.core.task import Handle
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply
from taskyard.doors.cli.verbs.done import HANDLE_HINT, held_claim, task_reply


def heartbeat(call: Call) -> Reply:
    """Renew the lease."""
    progress = call.given.number("progress")
    until = held_claim(call, call.given.word(0)).heartbeat(progress, call.given.text("note"))

    def text() -> str:
        from taskyard.doors.cli import ages

        return f"yours until {ages.moment(until)}"

    return Reply({"lease_until": until}, text)


def note(call: Call) -> Reply:
    """Write a note for the next worker of the task."""
    *handle, text = call.given.words
    if not handle and _is_handle(text):
        raise Invalid("note needs a text after the handle", hint="usage: taskyard note [HANDLE] TEXT")
    held = held_claim(call, handle[0] if handle else None)
    held.note(text)
    return task_reply(call, held, lambda task: f"noted on {task.short}")


def _is_handle(text: str) -> bool:
    try:
        Handle.parse(text)
    except Invalid:
        return False
    return True


COMMANDS = {
    "heartbeat": Command(
        heartbeat,
        f"Renew the lease of a claim, and say how far the work is. {HANDLE_HINT}",
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
        f"Leave a word for the next worker of the task; it outlives this claim, and renews its lease. {HANDLE_HINT}",
        (
            (
                'taskyard note HANDLE "the tests need network access"',
                "the next worker of the task reads this in 'taskyard show'",
            ),
        ),
        words="[HANDLE] TEXT",
        least=1,
        most=2,
    ),
}
