"""A client of `taskyard mcp` without the SDK: one process of the server, and lines of JSON."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import Any

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


def command(url: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "taskyard", "mcp", "--yard", url, *more]


class Wire:
    """One server, started by this process; `call` returns the text of a tool's answer."""

    def __init__(self, url: str, *more: str) -> None:
        self.process = subprocess.Popen(
            command(url, *more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONWARNINGS": ""}
        )
        self._ids = itertools.count(1)

    def send(self, method: str, params: dict[str, Any] | None = None, *, notify: bool = False) -> int:
        number = next(self._ids)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if not notify:
            message["id"] = number
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return number

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        number = self.send(method, params)
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def call(self, name: str, **arguments: Any) -> str:
        answer = self.ask("tools/call", {"name": name, "arguments": arguments, "_meta": ENVELOPE})
        text: str = answer["result"]["content"][0]["text"]
        return text

    def told(self, name: str, **arguments: Any) -> Any:
        return json.loads(self.call(name, **arguments))

    def close(self) -> int:
        """Close standard input, as a client does that goes or reconnects, and wait for the end of the server."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=50)
        self.process.stdout.close()
        return code
