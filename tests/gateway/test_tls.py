"""Clients of a TLS port that never finish their handshake: they are cut off in time, and hold up nobody."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.doors.gateway import server
from tests.gateway.test_access import CERTIFICATE
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def secure(near: Yard, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATE)
    monkeypatch.setattr(server, "HANDSHAKE_SECONDS", 5.0)
    running = Running({"default": near}, cert=CERTIFICATE)
    yield running
    running.stop()


def is_cut(line: socket.socket) -> bool:
    """Whether the gateway hangs up, within half the minute that the loop itself would wait."""
    try:
        return line.recv(100) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_clients_that_say_nothing_or_trickle_are_cut_off_and_others_are_served(near: Yard, secure: Running) -> None:
    lines = [socket.create_connection(("127.0.0.1", secure.port), 30) for _ in range(50)]
    for line in lines[:25]:
        line.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake
    with taskyard.open(secure.url(), worker="ada") as far:
        far.add("build")
    assert near.counts()["todo"] == 1
    assert [is_cut(line) for line in lines] == [True] * 50
    for line in lines:
        line.close()
