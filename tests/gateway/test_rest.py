"""Plain HTTP clients: who they are, and how what they got wrong is told to them."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.servers.gateway import Running


def asked(
    gateway: Running, method: str, path: str, body: Any = None, worker: str | None = None
) -> tuple[int, dict[str, Any], http.client.HTTPResponse]:
    line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=50)
    try:
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        line.request(method, path, sent, {} if worker is None else {"Taskyard-Worker": worker})
        answer = line.getresponse()
        told = json.loads(answer.read())
        return answer.status, told["data" if told["ok"] else "error"], answer
    finally:
        line.close()


def test_resume_without_a_name_is_refused_and_takes_no_claims_of_other_nameless_clients(
    near: Yard, gateway: Running
) -> None:
    near.add("build")
    claim = asked(gateway, "POST", "/v1/claims")[1]["claim"]["claim"]
    for body in (None, {}, {"worker": None}):
        status, told, _ = asked(gateway, "POST", "/v1/claims/resume", body)
        assert (status, told["code"]) == (400, "invalid")
        assert "Taskyard-Worker" in told["hint"]
    assert near.holding([claim]) == [True]


@pytest.mark.parametrize("by", ["header", "argument"])
def test_resume_with_a_name_takes_its_claims(near: Yard, gateway: Running, by: str) -> None:
    near.add("build")
    asked(gateway, "POST", "/v1/claims", worker="ada")
    body, worker = ({}, "ada") if by == "header" else ({"worker": "ada"}, None)
    status, told, _ = asked(gateway, "POST", "/v1/claims/resume", body, worker)
    assert (status, [one["fence"] for one in told["claims"]]) == (200, [2])


def test_a_review_needs_a_name_so_that_nobody_reviews_their_own_work(near: Yard, gateway: Running) -> None:
    id = near.add("build", review=True).id
    claim = asked(gateway, "POST", "/v1/claims")[1]["claim"]["claim"]
    asked(gateway, "POST", f"/v1/claims/{claim}/done", {"result": 1})
    for verb, body in (("accept", {}), ("reject", {"note": "again"})):
        status, told, _ = asked(gateway, "POST", f"/v1/tasks/{id}/{verb}", body)
        assert (status, told["code"]) == (400, "invalid")
        assert "Taskyard-Worker" in told["hint"]
    assert near.get(id).review == "pending"
    assert asked(gateway, "POST", f"/v1/tasks/{id}/accept", {}, "bob")[0] == 200
    assert near.get(id).state == "done"


def test_every_invalid_request_is_told_what_to_do_next(gateway: Running) -> None:
    bodies: list[Any] = [{}, {"kind": "a", "priority": 99}, [], b"{", {"kind": "a", "max_attempts": 0}]
    for body in bodies:
        status, told, _ = asked(gateway, "POST", "/v1/tasks", body)
        assert (status, told["code"]) == (400, "invalid")
        assert "/openapi.json" in told["hint"]


def test_the_hint_for_plain_clients_does_not_reach_a_far_yard(far: Yard) -> None:
    with pytest.raises(taskyard.Invalid) as caught:
        far.add("build", priority=99)
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 100_000, "the request is nested too deeply"),
        (b'{"kind": "a", "data": %s}' % (b"9" * 5000), "the request has a whole number of more than 4300 digits"),
        (b"\xff", "the request is not JSON: it is not UTF-8"),
    ],
)
def test_json_that_cannot_be_read_is_refused_in_plain_words(gateway: Running, body: bytes, message: str) -> None:
    status, told, _ = asked(gateway, "POST", "/v1/tasks", body)
    assert (status, told["message"]) == (400, message)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/tasks", "GET, POST"),
        ("DELETE", "/default/v1/tasks/0-zzzz", "GET, PATCH"),
        ("GET", "/v1/sweep", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_a_path_that_has_other_methods_is_405_and_names_them(
    gateway: Running, method: str, path: str, allowed: str
) -> None:
    status, told, answer = asked(gateway, method, path)
    assert (status, told["code"], answer.getheader("allow")) == (405, "invalid", allowed)
    assert allowed in told["hint"]


def test_a_path_that_has_nothing_is_404(gateway: Running) -> None:
    assert asked(gateway, "DELETE", "/v1/nothing")[0] == 404
    status, told, _ = asked(gateway, "GET", "/nothing/v1/tasks")
    assert (status, told["code"]) == (404, "unavailable")
    assert "--project" in told["hint"]


def test_a_far_claim_goes_on_after_a_nameless_resume(near: Yard, gateway: Running, far: Yard) -> None:
    near.add("build")
    claim = taken(far.claim())
    assert asked(gateway, "POST", "/v1/claims/resume")[0] == 400
    claim.done()


@pytest.mark.parametrize("name", ["yard", "self", "conn", "nonsense"])
def test_an_argument_that_no_edit_has_is_refused(near: Yard, gateway: Running, name: str) -> None:
    id = near.add("build").id
    status, told, _ = asked(gateway, "PATCH", f"/v1/tasks/{id}", json.dumps({name: 1}).encode())
    assert (status, told["code"]) == (400, "invalid")
