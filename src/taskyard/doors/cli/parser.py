"""The grammar of a command line and its parser: options in any place, words in order, and no guesses.

Not argparse: it costs a claim 3.5 ms of its 30 (measured: an empty interpreter takes 9). It also refuses a value that
begins with a dash (`--reason -1`), and words between options (`wait A --timeout 5 B`).
"""

from __future__ import annotations

from taskyard.core import times
from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.doors.cli.replies import Call, Reply


class Option:
    """`--name VALUE`, or `--name` alone where it has no value; `many` may be given several times.

    A value in brackets (`[DIR]`) may be left out, and is given as `--name=DIR`.
    """

    __slots__ = ("about", "many", "name", "value")

    def __init__(self, name: str, value: str | None, about: str, many: bool = False) -> None:
        self.name = name
        self.value = value
        self.about = about
        self.many = many


class Command:
    """One verb: its function, its words and options, and its help."""

    __slots__ = ("about", "examples", "lasts", "least", "most", "options", "run", "spare", "words")

    def __init__(
        self,
        run: Callable[[Call], Reply | int | None],
        about: str,
        examples: Sequence[tuple[str, str]],
        *,
        words: str = "",
        least: int = 0,
        most: int | None = 0,
        options: Sequence[Option] = (),
        spare: str = "quote texts that have spaces",
        lasts: bool = False,
    ) -> None:
        self.run = run
        self.about = about
        self.examples = examples
        self.words = words
        self.least = least
        self.most = most
        self.options = options
        self.spare = spare
        """The hint of the error for a word too many."""
        self.lasts = lasts
        """Whether it goes on until it is stopped, or reads so much that to load what reads faster is worth it."""

    def takes_over(self, name: str) -> bool:
        """Return whether this verb gives a global option a meaning of its own."""
        return any(option.name == name for option in self.options)


class Given:
    """The parsed words and options of a command line."""

    __slots__ = ("before_dashes", "values", "wants_help", "wants_version", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.before_dashes: int | None = None
        """How many of the words came before `--`; None without it."""
        self.wants_help = False
        self.wants_version = False

    def word(self, position: int) -> str | None:
        """Return the word at this position, if there is one."""
        return self.words[position] if position < len(self.words) else None

    def flag(self, name: str) -> bool:
        """Return whether the option was given."""
        return f"--{name}" in self.values

    def text(self, name: str) -> str | None:
        """Return the option's value; the last one counts."""
        return self.values.get(f"--{name}", [None])[-1]

    def texts(self, name: str) -> list[str] | None:
        """Return every value of an option that may be given several times."""
        return self.values.get(f"--{name}")

    def integer(self, name: str) -> int | None:
        """Return the option's value as a whole number."""
        text = self.text(name)
        if text is None:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
            raise Invalid(f"--{name} must be a whole number, not {ascii(text)[:40]}")
        return int(text)

    def number(self, name: str) -> float | None:
        """Return the option's value as a number."""
        text = self.text(name)
        try:
            return None if text is None else times.numeral(text)
        except ValueError:
            raise Invalid(f"--{name} must be a number, not {ascii(text)[:40]}") from None

    def seconds(self, name: str, least: float = 0.0) -> float | None:
        """Return the option's value as a duration in seconds; it may be written as `10m`, `2h` or `1d`."""
        text = self.text(name)
        return None if text is None else times.seconds(text, f"--{name}", least=least)


GLOBAL = (
    Option("--json", None, "answer with exactly one JSON value on stdout"),
    Option(
        "--yard",
        "URL",
        "which yard: a path, file:, memory:, postgresql:// or http:// (else $TASKYARD, else the nearest .taskyard upward)",
    ),
    Option("--worker", "NAME", "who I am (else $TASKYARD_WORKER, else $AGENT_ID, else a name unique to this process)"),
)
_ABOUT = ("-h", "--help", "--version")


NOTHING = Command(lambda _: None, "", ())  # the program without a verb: only --help and --version


def split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Return the global options before the verb, the verb, and the rest."""
    with_value = {option.name for option in GLOBAL if option.value}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        _stands_before(words[position])
        position += 2 if words[position] in with_value else 1
    if position >= len(words):
        return words, None, []
    return words[:position], words[position], words[position + 1 :]


def _stands_before(word: str) -> None:
    names = [option.name for option in GLOBAL]
    if word.partition("=")[0] not in (*names, *_ABOUT):
        raise Invalid(
            f"{ascii(word)[:60]} cannot stand before the verb",
            hint=f"only {', '.join(names)}, --help and --version can",
        )


def parse(name: str, command: Command, words: list[str]) -> Given:
    """Parse the words by this command's grammar; raise `Invalid` for a word or an option that it does not have."""
    options = {option.name: option for option in (*GLOBAL, *command.options)}
    given = Given()
    rest = iter(words)
    for word in rest:
        if word == "--":
            given.before_dashes = len(given.words)
            given.words.extend(rest)
        elif word in _ABOUT:
            given.wants_version = word == "--version"
            given.wants_help = not given.wants_version
            return given
        elif not word.startswith("-") or word == "-" or " " in word.partition("=")[0]:
            given.words.append(word)
        else:
            _take(name, command, given, options, word, rest)
    _count(name, command, given)
    return given


def _take(
    name: str, command: Command, given: Given, options: dict[str, Option], word: str, rest: Iterator[str]
) -> None:
    key, equals, value = word.partition("=")
    option = options.get(key)
    if option is None:
        raise Invalid(f"{name} has no option {ascii(key)[1:-1]}", hint=_known(name, command, key, options))
    if option.value is None:
        if equals:
            raise Invalid(f"{key} takes no value")
        value = ""
    elif not equals and option.value.startswith("["):
        value = ""
    elif not equals:
        following = next(rest, None)
        if following is None or following in options or following in _ABOUT:
            hint = f"write {key}={following} if that is the value" if following else None
            raise Invalid(f"{key} needs a value: {key} {option.value}", hint=hint)
        value = following
    given.values.setdefault(key, []).append(value)


def _known(name: str, command: Command, key: str, options: dict[str, Option]) -> str:
    from taskyard.doors.cli import other_words

    meant = other_words.option(key, list(options))
    if meant is not None:
        return f"here that is {meant}"
    return f"{_usage(name, command)}, with {', '.join(options)}; put -- before words that begin with a dash"


def _usage(name: str, command: Command) -> str:
    return f"usage: taskyard {name} {command.words}".rstrip()


def _count(name: str, command: Command, given: Given) -> None:
    usage = _usage(name, command)
    if len(given.words) < command.least:
        raise Invalid(f"{name} needs {command.words}", hint=usage)
    if command.most is not None and len(given.words) > command.most:
        extra = ascii(given.words[command.most])[:60]
        raise Invalid(f"{name} got a word too many: {extra}", hint=f"{usage} ({command.spare})")
