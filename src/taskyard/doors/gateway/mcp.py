"""The agents' door over HTTP: one POST for each message of the Model Context Protocol, and nothing is kept between two.

There are no sessions and no streams: an answer is one JSON body. So any gateway of a yard may answer any call.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from taskyard.core.errors import TaskyardError, TimedOut
from taskyard.core.tokens import WORK
from taskyard.doors.gateway.hub import give_back
from taskyard.doors.gateway.threads import CHECKS, SLOW
from taskyard.doors.mcp import protocol, replies, tools, verbs
from taskyard.doors.mcp.replies import Refusal
from taskyard.doors.mcp.stateless import WAIT_MOST, StatelessAgent

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from taskyard.doors.gateway.waiting import Ask

    Given = dict[str, Any]
    Answer = tuple[str, bool]

PATH = "mcp"
SCOPE = WORK
"""Of a token for any message: the ten tools are those of a worker."""
_WAITING = ("claim", "resume", "wait")  # tools that may be cancelled: what they claim is given back then
_HEADER_MISMATCH = -32020
_STATUS = {
    protocol.PARSE_ERROR: 400,
    protocol.INVALID_REQUEST: 400,
    protocol.INVALID_PARAMS: 400,
    protocol.NO_VERSION: 400,
    _HEADER_MISMATCH: 400,
    protocol.NO_METHOD: 404,
}
"""The HTTP status of each error of the protocol."""


class Waits:
    """The calls of one yard that wait now, by worker and id: before 2026-07-28 a client cancels one by another message."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, Any], asyncio.Task[Answer]] = {}

    async def run(self, worker: str, id: Any, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the answer of a call, or that it was cancelled: an agent of the same name may have used the same id."""
        task = asyncio.create_task(work)
        self._calls[worker, id] = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # the client is gone; nothing happens to a call that has ended
            if self._calls.get((worker, id)) is task:
                del self._calls[worker, id]
        return ("the call was cancelled. Next: call it again", True) if task.cancelled() else task.result()

    def cancel(self, worker: str, id: Any) -> None:
        """End a call that waits; what it claims at that moment is given back."""
        task = self._calls.get((worker, id)) if isinstance(id, str | int) else None
        if task is not None:
            task.cancel()


async def answer(ask: Ask, waits: Waits, named: bool, headers: Mapping[str, str], body: bytes) -> Given:
    """Return the response to one message; an empty one for a notification."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        return protocol.failed(None, protocol.PARSE_ERROR, f"not JSON: {str(error)[:80]}")
    wrong = _mismatch(message, headers)
    if wrong is not None:
        return protocol.failed(message.get("id"), _HEADER_MISMATCH, f"the header {wrong} differs from the message")
    if named and isinstance(message, dict) and message.get("method") == "notifications/cancelled":
        params = message.get("params")
        waits.cancel(ask.yard.worker, params.get("requestId") if isinstance(params, dict) else None)
    call = protocol.tool_call(message)
    text, refused = "", True
    if call is not None:
        work = _Call(ask, named).run(*call)
        # Without a name, agents could not be distinguished by their ids, which all count from 1.
        can_cancel = named and call[0] in _WAITING
        text, refused = await (waits.run(ask.yard.worker, message["id"], work) if can_cancel else work)
    return protocol.answer(message, lambda *_: (text, refused), tools.SHARED) or {}


def response(answered: Given) -> Response:
    """Return the HTTP response for a response of the protocol."""
    if not answered:
        return Response(status_code=202)
    status = _STATUS.get(answered.get("error", {}).get("code"), 200)
    return Response(json.dumps(answered).encode(), status, media_type="application/json")


def no_stream() -> Response:
    """Return the answer to a GET or DELETE: there is no stream, and no session to end."""
    return Response("POST one message of the Model Context Protocol\n", 405, {"allow": "POST"}, "text/plain")


def _mismatch(message: Any, headers: Mapping[str, str]) -> str | None:
    """Return the header that names another version, method or tool than the message: proxies route by these."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or protocol.VERSION_KEY not in meta or not isinstance(params, dict):
        return None  # before 2026-07-28 there was nothing to compare
    said = {"mcp-protocol-version": meta[protocol.VERSION_KEY], "mcp-method": message.get("method")}
    if message.get("method") == "tools/call" and not headers.get("mcp-name", "").startswith(
        "=?"
    ):  # encoded: no tool of ours
        said["mcp-name"] = params.get("name")
    return next((name for name, value in said.items() if headers.get(name, value) != value), None)


class _Call:
    """One call of a tool."""

    def __init__(self, ask: Ask, named: bool) -> None:
        self._hub = ask.hub
        self._share = ask.share
        self._agent = StatelessAgent(ask.yard, named)

    async def run(self, name: str, given: Given) -> Answer:
        """Return the text of the tool's answer, and whether it is a refusal."""
        try:
            self._agent.check(name, given)
            waits = {"claim": self._claim, "resume": self._resume, "wait": self._wait}
            if name in waits:
                return replies.line(await waits[name](given)), False
            act = partial(self._agent.call, name, given)
            return replies.line(await self._share.run(act, CHECKS if name == "done" else SLOW)), False
        except Refusal as refused:
            return str(refused), True
        except TaskyardError as error:
            refusal = await self._share.run(partial(self._agent.refusal, error, name, given))
            return str(refusal), True
        except Exception as error:
            return str(
                Refusal(
                    f"unexpected {type(error).__name__}: {error}", f"{name} again; if that fails too, tell a person"
                )
            ), True

    async def _claim(self, given: Given) -> Given:
        kind = given.get("kind")
        sort = (given.get("task"), None if kind is None else frozenset([kind]), given.get("mission"))
        got = await self._hub.claim(sort, lambda: self._agent.try_claim(given), given.get("wait", 0), self._share)
        return await self._answered(got, lambda: self._agent.claimed(got, given))

    async def _resume(self, _: Given) -> Given:
        # What it takes again was the agent's before: it stays so if the client is gone by then.
        return await self._share.run(lambda: verbs.claims(self._agent.resume()))

    async def _answered(self, got: Any, tell: Any) -> Given:
        """Return the answer about claims; if the client is gone by now, give them back."""
        try:
            return dict(await self._share.run(tell))
        except asyncio.CancelledError:
            self._hub.start(self._share.run(lambda: give_back(got)))
            raise

    async def _wait(self, given: Given) -> Given:
        given = await self._share.run(lambda: self._agent.renewed("wait", given))
        late: list[TimedOut] = []

        def look() -> Given | None:
            found = self._agent.ended(given)
            if isinstance(found, TimedOut):
                late[:] = [found]
                return None
            return found

        found = await self._hub.until(lambda: self._share.read(look), given.get("wait", WAIT_MOST))
        return found or {"waiting": late[0].message, "next": "still waiting: call wait again"}
