"""Answers that never arrive: whatever is asked again gets the same answer, and nothing is held by nobody."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Unavailable
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard
    from tests.servers.gateway import Running


def whole(line: socket.socket) -> bytes:
    """One answer, with its head."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(1 << 20)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += line.recv(1 << 20)
    return head + b"\r\n\r\n" + body


class Cutter:
    """Stands between a client and its gateway, and cuts the connection in place of the next answers."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.cut = 0
        self._line = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._line.getsockname()[1]}/default"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                guest, _ = self._line.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(guest,), daemon=True).start()

    def _carry(self, guest: socket.socket) -> None:
        with guest, socket.create_connection(("127.0.0.1", self._target)) as host:
            while request := guest.recv(1 << 20):
                host.sendall(request)
                answer = whole(host)
                if self.cut:
                    self.cut -= 1
                    return
                guest.sendall(answer)

    def close(self) -> None:
        self._line.close()


@pytest.fixture
def cutter(gateway: Running) -> Iterator[Cutter]:
    between = Cutter(gateway.port)
    yield between
    between.close()


@pytest.fixture
def far(cutter: Cutter) -> Iterator[Yard]:
    with taskyard.open(cutter.url, worker="ada") as opened:
        opened.counts()
        yield opened


def test_an_add_whose_answer_was_lost_adds_one_task(near: Yard, cutter: Cutter, far: Yard) -> None:
    cutter.cut = 1
    task = far.add("build", {"n": 1})
    assert task.created
    assert task.key is None
    assert [one.id for one in near.find()] == [task.id]
    cutter.cut = 1
    ids = far.add_many([{"kind": "build"}] * 3)
    assert ids.created == 3
    assert len(near.find()) == 4


def test_a_token_whose_answer_was_lost_is_one_token_and_the_same_secret(
    near: Yard, cutter: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", near.new_token("manager", scope="manage")["token"])
    with taskyard.open(cutter.url) as far:
        far.counts()
        cutter.cut = 1
        named = far.new_token("board", scope="read")
        cutter.cut = 1
        unnamed = far.new_token()
        assert {one["name"] for one in far.tokens()} == {"manager", "board", unnamed["name"]}
    for made in (named, unnamed):
        monkeypatch.setenv("TASKYARD_TOKEN", made["token"])
        with taskyard.open(cutter.url) as own:
            assert own.counts()["todo"] == 0


def test_a_claim_whose_answer_was_lost_is_the_same_claim(near: Yard, cutter: Cutter, far: Yard) -> None:
    near.add_many([{"kind": "build"}] * 3)
    cutter.cut = 1
    claim = taken(far.claim())
    assert claim.holds()
    assert (near.counts()["processing"], claim.fence) == (1, 1)
    cutter.cut = 1
    assert len({one.handle for one in far.claim_many(2)}) == 2
    assert near.counts()["processing"] == 3


def test_a_claim_that_was_granted_before_the_gateway_went_away_is_found_when_it_is_back(
    near: Yard, cutter: Cutter, far: Yard
) -> None:
    near.add_many([{"kind": "build"}] * 2)
    cutter.cut = 2  # the repetition as well
    with pytest.raises(Unavailable):
        far.claim()
    assert near.counts()["processing"] == 1
    claim = taken(far.claim())
    assert claim.holds()
    assert near.counts()["processing"] == 1
    assert taken(far.claim()).id != claim.id


def test_an_ending_whose_answer_was_lost_is_the_same_ending(near: Yard, cutter: Cutter, far: Yard) -> None:
    near.add_many([{"kind": "build"}] * 3)
    for ending in ("done", "fail", "release"):
        claim = taken(far.claim())
        cutter.cut = 1
        getattr(claim, ending)()
    assert not any(event["event"] == "refused" for event in near.events())


def post(gateway: Running, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=50)
    line.request("POST", path, json.dumps(body), headers)
    answer = line.getresponse()
    told = json.loads(answer.read())
    line.close()
    return answer.status, told


def test_a_repeated_post_of_any_client_is_one_request(near: Yard, gateway: Running) -> None:
    key = {"Idempotency-Key": "4711", "Taskyard-Worker": "eve"}
    first = post(gateway, "/v1/tasks", {"kind": "build"}, **key)
    assert post(gateway, "/v1/tasks", {"kind": "build"}, **key) == first
    assert post(gateway, "/v1/tasks", {"kind": "other"}, **key)[0] == 409
    near.add("build")
    first, again = (post(gateway, "/v1/claims", {}, **key)[1]["data"]["claim"]["claim"] for _ in range(2))
    assert first == again
    assert near.counts()["processing"] == 1


def test_what_a_client_no_longer_waits_for_is_not_claimed(near: Yard, gateway: Running) -> None:
    line = socket.create_connection(("127.0.0.1", gateway.port))
    body = b'{"wait": 25}'
    line.sendall(b"POST /v1/claims HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    hub = gateway.gateway.projects["default"].hub
    wait_until(hub.in_line)
    line.close()
    wait_until(lambda: not hub.in_line())
    near.add("build")
    assert taken(near.claim()).fence == 1


def test_two_hundred_claims_wait_without_a_thread_each(near: Yard, gateway: Running) -> None:
    body = b'{"wait": 25}'
    request = b"POST /v1/claims HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    before = threading.active_count()
    lines = []
    for _ in range(200):
        line = socket.create_connection(("127.0.0.1", gateway.port))
        line.sendall(request)
        lines.append(line)
    hub = gateway.gateway.projects["default"].hub
    wait_until(lambda: hub.in_line() == 200)
    assert threading.active_count() - before < 40
    ids = near.add_many([{"kind": "build"}] * 200)
    got = [json.loads(whole(line).partition(b"\r\n\r\n")[2])["data"]["claim"]["task"]["id"] for line in lines]
    assert sorted(got) == sorted(ids)
    for line in lines:
        line.close()


def test_a_task_for_one_worker_reaches_it_in_a_long_line(near: Yard, gateway: Running) -> None:
    answers: dict[str, str] = {}

    def wait(name: str) -> None:
        with taskyard.open(gateway.url(), worker=name) as yard:
            answers[name] = taken(yard.claim(wait=50)).task.id

    threads = [threading.Thread(target=wait, args=(f"w{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    wait_until(lambda: gateway.gateway.projects["default"].hub.in_line() == 12)
    own = near.add("build", assignee="w7").id
    wait_until(lambda: "w7" in answers)
    assert answers == {"w7": own}
    near.add_many([{"kind": "build"}] * 11)
    for thread in threads:
        thread.join(50)
    assert len(set(answers.values())) == 12
