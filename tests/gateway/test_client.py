"""The client's own connections: what breaks, comes in pieces or is no answer of a gateway, and what many threads share."""

from __future__ import annotations

import os
import resource
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import taskyard
from taskyard import Away
from taskyard.remote import http
from tests.conftest import taken
from tests.gateway.test_lost_replies import Cutter
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard
    from tests.servers.gateway import Running


@pytest.fixture
def cutter(gateway: Running) -> Iterator[Cutter]:
    between = Cutter(gateway.port)
    yield between
    between.close()


class Proxy:
    """Answers every request with the same bytes, and closes the connection."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._line = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._line.getsockname()[1]}/default"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                guest, _ = self._line.accept()
            except OSError:
                return
            with guest:
                guest.recv(1 << 20)
                guest.sendall(self._answer)

    def close(self) -> None:
        self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()
        self._thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 15\r\n\r\n<h1>nginx</h1>\n",
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 504 Gateway Time-out\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nabc\r\n",
    ],
    ids=["502", "503", "504", "no chunk", "negative chunk"],
)
def test_a_proxy_whose_gateway_is_gone_means_that_it_is_away(answer: bytes) -> None:
    proxy = Proxy(answer)
    with taskyard.open(proxy.url) as far, pytest.raises(Away):
        far.add("build")
    proxy.close()


class Taken(list[object]):
    """Idle connections of which another thread takes the last one between a look and a pop."""

    def __len__(self) -> int:
        return 1


def test_an_idle_connection_that_another_thread_takes_first_is_no_error(far: Yard) -> None:
    far._requests.connections._idle = Taken()  # type: ignore[attr-defined]
    assert far.counts()["todo"] == 0


def test_claims_of_two_threads_whose_answers_were_lost_are_both_found(near: Yard, cutter: Cutter) -> None:
    near.add_many([{"kind": "build"}] * 2)
    with taskyard.open(cutter.url, worker="ada") as far:
        far.counts()
        ready = threading.Barrier(2)

        def lost() -> None:
            ready.wait(50)
            with pytest.raises(taskyard.Unavailable):
                far.claim()

        cutter.cut = 4  # both repetitions as well
        threads = [threading.Thread(target=lost) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert near.counts()["processing"] == 2
        assert len({taken(far.claim()).id for _ in range(2)}) == 2


def test_a_claim_for_another_worker_whose_answer_was_lost_is_the_same_claim(near: Yard, cutter: Cutter) -> None:
    near.add_many([{"kind": "build"}] * 2)
    with taskyard.open(cutter.url, worker="ada") as far:
        far.counts()
        cutter.cut = 1
        claim = taken(far.claim(worker="eve"))
        assert claim.holds()
        assert [task.worker for task in near.find(state="processing")] == ["eve"]


def test_a_process_with_thousands_of_open_files_reaches_its_gateway_and_its_database(gateway: Running) -> None:
    url = postgres.url_in(postgres.database())
    taskyard.init(url).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with taskyard.open(url) as database, taskyard.open(gateway.url()) as far:
            for yard in (database, far):
                yard.add("build")
                assert yard.counts()["todo"] == 1
                assert yard.claim() is not None
                assert yard.claim(wait=0.2) is None
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_large_request_may_take_longer_than_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CONNECT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as line:
        line.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18
        )  # more than one packet, or the kernel waits between them
        length = 0

        def read_slowly() -> None:
            nonlocal length
            guest, _ = line.accept()
            with guest:
                while not threading.Event().wait(0.01):
                    length += len(some := guest.recv(1 << 16))
                    if some.endswith(b"}"):
                        break
                guest.sendall(
                    b'HTTP/1.1 200 OK\r\ncontent-length: 47\r\n\r\n{"ok": true, "data": {"ids": [], "created": 0}}'
                )

        thread = threading.Thread(target=read_slowly)
        thread.start()
        with taskyard.open(f"http://127.0.0.1:{line.getsockname()[1]}/default") as far:
            far.add_many([{"kind": "build", "data": "x" * 1_000_000}] * 10)
        thread.join()
    assert length > 10_000_000


@pytest.mark.parametrize("project", ["a b", "a\r\nx: y", "é", "a%20b"])
def test_a_project_of_any_name_breaks_no_request(near: Yard, gateway: Running, project: str) -> None:
    with taskyard.open(gateway.serve(unquote(project), near).replace(unquote(project), project)) as far:
        assert far.counts()["todo"] == 0


def test_a_host_that_can_have_no_address_is_away() -> None:
    with taskyard.open(f"http://{'a' * 70}.example:1/default") as far, pytest.raises(Away):
        far.counts()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such limit")
def test_a_machine_that_vanishes_is_given_up_within_seconds(far: Yard) -> None:
    far.counts()
    [(line, _)] = far._requests.connections._idle  # type: ignore[attr-defined]
    silence = [line.getsockopt(socket.IPPROTO_TCP, name) for name in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)]
    assert silence[0] + silence[1] * line.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) <= 20
    assert 0 < line.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 20_000
