"""What a verb gets (`Call`), what it gives back (`Reply`), and how either a reply or an error is said, once for all."""

from __future__ import annotations

import json
import os
import sys

from taskyard import opening
from taskyard.core import words
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.task import Handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.doors.cli.parser import Given
    from taskyard.port import YardPort
    from taskyard.yard import Yard

# What to do next where the error itself has nothing better to say.
HINTS = {
    "invalid": "put it right and say it again; 'taskyard VERB --help' tells what is allowed",
    "timed_out": "wait longer, or look what holds it up with 'taskyard show ID'",
    "not_found": "'taskyard list' shows the tasks there are",
    "conflict": "'taskyard show ID' tells where the task stands",
    "unavailable": "check that the yard is there and can be written, and try again",
    "internal": "try again with TASKYARD_DEBUG=1, which shows where it happened",
}
VERSION = 1  # of the JSON envelope
BROKEN_PIPE = 141  # as if SIGPIPE had ended us, which is what happens to other programs
EXITS = {
    "invalid": 2,
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
        """What keeps tasks from being handed out, as far as it is known: `paused`."""


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
    """The answer could not be written; whoever should read it has gone, or the disk is full."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Reply:
    """The answer of a verb: its JSON, how people read it (made only when it is asked for), and the exit code.

    `stands` is what nobody could find out by saying it again, for stderr where the answer itself cannot be written.
    """

    __slots__ = ("code", "data", "stands", "text")

    def __init__(self, data: Any, text: Callable[[], str], code: int = 0, stands: str = "") -> None:
        self.data = data
        self.text = text
        self.code = code
        self.stands = stands


class Call:
    """One command as its verb sees it: what was given, and the yard, which is opened when it is first used."""

    __slots__ = ("_yard", "as_json", "given", "worker")

    def __init__(self, given: Given, as_json: bool, worker: str | None) -> None:
        self.given = given
        self.as_json = as_json
        self.worker = None if worker is None else words.worker(worker)
        self._yard: YardPort | None = None

    @property
    def yard(self) -> YardPort:
        """The yard that is meant."""
        if self._yard is None:
            self._yard = opening.open(self.given.text("yard"), self.worker)
        return self._yard

    def open_to_audit(self) -> YardPort:
        """The yard that is meant, whatever is wrong with it."""
        self._yard = opening.open_to_audit(self.given.text("yard"), self.worker)
        return self._yard

    def make_yard(self, url: str | None, durability: str | None, shared: bool, group: str | None) -> Yard:
        """The yard of this URL, made if it is not there."""
        self._yard = made = opening.init(url, self.worker, durability, shared=shared or None, group=group)
        return made

    def handle(self, given: str | None) -> str:
        """The handle that was given, else that of the claim this command runs under; its form is checked before anything is opened.

        A task's id, which most people mistake for it, is the yard's to refuse: it knows whether its worker has lost the handle.
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
        """Look for others that end like this task, and give it the short name that tells it from them."""
        try:
            [task.short] = self.yard.shorten([task.id])
        except TaskyardError:
            return  # what was asked for is done, and must be told

    def close(self) -> None:
        """Let go of the yard."""
        if self._yard is not None:
            self._yard.close()


def prepare_streams() -> None:
    """Have what a stream's encoding cannot express written as an escape, instead of a crash."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def answer(reply: Reply, as_json: bool) -> int:
    """Say the reply on stdout and give the exit code."""
    try:
        say(encoded({"v": VERSION, "ok": True, "data": reply.data}) if as_json else reply.text())
    except OutputLost:
        if reply.stands:
            remark(f"taskyard: {reply.stands}")
        raise
    return reply.code


def refuse(error: TaskyardError, as_json: bool) -> int:
    """Say the error and what to do next, as JSON on stdout or for people on stderr, and give the exit code."""
    hint = error.hint or HINTS.get(error.code)
    if as_json:
        told = {"code": error.code, "message": error.message, "hint": hint}
        why = getattr(error, "why", None)
        say(encoded({"v": VERSION, "ok": False, "error": {**told, "why": why} if why else told}))
    else:
        remark(f"taskyard: {error.message}" + (f"\n  {hint}" if hint else ""))
    return EXITS.get(error.code, 1)


def say(text: str) -> None:
    """Print on stdout at once, so that an error of writing is seen here and not while the interpreter ends."""
    if not text:
        return
    if sys.stdout is None:
        remark("taskyard: the answer cannot be written: stdout is closed")
        raise OutputLost(1)
    try:
        # At once, also where nothing is buffered: a reader may go after the line that it wanted.
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
    """Print on stderr: errors, warnings, and what is not part of the answer."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        return  # whoever listened has gone; what was asked for goes on


def encoded(value: Any) -> str:
    """The value as one line of JSON that stdout's encoding can carry."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _drop_output() -> None:
    """Send what is still buffered nowhere: a closed pipe would be complained about once more at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
