"""Scratch projects whose run was killed: found by their mark, seen to be dead by a lock that nobody holds, and removed."""

from __future__ import annotations

import json
import time

from taskyard.stores.postgres import driver, queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.address import Address

MARK = "scratch"
"""The setting that says of a project that it is to be thrown away: its own name, so that no copy of it is meant as well."""
_PATIENCE = 5.0  # seconds in which a run that lost its connection takes its lock again
_LOOK = 0.25
_PARTS = ("task", "body", "ended", "record", "event", "key", "need", "used", "token", "heartbeat", "the_project")


def clear(connection: Connection[Any]) -> list[str]:
    """Remove every scratch project in this database whose run is dead; their names."""
    found = {project: _seen(connection, project) for project, _ in _marked(connection)}
    suspects = {project: last for project, (lives, last) in found.items() if not lives}
    end = time.monotonic() + _PATIENCE
    while suspects and time.monotonic() < end:
        time.sleep(_LOOK)
        suspects = {project: last for project, last in suspects.items() if _seen(connection, project) == (False, last)}
    removed = []
    for project, name in _marked(connection):
        if project in suspects and _removed(connection, name, project):
            removed.append(name)
    return removed


def lives(connection: Connection[Any], project: int) -> bool:
    """Whether a run is seen to live in this project."""
    return _seen(connection, project)[0]


def remove(address: Address) -> None:
    """Let the scratch project go, with all that is in it; nobody is at work there any more."""
    with driver.connect(address) as connection:
        try:
            _removed(connection, address.project)
        except driver.module().Error as error:
            raise driver.refusal(error, connection, address) from None


def _marked(connection: Connection[Any]) -> list[tuple[int, str]]:
    """The projects that say of themselves that they are scratch; what a user made never does."""
    found = []
    for project, name, settings in driver.rows(connection, queries.load("scratch")["candidates"], {}):
        try:
            given = json.loads(settings)
        except ValueError:
            continue
        if isinstance(given, dict) and given.get(MARK) == name:
            found.append((project, name))
    return found


def _seen(connection: Connection[Any], project: int) -> tuple[bool, Any]:
    """Whether its run holds its lock, and what happened last in it."""
    [(lives, last)] = driver.rows(connection, queries.load("scratch")["seen"], {"project": project})
    return lives, last


def _removed(connection: Connection[Any], name: str, dead: int | None = None) -> bool:
    """Whether it is gone: one that is taken for `dead` only if nobody lives there in this very moment."""
    statements = queries.load("scratch")
    with connection.transaction():
        if dead is not None and driver.rows(connection, statements["bury"], {"project": dead}) != [(True,)]:
            return False
        for part in _PARTS:
            driver.rows(connection, statements[part], {"name": name})
    return True
