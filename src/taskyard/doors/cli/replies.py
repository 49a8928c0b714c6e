"""What a verb gets (`Call`), what it returns (`Reply`), and how replies and errors are printed."""

from __future__ import annotations

import os
import sys

from taskyard import opening
from taskyard.core import words
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.json_codec import encode
from taskyard.core.task import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.doors.cli.parser import Given
    from taskyard.port import YardPort
    from taskyard.yard import Yard

# The hint of each error code, for errors without a hint of their own; VERB stands for the verb that was called.
HINTS = {
    "invalid": "correct it and repeat the command; 'taskyard help VERB' lists what is allowed",
    "timed_out": "wait longer, or see what holds it up with 'taskyard why ID'",
    "not_found": "'taskyard list' shows the tasks there are",
    "conflict": "'taskyard show ID' shows where the task stands",
    "unavailable": "check that the yard is there and can be written, and try again",
    "internal": "try again with TASKYARD_DEBUG=1, which shows where it happened",
}
VERSION = 1  # of the JSON envelope
BROKEN_PIPE = 141  # as if SIGPIPE had ended this process, as it ends other programs
EXITS = {
    "invalid": 2,
    "denied": 2,
    "nothing_ready": 3,
    "claim_lost": 4,
    "timed_out": 5,
    "not_found": 6,
    "ambiguous": 6,
    "conflict": 7,
    "full": 7,
    "unavailable": 8,
}


class NothingReady(TaskyardError):
    """Nothing is ready."""

    code = "nothing_ready"

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, why: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.why = why
        """Why no task can be claimed: the facts of `yard.why`."""


class Unexpected(TaskyardError):
    """An error that Taskyard did not foresee."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"unexpected {type(error).__name__}: {error}", hint="TASKYARD_DEBUG=1 shows where; please report it"
        )


class TooMuch(TaskyardError):
    """More memory is needed than there is."""

    def __init__(self) -> None:
        super().__init__(hint="say it in smaller parts, such as a file of fewer lines")


class OutputLost(BaseException):
    """The answer could not be written: its reader has closed the pipe, or the disk is full."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Reply:
    """The answer of a verb: its JSON, its text (made only if it is printed), and the exit code.

    `stands` is printed on stderr if the answer cannot be written: it states a change that running the command again
    would not report.
    """

    __slots__ = ("code", "data", "stands", "text")

    def __init__(self, data: Any, text: Callable[[], str], code: int = 0, stands: str = "") -> None:
        self.data = data
        self.text = text
        self.code = code
        self.stands = stands


class Call:
    """One command for its verb: the parsed command line, and the yard, which is opened when it is first used."""

    __slots__ = ("_brief", "_yard", "as_json", "given", "worker")

    def __init__(self, given: Given, as_json: bool, worker: str | None, *, brief: bool) -> None:
        self._brief = brief
        self.given = given
        self.as_json = as_json
        self.worker = None if worker is None else words.worker(worker)
        self._yard: YardPort | None = None

    @property
    def yard(self) -> YardPort:
        """The yard of `--yard`, else the one that `opening.locate` finds."""
        if self._yard is None:
            self._yard = opening.open_for_command(self.given.text("yard"), self.worker, brief=self._brief)
        return self._yard

    def open_to_audit(self) -> YardPort:
        """Open the same yard for an audit, even if it is damaged."""
        self._yard = opening.open_to_audit(self.given.text("yard"), self.worker)
        return self._yard

    def open_spool(self) -> YardPort:
        """Open the same yard without replaying anything of its spool on the way."""
        self._yard = opening.open_spool(self.given.text("yard"), self.worker)
        return self._yard

    def make_yard(self, url: str | None, durability: str | None, shared: bool, group: str | None) -> Yard:
        """Return the yard of this URL, and make it if it does not exist."""
        self._yard = made = opening.init(url, self.worker, durability, shared=shared or None, group=group)
        return made

    def handle(self, given: str | None) -> str:
        """Return the given handle, else $TASKYARD_CLAIM; a well-formed one is returned without opening the yard.

        People often give a task's id instead. The yard refuses that, because it knows whether this worker holds the task and
        has lost its handle.
        """
        text = os.environ.get("TASKYARD_CLAIM") or None if given is None else given
        if text is None:
            raise Invalid(
                "no claim was named", hint="give the handle that 'taskyard claim' printed, or set TASKYARD_CLAIM to it"
            )
        try:
            return str(Handle.parse(text))
        except Invalid as malformed:
            try:
                yard = self.yard
            except TaskyardError:
                raise malformed from None
            return yard.held(text).handle

    def name(self, task: Task) -> None:
        """Give the task a short name that no other task has; this reads the yard."""
        try:
            [task.short] = self.yard.shorten([task.id])
        except TaskyardError:
            return  # the verb has succeeded, and its answer must be printed

    def close(self) -> None:
        """Close the yard."""
        if self._yard is not None:
            for notice in self._yard.notices:
                remark(f"taskyard: {notice}")
            self._yard.close()


def prepare_streams() -> None:
    """Set stdout and stderr to write escapes for characters that their encoding lacks, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def answer(reply: Reply, as_json: bool) -> int:
    """Print the reply on stdout and return the exit code."""
    try:
        say(encoded({"v": VERSION, "ok": True, "data": reply.data}) if as_json else reply.text())
    except OutputLost:
        if reply.stands:
            remark(f"taskyard: {reply.stands}")
        raise
    return reply.code


def refuse(error: TaskyardError, as_json: bool, verb: str = "VERB") -> int:
    """Print the error and its hint, as JSON on stdout or as text on stderr, and return the exit code."""
    hint = error.hint or HINTS.get(error.code, "").replace("VERB", verb) or None
    if as_json:
        fields = {"code": error.code, "message": error.message, "hint": hint}
        why = getattr(error, "why", None)
        say(encoded({"v": VERSION, "ok": False, "error": {**fields, "why": why} if why else fields}))
    else:
        remark(f"taskyard: {error.message}" + (f"\n  {hint}" if hint else ""))
    return EXITS.get(error.code, 1)


def say(text: str) -> None:
    """Print on stdout and flush, so that a write error is raised here and not while the interpreter ends."""
    if not text:
        return
    if sys.stdout is None:
        remark("taskyard: the answer cannot be written: stdout is closed")
        raise OutputLost(1)
    try:
        # One write for text and newline, even if stdout is unbuffered: a reader may close the pipe after the line it wanted.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise OutputLost(BROKEN_PIPE) from None
    except OSError as error:
        _drop_output()
        remark(f"taskyard: the answer cannot be written: {error.strerror or error}")
        raise OutputLost(1) from None


def remark(text: str) -> None:
    """Print on stderr: errors, warnings, and all that is not part of the answer."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        return  # the reader of stderr has gone; the command goes on


def encoded(value: Any) -> str:
    """Return the value as one line of JSON in characters that stdout's encoding has."""
    text = encode(value)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        import json

        return json.dumps(value)
    return text


def _drop_output() -> None:
    """Send buffered output to the null device: else the interpreter would report the closed pipe again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
