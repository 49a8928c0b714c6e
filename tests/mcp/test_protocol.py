"""Both eras of the protocol, as a function from a message to its answer."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard.doors.mcp import protocol
from taskyard.doors.mcp.tools import INSTRUCTIONS, TOOLS

from .wire import ENVELOPE


def answered(method: str, params: Any = None, **more: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, **more}
    if params is not None:
        message["params"] = params
    return protocol.answer(message, lambda name, arguments: (f"{name} {arguments}", name == "bad"))


def test_the_old_era_begins_with_a_handshake() -> None:
    result = answered("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})["result"]
    assert result["protocolVersion"] == "2025-11-25"
    assert result["instructions"] == INSTRUCTIONS
    assert result["serverInfo"]["name"] == "taskyard"
    assert result["capabilities"] == {"tools": {}}


def test_an_unknown_version_in_the_handshake_gets_the_newest_that_has_one() -> None:
    assert answered("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"] == "2025-11-25"


def test_the_new_era_needs_no_handshake() -> None:
    result = answered("server/discover", {"_meta": ENVELOPE})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["instructions"] == INSTRUCTIONS
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "public"
    assert result["ttlMs"] > 0
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "taskyard"


def test_each_era_gets_the_same_tools_in_the_same_order() -> None:
    old = answered("tools/list")["result"]
    new = answered("tools/list", {"_meta": ENVELOPE})["result"]
    assert old == {"tools": TOOLS}
    assert new["tools"] == TOOLS
    assert new["resultType"] == "complete"


def test_a_refusal_of_a_tool_is_a_result_that_the_model_sees() -> None:
    result = answered("tools/call", {"name": "bad", "arguments": {"x": 1}})["result"]
    assert result == {"content": [{"type": "text", "text": "bad {'x': 1}"}], "isError": True}


def test_a_version_that_is_not_served_is_refused_with_those_that_are() -> None:
    envelope = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    error = answered("tools/list", {"_meta": envelope})["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ([], -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": []}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {next(iter(ENVELOPE)): "x"}}}, -32602),
    ],
)
def test_what_is_no_request_gets_its_error(message: Any, code: int) -> None:
    response = protocol.answer(message, lambda *_: ("", False))
    assert response is not None
    assert response["error"]["code"] == code


def test_a_null_in_place_of_params_is_as_good_as_none() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}
    response = protocol.answer(message, lambda *_: ("", False))
    assert response is not None
    assert response["result"]["tools"] == TOOLS


def test_a_batch_is_refused_with_what_to_do_instead() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "claim"}}
    response = protocol.answer([request], lambda *_: pytest.fail("nothing of it is done"))
    assert response is not None
    assert "send each request by itself" in response["error"]["message"]


@pytest.mark.parametrize("id", [float("nan"), float("inf"), True, None, {}, []])
def test_an_id_that_no_json_can_answer_is_refused(id: Any) -> None:
    answered = protocol.answer({"jsonrpc": "2.0", "id": id, "method": "ping"}, lambda *_: ("", False))
    assert answered is not None
    assert (answered["id"], answered["error"]["code"]) == (None, protocol.INVALID_REQUEST)


def test_notifications_and_responses_get_no_answer() -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ):
        assert protocol.answer(message, lambda *_: ("", False)) is None
