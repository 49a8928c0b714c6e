"""Agents that reach a yard by MCP over HTTP: the real client, in both eras, and nothing remembered between two calls."""

from __future__ import annotations

import json
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

import taskyard
from taskyard.doors.mcp.stateless import StatelessAgent
from taskyard.doors.mcp.tools import SHARED
from tests.conftest import wait_until
from tests.mcp.scripted import MODES
from tests.mcp.wire import ENVELOPE
from tests.servers import postgres
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from taskyard import Yard


class Agent:
    """Calls tools with the SDK's client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def text(self, name: str, **arguments: Any) -> tuple[str, bool]:
        result = await self._client.call_tool(name, arguments)
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text, bool(result.is_error)

    async def call(self, name: str, **arguments: Any) -> Any:
        text, refused = await self.text(name, **arguments)
        assert not refused, text
        return json.loads(text)

    async def refused(self, name: str, **arguments: Any) -> str:
        text, refused = await self.text(name, **arguments)
        assert refused, text
        assert ". Next: " in text
        return text


@asynccontextmanager
async def agent(gateway: Running, era: str, worker: str | None = None, path: str = "mcp") -> AsyncIterator[Agent]:
    headers = {} if worker is None else {"Taskyard-Worker": worker}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{gateway.port}/{path}", http_client=http)
        async with Client(transport, mode=MODES[era]) as client:
            assert client.protocol_version == era
            assert client.instructions == SHARED.instructions
            assert [tool.name for tool in (await client.list_tools()).tools] == list(SHARED.arguments)
            yield Agent(client)


@pytest.fixture(params=sorted(MODES))
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def played(scene: Callable[[], Any]) -> None:
    anyio.run(scene)


def test_an_agent_does_a_task_with_the_handle_that_claim_answered(near: Yard, gateway: Running, era: str) -> None:
    near.add("build", {"n": 1}, title="Fix it")

    async def scene() -> None:
        async with agent(gateway, era, "ada") as ada:
            task = await ada.call("claim")
            assert task["data"] == {"n": 1}
            assert near.get(task["task"]).worker == "ada"
            assert near.lease(task["claim"]) == near.policy.lease  # that of a one-shot claim: nobody heartbeats
            assert (await ada.call("note", claim=task["claim"], text="half", progress=0.5))["yours_until"]
            found = await ada.call("add", kind="test", claim=task["claim"])
            assert near.get(found["added"]).discovered_from == near.get(task["task"]).id
            assert await ada.call("done", claim=task["claim"], result=[1]) == {"done": task["task"]}
            assert await ada.call("done", claim=task["claim"], result=[1]) == {"done": task["task"]}  # a lost reply
            assert (await ada.call("wait", tasks=[task["task"]]))["ended"][0]["result"] == [1]
            assert (await ada.call("show", task=task["task"]))["state"] == "done"
            assert [one["kind"] for one in (await ada.call("ready"))["ready"]] == ["test"]

    played(scene)


def test_a_verb_without_its_handle_is_refused_and_says_that_nothing_is_remembered(
    near: Yard, gateway: Running, era: str
) -> None:
    near.add("build")

    async def scene() -> None:
        async with agent(gateway, era) as ada:
            task = await ada.call("claim")
            for verb, more in (("done", {}), ("fail", {"reason": "no"}), ("release", {}), ("note", {"text": "a"})):
                refused = await ada.refused(verb, **more)
                assert f"{verb} needs claim: this server remembers nothing" in refused
            assert "needs the handle of a claim" in await ada.refused("done", claim=task["task"])
            assert near.get(task["task"]).state == "processing"
            assert await ada.call("release", claim=task["claim"]) == {"released": task["task"]}
            assert "stop that work" in await ada.refused("done", claim=task["claim"])
            assert "stop that work" in await ada.refused("ready", claim=task["claim"])

    played(scene)


def test_only_an_agent_with_a_name_can_resume(near: Yard, gateway: Running, era: str) -> None:
    near.add("build")

    async def scene() -> None:
        async with agent(gateway, era, "ada") as ada, agent(gateway, era) as nobody:
            task = await ada.call("claim")
            assert "Taskyard-Worker" in await nobody.refused("resume")
            [again] = (await ada.call("resume"))["claims"]
            assert (again["task"], again["claim"] != task["claim"]) == (task["task"], True)
            await ada.refused("done", claim=task["claim"])
            await ada.call("done", claim=again["claim"])

    played(scene)


def test_a_claim_that_waits_holds_no_thread_and_gets_the_next_task(near: Yard, gateway: Running, era: str) -> None:
    hub = gateway.gateway.projects["default"].hub

    def add() -> None:
        wait_until(lambda: hub.in_line() == 40)  # more than the gateway has threads
        near.add_many([{"kind": "build"}] * 40)

    async def scene() -> None:
        got = []
        async with agent(gateway, era, "ada") as ada, anyio.create_task_group() as group:

            async def claim() -> None:
                got.append((await ada.call("claim", wait=45))["claim"])

            for _ in range(40):
                group.start_soon(claim)
        assert len(set(got)) == 40

    adding = threading.Thread(target=add)
    adding.start()
    played(scene)
    adding.join()


def test_a_wait_in_vain_says_to_call_again(near: Yard, gateway: Running, era: str) -> None:
    task = near.add("build", assignee="grace")

    async def scene() -> None:
        async with agent(gateway, era, "ada") as ada:
            assert "still waiting" in (await ada.call("claim", wait=0.1))["next"]
            assert "still waiting" in (await ada.call("wait", tasks=[task.id], wait=0.1))["next"]
            assert "between 0 and 45" in await ada.refused("claim", wait=46)

    played(scene)


def test_a_claim_that_its_client_gives_up_waits_no_longer(near: Yard, gateway: Running, era: str) -> None:
    hub = gateway.gateway.projects["default"].hub

    async def scene() -> None:
        async with agent(gateway, era, "ada") as ada:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: ada.text("claim", wait=45))
                while not hub.in_line():
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
            with anyio.fail_after(30):  # the old era's client sends a message, and the new era's hangs up
                while hub.in_line():
                    await anyio.sleep(0.01)
            near.add("build")
            assert (await ada.call("claim"))["kind"] == "build"

    played(scene)


def test_a_task_that_was_claimed_for_a_call_that_is_cancelled_goes_back(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, granted, cancelled = near.add("build"), threading.Event(), threading.Event()
    tell = StatelessAgent.claimed

    def slowly(*given: Any) -> Any:
        granted.set()
        assert cancelled.wait(30)
        return tell(*given)

    monkeypatch.setattr(StatelessAgent, "claimed", slowly)
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "claim"}}
    answers: list[httpx2.Response] = []
    ada = {"Taskyard-Worker": "ada"}
    asking = threading.Thread(target=lambda: answers.append(asked(gateway, call, **ada)))
    asking.start()
    assert granted.wait(30)
    asked(gateway, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, **ada)
    asking.join()
    cancelled.set()
    assert "the call was cancelled" in answers[0].text
    wait_until(lambda: near.get(task.id).state == "todo")
    assert near.get(task.id).attempts == 0


def test_an_error_that_nobody_foresaw_is_one_line(gateway: Running, era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatelessAgent, "call", _broken)

    async def scene() -> None:
        async with agent(gateway, era) as ada:
            assert "\n" not in await ada.refused("ready")

    played(scene)


def _broken(*_: Any) -> Any:
    raise RuntimeError("one\ntwo")


def test_each_project_has_its_own_path(near: Yard, gateway: Running) -> None:
    near.add("build")
    gateway.gateway.add("other", near)

    async def scene() -> None:
        async with agent(gateway, "2026-07-28", "ada", "other/mcp") as ada:
            assert (await ada.call("claim"))["kind"] == "build"

    played(scene)


@pytest.mark.parametrize("store", ["directory", "postgresql"])
def test_what_one_gateway_handed_out_another_takes_back(store: str, tmp_path: Path) -> None:
    url = str(tmp_path / "yard") if store == "directory" else postgres.url()
    with taskyard.init(url, worker="one") as one, taskyard.open(url, worker="two") as two:
        task = one.add("build")
        gateways = [Running({"default": one}), Running({"default": two})]

        async def scene() -> None:
            async with agent(gateways[0], "2026-07-28") as first, agent(gateways[1], "2025-11-25") as second:
                claim = (await first.call("claim", wait=45))["claim"]
                await second.call("note", claim=claim, text="half")
                await second.call("done", claim=claim, result="whole")

        try:
            played(scene)
        finally:
            for gateway in gateways:
                gateway.stop()
        assert one.get(task.id).result == "whole"


def asked(gateway: Running, message: Any, method: str = "POST", **headers: str) -> httpx2.Response:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return httpx2.request(method, f"http://127.0.0.1:{gateway.port}/mcp", content=body, headers=headers)


def test_there_is_no_stream_and_no_session(gateway: Running) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = asked(gateway, b"", method)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    hello = asked(gateway, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    assert "mcp-session-id" not in hello.headers


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{", 400, -32700),
        ([], 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}, 404, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}, 400, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": ENVELOPE}}, 400, -32020),
    ],
)
def test_what_is_no_request_gets_the_status_of_its_error(
    gateway: Running, message: Any, status: int, code: int
) -> None:
    answer = asked(gateway, message, **{"Mcp-Method": "tools/list"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_notification_is_accepted_without_an_answer(gateway: Running) -> None:
    answer = asked(gateway, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")
