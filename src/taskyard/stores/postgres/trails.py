"""The log, read by snapshots: a cursor says what could be seen when it was given, so nothing that commits late is missed.

A cursor is `epoch/seen` at the end of a reading, and `epoch/seen/now/xid/n` in the middle of one: `seen` and `now` are
snapshots of the database, and the event last given is the n-th, of transaction xid.
"""

from __future__ import annotations

import json

from taskyard import times
from taskyard.errors import Invalid
from taskyard.stores.postgres import queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.store import Trail
    from taskyard.stores.postgres.ground import Ground

_NOTHING = "1:1:"  # a snapshot that could see no transaction of ours
_SNAPSHOT = frozenset("0123456789:,")


class Trails:
    """The log of one store."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def latest(self) -> str:
        """The cursor of the log's end."""
        return f"{self._ground.epoch}/{self._ground.run('looking', 'latest')[0][0]}"

    def events(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """What happened, in order, and the cursor to go on from."""
        seen, now, position = self._parse(trail.cursor)
        more, values = _conditions(trail, seen, now, position)
        statement = queries.load("looking")["log"].format(more=" AND ".join(more))
        values |= {"project": self._ground.project, "limit": trail.limit}
        found = self._ground.pool.run(statement, values, prepare=False)
        now = now or found[0][0]
        page = [row[1:] for row in found if row[1] is not None]
        if len(page) < trail.limit:
            cursor = f"{self._ground.epoch}/{now}"
        else:
            cursor = f"{self._ground.epoch}/{seen}/{now}/{page[-1][0]}/{page[-1][1]}"
        page.sort(key=lambda row: row[1])  # a transaction of long standing may tell of what came after others began
        return [_event(row) for row in page], cursor

    def _parse(self, cursor: str | None) -> tuple[str, str | None, tuple[str, str] | None]:
        if not cursor:
            return _NOTHING, None, None
        epoch, *rest = cursor.split("/")
        if (
            len(rest) not in (1, 4)
            or not all(part and _SNAPSHOT.issuperset(part) for part in rest)
            or not epoch.isdigit()
        ):
            raise Invalid(f"not a cursor: {ascii(cursor)[:60]}", hint="give the 'cursor' of the answer before")
        if int(epoch) != self._ground.epoch or any(part.count(":") != 2 for part in rest[:2]):
            raise Invalid(
                "this cursor is of another time: the database was set back since, or it is of another yard",
                hint="read the log without a cursor, or from a moment on (since)",
            )
        if len(rest) == 1:
            return rest[0], None, None
        return rest[0], rest[1], (rest[2], rest[3])


def _conditions(
    trail: Trail, seen: str, now: str | None, position: tuple[str, str] | None
) -> tuple[list[str], dict[str, Any]]:
    values: dict[str, Any] = {}
    more = ["true"]
    if seen != _NOTHING:
        more += [
            "event.xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot)",
            "NOT pg_visible_in_snapshot(event.xid, %(seen)s::pg_snapshot)",
        ]
        values["seen"] = seen
    if now is not None and position is not None:
        more += [
            "pg_visible_in_snapshot(event.xid, %(now)s::pg_snapshot)",
            "(event.xid, n) > (%(xid)s::xid8, %(n)s::bigint)",
        ]
        values |= {"now": now, "xid": position[0], "n": position[1]}
    if trail.task is not None:
        more.append("task = %(task)s")
        values["task"] = trail.task
    if trail.worker is not None:
        more.append("(worker = %(worker)s OR by = %(worker)s)")
        values["worker"] = trail.worker
    if trail.kind is not None:
        more.append("kind = %(kind)s")
        values["kind"] = trail.kind
    if trail.since is not None:
        more.append("at >= %(since)s")
        values["since"] = trail.since
    if trail.events is not None:
        more.append("event = ANY (%(events)s::text[])")
        values["events"] = sorted(trail.events)
    return more, values


def _event(row: tuple[Any, ...]) -> dict[str, Any]:
    _, _, at, event, task, kind, fence, worker, by, more = row
    told = {
        "at": times.rfc3339(at),
        "event": event,
        "task": task,
        "fence": fence,
        "kind": kind,
        "worker": worker,
        "by": by,
    }
    return told if more is None else {**told, **json.loads(more)}
