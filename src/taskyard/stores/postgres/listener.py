"""The line: a connection of its own that hears what the database tells.

Whoever sleeps holds a lock by which others know that it pays to ring, and whoever is awake does not: it looks anyway. So it
must be seen, between taking the lock and sleeping, whether something has happened since the last look; and afterwards, whether
those have ended who were in the middle of a move when the lock was taken, and may have found nobody asleep.
"""

from __future__ import annotations

import select
import time

from taskyard.core import ids
from taskyard.core.errors import TaskyardError
from taskyard.stores.postgres import driver, queries
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from taskyard.stores.postgres.context import Context

LOCK = 747159  # the class of the advisory locks; taskyard.ring() knows it too
_PROBE_EVERY = 20.0  # seconds of silence after which it is seen whether the listener still hears
_PATIENCE = 5.0  # seconds for an answer
_RETRY_EVERY = 5.0
_WARY = (
    0.01  # seconds until it is first seen whether those have ended who were under way; then twice as long, and so on
)
_buried: list[Any] = []


class Listener:
    """The ear of one open project."""

    longest_nap = 1.0

    def __init__(self, context: Context) -> None:
        self._context = context
        self._channel = f"taskyard_{context.project}"
        self._where = context.address.listen
        self._echo = ""
        self._line: Connection[Any] | None = None
        self._rung: list[str] = []
        self._tried_at = float("-inf")
        self._proved_at = 0.0
        self._seen: dict[str, str] = {}
        """What could be seen when the last look began."""
        self._asleep = False
        self._until: str | None = None
        """The transaction of its own before which others were under way; None once they have all ended."""
        self._wary = _WARY

    # What the bell asks for

    def open(self) -> bool:
        """Have a connection that listens, and was seen to hear of late, if there can be one."""
        now = time.monotonic()
        if self._where is None or now - (self._tried_at if self._line is None else self._proved_at) < (
            _RETRY_EVERY if self._line is None else _PROBE_EVERY
        ):
            return False
        self._tried_at = now
        new = self._line is None
        try:
            if self._line is None:
                self._dial(self._where)
            if self._line is not None and self._hears():
                self._proved_at = time.monotonic()
                if new:
                    self._see(self._ask("mark")[0])
                return new
        except (TaskyardError, driver.module().Error):
            pass  # whoever waits looks by itself meanwhile; what is wrong with the yard shows there
        self.close()
        return False

    def mark(self) -> bool:
        """From here on nothing is missed; while it sleeps that is so already."""
        if self._line is None or self._asleep:
            return False
        try:
            self._see(self._ask("mark")[0])
        except driver.module().Error:
            self.close()
        return True

    def stirred(self) -> bool:
        """Whether something has happened since the last look that nobody rang for; if not, it is asleep."""
        if self._line is None or (self._asleep and self._until is None):
            return False
        try:
            quiet = self._is_quiet() if self._asleep else self._falls_asleep()
        except driver.module().Error:
            self.close()
            return True
        if quiet and self._channel not in self._rung:
            return False
        self.rise()
        return True

    def _falls_asleep(self) -> bool:
        (own,), (stirred, snapshot, row) = self._ask("doze")
        self._asleep = own is not None
        if stirred == "t" or not self._asleep:
            self._see([snapshot, row])
            return False
        self._until, self._wary = own, _WARY
        self._settle(snapshot)
        return True

    def _is_quiet(self) -> bool:
        stirred, snapshot = self._ask("check")[0]
        self._wary = min(2 * self._wary, _PROBE_EVERY)
        self._settle(snapshot)
        return stirred != "t"

    def _settle(self, snapshot: str | None) -> None:
        """Be wary no longer, if all have ended who were under way when the lock was taken."""
        assert snapshot is not None
        assert self._until is not None
        if int(snapshot.partition(":")[0]) > int(self._until):
            self._until = None

    def wary(self) -> float:
        """Seconds until that is to be asked once more."""
        return float("inf") if self._until is None or not self._asleep else self._wary

    def rise(self) -> None:
        """Nobody sleeps: nobody need ring."""
        if self._line is None or not self._asleep:
            return
        self._asleep, self._until = False, None
        try:
            self._see(self._ask("rise")[-1])
        except driver.module().Error:
            self.close()
        self._rung.clear()

    def descriptor(self) -> int | None:
        """The connection's socket, if it has one."""
        if self._line is not None:
            try:
                return self._line.fileno()
            except driver.module().Error:
                self.close()
        return None

    def trusted(self) -> float:
        """As long as it was seen to hear."""
        return _PROBE_EVERY

    def heed(self) -> bool:
        """Whether the project's channel was rung; whatever it was that ended the line is worth a look as well."""
        if self._line is None:
            return True
        try:
            self._listen()
        except driver.module().Error:
            self.close()
            return True
        if self._channel not in self._rung:
            return False
        self.rise()
        return True

    def is_idle(self) -> bool:
        """Whether it has been there for a while without being asked for."""
        return self._line is not None and time.monotonic() - self._proved_at > _PROBE_EVERY

    def close(self) -> None:
        """Hang up."""
        line, self._line = self._line, None
        self._asleep, self._until = False, None
        if line is not None:
            line.close()

    def abandon(self) -> None:
        """A forked child leaves its parent's connection alone: a goodbye from here would end it for the parent."""
        if self._line is not None:
            _buried.append(self._line)
            self._line = None
        self.close()

    # The connection

    def _dial(self, where: str) -> None:
        line = driver.connect(self._context.address, Address(where).conninfo if where else None, again=True)
        if line.pooled:  # others would be given a connection that listens and holds the lock of a sleeper
            line.close()
            self._where = None
            return
        self._line = line
        self._echo = f"taskyard_echo_{ids.base32(ids.chance(40), 8)}"
        self._ask("listen")

    def _hears(self) -> bool:
        """Whether what is sent to a channel of its own comes back: not so behind a pooler, or on a dead line."""
        assert self._line is not None
        end = time.monotonic() + _PATIENCE
        self._ask("probe")
        while self._echo not in self._rung and (left := end - time.monotonic()) > 0:
            select.select([self._line.fileno()], [], [], left)
            self._listen()
        heard = self._echo in self._rung
        self._rung = [name for name in self._rung if name != self._echo]
        return heard

    def _see(self, told: list[str | None]) -> None:
        snapshot, row = told
        _, following, under_way = str(snapshot).split(":")
        self._seen = {"next": following, "open": under_way, "row": str(row)}

    def _ask(self, name: str) -> list[list[str | None]]:
        """The last row of each statement in a message. A line that does not answer in time is as good as cut."""
        assert self._line is not None
        words = {
            "project": self._context.project, "channel": self._channel, "echo": self._echo, "lock": LOCK, **self._seen,
        }  # fmt: skip
        texts = queries.load("wakeup")
        if self._seen:
            words["stirred"] = texts["stirred"].format(**words)
        found = driver.asked(self._line, texts[name].format(**words), _PATIENCE)
        self._listen()
        return found

    def _listen(self) -> None:
        """Take down which channels have been rung."""
        assert self._line is not None
        self._line.pgconn.consume_input()
        while (notice := self._line.pgconn.notifies()) is not None:
            self._rung.append(notice.relname.decode())
