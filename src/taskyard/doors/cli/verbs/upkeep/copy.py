"""`copy`: copy a paused yard, with its history, into another store."""

from __future__ import annotations

import sys
import time

from taskyard import opening
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.yard.copy_yard import Copied

_EVERY = 0.2  # seconds between two updates of the progress line


class Ticker:
    """A progress line on the terminal, which is erased at the end."""

    def __init__(self) -> None:
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._at = 0.0
        self._width = 0

    def __call__(self, what: str, done: int, whole: int) -> None:
        """Show the progress, at most every `_EVERY` seconds."""
        if not self._shows or time.monotonic() < self._at:
            return
        self._at = time.monotonic() + _EVERY
        self._write(f"{what}: {done * 100 // whole}%" if whole else f"{what}: {done}")

    def clear(self) -> None:
        """Erase the line."""
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(text)


def copy(call: Call) -> Reply:
    """Copy the yard, compare both, and return what was copied."""
    given = call.given
    source, target = given.words
    ticker = Ticker()
    try:
        copied = opening.copy(source, target, with_claims=given.flag("with-claims"), progress=ticker)
    finally:
        ticker.clear()
    for warning in copied.warnings:
        remark(f"taskyard: warning: {warning}")
    return Reply(copied.as_dict(), lambda: _page(copied))


def _page(copied: Copied) -> str:
    from shlex import quote

    what = f"{copied.tasks} task{'s'[: copied.tasks != 1]} and {copied.events} event{'s'[: copied.events != 1]}"
    if copied.files:
        what += f", {copied.files} file{'s'[: copied.files != 1]}"
    word = "were there already" if copied.was_complete else "were copied"
    return (
        f"{what} {word}: both yards are the same, and both are paused.\n"
        f"Have one of them go on, and never both: taskyard unpause --yard {quote(copied.target)}"
    )


COMMANDS = {
    "copy": Command(
        copy,
        "Copy a paused yard with all that it tells (ids, fences, history, results, notes, keys, events, settings) to another one, between "
        "directories and PostgreSQL. TO is made, or is empty; no other process can open it before the copy is whole. Killed at any moment, the "
        "same command goes on where it was. At the end both yards are compared, task by task and event by event, and the exit code is 0 only "
        "if they are the same. FROM is never changed; TO is paused as well, so that never both hand out work. While tasks are being worked on "
        "FROM is refused: wait for them, or copy the claims too.",
        (
            ("taskyard pause", "hand out nothing more; then wait until nothing is processing"),
            ("taskyard copy .taskyard 'postgresql://crew@db/work?project=web'", "from this directory into a database"),
            ("taskyard copy 'postgresql://crew@db/work?project=web' /srv/yard", "and back into a new directory"),
        ),
        words="FROM TO",
        least=2,
        most=2,
        options=(
            Option(
                "--with-claims",
                None,
                "copy tasks that are held as they are held: their handles are good in TO, with a whole lease from then on",
            ),
        ),
    ),
}
