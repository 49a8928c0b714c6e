"""The log. It is read by snapshots: a cursor names what was visible when it was given, so no late commit is missed.

A cursor is `epoch/seen` at the end of a reading, and `epoch/seen/now/xid/n` in the middle of one. `seen` and `now` are
snapshots of the database. The last event returned is the n-th, of transaction xid.
"""

from __future__ import annotations

from taskyard.core import draft, json_codec, times
from taskyard.core.activity import Activity
from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.core.store_records import Trail
    from taskyard.stores.postgres.context import Context

_NOTHING = "1:1:"  # a snapshot in which no transaction of ours is visible
_NEWEST = 20_000  # events that are read for rates
_LATELY = 100  # transactions, of all projects of the database
_SNAPSHOT = frozenset("0123456789:,")


class PostgresLog:
    """The `Log` part of the store."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def latest(self) -> str:
        """Return the cursor of the log's end."""
        return f"{self._context.epoch}/{self._context.run('read', 'latest')[0][0]}"

    def lately(self) -> str:
        """Return a cursor from which the events of the database's last transactions are read."""
        epoch, snapshot = self.latest().split("/")
        first = max(1, int(snapshot.partition(":")[0]) - _LATELY)
        return f"{epoch}/{first}:{first}:"

    def _newest(self, limit: int) -> list[dict[str, Any]]:
        found = self._context.run("read", "newest", {"limit": limit})
        return [_event(row) for row in sorted(found, key=lambda row: (row[2], row[1]))]

    def write(self, event: str, by: str, kind: str = "", more: dict[str, Any] | None = None) -> None:
        """Log an event about the project."""
        fields = None if more is None else draft.compact(more)
        self._context.run("upkeep", "tell", {"event": event, "by": by, "kind": kind, "more": fields})

    def activity(self) -> Activity:
        """Return what the newest events of the log tell of the last hour."""
        rows = self._context.run("read", "activity", {"limit": _NEWEST})
        found = Activity(rows[0][0] if rows else self._context.now)
        for _, event, span, number, earliest in rows:
            if span < 2:
                found.count(event, times.rfc3339(earliest), number)
        found.complete = sum(row[3] for row in rows) < _NEWEST or any(row[2] == 2 for row in rows)
        return found

    def read(self, trail: Trail) -> tuple[list[dict[str, Any]], str]:
        """Return the events that match, in order, and the cursor to continue from."""
        if trail.at_end:
            return [], self.latest()
        if trail.newest:
            end = self.latest()
            return self._newest(trail.limit), end
        seen, now, position = self._parse(trail.cursor)
        xid, n = (None, None) if position is None else position
        values = {
            "seen": seen,
            "now": now,
            "xid": xid,
            "n": n,
            "task": trail.task,
            "worker": trail.worker,
            "kind": trail.kind,
            "since": trail.since,
            "events": None if trail.events is None else sorted(trail.events),
            "limit": trail.limit,
        }
        found = self._context.run("read", "log", values)
        now = now or found[0][0]
        page = [row[1:] for row in found if row[1] is not None]
        if len(page) < trail.limit:
            cursor = f"{self._context.epoch}/{now}"
        else:
            cursor = f"{self._context.epoch}/{seen}/{now}/{page[-1][0]}/{page[-1][1]}"
        page.sort(key=lambda row: row[1])  # a long transaction may have begun before others and logged after them
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
        if int(epoch) != self._context.epoch or any(part.count(":") != 2 for part in rest[:2]):
            raise Invalid(
                "this cursor is of another time: the database was set back since, or it is of another yard",
                hint="read the log without a cursor, or from a moment on (since)",
            )
        if len(rest) == 1:
            return rest[0], None, None
        return rest[0], rest[1], (rest[2], rest[3])


def _event(row: tuple[Any, ...]) -> dict[str, Any]:
    _, _, at, event, task, kind, fence, worker, by, more = row
    fields = {
        "at": times.rfc3339(at),
        "event": event,
        "task": task,
        "fence": fence,
        "kind": kind,
        "worker": worker,
        "by": by,
    }
    return fields if more is None else {**fields, **json_codec.read(more)}
