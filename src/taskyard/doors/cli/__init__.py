"""The command line: finds the verb, parses its options, calls the Yard, and prints the answer as text or as JSON.

Start-up time matters: only the module of the called verb is imported, and `claim` imports nothing that it does not need.
`replies` turns every error that a verb raises into an exit code and a message.
"""

from __future__ import annotations

import os
import sys

from taskyard.core.errors import Invalid, TaskyardError
from taskyard.doors.cli import replies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.doors.cli.parser import Command, Given


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        replies.prepare_streams()
        return _answered(words, as_json)
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            replies.remark(f"taskyard: interrupted: {interrupt}")
        from taskyard.core.signals import INTERRUPTED

        return getattr(interrupt, "code", INTERRUPTED)
    except replies.OutputLost as lost:
        return lost.code


def _answered(words: list[str], as_json: bool) -> int:
    try:
        return _run(words, as_json)
    except TaskyardError as error:
        return replies.refuse(error, as_json)
    except MemoryError:
        return replies.refuse(replies.TooMuch(), as_json)
    except Exception as error:
        if os.environ.get("TASKYARD_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        return replies.refuse(replies.Unexpected(error), as_json)


def _run(words: list[str], as_json: bool) -> int:
    from taskyard.doors.cli import parser, verbs

    _all_utf8(words)
    before, name, after = parser.split(words)
    if name is None:
        return _without_verb(before, as_json)
    command = verbs.command(name)
    try:
        given = parser.parse(verbs.called(name), command, [*before, *after])
        if given.wants_help or given.wants_version:
            return _about(given.wants_version, name, as_json)
        return _performed(command, given, as_json)
    except TaskyardError as error:
        return replies.refuse(error, as_json, verbs.called(name))


def _performed(command: Command, given: Given, as_json: bool) -> int:
    worker = None if command.takes_over("--worker") else given.text("worker")
    call = replies.Call(given, as_json, worker, brief=not command.lasts)
    try:
        reply = command.run(call)
        if reply is None or isinstance(reply, int):
            return reply or 0  # the verb has printed its answer itself
        return replies.answer(reply, as_json)
    finally:
        call.close()


def _without_verb(before: list[str], as_json: bool) -> int:
    from taskyard.doors.cli import parser

    given = parser.parse("taskyard", parser.NOTHING, before)
    if given.wants_help or given.wants_version:
        return _about(given.wants_version, None, as_json)
    raise Invalid("no verb was given", hint="try 'taskyard ready', or see 'taskyard --help'")


def _about(version: bool, name: str | None, as_json: bool) -> int:
    from taskyard.doors.cli.verbs import help

    if version:
        return replies.answer(help.version(), as_json)
    text = help.program() if name is None else help.verb(name)
    return replies.answer(replies.Reply({"help": text}, lambda: text), as_json)


def _all_utf8(words: list[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise Invalid(f"an argument is not valid UTF-8: {ascii(word)[:80]}", hint="write it in UTF-8") from None
