"""Makes a scratch project for a trial, in the same database as the project that it is named after."""

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

    from taskyard.stores.postgres.watched_connection import WatchedConnection

_DIGITS = 8
_NAME_MOST = 40  # characters of the original project's name in the scratch project's name
_CHECK_EVERY = 1.0  # seconds between two checks


def make(url: str, settings: Mapping[str, object]) -> Scratch:
    """Make a scratch project for the project of this URL, which must exist; the trial's files are in a local folder."""
    address = Address(url)
    word = f"torture-{ids.base32(ids.chance(5 * _DIGITS), _DIGITS)}"
    scratch = Address(address.beside(f"{address.project[:_NAME_MOST]}-{word}"))
    lock = SessionLock(scratch)
    with driver.connect(address) as connection:
        try:
            schema.read_project(connection, address)
            cleared = scratch_cleanup.clear(connection)
            _make(connection, scratch, settings, lock)
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None
    try:
        folder, unlock = _folder(word)
    except OSError as error:
        scratch_cleanup.remove(scratch)
        raise Unavailable(f"no folder can be made for the history: {error.strerror}", hint="set $TMPDIR") from None

    def keep() -> None:
        lock.keep_project()
        unlock()

    def remove() -> None:
        scratch_cleanup.remove(scratch)
        lock.close()

    return Scratch(
        scratch.url,
        folder,
        None,
        prompt_log=True,
        label=scratch.label,
        hold=lock.refresh,
        keep=keep,
        remove=remove,
        cleared=[*cleared, *_clear_folders(folder)],
    )


def _make(connection: WatchedConnection, scratch: Address, settings: Mapping[str, object], lock: SessionLock) -> None:
    """Make the project; it becomes visible together with the lock that shows that its run lives."""
    with connection.transaction():
        try:
            values = {"name": scratch.project, "settings": json.dumps(settings)}
            [(project,)] = connection.rows(queries.load("schema")["make_project"], values)
        except driver.module().errors.InsufficientPrivilege:
            raise Unavailable(
                f"this role cannot make a project in {scratch.where}",
                hint="torture makes one of its own: name the yard with a role that owns the schema",
            ) from None
        lock.take(project)
        if scratch_cleanup.lives(connection, project):
            connection.rows(queries.load("scratch")["mark"], {"project": project, "mark": scratch_cleanup.MARK})


class SessionLock:
    """Shows that the run of a scratch project lives, by a session lock that ends with the last process that has its socket."""

    def __init__(self, address: Address) -> None:
        self._where = address.listen or (None if address.pooler == "transaction" else address.conninfo)
        """How to connect; None behind a pooler, which gives sessions to others: there the lock means nothing."""
        self._address = address
        self._project = 0
        self._connection: WatchedConnection | None = None
        self._due = 0.0

    def take(self, project: int) -> None:
        """Take the lock that shows that the run of this project lives."""
        self._project = project
        if self._where is not None:
            connection = driver.connect(self._address, self._where, again=True)
            if connection.pooled:
                connection.close()
                self._where = None
                return
            self._connection = connection
            self._connection.rows(queries.load("scratch")["hold"], {"project": project})

    def refresh(self) -> None:
        """Take the lock again if the connection broke; the run calls this often, and it checks once in `_CHECK_EVERY` seconds."""
        if self._project == 0 or self._where is None or time.monotonic() < self._due:
            return
        try:
            if self._connection is None:
                self.take(self._project)
            else:
                self._connection.rows("SELECT 1", {})
        except (TaskyardError, driver.module().Error):
            self.close()
        self._due = time.monotonic() + _CHECK_EVERY

    def keep_project(self) -> None:
        """Remove the scratch mark, so that the project stays after its run has ended."""
        try:
            with driver.connect(self._address) as connection:
                connection.rows(
                    queries.load("scratch")["unmark"],
                    {"project": self._project, "mark": scratch_cleanup.MARK},
                )
        except (TaskyardError, driver.module().Error):
            pass  # out of reach: that is what ended the run, and the run reports it
        self.close()

    def close(self) -> None:
        """Close the connection, and so release the lock."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _folder(word: str) -> tuple[str, Any]:
    """Make a folder for the files of the trial; return it with the function that unlocks it."""
    import tempfile

    folder = tempfile.mkdtemp(prefix=f"taskyard-{word}-")
    return folder, run_lock.lock(folder)


def _clear_folders(own: str) -> list[str]:
    """Remove the folders of killed runs from this machine's temporary directory; return their names."""
    parent = os.path.dirname(own)
    others = [os.path.join(parent, name) for name in sorted(os.listdir(parent)) if name.startswith("taskyard-torture-")]
    return [folder for folder in run_lock.dead(others) if folder != own and run_lock.clear(folder)]
