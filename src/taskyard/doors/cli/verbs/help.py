"""The text of `--help`, made from the same tables that the command line is parsed with."""

from __future__ import annotations

from taskyard.doors.cli import parser, verbs
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTH = 79  # of the 80 columns that the narrowest usual terminal has
_EXITS = "0 ok, 1 failure, 2 usage, 3 nothing ready, 4 claim lost, 5 timed out, 6 not found, 7 conflict, 8 unavailable"


def program() -> str:
    """Return the help of the program: the six verbs of a worker first, the others in groups."""
    parts = ["Hand work to a crew of agents through nothing but a directory.", "usage: taskyard VERB [WORDS] [OPTIONS]"]
    for title, group in verbs.GROUPS.items():
        parts.append(f"{title}:\n" + _columns((name + _aliases(name), summary) for name, (_, summary) in group.items()))
    parts.append("Options of every verb, before or after it:\n" + _options((*parser.GLOBAL, _VERSION, _HELP)))
    parts.append("Exit codes:\n" + _wrapped(_EXITS, "  "))
    parts.append(
        "'taskyard help VERB' tells more, with examples. The first minute:\n  taskyard init && taskyard add build && taskyard claim"
    )
    return "\n\n".join(parts)


def verb(name: str) -> str:
    """Return the help of one verb."""
    called = verbs.called(name)
    command = verbs.command(called)
    own = {option.name for option in command.options}
    usage = " ".join(("usage: taskyard", called, *filter(None, (command.words,)), "[OPTIONS]"))
    parts = [usage, _wrapped(command.about)]
    others = [alias for alias, meant in verbs.ALIASES.items() if meant == called]
    if others:
        parts.append(f"Also called: {', '.join(others)}")
    if command.options:
        parts.append("Options:\n" + _options(command.options))
    parts.append(
        "Options of every verb:\n" + _options([option for option in (*parser.GLOBAL, _HELP) if option.name not in own])
    )
    parts.append("\n".join(("Examples:", *(f"  {line}\n      {meaning}" for line, meaning in command.examples))))
    return "\n\n".join(parts)


def about(call: Call) -> Reply:
    """Return the help of the program, or of one verb."""
    name = call.given.word(0)
    text = program() if name is None else verb(name)
    return Reply({"help": text}, lambda: text)


def version(_: Call | None = None) -> Reply:
    """Return the version of the program."""
    from taskyard import __version__

    return Reply({"version": __version__}, lambda: f"taskyard {__version__}")


_HELP = parser.Option("--help", None, "show this, and stop (-h)")
_VERSION = parser.Option("--version", None, "show the version, and stop")


def _aliases(name: str) -> str:
    others = [alias for alias, meant in verbs.ALIASES.items() if meant == name]
    return f" ({', '.join(others)})" if others else ""


def _options(options: Iterable[parser.Option]) -> str:
    return _columns(
        (f"{option.name} {option.value or ''}".rstrip(), option.about + (" (repeatable)" if option.many else ""))
        for option in options
    )


def _columns(rows: Iterable[tuple[str, str]]) -> str:
    left = 26
    lines = []
    for name, about in rows:
        text = _wrapped(about, " " * (left + 2))
        lines.append(f"  {name.ljust(left - 1)} {text.lstrip()}" if len(name) < left else f"  {name}\n{text}")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> str:
    from textwrap import fill

    return fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


COMMANDS = {
    "help": parser.Command(
        about,
        "Show which verbs there are, or all about one of them: its words, its options and examples.",
        (("taskyard help", "the verbs"), ("taskyard help claim", "the same as 'taskyard claim --help'")),
        words="[VERB]",
        most=1,
    ),
    "version": parser.Command(
        version, "Show the version of this program.", (("taskyard version --json", '{"version": "..."}'),)
    ),
}
