"""The bell: whoever waits sleeps until the database tells of a change, and where it cannot tell, looks ever less often.

A connection of its own listens while somebody waits, and holds a lock by which others know that it pays to ring. What
rings is only ever a hint: whoever wakes looks at the yard itself.
"""

from __future__ import annotations

import os
import select
import threading
import time

from taskyard import forks, ids
from taskyard.errors import TaskyardError
from taskyard.stores.postgres import driver
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from taskyard.store import Heard
    from taskyard.stores.postgres.ground import Ground

LOCK = 747159  # the class of the advisory locks; taskyard.ring() knows it too
_NAP_FIRST, _NAP_GROWS, _NAP_MOST = 0.005, 1.5, 1.0  # seconds between two looks where nobody rings
_NAPS_THAT_GROW = 20
_SETTLED = 2.0  # seconds after which nobody is in the middle of a move that began before there was somebody to ring for
_PROBE_EVERY = 20.0  # seconds of silence after which it is seen whether the listener still hears
_PROBE_PATIENCE = 5.0
_RETRY_EVERY = 5.0
_buried: list[Any] = []


class Bell:
    """One for each open store, shared by its threads: one of those that wait listens, and tells the others."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._channel = f"taskyard_{ground.project}"
        self._echo = ""
        self._rings = 0
        self._line: Connection[Any] | None = None
        self._pipe: tuple[int, int] | None = None
        self._tried_at = float("-inf")
        self._armed_at = 0.0
        self._proved_at = 0.0
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._turn = threading.Condition()  # its lock may be taken twice: a signal may come while it is held
        self._listening = False
        self._waiting = 0
        self._closing = False

    def renew(self) -> None:
        """A forked child leaves its parent's connection alone: what it read there, the parent would not hear."""
        if self._line is not None:
            _buried.append(self._line)
            self._line = None
        self._begin()
        self._let_go()

    def listen(self) -> Heard:
        """What was heard so far; all that happens from here on will end a wait that is given this."""
        with self._turn:
            self._arm()
            return self._rings, 0

    def wait(self, seconds: float, heard: Heard) -> Heard:
        """Until the bell has rung since then, or for so long; without a listener, until it is time for another look."""
        rings, naps = heard
        with self._turn:
            self._arm()
            nap = min(seconds, self._nap(naps))
            end = time.monotonic() + nap
            self._waiting += 1
            try:
                while self._rings == rings and (left := end - time.monotonic()) > 0:
                    if self._listening:
                        self._turn.wait(left)
                    else:
                        self._hear(left)
            finally:
                self._waiting -= 1
                if self._closing and not self._waiting:
                    self._let_go()
            if self._rings != rings:
                return self._rings, 0
            return (rings, naps + 1) if nap < seconds else heard

    def _nap(self, naps: int) -> float:
        """Seconds until the next look, whoever rings: long where a listener hears, a little less at random elsewhere."""
        if self._line is not None:
            # Whoever began to move before we listened had nobody to ring for; it is done soon.
            since = time.monotonic() - self._armed_at
            return _PROBE_EVERY if since > _SETTLED else max(0.02, since)
        nap = min(_NAP_FIRST * _NAP_GROWS ** min(naps, _NAPS_THAT_GROW), _NAP_MOST)
        return nap * (0.75 + ids.chance(8) / 1024)

    def wake(self) -> None:
        """End every wait now; also from a signal handler, which may come while this thread itself waits."""
        with self._turn:
            if self._pipe is not None:
                try:
                    os.write(self._pipe[1], b"!")
                except BlockingIOError:
                    return  # full of the same

    def close(self) -> None:
        """Let go of the connection, once those who wait have been told; a later wait begins anew."""
        with self._turn:
            if self._waiting:
                self._closing = True
                self.wake()
            else:
                self._let_go()

    def __del__(self) -> None:
        self._let_go()

    def rest(self) -> None:
        """Stop listening if nobody has waited for a while: whoever moves a task need not ring then."""
        if self._line is None:
            return
        with self._turn:
            if not self._waiting and time.monotonic() - self._proved_at > _PROBE_EVERY:
                self._hang_up()

    def _let_go(self) -> None:
        self._hang_up()
        if self._pipe is not None:
            for end in self._pipe:
                os.close(end)
            self._pipe = None

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _arm(self) -> None:
        """Have a pipe to be woken by, and a connection that listens, if there can be one."""
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
        now = time.monotonic()
        where = self._ground.address.listen
        if where is None or self._listening:
            return
        if self._line is not None and now - self._proved_at < _PROBE_EVERY:
            return
        if self._line is None and now - self._tried_at < _RETRY_EVERY:
            return
        self._tried_at = now
        try:
            if self._line is None:
                self._line = self._dialled(where)
                self._armed_at = time.monotonic()
            if self._hears(self._line):
                self._proved_at = time.monotonic()
                return
        except (TaskyardError, driver.module().Error):
            pass  # whoever waits looks by itself meanwhile; what is wrong with the yard shows there
        self._hang_up()

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
        self._rings += heard.count(self._channel)
        return self._echo in heard

    def _names(self, line: Connection[Any]) -> list[str]:
        """The channels that have been rung since the last look."""
        line.pgconn.consume_input()
        names = []
        while (notice := line.pgconn.notifies()) is not None:
            names.append(notice.relname.decode())
        return names

    def _hear(self, seconds: float) -> None:
        """Sleep on the connection and the pipe, with the lock let go; then tell the others."""
        assert self._pipe is not None  # made by whoever waits, before
        self._listening = True
        line, ear, cut = self._line, self._pipe[0], False
        self._turn.release()
        try:
            watched = [ear] if line is None else [ear, line.fileno()]
            ready = select.select(watched, [], [], seconds)[0]
        except (OSError, ValueError, driver.module().Error):  # the line has no socket any more
            ready, cut = [], True
        finally:
            self._turn.acquire()
            self._listening = False
            self._turn.notify_all()
        if ear in ready:
            self._rings += 1
            try:
                os.read(ear, 4096)
            except BlockingIOError:
                pass  # somebody else has read it
        if line is not None and line is self._line and (cut or len(ready) > (ear in ready)):
            try:
                self._rings += self._names(line).count(self._channel)
            except driver.module().Error:
                self._hang_up()
                self._rings += 1  # whatever it was that ended the line, it is worth a look
