"""Reads a crew's file: which workers there are, and how each is run. Errors name the line and the key."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from taskyard.core import draft, times, words
from taskyard.core.errors import Invalid
from taskyard.worker.options import CONCURRENCY_MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = TypeVar("Value")
COUNT_MOST = 1000
FILE_MOST = 1 << 20  # bytes: a device has no end
RESTARTS = ("always", "on-failure", "never")
_RESERVED = frozenset(("AGENT_ID", "TASKYARD", "TASKYARD_WORKER"))
_OPERATORS = frozenset(("|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1", "&>"))
_EXAMPLE = '[worker.ada]\ncommand = ["./agent", "{file}"]'


@dataclass(frozen=True, slots=True)
class Member:
    """One worker of the crew, as the file has it."""

    name: str
    command: list[str]
    directory: str
    kinds: list[str]
    concurrency: int
    environment: dict[str, str]
    checks: dict[str, list[str]]
    required_checks: list[str]
    """Checks that must be defined, by name: in the file or in the yard's settings."""
    timeout: float | None
    grace: float
    restart: str
    first_pause: float
    longest_pause: float
    hangs_after: float
    worktree: str | None
    """Where each task gets a git worktree of its own: a folder, "" for beside the checkout, or None for nowhere."""
    key: str
    """Its key in the file: `worker.ada`."""


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file."""

    path: str
    yard: str | None
    members: list[Member]
    place: Callable[[str], str]
    """Returns where a key stands, for messages: `crew.toml, line 7: worker.ada.kinds`."""


def read(path: str) -> Config:
    """Read the crew of this file; raise `Invalid` with what is wrong, and what to write instead."""
    try:
        with open(path, "rb") as file:
            read = file.read(FILE_MOST + 1)
        if len(read) > FILE_MOST:
            raise Invalid(f"{path} is longer than {FILE_MOST} bytes", hint="name the file that has the crew")
        content = read.decode()
        given = tomllib.loads(content)
    except OSError as error:
        raise Invalid(
            f"{path} cannot be read: {error.strerror}", hint="'taskyard crew FILE' needs a file such as crew.toml"
        ) from None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8", hint="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{path} is not TOML: {error}", hint=_syntax_hint(str(error))) from None
    except (ValueError, RecursionError) as error:  # a number of too many digits, or too many nested lists
        raise Invalid(f"{path} cannot be read as TOML: {error}", hint="write it shorter") from None
    return _Reader(path, content).config(given)


def _syntax_hint(message: str) -> str:
    if "Cannot declare" in message or "Cannot overwrite" in message:
        return "every worker, and every key of it, stands there once; use count for several of the same"
    return 'texts stand in quotes, lists in brackets: command = ["./agent", "{file}"]'


def place(path: str, content: str, key: str) -> str:
    """Return where this key stands in the file; the nearest table above it if the key itself is not found."""
    parts = key.split(".")
    line, table, best = 0, "", 0
    for number, text in enumerate(content.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", text)
        if header:
            table = header[1].replace('"', "").replace("'", "")
        assigned = re.match(r"\s*([^\s=\[#][^=]*?)\s*=", text)
        full = table if header else ".".join(filter(None, (table, assigned[1].strip("\"'")))) if assigned else ""
        names = full.split(".") if full else []
        shared = min(len(names), len(parts))
        if shared > best and names[:shared] == parts[:shared]:
            best, line = shared, number
    return f"{path}, line {line}: {key}" if line else f"{path}: {key}"


class _Reader:
    """Reads one file, and knows the place of each key."""

    def __init__(self, path: str, content: str) -> None:
        self._path = path
        self._content = content
        self._folder = os.path.dirname(os.path.abspath(path))
        self._readers: dict[str, Callable[[Any, str], Any]] = {
            "command": self._command,
            "kinds": self._kinds,
            "concurrency": lambda value, key: self._integer(value, key, CONCURRENCY_MOST),
            "count": lambda value, key: self._integer(value, key, COUNT_MOST),
            "environment": self._environment,
            "directory": lambda value, key: self._located(self._text(value, key)),
            "timeout": lambda value, key: self._seconds(value, key, 0.001),
            "grace": self._seconds,
            "restart": self._restart,
            "first_pause": lambda value, key: self._seconds(value, key, 0.01),
            "longest_pause": lambda value, key: self._seconds(value, key, 0.01),
            "hangs_after": lambda value, key: self._seconds(value, key, 0.01),
            "checks": self._checks,
            "worktree": self._worktree,
        }

    def config(self, given: dict[str, Any]) -> Config:
        self._known(given, ("yard", "defaults", "worker"), "")
        yard = None if "yard" not in given else self._yard(self._text(given["yard"], "yard"))
        defaults = self._settings(self._table(given.get("defaults", {}), "defaults"), "defaults", without=("count",))
        tables = self._table(given.get("worker", {}), "worker")
        if not tables:
            self._refuse("", "no worker is named", f"write at least\n{_EXAMPLE}")
        members = []
        for name, table in tables.items():
            members += self._members(name, table, defaults)
        self._all_different(members)
        return Config(self._path, yard, members, self._place)

    def _members(self, name: str, table: Any, defaults: dict[str, Any]) -> list[Member]:
        key = f"worker.{name}"
        if not isinstance(table, dict):
            self._refuse(key, "a worker is a table", f"write\n{_EXAMPLE}")
        own = self._settings(table, key)
        count = own.pop("count", None)
        settings = {**defaults, **own}
        asked = own.pop("checks", {})
        settings["checks"] = {**_named(defaults.get("checks")), **_named(asked)}
        settings["environment"] = {**defaults.get("environment", {}), **own.get("environment", {})}
        required_checks = [name for some in (asked, defaults.get("checks")) if isinstance(some, list) for name in some]
        first = settings.get("first_pause", 1.0)
        longest = settings.get("longest_pause", max(60.0, first))
        if longest < first:
            self._refuse(f"{key}.longest_pause", "it is shorter than first_pause", f"write at least {first:.10g}")
        if "command" not in settings:
            self._refuse(key, "it has no command", f"write what it runs for each task, such as\n{_EXAMPLE}")
        names = [name] if count is None else [f"{name}-{number}" for number in range(1, count + 1)]
        for each in names:
            self._allowed(key, lambda each=each: words.worker(each))  # type: ignore[misc]
        return [
            Member(
                each,
                settings["command"],
                settings.get("directory", self._folder),
                settings.get("kinds", []),
                settings.get("concurrency", 1),
                settings["environment"],
                settings["checks"],
                required_checks,
                settings.get("timeout"),
                settings.get("grace", 10.0),
                settings.get("restart", "always"),
                first,
                longest,
                settings.get("hangs_after", 600.0),
                settings.get("worktree"),
                key,
            )
            for each in names
        ]

    def _settings(self, table: dict[str, Any], key: str, without: tuple[str, ...] = ()) -> dict[str, Any]:
        for name in without:
            if name in table:
                self._refuse(
                    f"{key}.{name}", "it is for one worker alone", f"write it under [worker.NAME], not under [{key}]"
                )
        known = [name for name in self._readers if name not in without]
        self._known(table, known, key)
        return {name: self._readers[name](value, f"{key}.{name}") for name, value in table.items()}

    def _all_different(self, members: list[Member]) -> None:
        seen: dict[str, str] = {}
        for member in members:
            if member.name in seen:
                self._refuse(member.key, f"{member.name} is also one of {seen[member.name]}", "give one another name")
            seen[member.name] = member.key

    # Values

    def _command(self, value: Any, key: str) -> list[str]:
        return self._words(value, key, '["./agent", "{file}"]')

    def _words(self, value: Any, key: str, example: str) -> list[str]:
        if isinstance(value, str):
            try:
                found = shlex.split(value)
            except ValueError as error:
                self._refuse(key, f"{error} in {ascii(value)[:60]}", f"or write a list of words: {example}")
            shell = next((word for word in found if word in _OPERATORS), None)
            if shell is not None:
                self._refuse(key, f"no shell reads this, so {shell} has no meaning", f'write ["sh", "-c", {value!a}]')
        elif isinstance(value, list) and all(isinstance(word, str) for word in value):
            found = value
        else:
            self._refuse(key, f"it must be a text or a list of texts, not {_type_name(value)}", f"write {example}")
        if not found or not found[0]:
            self._refuse(key, "there is no word in it", f"write {example}")
        if any("\0" in word for word in found):
            self._refuse(key, "a word of a command cannot hold a NUL", f"write {example}")
        return list(found)

    def _kinds(self, value: Any, key: str) -> list[str]:
        if not isinstance(value, list) or not value:
            hint = (
                f"write [{value!a}]" if isinstance(value, str) else 'write ["build", "test"], or leave it out for all'
            )
            self._refuse(key, "it must be a list of kinds", hint.replace("'", '"'))
        return [self._allowed(key, lambda kind=kind: words.kind(kind)) for kind in value]  # type: ignore[misc]

    def _environment(self, value: Any, key: str) -> dict[str, str]:
        table = self._table(value, key)
        for name, text in table.items():
            if not name or "=" in name or "\0" in name:
                self._refuse(f"{key}.{name}", "no variable can have this name", "use letters, digits and _")
            if name in _RESERVED:
                meant = (
                    "'yard' at the top of the file says which yard" if name == "TASKYARD" else "it is the worker's name"
                )
                self._refuse(f"{key}.{name}", "the crew sets it for every worker", f"leave it out: {meant}")
            if not isinstance(text, str) or "\0" in text:
                written = str(text).lower() if isinstance(text, bool) else str(text)
                self._refuse(
                    f"{key}.{name}", f"it must be a text, not {_type_name(text)}", f'write {name} = "{written[:40]}"'
                )
        return dict(table)

    def _checks(self, value: Any, key: str) -> dict[str, list[str]] | list[str]:
        """Read commands by name; or a list of names, which must be defined elsewhere."""
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return list(value)
        table = self._table(value, key)
        for name in table:
            self._allowed(f"{key}.{name}", lambda name=name: words.text(name, "a check's name"))  # type: ignore[misc]
            if "=" in name:
                self._refuse(f"{key}.{name}", "no check can have a = in its name", 'write tests = "make test"')
        return {name: self._words(command, f"{key}.{name}", '"make test"') for name, command in table.items()}

    def _restart(self, value: Any, key: str) -> str:
        if value not in RESTARTS:
            self._refuse(key, f"{ascii(value)[:40]} is no restart policy", f"write one of {', '.join(RESTARTS)}")
        return str(value)

    def _worktree(self, value: Any, key: str) -> str | None:
        if isinstance(value, bool):
            return "" if value else None
        return self._located(self._text(value, key))

    def _integer(self, value: Any, key: str, most: int) -> int:
        return self._allowed(key, lambda: draft.integer(value, "it", 1, most))

    def _seconds(self, value: Any, key: str, least: float = 0.0) -> float:
        return self._allowed(key, lambda: times.seconds(value, "it", least=least))

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            self._refuse(key, f"it must be a text, not {_type_name(value)}", "put it in quotes")
        return str(value)

    def _table(self, value: Any, key: str) -> dict[str, Any]:
        if isinstance(value, list) and key == "worker":
            self._refuse(key, "each worker is a table of its own name", f"write\n{_EXAMPLE}\ninstead of [[worker]]")
        if not isinstance(value, dict):
            hint = f"write\n{_EXAMPLE}" if key == "worker" else f"write [{key}] on a line of its own"
            self._refuse(key, f"it must be a table, not {_type_name(value)}", hint)
        return dict(value)

    def _yard(self, text: str) -> str:
        return text if re.match(r"[a-z]+:", text) else self._located(text)

    def _located(self, text: str) -> str:
        return os.path.normpath(os.path.join(self._folder, os.path.expanduser(text)))

    # Errors, and where

    def _known(self, table: Mapping[str, Any], known: Any, key: str) -> None:
        for name in table:
            if name not in known:
                place = ".".join(filter(None, (key, name)))
                self._refuse(place, "there is no such key", f"known here: {', '.join(known)}")

    def _allowed(self, key: str, read: Callable[[], Value]) -> Value:
        try:
            return read()
        except Invalid as error:
            raise Invalid(f"{self._place(key)}: {error.message}", hint=error.hint) from None

    def _refuse(self, key: str, what: str, hint: str) -> NoReturn:
        raise Invalid(f"{self._place(key) if key else self._path}: {what}", hint=hint)

    def _place(self, key: str) -> str:
        return place(self._path, self._content, key)


def _named(checks: Any) -> dict[str, list[str]]:
    return checks if isinstance(checks, dict) else {}


def _type_name(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table", str: "a text"}
    return names.get(type(value), "a time") if value != "" else "an empty one"
