"""Removes scratch projects whose run was killed: marked as scratch, and with a free lock."""

from __future__ import annotations

import json
import time

from taskyard.stores.postgres import driver, queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.postgres.address import Address
    from taskyard.stores.postgres.watched_connection import WatchedConnection

MARK = "scratch"
"""The setting that marks a scratch project. Its value is the project's own name, so that no copy of it counts as one."""
_PATIENCE = 5.0  # seconds in which a run that lost its connection takes its lock again
_LOOK = 0.25
_PARTS = (
    "task",
    "body",
    "ended",
    "record",
    "event",
    "key",
    "need",
    "used",
    "pace",
    "token",
    "heartbeat",
    "asked",
    "mission",
    "schedule",
    "the_project",
)


def clear(connection: WatchedConnection) -> list[str]:
    """Remove every scratch project in this database whose run is dead; return their names."""
    found = {project: _liveness(connection, project) for project, _ in _marked(connection)}
    suspects = {project: last for project, (lives, last) in found.items() if not lives}
    end = time.monotonic() + _PATIENCE
    while suspects and time.monotonic() < end:
        time.sleep(_LOOK)
        suspects = {
            project: last for project, last in suspects.items() if _liveness(connection, project) == (False, last)
        }
    removed = []
    for project, name in _marked(connection):
        if project in suspects and _removed(connection, name, project):
            removed.append(name)
    return removed


def lives(connection: WatchedConnection, project: int) -> bool:
    """Whether a run holds this project's lock."""
    return _liveness(connection, project)[0]


def remove(address: Address) -> None:
    """Remove the scratch project with all its rows; its own run must have ended."""
    with driver.connect(address) as connection:
        try:
            _removed(connection, address.project)
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None


def _marked(connection: WatchedConnection) -> list[tuple[int, str]]:
    """Return the projects with the scratch mark; no project made by a user has it."""
    found = []
    for project, name, settings in connection.rows(queries.load("scratch")["candidates"], {}):
        try:
            given = json.loads(settings)
        except ValueError:
            continue
        if isinstance(given, dict) and given.get(MARK) == name:
            found.append((project, name))
    return found


def _liveness(connection: WatchedConnection, project: int) -> tuple[bool, Any]:
    """Return whether the run holds its lock, and the number of its last event."""
    [(lives, last)] = connection.rows(queries.load("scratch")["liveness"], {"project": project})
    return lives, last


def _removed(connection: WatchedConnection, name: str, dead: int | None = None) -> bool:
    """Return whether the project was removed; with `dead`, only if its lock is free at this moment."""
    statements = queries.load("scratch")
    with connection.transaction():
        if dead is not None and connection.rows(statements["lock_dead"], {"project": dead}) != [(True,)]:
            return False
        for part in _PARTS:
            connection.rows(statements[part], {"name": name})
    return True
