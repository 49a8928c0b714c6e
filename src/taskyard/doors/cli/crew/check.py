"""Whether a crew could start: what its file names is looked for, and nothing is started."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from taskyard import opening
from taskyard.core.errors import Invalid, TaskyardError
from taskyard.core.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.doors.cli.crew.config import Config, Member
    from taskyard.port import YardPort

_PLACES = ("id", "kind", "file")


def opened(roster: Config, named: str | None, worker: str | None = None) -> YardPort:
    """The yard that the crew works in: the one named on the command line, else in the file, else as everywhere."""
    url = named if named is not None else roster.yard
    yard = opening.open(url, worker)
    if yard.one_process:
        yard.close()
        raise Invalid("a crew is several processes, and a memory: yard is for one", hint="name a directory")
    return yard


@contextmanager
def only_one(roster: Config) -> Iterator[bool]:
    """Whether no other crew of this file runs on this machine; nobody can tell where its filesystem has no locks."""
    with open(roster.path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True


def complaints(roster: Config, named: str | None) -> list[str]:
    """What keeps this crew from working, a line each; none if it could start."""
    found: list[str] = []
    yards = _checks_of_the_yard(roster, named, found)
    for member in roster.members:
        for complaint in (*_of_a_member(roster, member), *_of_its_checks(roster, member, yards)):
            if complaint not in found:  # several of the same have it once
                found.append(complaint)
    return found


def doubts(roster: Config) -> list[str]:
    """What may be meant as it stands, and is more likely a slip; a line each."""
    found = []
    for member in roster.members:
        for name in re.findall(r"\{([a-z_]+)\}", " ".join(member.command)):
            if name not in _PLACES and (name in Task.FIELDS or get_close_matches(name, _PLACES, 1)):
                known = ", ".join(f"{{{place}}}" for place in _PLACES)
                found.append(
                    f"{roster.place(f'{member.key}.command')}: nothing takes the place of {{{name}}}, and the command "
                    f"is given it as it stands (what is filled in: {known}; all else is in the task's JSON)"
                )
    return list(dict.fromkeys(found))


def _checks_of_the_yard(roster: Config, named: str | None, complaints: list[str]) -> set[str] | None:
    """The names of the yard's own checks, or None and a complaint where there is no yard to ask."""
    try:
        with opened(roster, named) as yard:
            return set(yard.checks)
    except TaskyardError as error:
        where = roster.place("yard") if named is None and roster.yard is not None else "the yard"
        complaints.append(f"{where}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        return None


def _of_its_checks(roster: Config, member: Member, yards: set[str] | None) -> Iterator[str]:
    known = {*member.checks, *(yards or ())}
    for name in member.asks_for:
        if yards is not None and name not in known:
            others = f"known here: {', '.join(sorted(known))}; or " if known else ""
            meant = f'{others}write {name} = "COMMAND" under [defaults.checks]'
            yield f"{roster.place(f'{member.key}.checks')}: nobody knows the check {name!a} ({meant})"


def _of_a_member(roster: Config, member: Member) -> Iterator[str]:
    if not os.path.isdir(member.directory):
        yield f"{roster.place(f'{member.key}.directory')}: there is no folder {member.directory}"
        return
    if not found(member.command[0], member):
        yield f"{roster.place(f'{member.key}.command')}: {member.command[0]} is no command here: {_where(member.command[0])}"
    for name, command in member.checks.items():
        if not found(command[0], member):
            yield f"{roster.place(f'{member.key}.checks.{name}')}: {command[0]} is no command here: {_where(command[0])}"


def found(command: str, member: Member) -> bool:
    """Whether this worker could start the command, by its own PATH and from its own directory."""
    if os.sep in command:
        path = os.path.join(member.directory, command)
        return os.path.isfile(path) and os.access(path, os.X_OK)
    return shutil.which(command, path=member.environment.get("PATH", os.environ.get("PATH"))) is not None


def _where(command: str) -> str:
    if os.sep in command:
        return "it is not there, or cannot be executed; a relative path begins in the worker's directory"
    return "it is not on PATH; write its whole path, or ./name for one in the worker's directory"
