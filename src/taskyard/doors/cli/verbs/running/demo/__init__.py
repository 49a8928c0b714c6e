"""`demo`: four workers on one yard, of which one is killed and one is stopped."""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEXT = """Next:
  taskyard init                        make a yard of your own, here
  taskyard add hello --title 'Say it'  put a task in
  taskyard work --drain -- cat         have a command do what is there
  taskyard --help                      all the rest"""


def demo(call: Call) -> Reply:
    """Play the scene, in a folder that is kept, or in a temporary one."""
    from taskyard.doors.cli.verbs.running.demo.scene import Scene

    folder = call.given.word(0)
    write_line = (lambda _: None) if call.as_json else replies.say
    if folder is not None:
        return _reply(Scene(_made(folder), write_line).play(), folder)
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="taskyard-demo-") as temporary:
        return _reply(Scene(temporary, write_line).play(), None)


def _made(folder: str) -> str:
    import os

    try:
        os.makedirs(folder)
    except OSError as error:
        raise Invalid(
            f"the folder {folder} cannot be made: {error.strerror}", hint="name one that is not there yet"
        ) from None
    return os.path.abspath(folder)


def _reply(verdict: dict[str, Any], folder: str | None) -> Reply:
    once = verdict["done_once"] == verdict["right_pictures"] == verdict["tasks"] == verdict["done"]
    code = 0 if once and verdict["crashes"] else 1

    def text() -> str:
        by = ", ".join(f"{name} {number}" for name, number in sorted(verdict["by_worker"].items()))
        lines = [
            "",
            f"{verdict['tasks']} tasks, {verdict['done_once']} done exactly once, {verdict['right_pictures']} pictures as they should be",
            f"({by}); {verdict['crashes']} attempts came to nothing, and nothing was lost.",
            *([] if folder is None else [f"It is all still there: taskyard --yard {folder}/yard list"]),
            "",
            NEXT,
        ]
        return "\n".join(lines)

    return Reply(verdict, text, code)


COMMANDS = {
    "demo": Command(
        demo,
        "Watch a crew of four at work for a few seconds, in a folder of its own: one worker is killed and one is stopped in mid-task. At the end the yard's own records, and the pictures that were made, are "
        "checked: every task was done exactly once. With FOLDER it is all left there to be looked at.",
        (
            ("taskyard demo", "the tour"),
            ("taskyard demo ./tour", "the same, and leave the yard behind to be looked at"),
        ),
        words="[FOLDER]",
        most=1,
    ),
}
