"""One connection on libpq. A thread that waits for a silent server checks on it by itself, at growing intervals."""

from __future__ import annotations

import ctypes
import select
import time
from ctypes import c_char_p

from taskyard.stores.postgres import silence
from taskyard.stores.postgres.libpq import connecting, values
from taskyard.stores.postgres.libpq.errors import Error
from taskyard.stores.postgres.libpq.result import Result
from taskyard.stores.postgres.libpq.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_BAD = 1  # libpq's status of a connection that cannot be used
_IDLE, _ACTIVE = 0, 1  # of its transactions
_CANCEL_PATIENCE = 5.0  # seconds for a cancel, and again for the end of what it cancels
_COPIED = 1 << 16  # bytes of a COPY that are passed on at once


class LibpqConnection:
    """A connection to PostgreSQL whose waits end when the server is gone (`connection.Connection`)."""

    pooled = False
    pid: int | None = None
    reconnect: tuple[str, dict[str, Any]] | None = None

    def __init__(self, library: Any, target: str, options: dict[str, Any]) -> None:
        """Connect; raise `Error`, or `Unsuited` for an address that needs psycopg."""
        self._library = library
        given = {**connecting.parse(library, target), **{name: str(value) for name, value in options.items()}}
        # None once it is closed: libpq frees it then, and takes NULL for a connection that is bad.
        self._wire = connecting.opened(library, given)
        self.depth = 0
        """How many transactions are open, each within the one before."""
        self._is_given_up = False

    # What is known of it

    @property
    def closed(self) -> bool:
        """Whether this connection can be used no more."""
        return bool(self._library.PQstatus(self._wire) == _BAD)

    @property
    def broken(self) -> bool:
        """Whether it was the other side, or the network, that closed it."""
        return self._is_given_up or (self.closed and self._wire is not None)

    @property
    def is_idle(self) -> bool:
        """Whether no statement and no transaction is under way."""
        return bool(self._library.PQtransactionStatus(self._wire) == _IDLE)

    @property
    def is_traceable(self) -> bool:
        """Whether the server's process is known, so that a lost statement can be cancelled."""
        return self.pid is not None

    @property
    def server(self) -> tuple[str, int]:
        """The host and the port of the server that answers."""
        self._check_open()
        return self._library.PQhost(self._wire).decode(), int(self._library.PQport(self._wire))

    @property
    def server_version(self) -> int:
        """The release of the server."""
        return int(self._library.PQserverVersion(self._wire))

    @property
    def reported_pid(self) -> int:
        """The number that the server, or a pooler, gives for its process."""
        return int(self._library.PQbackendPID(self._wire))

    def parameter(self, name: str) -> str | None:
        """Return a setting that the server reports by itself; None if it does not."""
        found = self._library.PQparameterStatus(self._wire, name.encode())
        return None if found is None else str(found.decode())

    def fileno(self) -> int:
        """Return the socket; raise `Error` if there is none."""
        found = int(self._library.PQsocket(self._wire))
        if found < 0:
            raise Error("the connection is closed")
        return found

    # Statements

    def rows(self, statement: str, given: Mapping[str, Any], prepare: bool | None = None) -> list[tuple[Any, ...]]:  # noqa: ARG002  nothing is said often enough here
        """Execute a statement and return its rows as tuples; an empty list if it returns none."""
        text, names = values.numbered(statement)
        types, texts = values.parameters(names, given)
        number = len(names)
        self._check_open()
        sent = self._library.PQsendQueryParams(
            self._wire, text, number, (ctypes.c_uint * number)(*types), (c_char_p * number)(*texts), None, None, 0
        )
        return self._answered(sent)

    def transaction(self) -> Transaction:
        """A block of statements that are committed together, or none of them; within another, a savepoint."""
        return Transaction(self)

    def execute(self, text: str) -> None:
        """Execute statements that have no values and no rows."""
        self._check_open()
        self._answered(self._library.PQsendQuery(self._wire, text.encode()))

    def copy(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Send these rows by a COPY statement."""
        self.execute(statement)
        ready = b""
        try:
            for row in rows:
                ready += values.copied(row)
                if len(ready) >= _COPIED:
                    self._put(ready)
                    ready = b""
            self._put(ready)
        except BaseException:
            self._library.PQputCopyEnd(self._wire, b"the client gave up")
            self._drain()
            raise
        self._answered(self._library.PQputCopyEnd(self._wire, None))

    def _put(self, data: bytes) -> None:
        while (sent := self._library.PQputCopyData(self._wire, data, len(data))) == 0:
            self._wait(writes=True)
            self._library.PQflush(self._wire)
        if sent < 0:
            self._results()  # raises what the server has refused, if it has
            raise self._error()

    def exchange(self, message: str, patience: float) -> list[list[str | None]]:
        """Send a message of several statements and return the last row of each, as text."""
        self._check_open()
        if not self._library.PQsendQuery(self._wire, message.encode()):
            raise self._error()
        results = self._results(time.monotonic() + patience, f"no answer in {patience:g} s")
        return [row for result in results if (row := result.last()) is not None]

    def notified(self) -> list[str]:
        """Return the channels of the notifications that have arrived."""
        self._check_open()
        if not self._library.PQconsumeInput(self._wire):
            raise self._error()
        found = []
        while notice := self._library.PQnotifies(self._wire):
            found.append(notice.contents.relname.decode())
            self._library.PQfreemem(notice)
        return found

    def never_prepare(self) -> None:
        """Prepare no statement from now on: it never does."""

    # Waiting

    def _answered(self, sent: int) -> list[tuple[Any, ...]]:
        """Return the rows of what was sent; a wait that is interrupted cancels it."""
        if sent != 1:
            raise self._error()
        try:
            results = self._results()
        except Error:
            raise
        except BaseException:
            self._stop()
            raise
        return results[-1].rows() if results else []

    def _results(self, end: float | None = None, late: str = "") -> list[Result]:
        """Return the answers to what was sent, up to where the server waits for the rows of a COPY; raise what it refuses."""
        found: list[Result] = []
        failure: Error | None = None
        while True:
            unsent = self._library.PQflush(self._wire)
            if unsent < 1 and not self._library.PQisBusy(self._wire):
                result = Result.next(self._library, self._wire)
                if result is None:
                    break
                failure = failure or result.failure
                found.append(result)
                if result.wants_rows:
                    return found
                continue
            if end is None:
                self._wait(writes=unsent > 0)
            elif not self._is_ready(end - time.monotonic(), writes=unsent > 0):
                raise Error(late)
            if not self._library.PQconsumeInput(self._wire):
                raise failure or self._error()  # a server that ends the connection may have said why
        if failure is not None:
            raise failure
        return found

    def _wait(self, *, writes: bool) -> None:
        """Wait for the server; give the connection up once it is gone."""
        began, pause = time.monotonic(), silence.SILENCE
        while not self._is_ready(pause, writes=writes):
            waited = time.monotonic() - began
            served = silence.is_served(self, waited)
            if self._is_ready(0.0, writes=writes):
                return  # it was answered meanwhile
            if not served:
                self._is_given_up = True
                text = silence.message(self, waited)
                self.close()
                raise Error(text)
            pause = min(2 * pause, silence.LONGEST_PAUSE)

    def _is_ready(self, seconds: float, *, writes: bool) -> bool:
        poller = select.poll()
        poller.register(self.fileno(), select.POLLIN | (select.POLLOUT if writes else 0))
        return bool(poller.poll(max(0.0, seconds) * 1000))

    def _stop(self) -> None:
        """Cancel what the server executes, so that it is not executed later; close a connection that does not end it."""
        if self._library.PQtransactionStatus(self._wire) != _ACTIVE:
            return
        try:
            self.cancel()
        except Error:
            pass  # the wait shows whether it ends
        self._drain()

    def _drain(self) -> None:
        """Wait for the end of what was cancelled."""
        late = "not ended"
        try:
            self._results(time.monotonic() + _CANCEL_PATIENCE, late)
        except Error as error:
            if str(error) == late:
                self.close()

    def another(self) -> LibpqConnection:
        """Open a second connection in the same way, to check on this one."""
        assert self.reconnect is not None
        return LibpqConnection(self._library, *self.reconnect)

    def cancel(self) -> None:
        """Ask the server to cancel the statement that it executes."""
        self._check_open()
        library = self._library
        request = library.PQcancelCreate(self._wire)
        try:

            def failed() -> Error:
                return Error(library.PQcancelErrorMessage(request).decode(errors="replace").strip())

            if not library.PQcancelStart(request):
                raise failed()
            connecting.poll(library.PQcancelPoll, library.PQcancelSocket, request, _CANCEL_PATIENCE, failed)
        finally:
            library.PQcancelFinish(request)

    def close(self) -> None:
        """Close the connection."""
        wire, self._wire = self._wire, None
        self._library.PQfinish(wire)

    def _check_open(self) -> None:
        if self._wire is None:
            raise Error("the connection is closed")

    def _error(self) -> Error:
        return Error(connecting.message(self._library, self._wire))
