"""Checks whether a crew could start: looks for everything that its file names, and starts nothing."""

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

    from taskyard.doors.cli.verbs.running.crew.config import Config, Member
    from taskyard.port import YardPort

_PLACES = ("id", "kind", "file")


def opened(crew: Config, named: str | None, worker: str | None = None) -> YardPort:
    """Open the crew's yard: the one named on the command line, else in the file, else the default."""
    url = named if named is not None else crew.yard
    yard = opening.open(url, worker)
    if yard.one_process:
        yard.close()
        raise Invalid("a crew is several processes, and a memory: yard is for one", hint="name a directory")
    return yard


@contextmanager
def only_one(crew: Config) -> Iterator[bool]:
    """Yield whether no other crew of this file runs on this machine; True if the filesystem has no locks."""
    with open(crew.path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass
        yield True


def complaints(crew: Config, named: str | None) -> list[str]:
    """Return what keeps this crew from working, a line each; nothing if it could start."""
    found: list[str] = []
    yard_checks = _yard_checks(crew, named, found)
    for member in crew.members:
        for complaint in (*_member_complaints(crew, member), *_check_complaints(crew, member, yard_checks)):
            if complaint not in found:  # several workers of the same table have it once
                found.append(complaint)
    return found


def warnings(crew: Config) -> list[str]:
    """Return what is legal and more likely a mistake; a line each."""
    found = []
    for member in crew.members:
        for name in re.findall(r"\{([a-z_]+)\}", " ".join(member.command)):
            if name not in _PLACES and (name in Task.FIELDS or get_close_matches(name, _PLACES, 1)):
                known = ", ".join(f"{{{place}}}" for place in _PLACES)
                found.append(
                    f"{crew.place(f'{member.key}.command')}: nothing takes the place of {{{name}}}, and the command "
                    f"is given it as it stands (what is filled in: {known}; all else is in the task's JSON)"
                )
    return list(dict.fromkeys(found))


def _yard_checks(crew: Config, named: str | None, complaints: list[str]) -> set[str] | None:
    """Return the names of the yard's own checks; None and a complaint if the yard cannot be opened."""
    try:
        with opened(crew, named) as yard:
            return set(yard.checks)
    except TaskyardError as error:
        where = crew.place("yard") if named is None and crew.yard is not None else "the yard"
        complaints.append(f"{where}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        return None


def _check_complaints(crew: Config, member: Member, yard_checks: set[str] | None) -> Iterator[str]:
    known = {*member.checks, *(yard_checks or ())}
    for name in member.required_checks:
        if yard_checks is not None and name not in known:
            others = f"known here: {', '.join(sorted(known))}; or " if known else ""
            meant = f'{others}write {name} = "COMMAND" under [defaults.checks]'
            yield f"{crew.place(f'{member.key}.checks')}: no check is called {name!a} ({meant})"


def _member_complaints(crew: Config, member: Member) -> Iterator[str]:
    if not os.path.isdir(member.directory):
        yield f"{crew.place(f'{member.key}.directory')}: there is no folder {member.directory}"
        return
    if not has_command(member.command[0], member):
        yield f"{crew.place(f'{member.key}.command')}: {member.command[0]} is no command here: {_where(member.command[0])}"
    for name, command in member.checks.items():
        if not has_command(command[0], member):
            yield f"{crew.place(f'{member.key}.checks.{name}')}: {command[0]} is no command here: {_where(command[0])}"


def has_command(command: str, member: Member) -> bool:
    """Whether this worker could start the command, by its own PATH and from its own directory."""
    if os.sep in command:
        path = os.path.join(member.directory, command)
        return os.path.isfile(path) and os.access(path, os.X_OK)
    return shutil.which(command, path=member.environment.get("PATH", os.environ.get("PATH"))) is not None


def _where(command: str) -> str:
    if os.sep in command:
        return "it is not there, or cannot be executed; a relative path begins in the worker's directory"
    return "it is not on PATH; write its whole path, or ./name for one in the worker's directory"
