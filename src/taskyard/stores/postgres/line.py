"""The line: a connection of its own that hears what the database tells, and holds a lock by which others know that it pays to ring."""

from __future__ import annotations

import select
import time

from taskyard import ids
from taskyard.errors import TaskyardError
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.ground import Ground

LOCK = 747159  # the class of the advisory locks; taskyard.ring() knows it too
_SETTLED = 2.0  # seconds after which nobody is in the middle of a move that began before there was somebody to ring for
_PROBE_EVERY = 20.0  # seconds of silence after which it is seen whether the listener still hears
_PROBE_PATIENCE = 5.0
_RETRY_EVERY = 5.0
_buried: list[Any] = []


class Line:
    """The ear of one open project."""

    longest_nap = 1.0

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._channel = f"taskyard_{ground.project}"
        self._echo = ""
        self._line: Connection[Any] | None = None
        self._tried_at = float("-inf")
        self._armed_at = 0.0
        self._proved_at = 0.0

    def open(self) -> bool:
        """Have a connection that listens, if there can be one."""
        where = self._ground.address.listen
        now = time.monotonic()
        if where is None or now - (self._tried_at if self._line is None else self._proved_at) < (
            _RETRY_EVERY if self._line is None else _PROBE_EVERY
        ):
            return False
        self._tried_at = now
        new = self._line is None
        try:
            if self._line is None:
                self._line = self._dialled(where)
                self._armed_at = time.monotonic()
            if self._hears(self._line):
                self._proved_at = time.monotonic()
                return new
        except (TaskyardError, driver.module().Error):
            pass  # whoever waits looks by itself meanwhile; what is wrong with the yard shows there
        self.close()
        return False

    def _dialled(self, where: str) -> Connection[Any]:
        """A connection that listens on the project's channel, and holds its lock so that others ring."""
        address = self._ground.address
        line = driver.connect(address, Address(where).conninfo if where else None)
        self._echo = f"taskyard_echo_{ids.base32(ids.chance(40), 8)}"
        project = self._ground.project
        listen = f"LISTEN {self._channel}; LISTEN {self._echo}"
        line.execute(f"{listen}; SELECT pg_advisory_lock_shared({LOCK}, {project})".encode())
        return line

    def _hears(self, line: Connection[Any]) -> bool:
        """Whether what is sent to a channel of its own comes back: not so behind a pooler, or on a dead line."""
        heard: list[str] = []
        line.add_notify_handler(keep := lambda notice: heard.append(notice.channel))
        try:
            line.execute(f"NOTIFY {self._echo}".encode())
            end = time.monotonic() + _PROBE_PATIENCE
            while self._echo not in heard and (left := end - time.monotonic()) > 0:
                select.select([line.fileno()], [], [], left)
                heard += self._names(line)
        finally:
            line.remove_notify_handler(keep)
        return self._echo in heard

    def _names(self, line: Connection[Any]) -> list[str]:
        """The channels that have been rung since the last look."""
        line.pgconn.consume_input()
        names = []
        while (notice := line.pgconn.notifies()) is not None:
            names.append(notice.relname.decode())
        return names

    def descriptor(self) -> int | None:
        """The connection's socket, if it has one."""
        if self._line is not None:
            try:
                return self._line.fileno()
            except driver.module().Error:
                self.close()
        return None

    def trusted(self) -> float:
        """Long where it was there before; whoever began to move before that had nobody to ring for, and is done soon."""
        since = time.monotonic() - self._armed_at
        return _PROBE_EVERY if since > _SETTLED else max(0.02, since)

    def heed(self) -> bool:
        """Whether the project's channel was rung; whatever it was that ended the line is worth a look as well."""
        if self._line is None:
            return True
        try:
            return self._channel in self._names(self._line)
        except driver.module().Error:
            self.close()
            return True

    def is_idle(self) -> bool:
        """Whether it has been there for a while without being asked for."""
        return self._line is not None and time.monotonic() - self._proved_at > _PROBE_EVERY

    def close(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def abandon(self) -> None:
        """A forked child leaves its parent's connection alone: a goodbye from here would end it for the parent."""
        if self._line is not None:
            _buried.append(self._line)
            self._line = None
