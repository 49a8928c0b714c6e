"""The Model Context Protocol, as a function from one message to its answer; no transport.

Two eras are served, and each message says which it is of. Since 2026-07-28 every request carries its protocol version in
`params._meta`, and there is no session. Before, a client says `initialize` first; later requests say nothing.
"""

from __future__ import annotations

from math import isfinite

from taskyard import __version__
from taskyard.doors.mcp.tools import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.doors.mcp.tools import Toolset

    Caller = Callable[[str, dict[str, Any]], tuple[str, bool]]
    """Runs a tool: its name and arguments go in, the text and whether it is a refusal come out."""

MODERN = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # reached by `initialize`
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_VERSION = -32700, -32600, -32601, -32602, -32022
_META = "io.modelcontextprotocol/"
VERSION_KEY = f"{_META}protocolVersion"
"""What has the version in a request of the new era, in `params._meta`."""
_SERVER = {"name": "taskyard", "version": __version__}
_CACHED = {"ttlMs": 3_600_000, "cacheScope": "public"}  # the tools are the same for all, until this program is another


class Refused(Exception):
    """A request that the protocol does not allow: the JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def answer(message: Any, call: Caller, offered: Toolset = OWN) -> dict[str, Any] | None:
    """Return the response to one message; None for a notification, which has none."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return None  # a response: this server asks its clients nothing
        batch = "a batch is not served: send each request by itself"
        return failed(None, INVALID_REQUEST, batch if isinstance(message, list) else "not a JSON-RPC 2.0 request")
    if "id" not in message:
        return None
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, str | int | float) or (isinstance(id, float) and not isfinite(id)):
        return failed(None, INVALID_REQUEST, "the id of a request is a text or a number")
    try:
        params = message.get("params")
        if params is None:
            params = {}  # some clients write null for none
        if not isinstance(params, dict):
            raise Refused(INVALID_PARAMS, "params must be an object")
        modern = message["method"] != "initialize" and _is_modern(params)
        result = _result(message["method"], params, modern, call, offered)
    except Refused as refused:
        return failed(id, refused.code, str(refused), refused.data)
    if modern:
        result = {"resultType": "complete", **result, "_meta": {f"{_META}serverInfo": _SERVER}}
    return {"jsonrpc": "2.0", "id": id, "result": result}


def tool_call(message: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the name and arguments of the tool that a message calls; None if it is no valid call."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def note(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        calls.append((name, arguments))
        return "", False

    answer(message, note)
    return calls[0] if calls else None


def failed(id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return an error response."""
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": error if data is None else {**error, "data": data}}


def _is_modern(params: dict[str, Any]) -> bool:
    """Whether the request carries the envelope of the new era; raise `Refused` if that is not whole or not known."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return False
    version = meta[VERSION_KEY]
    if f"{_META}clientCapabilities" not in meta:
        raise Refused(INVALID_PARAMS, f"params._meta is missing {_META}clientCapabilities")
    if not isinstance(version, str):
        raise Refused(INVALID_PARAMS, "the protocol version must be a text")
    if version != MODERN:
        raise Refused(
            NO_VERSION, f"protocol version {version[:40]} is not served", {"supported": [MODERN], "requested": version}
        )
    return True


def _result(method: str, params: dict[str, Any], modern: bool, call: Caller, offered: Toolset) -> dict[str, Any]:
    if method == "tools/call":
        return _called(params, call)
    if method == "tools/list":
        return {"tools": offered.tools, **(_CACHED if modern else {})}
    if method == "server/discover":
        about = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": offered.instructions}
        return {**about, **_CACHED}
    if method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE else HANDSHAKE[-1]
        about = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": _SERVER}
        return {**about, "instructions": offered.instructions}
    if method == "ping":
        return {}
    raise Refused(NO_METHOD, f"there is no method {method[:60]}", method[:60])


def _called(params: dict[str, Any], call: Caller) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise Refused(INVALID_PARAMS, "name must be the name of a tool")
    if arguments is not None and not isinstance(arguments, dict):
        raise Refused(INVALID_PARAMS, "arguments must be an object")
    text, is_error = call(name, arguments or {})
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
