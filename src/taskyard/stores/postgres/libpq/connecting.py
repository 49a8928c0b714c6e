"""Opening a connection: each address of the host is tried for as long as `connect_timeout` says, as psycopg does."""

from __future__ import annotations

import _socket  # what `socket` is made of, which takes 3 ms to load
import ctypes
import os
import select
import time
from ctypes import c_char_p, c_void_p

from taskyard.stores.postgres.libpq.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_READING, _WRITING, _OK = 1, 2, 3
_LONGEST, _SHORTEST = 130.0, 2.0  # seconds for one address: where none are given, and at the least


class Unsuited(Exception):
    """The address needs what libpq does not do without blocking: psycopg has its own way for it."""


def parse(library: Any, conninfo: str) -> dict[str, str]:
    """Return the parameters in a URL; raise `Error` if libpq does not understand it."""
    problem = c_void_p()
    options = library.PQconninfoParse(conninfo.encode(), ctypes.byref(problem))
    if not options:
        text = ctypes.string_at(problem.value) if problem.value else b"out of memory"
        library.PQfreemem(problem)
        raise Error(text.decode(errors="replace").strip())
    try:
        given = {}
        at = 0
        while (option := options[at]).keyword is not None:
            if option.val is not None:
                given[option.keyword.decode()] = option.val.decode()
            at += 1
        return given
    finally:
        library.PQconninfoFree(options)


def opened(library: Any, parameters: dict[str, str]) -> Any:
    """Connect, and return libpq's connection; raise `Error`, or `Unsuited`."""
    timeout = _timeout(parameters)
    failures = []
    for attempt in _attempts(parameters):
        try:
            return _one(library, attempt, timeout)
        except Error as error:
            failures.append(str(error))
    # The last one first: its first line is what people read.
    raise Error("\n".join([failures[-1], *failures]) if len(failures) > 1 else failures[0])


def _timeout(parameters: dict[str, str]) -> float:
    given = parameters.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT") or 0
    try:
        seconds = int(float(given))
    except (ValueError, OverflowError):
        raise Unsuited from None
    return max(float(seconds), _SHORTEST) if seconds > 0 else _LONGEST


def _attempts(parameters: dict[str, str]) -> list[dict[str, str]]:
    """Return the parameters for each address that the host has."""
    if parameters.get("service") or os.environ.get("PGSERVICE"):
        raise Unsuited  # the file of services may name hosts, too
    host, address, port = (
        parameters.get(name) or os.environ.get(variable) or ""
        for name, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("port", "PGPORT"))
    )
    if "," in f"{host}{address}{port}":
        raise Unsuited
    if not host or host.startswith(("/", "@")) or address:
        return [parameters]
    try:
        found = _socket.getaddrinfo(host, port or "5432", type=_socket.SOCK_STREAM, proto=_socket.IPPROTO_TCP)
    except OSError as error:
        raise Error(f"failed to resolve host {host!r}: {error}") from None
    return [{**parameters, "hostaddr": str(place[4][0])} for place in found]


def _one(library: Any, parameters: dict[str, str], timeout: float) -> Any:
    keys = [name.encode() for name in parameters]
    texts = [value.encode() for value in parameters.values()]
    array = c_char_p * (len(keys) + 1)
    wire = library.PQconnectStartParams(array(*keys, None), array(*texts, None), 0)
    if not wire:
        raise Error("out of memory")
    try:
        library.PQsetNoticeProcessor(wire, library.be_quiet, None)
        if library.PQstatus(wire) == _BAD:
            raise Error(f"connection is bad: {message(library, wire)}")
        poll(library.PQconnectPoll, library.PQsocket, wire, timeout, lambda: _failed(library, wire))
        library.PQsetnonblocking(wire, 1)
    except BaseException:
        library.PQfinish(wire)
        raise
    return wire


_BAD = 1  # libpq's status of a connection that cannot be used


def _failed(library: Any, wire: Any) -> Error:
    return Error(f"connection failed: {message(library, wire)}")


def message(library: Any, wire: Any) -> str:
    """Return what libpq says about a connection."""
    text: str = (library.PQerrorMessage(wire) or b"").decode(errors="replace").strip()
    return text or "no error details available"


def poll(step: Any, socket: Any, wire: Any, seconds: float, failure: Callable[[], Error]) -> None:
    """Take the steps to a connection, or to a cancel; raise `Error` if it fails, or takes longer than this."""
    end, state = time.monotonic() + seconds, _WRITING
    while state != _OK:
        poller = select.poll()
        poller.register(socket(wire), select.POLLIN if state == _READING else select.POLLOUT)
        if not poller.poll(max(0.0, end - time.monotonic()) * 1000):
            raise Error("connection timeout expired")
        state = step(wire)
        if state not in (_READING, _WRITING, _OK):
            raise failure()
