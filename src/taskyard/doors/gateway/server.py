"""Runs the gateway: binds its port, serves until a signal, and lets what runs finish."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.gateway.app import Gateway

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from taskyard.doors.gateway.access import Rules
    from taskyard.port import YardPort

_BACKLOG = 4096  # connections that wait to be taken: a thousand agents may come back at once
_IDLE = 75  # seconds that an idle connection is kept: longer than most proxies keep theirs
_FINISH = 10  # seconds for what runs, after a signal


HEAD_SECONDS = 20.0  # for the head of a request: a client that trickles is cut off, and holds up nobody


class Patience(HttpToolsProtocol):
    """One connection; it is closed if the head of a request takes too long, as uvicorn itself would wait for ever."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._limited()

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
        super().connection_lost(exc)

    def _limited(self) -> None:
        self._unlimited()
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


def make(gateway: Gateway, cert: str | None = None, key: str | None = None) -> uvicorn.Server:
    """Return a server of this gateway; with a certificate it speaks TLS alone."""
    config = uvicorn.Config(
        gateway,
        loop="auto",
        http=Patience,
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
    return uvicorn.Server(config)


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
    try:
        make(gateway, cert, key).run(sockets=[line])
    finally:
        gateway.close()
