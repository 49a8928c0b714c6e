"""What one asker may have of the gateway: connections, requests a second, bytes; and a gateway that is deaf or about to end."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Unavailable
from taskyard.doors.gateway import hub, peers, server
from taskyard.doors.gateway.access import Rules
from tests.conftest import taken, wait_until
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from taskyard import Yard


def asked(
    running: Running, path: str = "/v1/counts", method: str = "GET", body: bytes | None = None
) -> tuple[int, Any]:
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=50)
    line.request(method, path, body)
    answer = line.getresponse()
    text = answer.read()
    line.close()
    return answer.status, json.loads(text) if text[:1] == b"{" else text


def test_an_address_has_so_many_connections_and_no_more(near: Yard) -> None:
    running = Running({"default": near}, Rules(connections=3))
    lines = [socket.create_connection(("127.0.0.1", running.port), 50) for _ in range(3)]
    wait_until(lambda: running.gateway.rules.connections._held == {"127.0.0.1": 3})
    status, told = asked(running)
    assert (status, told["error"]["code"]) == (429, "unavailable")
    assert "too many connections" in told["error"]["message"]
    lines.pop().close()
    wait_until(lambda: asked(running)[0] == 200)
    for line in lines:
        line.close()
    wait_until(lambda: not running.gateway.rules.connections._held)
    running.stop()


def test_connections_of_a_proxy_are_not_counted(near: Yard) -> None:
    running = Running({"default": near}, Rules(connections=1, proxied=True))
    with socket.create_connection(("127.0.0.1", running.port), 50):
        assert asked(running)[0] == 200
    running.stop()


def test_a_client_that_does_not_read_its_answer_is_cut_off(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.2)
    near.add("build", {"text": "x" * 900_000})
    [task] = near.find()
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", gateway.port))
        request = f"GET /v1/tasks/{task.id} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
        line.sendall(request * 20)
        wait_until(lambda: not gateway.gateway.rules.connections._held)


@pytest.mark.parametrize("path", ["/v1/counts", "/openapi.json", "/v1/nowhere", "/nobody/v1/counts"])
def test_who_asks_too_often_without_a_token_is_refused(near: Yard, path: str) -> None:
    running = Running({"default": near}, Rules(rate=0.001))
    assert asked(running, path)[0] != 429
    assert asked(running, path)[0] == 429
    running.stop()


def test_an_asker_sends_so_many_bytes_at_a_time(near: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules()
    monkeypatch.setattr(rules, "bodies", peers.Held(1000))
    running = Running({"default": near}, rules)
    with socket.create_connection(("127.0.0.1", running.port), 50) as slow:
        slow.sendall(b"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 990\r\n\r\n" + b" " * 900)
        wait_until(lambda: rules.bodies._held)
        status, told = asked(running, "/v1/tasks", "POST", json.dumps({"kind": "build", "title": "x" * 150}).encode())
        assert (status, told["error"]["code"]) == (429, "unavailable")
        assert asked(running, "/v1/tasks", "POST", b'{"kind": "build"}')[0] == 200
    wait_until(lambda: not rules.bodies._held)
    running.stop()


def test_a_client_asks_again_when_the_gateway_says_so(near: Yard) -> None:
    running = Running({"default": near}, Rules(rate=1))
    with taskyard.open(running.url(), worker="ada") as far:
        for _ in range(7):  # five at once, and one a second
            far.add("build")
    running.stop()
    assert near.counts()["todo"] == 7


def test_a_client_is_told_when_the_gateway_refuses_for_long(near: Yard) -> None:
    running = Running({"default": near}, Rules(rate=0.001))
    with taskyard.open(running.url(), worker="ada") as far:
        far.counts()
        with pytest.raises(Unavailable, match="requests a second"):
            far.counts()
    running.stop()


def test_a_yard_that_is_full_is_told_of_at_once(near: Yard, far: Yard) -> None:
    near.set_settings({"max_todo": 1})
    far.add("build")
    with pytest.raises(taskyard.Full):
        far.add("build")


def test_checks_that_run_for_long_do_not_hold_up_other_endings(near: Yard, gateway: Running, tmp_path: Any) -> None:
    go_on = tmp_path / "go on"
    near.set_settings({"checks": {"slow": ["sh", "-c", f"while ! test -e '{go_on}'; do sleep 0.05; done"]}})
    near.add_many([{"kind": "checked", "verify": "slow"}] * 20 + [{"kind": "plain"}])
    with taskyard.open(gateway.url(), worker="ada") as far:
        claims = far.claim_many(20, kinds="checked")
        threads = [threading.Thread(target=claim.done) for claim in claims]
        for thread in threads:
            thread.start()
        taken(far.claim(kinds="plain")).done("at once")
        far.add_many([{"kind": "more"}])
        assert near.counts()["done"] == 1
        go_on.touch()
        for thread in threads:
            thread.join()
    assert near.counts()["done"] == 21


def test_a_gateway_is_ready_until_it_is_about_to_end(near: Yard, gateway: Running) -> None:
    assert (asked(gateway, "/healthz")[0], asked(gateway, "/readyz")[0]) == (200, 200)
    gateway.gateway.drain()
    status, told = asked(gateway, "/readyz")
    assert (status, told["error"]["code"]) == (503, "unavailable")
    assert asked(gateway, "/healthz")[0] == 200


def test_what_waits_is_answered_when_the_gateway_is_about_to_end(near: Yard, gateway: Running) -> None:
    asks = {
        "/v1/claims": {"wait": 25},
        "/v1/wait": {"ids": [near.add("build", delay=3600).id], "timeout": 25},
    }
    answers: dict[str, Any] = {}

    def ask(path: str) -> None:
        answers[path] = asked(gateway, path, "POST", json.dumps(asks[path]).encode())

    threads = [threading.Thread(target=ask, args=(path,)) for path in asks]
    for thread in threads:
        thread.start()
    waits = gateway.gateway.projects["default"].hub
    wait_until(lambda: waits._waiting == 2 and waits.in_line() == 1)
    gateway.stop()
    for thread in threads:
        thread.join()
    assert answers["/v1/claims"] == (200, {"v": 1, "ok": True, "data": {"claim": None}})
    assert answers["/v1/wait"][0] == 408
    assert near.counts()["processing"] == 0


def test_a_claim_that_is_being_tried_when_the_gateway_ends_is_answered(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = gateway.gateway.projects["default"].hub
    inside, leave, claim = threading.Event(), threading.Event(), taskyard.Yard.claim

    def held(self: Yard, *given: Any, **named: Any) -> Any:
        if waits.in_line():
            inside.set()
            assert leave.wait(50)
        return claim(self, *given, **named)

    monkeypatch.setattr(taskyard.Yard, "claim", held)
    answers: list[tuple[int, Any]] = []
    asks = threading.Thread(target=lambda: answers.append(asked(gateway, "/v1/claims", "POST", b'{"wait": 25}')))
    asks.start()
    assert inside.wait(50)
    stops = threading.Thread(target=gateway.stop)
    stops.start()
    wait_until(waits.is_draining)
    leave.set()
    asks.join()
    stops.join()
    assert answers == [(200, {"v": 1, "ok": True, "data": {"claim": None}})]


def test_a_wait_ends_in_time_though_the_yard_can_not_be_listened_to(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise taskyard.Away

    monkeypatch.setattr(near, "waiter", away)
    assert asked(gateway, "/v1/claims", "POST", b'{"wait": 0.3}') == (
        200,
        {"v": 1, "ok": True, "data": {"claim": None}},
    )
    near.add("build")
    assert asked(gateway, "/v1/watch?timeout=0.3")[0] == 408


def test_a_gateway_that_is_deaf_is_not_well(near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "DEAF", 0.2)
    silent = threading.Event()

    class Deaf:
        def nap(self, _: float | None = None) -> None:
            silent.wait(50)

    monkeypatch.setattr(near, "waiter", lambda *_: Deaf())
    waits = threading.Thread(target=asked, args=(gateway, "/v1/claims", "POST", b'{"wait": 20}'))
    waits.start()
    wait_until(lambda: asked(gateway, "/healthz")[0] == 503)
    assert "heard" in asked(gateway, "/healthz")[1]["error"]["message"]
    assert asked(gateway, "/readyz")[0] == 503
    silent.set()
    wait_until(lambda: asked(gateway, "/healthz")[0] == 200)
    near.add("build")
    waits.join()
