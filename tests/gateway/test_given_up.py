"""A request that its client gives up: its work ends in the store, and nothing is left half done."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.core import abandonment
from taskyard.doors.gateway.threads import SHARE, SIZE
from tests.conftest import taken, wait_until
from tests.servers import postgres
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from taskyard import Yard

WAITING_FOR_A_LOCK = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class GivenUp:
    """A request whose client goes away once its work has begun."""

    def __init__(
        self, gateway: Running, method: str, path: str, body: bytes = b"", token: str = "", worker: str = ""
    ) -> None:
        self._line = socket.create_connection(("127.0.0.1", gateway.port), 50)
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
        known = f"authorization: Bearer {token}\r\n" if token else ""
        known += f"taskyard-worker: {worker}\r\n" if worker else ""
        self._line.sendall(f"{head}{known}\r\n".encode() + body)

    def leave(self) -> None:
        self._line.close()


class Gate:
    """Holds the first calls of a disk's function until it is opened, and counts those that it does not hold."""

    def __init__(self, disk: Any, name: str, most: int) -> None:
        self._disk, self._name, self._call = disk, name, getattr(disk, name)
        self._open, self._lock = threading.Event(), threading.Lock()
        self._most = most
        self.inside = self.later = 0
        setattr(disk, name, self)

    def __call__(self, *arguments: Any) -> Any:
        with self._lock:
            held = self.inside < self._most and not self._open.is_set()
            self.inside += held
            self.later += not held
        if held:
            self._open.wait(50)
        return self._call(*arguments)

    def open(self) -> None:
        """Let them go on."""
        self._open.set()

    def remove(self) -> None:
        delattr(self._disk, self._name)


def gate(yard: Yard, name: str = "listdir", most: int = 1000) -> Gate:
    return Gate(yard._store._context.disk, name, most)  # type: ignore[attr-defined]


def give_up(request: GivenUp) -> None:
    """Have the client go, and wait until the gateway knows."""
    request.leave()
    wait_until(lambda: any(work.is_abandoned for work in list(abandonment._working.values())))


def is_over(gateway: Running) -> bool:
    """Whether no thread works for anybody."""
    return not gateway.gateway._threads._turns


def test_a_statement_that_nobody_waits_for_is_cancelled() -> None:
    url = postgres.url_in(postgres.database())
    place = url.partition("&project=")[0]
    with taskyard.init(url) as near, psycopg.connect(place) as other, psycopg.connect(place, autocommit=True) as sql:
        near.add("build")
        running = Running({"default": near})
        other.execute("LOCK TABLE taskyard.task IN ACCESS EXCLUSIVE MODE")
        requests = [GivenUp(running, "GET", "/v1/tasks?state=todo") for _ in range(3)]
        requests.append(GivenUp(running, "POST", "/v1/wait", b'{"ids": ["0000"]}'))
        wait_until(lambda: sql.execute(WAITING_FOR_A_LOCK).fetchone() == (4,))
        for request in requests:
            request.leave()
        wait_until(lambda: sql.execute(WAITING_FOR_A_LOCK).fetchone() == (0,))
        wait_until(lambda: is_over(running))
        other.rollback()
        with taskyard.open(running.url()) as far:
            assert len(far.find(state="todo")) == 1
        running.stop()


def test_a_search_through_folders_that_nobody_waits_for_ends(near: Yard, gateway: Running, far: Yard) -> None:
    for number in range(60):
        near.add(f"kind{number}")
    held = gate(near)
    request = GivenUp(gateway, "GET", "/v1/stats?exact=true")
    wait_until(lambda: held.inside)
    give_up(request)
    held.open()
    wait_until(lambda: is_over(gateway))
    assert held.later == 0
    held.remove()
    assert far.counts()["todo"] == 60


def test_a_change_that_has_begun_is_made_as_a_whole(near: Yard, gateway: Running) -> None:
    id = near.add("build").id
    held = gate(near, "rename")
    request = GivenUp(gateway, "POST", f"/v1/tasks/{id}/cancel", b"{}")
    wait_until(lambda: held.inside)
    give_up(request)
    held.open()
    wait_until(lambda: is_over(gateway))
    held.remove()
    assert near.get(id).state == "cancelled"
    assert near.audit()["findings"] == []


@pytest.mark.parametrize("path", ["/v1/claims/resume", "/mcp"])
def test_a_resume_that_is_given_up_leaves_its_worker_what_it_holds(near: Yard, gateway: Running, path: str) -> None:
    near.add("build")
    before = taken(near.claim(worker="ada"))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "resume", "arguments": {}}}
    body = {} if path != "/mcp" else call
    held = gate(near, "rename")
    request = GivenUp(gateway, "POST", path, json.dumps(body).encode(), worker="ada")
    wait_until(lambda: held.inside)
    request.leave()
    wait_until(lambda: not gateway._server.server_state.connections)
    held.open()
    wait_until(lambda: is_over(gateway))
    held.remove()
    assert [(task.id, task.worker) for task in near.find(state="processing")] == [(before.id, "ada")]


def test_a_bulk_that_nobody_waits_for_stops_between_two_moves(near: Yard, gateway: Running) -> None:
    ids = near.add_many([{"kind": "build"} for _ in range(2500)])
    held = gate(near, "rename")
    request = GivenUp(gateway, "POST", "/v1/bulk", b'{"verb": "cancel", "kind": "build", "apply": true}')
    wait_until(lambda: held.inside)
    give_up(request)
    held.open()
    wait_until(lambda: is_over(gateway))
    held.remove()
    assert 0 < near.counts()["cancelled"] < len(ids)
    assert near.audit()["findings"] == []


def test_a_request_that_is_given_up_before_its_turn_does_nothing(near: Yard, gateway: Running) -> None:
    near.add("build", delay=0.001)
    held = gate(near)
    first = [GivenUp(gateway, "GET", "/v1/stats?exact=true") for _ in range(SHARE)]
    wait_until(lambda: held.inside == SHARE)
    late = GivenUp(gateway, "POST", "/v1/sweep", b"{}")
    turns = gateway.gateway._threads._turns
    wait_until(lambda: any(one.users == SHARE + 1 for one in turns.values()))
    late.leave()
    wait_until(lambda: all(one.users == SHARE for one in turns.values()))
    held.open()
    for request in first:
        request.leave()
    wait_until(lambda: is_over(gateway))
    held.remove()
    assert near.counts()["waiting"] == 1


def test_one_asker_does_not_take_all_threads(near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile, good = near.new_token("hostile")["token"], near.new_token("good", scope="manage")["token"]
    held = gate(near, most=SHARE)
    requests = [GivenUp(gateway, "GET", "/v1/stats?exact=true", token=hostile) for _ in range(3 * SIZE)]
    wait_until(lambda: held.inside == SHARE)
    monkeypatch.setenv("TASKYARD_TOKEN", good)
    with taskyard.open(gateway.url()) as far:
        assert far.bulk("cancel", kind="build")["count"] == 0
    held.open()
    for request in requests:
        request.leave()
    wait_until(lambda: is_over(gateway))
    held.remove()
