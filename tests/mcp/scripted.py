"""A scripted agent: a process that works through a yard with the SDK's client, and has one mishap on the way.

    python -m tests.mcp.scripted URL ERA MISHAP GO END

With its first task it prints `holding TASK`, waits until the file GO is there, and has its mishap. It prints `did TASK` after each
done that was acknowledged. When the file END is there, it prints one line of JSON and ends: how many calls it made, how many
characters they had, and for how many tasks.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from .wire import command

MODES = {"2026-07-28": "auto", "2025-11-25": "legacy"}  # auto asks for server/discover first


class Scripted:
    def __init__(self, url: str, era: str, mishap: str, go: str, end: str) -> None:
        self._url = url
        self._era = era
        self._mishap = mishap
        self._go = go
        self._end = end
        self._stack = AsyncExitStack()
        self.tasks = self.calls = self.characters = 0

    async def run(self) -> None:
        await self._connect()
        while not os.path.exists(self._end):
            task = await self._call("claim", {"wait": 1})
            if "claim" in task:
                await (self._finish(task) if os.path.exists(self._go) else self._first(task))
        await self._stack.aclose()
        _say(json.dumps({"tasks": self.tasks, "calls": self.calls, "characters": self.characters}))

    async def _connect(self) -> None:
        program, *arguments = command(self._url)
        server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        self._client = await self._stack.enter_async_context(Client(server, mode=MODES[self._era]))
        assert self._client.protocol_version == self._era
        assert self._client.instructions

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._client.call_tool(name, arguments)
        [content] = result.content
        assert isinstance(content, TextContent)
        # Neither an empty look nor the stopped agent's look at what others do belongs to a task.
        counted = name != "show" and "nothing_ready" not in content.text
        self.calls += counted
        self.characters += (len(name) + len(json.dumps(arguments)) + len(content.text)) * counted
        return {"refused": content.text} if result.is_error else dict(json.loads(content.text))

    async def _first(self, task: dict[str, Any]) -> None:
        _say(f"holding {task['task']}")
        while not os.path.exists(self._go):
            await anyio.sleep(0.02)
        await getattr(self, f"_{self._mishap}")(task)

    async def _finish(self, task: dict[str, Any]) -> None:
        answer = await self._call("done", {"result": {"n": task["data"]["n"]}})
        if "done" in answer:
            self.tasks += 1
            _say(f"did {task['task']}")

    # Mishaps

    async def _none(self, task: dict[str, Any]) -> None:
        await self._finish(task)

    async def _killed(self, task: dict[str, Any]) -> None:
        assert task
        await anyio.sleep_forever()

    async def _stopped(self, task: dict[str, Any]) -> None:
        while (await self._call("show", {"task": task["task"]}))["state"] != "done":
            await anyio.sleep(0.05)  # another has done it meanwhile
        assert "refused" in await self._call("done", {"result": "late"})

    async def _reconnecting(self, task: dict[str, Any]) -> None:
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        await self._connect()
        [again] = (await self._call("resume", {}))["claims"]
        assert again["task"] == task["task"]
        assert again["claim"] != task["claim"]
        await self._finish(again)

    async def _orphaned(self, task: dict[str, Any]) -> None:
        orphan = self._client
        await self._connect()  # and the server before is left with an open input
        [again] = (await self._call("resume", {}))["claims"]
        assert again["task"] == task["task"]
        late = await orphan.call_tool("done", {"result": "orphan"})
        assert late.is_error
        await self._finish(again)

    async def _forgetful(self, task: dict[str, Any]) -> None:
        refused = await self._call("claim", {})
        assert "resume()" in refused["refused"]
        [again] = (await self._call("resume", {}))["claims"]
        assert again == task
        await self._finish(again)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(Scripted(*sys.argv[1:]).run)
