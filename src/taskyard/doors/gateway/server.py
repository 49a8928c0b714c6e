"""Runs the gateway: binds its port, serves until a signal, and lets what runs finish."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.signals import Stopping
from taskyard.doors.gateway.access import CONNECTIONS
from taskyard.doors.gateway.app import Gateway
from taskyard.doors.gateway.buckets import TooMany
from taskyard.remote import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.doors.gateway.access import Rules
    from taskyard.port import YardPort

_BACKLOG = 4096  # connections that wait to be taken: a thousand agents may come back at once
_IDLE = 75  # seconds that an idle connection is kept: longer than most proxies keep theirs
_FINISH = 10  # seconds for what runs, after a signal
_FILES = 65_536  # that the process may have open, where the system allows so many: a connection is one
_SWITCH = 0.001  # seconds for which a thread that computes keeps others waiting: a board's look must not delay a claim by 5 ms
_FEWER = "close some, or wait with --wait in place of asking often"


HEAD_MOST = 64 << 10  # bytes of a request's head
HEAD_SECONDS = 20.0  # for the head of a request: a client that trickles is cut off, and holds up no other


HANDSHAKE_SECONDS = 10.0  # for the handshake of TLS
UNREAD_SECONDS = 60.0  # for a client to read on in an answer
_CROWDED = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: application/json\r\n"
)


class Patience(HttpToolsProtocol):
    """One connection. It is closed if a client sends or reads too slowly, or has too many: uvicorn itself would wait for ever."""

    rules: Rules
    """What limits the connections of one address."""
    _limit: asyncio.TimerHandle | None = None
    _head = 0
    _unread: asyncio.TimerHandle | None = None
    _peer: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        if self.rules.proxied:
            pass  # all connections are the proxy's
        elif self.rules.connections.take(peer):
            self._peer = peer
        else:
            body = json.dumps(wire.bad(TooMany(f"{peer} has too many connections", hint=_FEWER))).encode()
            transport.write(_CROWDED + b"content-length: %d\r\n\r\n" % len(body) + body)
            transport.close()
            return
        self._limited()

    def data_received(self, data: bytes) -> None:
        """Read on; close the connection if the head of a request has no end."""
        self._head += len(data)
        super().data_received(data)
        if self._limit is not None and self._head > HEAD_MOST:
            self.transport.close()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting: the client has read."""
        self._read_again()
        super().resume_writing()

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a request."""
        super().on_message_begin()
        self._limited()

    def on_headers_complete(self) -> None:
        """Stop waiting: the head is there."""
        self._unlimited()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting: the client is gone."""
        self._unlimited()
        self._read_again()
        if self._peer is not None:
            self.rules.connections.give_back(self._peer)
            self._peer = None
        super().connection_lost(exc)

    def _limited(self) -> None:
        self._unlimited()
        self._head = 0
        self._limit = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _unlimited(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        line = socket.socket(family, socket.SOCK_STREAM)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind((host, port))
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {host}:{port}: {error.strerror or error}", hint="choose another --port or --host"
        ) from None
    line.listen(_BACKLOG)
    return line


class Server(uvicorn.Server):
    """Has the gateway answer what waits before it ends."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway) -> None:
        super().__init__(config)
        self._gateway = gateway

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; a client that does not finish its TLS handshake in time is cut off."""
        loop: Any = asyncio.get_running_loop()
        if self.config.is_ssl:  # uvicorn has no setting for it, and its own loop would wait for a minute
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=HANDSHAKE_SECONDS)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what waits, then all connections."""
        self._gateway.drain()
        await super().shutdown(sockets)


def make(gateway: Gateway, cert: str | None = None, key: str | None = None) -> Server:
    """Return a server of this gateway; with a certificate it speaks TLS alone."""
    config = uvicorn.Config(
        gateway,
        loop="auto",
        http=type("Connection", (Patience,), {"rules": gateway.rules}),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,  # `access.Rules` reads them, and only if asked to
        ssl_certfile=cert,
        ssl_keyfile=key,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_FINISH,
    )
    return Server(config, gateway)


def connections() -> int:
    """Return how many connections one address may have: half of what this process may open, which is raised first."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(16, min(CONNECTIONS, max(soft, wanted) // 2))


def refuse_bad_certificate(cert: str, key: str | None) -> None:
    """Raise an error unless these files are a certificate and its key."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        raise Invalid(
            f"{cert} and its key cannot be used: {error.strerror or error if isinstance(error, OSError) else error}",
            hint="--cert is a PEM file with the certificate and its chain, --key one with its private key, without a password",
        ) from None


def serve(
    yards: Mapping[str, YardPort], line: socket.socket, rules: Rules, cert: str | None = None, key: str | None = None
) -> None:
    """Serve these yards on a socket that listens, until a signal."""
    gateway = Gateway(yards, rules)
    sys.setswitchinterval(_SWITCH)
    try:
        with Stopping(
            _end
        ):  # uvicorn raises the signal again when all is answered: its default would skip what closes yards
            make(gateway, cert, key).run(sockets=[line])
    finally:
        gateway.close()


def _end(number: int) -> None:
    raise SystemExit(128 + number)
