"""One connection to Valkey, of the client library, whose socket can be polled. Loading it costs a command 25 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from valkey.backoff import NoBackoff
from valkey.connection import Connection, SSLConnection, UnixDomainSocketConnection, parse_url
from valkey.exceptions import ResponseError
from valkey.retry import Retry

if TYPE_CHECKING:
    from taskyard.stores.postgres.valkey.server import Command


class _Polled:
    """What the source of changes needs of a connection, beside what the library's verbs do."""

    _sock: Any

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return int(self._sock.fileno())

    def send(self, *commands: Command) -> None:
        """Send these commands in one piece."""
        self.send_packed_command(self.pack_commands(commands))  # type: ignore[attr-defined]

    def receive(self) -> Any:
        """Return the next answer; one that refuses a command is returned as an exception."""
        try:
            return self.read_response()  # type: ignore[attr-defined]
        except ResponseError as refusal:
            return refusal

    def has_more(self) -> bool:
        """Whether something has arrived that was not received yet."""
        return bool(self.can_read(0))  # type: ignore[attr-defined]


class _Plain(_Polled, Connection):
    pass


class _Encrypted(_Polled, SSLConnection):
    pass


class _Local(_Polled, UnixDomainSocketConnection):
    pass


_CLASSES: dict[Any, Any] = {SSLConnection: _Encrypted, UnixDomainSocketConnection: _Local}


def connect(url: str, moved_to: tuple[str, int] | None, timeout: float) -> Any:
    """Open a connection; raise what the library raises."""
    options = dict(parse_url(url))
    made = _CLASSES.get(options.pop("connection_class", None), _Plain)
    if moved_to is not None:
        options["host"], options["port"] = moved_to
    if made is not _Local:
        options["socket_connect_timeout"] = timeout
    options.update(socket_timeout=timeout, retry=Retry(NoBackoff(), 0), lib_name=None, lib_version=None)
    line = made(**options)
    line.connect()
    return line
