"""The stream of events, and what is asked about the gateway itself."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Unavailable
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.servers.gateway import Running


def get(gateway: Running, path: str, **headers: str) -> tuple[int, str]:
    line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=50)
    line.request("GET", path, headers=headers)
    answer = line.getresponse()
    text = answer.read().decode()
    line.close()
    return answer.status, text


class Stream:
    """Server-sent events, as they come."""

    def __init__(self, gateway: Running, path: str = "/v1/events", **headers: str) -> None:
        self.events: list[Any] = []
        self.last = ""
        self._line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=50)
        self._line.request("GET", path, headers={"Accept": "text/event-stream", **headers})
        self._answer = self._line.getresponse()
        assert self._answer.status == 200
        assert self._answer.readline() == b"retry: 1000\n"
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while line := self._answer.readline().decode():
                if line.startswith("id: "):
                    self.last = line[4:].strip()
                elif line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return  # closed by the test

    def close(self) -> None:
        import socket

        assert self._answer.fp is not None
        self._answer.fp.raw._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
        self._line.close()


def test_events_are_streamed_as_they_happen_and_go_on_after_a_cut(near: Yard, gateway: Running) -> None:
    near.add("before")
    stream = Stream(gateway)
    near.add("build")
    taken(near.claim(kinds="build")).done()
    wait_until(lambda: len(stream.events) == 3)
    assert [event["event"] for event in stream.events] == ["added", "claimed", "done"]
    stream.close()
    near.add("test")
    again = Stream(gateway, **{"Last-Event-ID": stream.last})
    wait_until(lambda: again.events)
    assert [(event["event"], event["kind"]) for event in again.events] == [("added", "test")]
    again.close()
    hub = gateway.gateway.projects["default"].hub
    wait_until(hub.idle)  # a stream that nobody reads any more holds nothing


def test_a_stream_has_what_matches_alone(near: Yard, gateway: Running) -> None:
    stream = Stream(gateway, "/v1/events?kind=test&event=added")
    near.add("build")
    near.add("test")
    wait_until(lambda: stream.events)
    assert [event["kind"] for event in stream.events] == ["test"]
    stream.close()
    assert get(gateway, "/v1/events?kind=%00", Accept="text/event-stream")[0] == 400


def test_the_gateway_is_well_while_its_yard_answers(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get(gateway, "/healthz") == (200, "ok\n")
    assert get(gateway, "/default/readyz") == (200, "ok\n")

    def away() -> None:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(near, "paused", away)
    status, text = get(gateway, "/healthz")
    assert (status, json.loads(text)["error"]["message"]) == (503, "the disk is gone")


def test_metrics_are_those_of_stats(near: Yard, gateway: Running) -> None:
    near.add("build")
    status, text = get(gateway, "/metrics")
    assert status == 200
    assert 'taskyard_tasks{kind="build",state="todo"} 1\n' in text
    assert "taskyard_gateway_waiting_claims 0\n" in text


def test_the_page_of_the_api_needs_nothing_from_elsewhere(gateway: Running) -> None:
    status, text = get(gateway, "/docs")
    assert status == 200
    assert "/v1/claims" in text
    assert "src=" not in text
    assert "href=http" not in text


def test_other_sites_and_other_names_are_refused(gateway: Running) -> None:
    assert get(gateway, "/v1/counts", Host="evil.example:8377")[0] == 403
    assert get(gateway, "/v1/counts", Origin="http://evil.example")[0] == 403
    assert get(gateway, "/v1/counts", Origin=f"http://127.0.0.1:{gateway.port}")[0] == 200


@pytest.mark.parametrize("path", ["/v1/nothing", "/nowhere/v1/counts", "/v1/tasks/%ff", "/v1/events?limit=x", "//"])
def test_what_is_not_there_is_an_error_and_no_accident(gateway: Running, path: str) -> None:
    status, text = get(gateway, path)
    assert 400 <= status < 500
    assert json.loads(text)["ok"] is False
