"""Clients that trickle, send too much or send nonsense: each is refused, and holds up nobody."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from taskyard.doors.gateway import app, server

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.servers.gateway import Running


def connected(gateway: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), 50)


def rest(line: socket.socket) -> bytes:
    """All that comes until the gateway closes the connection."""
    data = b""
    while some := line.recv(1 << 16):
        data += some
    return data


def test_a_client_that_trickles_its_head_is_cut_off_and_others_are_served(
    gateway: Running, far: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.5)
    lines = [connected(gateway) for _ in range(50)]
    for line in lines:
        line.sendall(b"POST /v1/tasks HTTP/1.1\r\nhost: 127")
    far.add("build")
    for line in lines:
        assert rest(line) == b""
        line.close()
    assert far.counts()["todo"] == 1


def test_a_client_that_says_nothing_is_cut_off(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.1)
    with connected(gateway) as line:
        assert rest(line) == b""


def test_a_client_that_trickles_its_body_is_refused(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_SECONDS", 0.1)
    with connected(gateway) as line:
        line.sendall(b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 50\r\n\r\n{")
        assert line.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("announced", [True, False])
def test_a_request_that_is_too_large_is_refused(
    gateway: Running, monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    monkeypatch.setattr(app, "BODY_MOST", 1000)
    head = b"content-length: 5000" if announced else b"transfer-encoding: chunked"
    with connected(gateway) as line:
        line.sendall(b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\n" + head + b"\r\n\r\n")
        if not announced:
            line.sendall(b"7d0\r\n" + b"x" * 2000 + b"\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"kind": 5}', b'{"conn": 1, "kind": "a"}', b"\xff", b'{"self": 1}'],
)
def test_nonsense_is_refused_with_a_reason(gateway: Running, body: bytes) -> None:
    with connected(gateway) as line:
        line.sendall(b"POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n")
        line.sendall(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        head, _, told = rest(line).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        assert json.loads(told)["error"]["code"] == "invalid"


def test_what_is_no_http_is_refused(gateway: Running, far: Yard) -> None:
    with connected(gateway) as line:
        line.sendall(b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
        assert rest(line).startswith(b"HTTP/1.1 400")
    assert far.counts()["todo"] == 0


@pytest.mark.parametrize(
    "head",
    [
        b"host: [::1",
        b"host: 127.0.0.1\r\nhost: evil.example",
        b"host: evil.example\r\nhost: 127.0.0.1",
        b"host: 127.0.0.1@evil.example",
        b"host: 127.0.0.1\r\norigin: http://[::1",
        b"host: 127.0.0.1\r\norigin: null",
        b"host: 127.0.0.1\r\nsec-fetch-site: cross-site",
        b"host: 127.0.0.1\r\nsec-fetch-site: same-site\r\nsec-fetch-mode: cors",
    ],
)
def test_who_cannot_be_told_from_another_site_is_refused(gateway: Running, head: bytes) -> None:
    with connected(gateway) as line:
        line.sendall(b"GET /v1/counts HTTP/1.1\r\n" + head + b"\r\nconnection: close\r\n\r\n")
        answer = rest(line)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'"denied"' in answer


def test_a_link_from_another_site_may_be_followed_and_may_change_nothing(gateway: Running) -> None:
    from_elsewhere = (
        b"host: 127.0.0.1\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nconnection: close\r\n"
    )
    for request, status in ((b"GET /docs", b"200"), (b"POST /v1/pause", b"403")):
        with connected(gateway) as line:
            line.sendall(request + b" HTTP/1.1\r\n" + from_elsewhere + b"content-length: 0\r\n\r\n")
            assert rest(line).startswith(b"HTTP/1.1 " + status)


def test_a_head_without_an_end_is_cut_off(gateway: Running, far: Yard) -> None:
    with connected(gateway) as line:
        line.sendall(b"GET /v1/counts HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        endless = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(20_000))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            line.sendall(endless)
    assert far.counts()["todo"] == 0
