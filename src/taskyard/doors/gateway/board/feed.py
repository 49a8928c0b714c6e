"""The live stream of a board: one reader of the log for all boards of a yard, in ticks that are encoded once."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

import taskyard
from taskyard.core.errors import TaskyardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from taskyard.doors.gateway.board.shared import Shared
    from taskyard.doors.gateway.hub import Hub
    from taskyard.port import YardPort

_TICK = 0.5  # seconds between two ticks, at the least
_APART = 0.02  # seconds between two boards that get a tick: all at once would ask at once, and keep agents waiting
_SILENCE = 15.0  # seconds: then a sign of life is sent, so that neither a proxy nor the page takes the stream for dead
_LINGER = 5.0  # seconds for which the log is followed after the last board has gone
_AHEAD = 20  # ticks that a slow browser may be behind; then its stream is cut, and it comes back and looks anew


class Feed:
    """Follows the log of one yard while a board is open."""

    def __init__(self, yard: YardPort, hub: Hub, shared: Shared) -> None:
        self._yard = yard
        self._hub = hub
        self._shared = shared
        self._boards: set[asyncio.Queue[bytes | None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._summary: dict[str, Any] = {}
        self._cursor = ""
        self._last_look = 0.0

    def watching(self) -> int:
        """Return how many streams are open."""
        return len(self._boards)

    async def response(self, still_admitted: Callable[[], Awaitable[bool]]) -> StreamingResponse:
        """Return the stream for one browser."""
        summary = await self._summed()
        self._last_look = time.monotonic()
        async with self._beginning:  # of two boards that come at once, one begins
            if self._following is None or self._following.done():
                self._cursor = await self._hub.run(self._yard.log_end)
                self._following = asyncio.ensure_future(self._follow())
        hello = {**summary, "version": taskyard.__version__, "cursor": self._cursor}
        return StreamingResponse(
            self._lines(hello, still_admitted), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _lines(
        self, hello: dict[str, Any], still_admitted: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._boards.add(queue)
        try:
            yield b"retry: 1000\n\n" + _message("hello", hello)
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _SILENCE)
                except TimeoutError:
                    message = _message("beat", {})
                if message is None or not await still_admitted():
                    return
                yield message
        except TaskyardError:
            return  # the yard is away: the browser comes back until it is there again
        finally:
            self._boards.discard(queue)

    async def _follow(self) -> None:
        """Read the log and publish ticks until the last board is gone."""
        try:
            async with self._hub.listening():
                while self._boards or time.monotonic() - self._last_look < _LINGER:
                    before, began = self._hub.generation, time.monotonic()
                    await self._tick()
                    await asyncio.sleep(_TICK - (time.monotonic() - began))
                    if before == self._hub.generation:
                        await self._hub.ring(_SILENCE if self._boards else _LINGER)
        finally:
            self._end()  # after an error too: the browsers come back, and their requests tell what is wrong

    async def _tick(self) -> None:
        """Send every board what happened since the last tick, one after the other."""
        happened = await self._shared.alone("tick", {"cursor": self._cursor})
        self._cursor = happened.facts["cursor"]
        message = _framed("tick", happened.body) if happened.body else b""
        before, summary = self._summary, await self._summed()
        if summary != before:
            message += _message("summary", summary)
        if not message:
            return
        boards = list(self._boards)
        for board in boards:
            self._put(board, message)
            await asyncio.sleep(min(_APART, _TICK / len(boards)))

    async def _summed(self) -> dict[str, Any]:
        """Return how much waits for a person, and the counts."""
        self._summary = (await self._shared.answer("overview", {})).facts
        return self._summary

    def _put(self, board: asyncio.Queue[bytes | None], message: bytes | None) -> None:
        """Send one board a message; cut its stream if it is too far behind."""
        try:
            board.put_nowait(message)
        except asyncio.QueueFull:
            self._boards.discard(board)
            board.get_nowait()
            board.put_nowait(None)

    def _end(self) -> None:
        for board in list(self._boards):
            self._put(board, None)

    def close(self) -> None:
        """End every stream."""
        try:
            self._end()
            if self._following is not None:
                self._following.cancel()
        except RuntimeError:
            return  # the loop is closed: the streams have ended with the server


def _message(name: str, data: dict[str, Any]) -> bytes:
    return _framed(name, json.dumps(data).encode())


def _framed(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
