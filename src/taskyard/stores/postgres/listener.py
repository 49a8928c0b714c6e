"""A connection that receives the database's notifications.

A sleeping process holds an advisory lock, so that others know that a notification is worth sending. A process that is
awake holds none: it looks anyway. Between taking the lock and sleeping, it must check for changes since its last look.
Afterwards it must check for transactions that were open when it took the lock: they may have seen no sleeper.

A new connection proves that it hears by a notification to itself, and only then: a notification wakes the server processes of
all listeners of the database. Later each falling asleep asks whether this session still listens.
"""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.core.errors import TaskyardError
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.stores.postgres.connection import Connection
    from taskyard.stores.postgres.context import Context

LOCK = 747159  # class of the advisory locks; the SQL function taskyard.ring() uses the same
_IDLE_AFTER = 20.0  # seconds without a wait, after which the connection is closed
_PATIENCE = 5.0  # seconds for an answer
_RETRY_EVERY = 5.0
# Seconds until the first check for transactions that were open; each further check waits twice as long.
_FIRST_RECHECK, _LAST_RECHECK = 0.01, 20.0
_inherited: list[Any] = []


class Listener:
    """The source of changes of one open project."""

    longest_pause = 1.0

    def __init__(self, context: Context) -> None:
        self._context = context
        self._channel = f"taskyard_{context.project}"
        self._where = context.address.listen
        self._echo = ""
        self._connection: Connection | None = None
        self._notified: list[str] = []
        self._tried_at = float("-inf")
        self._used_at = 0.0
        self._last_look: dict[str, str] = {}
        """The snapshot and project row of the last look."""
        self._asleep = False
        self._until: str | None = None
        """A transaction of its own: those that began before it may still be open; None once they have all ended."""
        self._recheck_pause = _FIRST_RECHECK

    # What `Wakeup` calls

    def open(self) -> bool:
        """Open a connection that listens, unless there is one; return whether it is new."""
        now = time.monotonic()
        if self._connection is not None or self._where is None or now - self._tried_at < _RETRY_EVERY:
            return False
        self._tried_at = now
        try:
            if self._connect(self._where) and self._hears_itself():
                self._remember(self._send("mark")[0])
                return True
        except (TaskyardError, *driver.errors()):
            pass  # the waiting thread polls meanwhile, and meets the same trouble by itself
        self.close()
        return False

    def mark(self) -> bool:
        """Take a snapshot to compare with later; a sleeper has one already."""
        if self._connection is None or self._asleep:
            return False
        try:
            self._remember(self._send("mark")[0])
        except driver.errors():
            self.close()
        return True

    def missed(self) -> bool:
        """Begin to sleep, or check again; return whether something changed since the last look without a notification."""
        if self._connection is None or (self._asleep and self._until is None):
            return False
        try:
            quiet = self._is_quiet() if self._asleep else self._fall_asleep()
        except driver.errors():
            self.close()
            return True
        if quiet and self._channel not in self._notified:
            return False
        self.end_sleep()
        return True

    def _fall_asleep(self) -> bool:
        (own,), (changed, snapshot, row, listens) = self._send("fall_asleep")
        if listens != "t":  # something between has reset the session
            self._tried_at = time.monotonic()
            self.close()
            return False
        self._asleep = own is not None
        if changed == "t" or not self._asleep:
            self._remember([snapshot, row])
            return False
        self._until, self._recheck_pause = own, _FIRST_RECHECK
        self._check_open_transactions(snapshot)
        return True

    def _is_quiet(self) -> bool:
        changed, snapshot = self._send("check")[0]
        self._recheck_pause = min(2 * self._recheck_pause, _LAST_RECHECK)
        self._check_open_transactions(snapshot)
        return changed != "t"

    def _check_open_transactions(self, snapshot: str | None) -> None:
        """Stop checking once all transactions have ended that were open when the lock was taken."""
        assert snapshot is not None
        assert self._until is not None
        if int(snapshot.partition(":")[0]) > int(self._until):
            self._until = None

    def recheck_after(self) -> float:
        """Return the seconds until `missed` must be called again."""
        return float("inf") if self._until is None or not self._asleep else self._recheck_pause

    def end_sleep(self) -> None:
        """Release the sleeper's lock, so that others send no notifications."""
        if self._connection is None or not self._asleep:
            return
        self._asleep, self._until = False, None
        try:
            self._remember(self._send("wake_up")[-1])
        except driver.errors():
            self.close()
        self._notified.clear()

    def descriptors(self) -> list[int]:
        """Return the connection's socket, if there is one."""
        if self._connection is not None:
            try:
                return [self._connection.fileno()]
            except driver.errors():
                self.close()
        return []

    def receive(self) -> bool:
        """Read notifications; return whether there was one for this project, or the connection broke."""
        if self._connection is None:
            return True
        try:
            self._read_notifications()
        except driver.errors():
            self.close()
            return True
        if self._channel not in self._notified:
            return False
        self.end_sleep()
        return True

    def is_idle(self) -> bool:
        """Whether the connection has not been used for a while."""
        return self._connection is not None and time.monotonic() - self._used_at > _IDLE_AFTER

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        self._asleep, self._until = False, None
        if connection is not None:
            connection.close()

    def abandon(self) -> None:
        """Forget the connection in a forked child: to close it here would end the parent's session."""
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None
        self.close()

    # The connection

    def _connect(self, where: str) -> bool:
        """Begin to listen; return False if a pooler is in between."""
        connection = driver.opener(brief=self._context.brief)(
            self._context.address, Address(where).conninfo if where else None, again=True
        )
        if connection.pooled:  # others would be given a connection that listens and holds a sleeper's lock
            connection.close()
            self._where = None
            return False
        self._connection = connection
        self._echo = f"taskyard_echo_{ids.base32(ids.chance(40), 8)}"
        self._send("listen")
        return True

    def _hears_itself(self) -> bool:
        """Whether a notification to a channel of its own comes back. It does not behind a pooler."""
        assert self._connection is not None
        end = time.monotonic() + _PATIENCE
        self._send("probe")
        while self._echo not in self._notified and (left := end - time.monotonic()) > 0:
            driver.is_ready(self._connection.fileno(), left)
            self._read_notifications()
        is_back = self._echo in self._notified
        self._notified = [name for name in self._notified if name != self._echo]
        return is_back

    def _remember(self, visible: list[str | None]) -> None:
        snapshot, row = visible
        _, following, under_way = str(snapshot).split(":")
        self._last_look = {"next": following, "open": under_way, "row": str(row)}

    def _send(self, name: str) -> list[list[str | None]]:
        """Return the last row of each statement in a message; raise if the server does not answer in time."""
        assert self._connection is not None
        words = {
            "project": self._context.project, "channel": self._channel, "echo": self._echo, "lock": LOCK, **self._last_look,
        }  # fmt: skip
        texts = queries.load("wakeup")
        if self._last_look:
            words["changed"] = texts["changed"].format(**words)
        self._used_at = time.monotonic()
        found = self._connection.exchange(texts[name].format(**words), _PATIENCE)
        self._read_notifications()
        return found

    def _read_notifications(self) -> None:
        """Collect the names of the channels that have notified."""
        assert self._connection is not None
        self._notified += self._connection.notified()
