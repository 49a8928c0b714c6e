"""The log as server-sent events: a browser's `EventSource` follows it, and goes on where it was cut off."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from taskyard.core.errors import TaskyardError
from taskyard.doors.gateway import actions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from taskyard.doors.gateway.waiting import Ask

_PAGE = 500  # events of one look
_SILENCE = 15.0  # seconds: then a comment is sent, so that no proxy takes the stream for dead
_SHARE, _PAUSE = 30, 0.25  # as `hub` pauses after a look


async def response(ask: Ask, given: dict[str, Any], last: str | None) -> StreamingResponse:
    """Return the stream of the events that match, after `last` or the cursor, else from now on."""
    cursor = last or given.pop("cursor", None)
    given.pop("cursor", None)
    given.pop("limit", None)
    if cursor is None and "since" not in given:
        cursor = await ask.share.read(ask.yard.log_end)
    first = await _page(ask, given, cursor)  # an argument that is wrong is refused before the stream begins
    return StreamingResponse(
        _events(ask, given, first), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _page(ask: Ask, given: dict[str, Any], cursor: str | None) -> dict[str, Any]:
    return await ask.share.read(lambda: actions.events(ask.yard, **given, cursor=cursor, limit=_PAGE))


async def _events(ask: Ask, given: dict[str, Any], page: dict[str, Any]) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async with ask.hub.listening():
        while True:
            if page["events"]:
                yield _text(page)
            began, before = time.monotonic(), ask.hub.generation
            full = len(page["events"]) == _PAGE
            try:
                if not await ask.still_admitted():
                    return
                page = await _page(ask, given, page["cursor"])
            except TaskyardError:
                return  # the client comes back with the last id, and the answer names the error
            if page["events"] or full:
                continue
            if ask.hub.is_draining():
                return
            if before == ask.hub.generation:
                await ask.hub.ring(_SILENCE)
            if before == ask.hub.generation:
                yield b": still here\n\n"
            await asyncio.sleep(min((time.monotonic() - began) * _SHARE, _PAUSE))


def _text(page: dict[str, Any]) -> bytes:
    """Return one message for each event; the last has the id to go on from, so a stream that is cut repeats a page at most."""
    *others, last = (f"data: {json.dumps(event)}\n" for event in page["events"])
    return "".join([*(f"{text}\n" for text in others), f"id: {page['cursor']}\n{last}\n"]).encode()
