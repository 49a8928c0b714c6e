"""A scratch project scratch another one: in the same database, under a name that says what it is."""

from __future__ import annotations

import json
import os
import time

from taskyard.core import ids
from taskyard.core.errors import TaskyardError, Unavailable
from taskyard.core.store_records import Scratch
from taskyard.stores import run_lock
from taskyard.stores.postgres import driver, queries, schema, scratch_cleanup
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from psycopg import Connection

_DIGITS = 8
_NAME_MOST = 40  # characters of the project's own name in that of its neighbour
_SEEN_EVERY = 1.0  # seconds


def make(url: str, settings: Mapping[str, object]) -> Scratch:
    """Make one scratch the project of this URL, which must be there; what belongs to the trial is in a local folder."""
    address = Address(url)
    word = f"torture-{ids.base32(ids.chance(5 * _DIGITS), _DIGITS)}"
    scratch = Address(address.beside(f"{address.project[:_NAME_MOST]}-{word}"))
    presence = Presence(scratch)
    with driver.connect(address) as connection:
        try:
            schema.greet(connection, address)
            cleared = scratch_cleanup.clear(connection)
            _make(connection, scratch, settings, presence)
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None
    try:
        folder, end = _folder(word)
    except OSError as error:
        scratch_cleanup.remove(scratch)
        raise Unavailable(f"no folder can be made for the history: {error.strerror}", hint="set $TMPDIR") from None

    def keep() -> None:
        presence.end()
        end()

    def remove() -> None:
        scratch_cleanup.remove(scratch)
        presence.close()

    return Scratch(
        scratch.url,
        folder,
        None,
        prompt_log=True,
        label=scratch.label,
        hold=presence.see,
        keep=keep,
        remove=remove,
        cleared=[*cleared, *_clear_folders(folder)],
    )


def _make(connection: Connection[Any], scratch: Address, settings: Mapping[str, object], presence: Presence) -> None:
    """Make the project; nobody sees it before its run is seen to live."""
    with connection.transaction():
        try:
            values = {"name": scratch.project, "settings": json.dumps(settings)}
            [(project,)] = driver.rows(connection, queries.load("schema")["make_project"], values)
        except driver.module().errors.InsufficientPrivilege:
            raise Unavailable(
                f"this role cannot make a project in {scratch.where}",
                hint="torture makes one of its own: name the yard with a role that owns the schema",
            ) from None
        presence.begin(project)
        if scratch_cleanup.lives(connection, project):
            driver.rows(connection, queries.load("scratch")["mark"], {"project": project, "mark": scratch_cleanup.MARK})


class Presence:
    """That the run of a scratch project lives: a lock of a session, which ends with the last process that has its socket."""

    def __init__(self, address: Address) -> None:
        self._where = address.listen or (None if address.pooler == "transaction" else address.conninfo)
        """How to connect; None behind a pooler, which gives sessions to others: there nobody can tell."""
        self._address = address
        self._project = 0
        self._line: Connection[Any] | None = None
        self._due = 0.0

    def begin(self, project: int) -> None:
        """From here on the run of this project is seen to live."""
        self._project = project
        if self._where is not None:
            line = driver.connect(self._address, self._where, again=True)
            if line.pooled:
                line.close()
                self._where = None
                return
            self._line = line
            driver.rows(self._line, queries.load("scratch")["live"], {"project": project})

    def see(self) -> None:
        """Begin anew where the connection broke; said all the time, it looks now and then."""
        if self._project == 0 or self._where is None or time.monotonic() < self._due:
            return
        try:
            if self._line is None:
                self.begin(self._project)
            else:
                driver.rows(self._line, "SELECT 1", {})
        except (TaskyardError, driver.module().Error):
            self.close()
        self._due = time.monotonic() + _SEEN_EVERY

    def end(self) -> None:
        """The run has ended and its project is to stay: it is nobody's to remove any more."""
        try:
            with driver.connect(self._address) as connection:
                driver.rows(
                    connection,
                    queries.load("scratch")["unmark"],
                    {"project": self._project, "mark": scratch_cleanup.MARK},
                )
        except (TaskyardError, driver.module().Error):
            pass  # out of reach: that is what broke the run off, and is told as such
        self.close()

    def close(self) -> None:
        """Let go."""
        if self._line is not None:
            self._line.close()
        self._line = None


def _folder(word: str) -> tuple[str, Any]:
    """A new folder for what the processes write down, and what ends its run."""
    import tempfile

    folder = tempfile.mkdtemp(prefix=f"taskyard-{word}-")
    return folder, run_lock.keep(folder)


def _clear_folders(own: str) -> list[str]:
    """Remove what runs that were killed on this machine have left in the place for temporary files."""
    parent = os.path.dirname(own)
    others = [os.path.join(parent, name) for name in sorted(os.listdir(parent)) if name.startswith("taskyard-torture-")]
    return [folder for folder in run_lock.dead(others) if folder != own and run_lock.clear(folder)]
