"""The paths of a board: its page and files, the sign-in, its stream, bulk actions, and the verbs of the API by cookie.

| path under /NAME/board | is |
|---|---|
| `/`, `/static/FILE` | the page and its files, for everybody: they hold nothing of the yard |
| `/session` | GET: who sits there; POST: sign in; DELETE: sign out |
| `/stream` | what happens, as server-sent events |
| `/drawing` | a graph of tasks with the places of its boxes and lines |
| `/bulk` | POST: count, or begin; GET: how far it is |
| `/v1/...` | every verb of the API, admitted by the cookie |
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from taskyard.core import tokens
from taskyard.core.errors import Invalid
from taskyard.doors.gateway import types
from taskyard.doors.gateway.access import NoToken
from taskyard.doors.gateway.board import bulk, files, session
from taskyard.doors.gateway.board.feed import Feed
from taskyard.doors.gateway.board.shared import Shared
from taskyard.doors.gateway.table import NoMethod, NoRoute
from taskyard.doors.gateway.threads import SLOW
from taskyard.remote import wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from taskyard.doors.gateway.access import Access, Asker
    from taskyard.doors.gateway.board.reader import Reader
    from taskyard.doors.gateway.hub import Hub
    from taskyard.doors.gateway.threads import Threads
    from taskyard.port import YardPort

    Called = Callable[[Request, list[str]], Awaitable[Response | None]]

PATH = "board"
_SIGN_IN_MOST = 4096  # bytes


def is_for(parts: list[str], projects: Iterable[str]) -> bool:
    """Whether a path is the board's: `/`, `/NAME`, or below `/NAME/board`."""
    rest = parts[1:] if parts[0] != "" else parts
    return (rest in ([], [""]) and (parts[0] == "" or parts[0] in projects)) or rest[:1] == [PATH]


def moved(parts: list[str], projects: Iterable[str]) -> Response | None:
    """Return the redirect of `/`, `/NAME` and `/NAME/board` to the board's page; None for anything below it."""
    if parts[1:2] == [PATH] and len(parts) > 2:
        return None
    names = list(projects)
    name = parts[0] or ("default" if "default" in names or not names else names[0])
    return RedirectResponse(f"/{quote(name, safe='')}/{PATH}/", 302)


class Board:
    """The board of one yard."""

    def __init__(
        self, name: str, yard: YardPort, hub: Hub, access: Access, threads: Threads, reader: Reader, proxied: bool
    ) -> None:
        self._name = name
        self._yard = yard
        self._hub = hub
        self._access = access
        self._proxied = proxied
        self._threads = threads
        self.shared = Shared(threads.of(f"boards of {name}"), partial(reader.ask, yard))
        self.feed = Feed(yard, hub, self.shared)
        self._jobs = bulk.Jobs()

    async def answer(self, request: Request, path: list[str], called: Called) -> Response | None:
        """Answer a request to this path below `/NAME/board/`; `called` answers a verb of the API."""
        name = "index.html" if path == [""] else path[1] if path[0] == "static" and len(path) == 2 else None
        if name is not None:
            _only(request, "GET", "HEAD")
            return files.response(name, request)
        own = {"session": self._session, "stream": self._stream, "bulk": self._bulk, "drawing": self._drawing}
        if len(path) == 1 and path[0] in own:
            return await own[path[0]](request)
        if path[0] != "v1":
            raise NoRoute
        session.refuse_foreign(request)
        role = await session.role(self._access, request)
        return await called(
            Request(session.as_bearer(request, [self._name, *path], role["name"]), request.receive), path
        )

    async def _session(self, request: Request) -> Response:
        session.refuse_foreign(request)
        _only(request, "GET", "POST", "DELETE")
        if request.method == "GET":
            return _json({**await session.role(self._access, request), "project": self._name, "yard": self._yard.label})
        token = ""
        if request.method == "POST":
            token = str((await _body(request)).get("token", "")).strip()
            role = await self._access.role(token)
            if role["scope"] is None:
                self._access.count_refusal(request)
                raise NoToken(
                    "the gateway does not know this token", hint="'taskyard token new' beside the yard makes one"
                )
        response = _json({})
        session.keep(response, token, self._name, self._is_secure(request))
        return response

    def _is_secure(self, request: Request) -> bool:
        forwarded = request.headers.get("x-forwarded-proto", "") if self._proxied else ""
        return request.url.scheme == "https" or forwarded == "https"

    async def _admitted(self, request: Request, scope: str) -> tuple[YardPort, Asker]:
        """Return the yard as who sits there uses it, and who that is; raise `Denied` if that one may not do this."""
        role = await session.role(self._access, request)
        bearer = Request(session.as_bearer(request, [], role["name"]))
        asker = await self._access.admitted(bearer, scope)
        return self._yard.acting_for(asker.by or "board", None, None, asker.by), asker

    async def _stream(self, request: Request) -> Response:
        """Return the live stream. An `EventSource` sends no header of ours, and no other site can read what it gets."""
        _only(request, "GET")
        _, asker = await self._admitted(request, tokens.READ)
        return await self.feed.response(lambda: self._access.still(asker))

    async def _bulk(self, request: Request) -> Response:
        session.refuse_foreign(request)
        _only(request, "GET", "POST")
        yard, asker = await self._admitted(request, tokens.MANAGE)
        if request.method == "GET":
            return _json(self._jobs.get(request.query_params.get("job", "")).as_dict())
        given, share = await _body(request), self._threads.of(asker.key)
        if given.get("apply") is True:
            job = self._jobs.new()
            self._hub.start(share.run(partial(bulk.run, job, yard, given), SLOW))  # beside this request, which ends now
            return _json(job.as_dict())
        return _answer((await self.shared.alone("bulk_count", {"given": given}, share)).body)

    async def _drawing(self, request: Request) -> Response:
        session.refuse_foreign(request)
        _only(request, "GET")
        _, asker = await self._admitted(request, tokens.READ)
        given = {name: value for name, value in request.query_params.items() if name in ("mission", "task") and value}
        if len(given) != 1:
            raise Invalid("a drawing is of one mission, or around one task", hint="give ?mission=NAME or ?task=ID")
        return _answer((await self.shared.answer("drawing", given, share=self._threads.of(asker.key))).body)

    def close(self) -> None:
        """End the streams."""
        self.feed.close()


def _only(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise NoMethod(request.method, methods)


async def _body(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _SIGN_IN_MOST:
            raise Invalid("the request is too large for a board")
    return types.read(body)


def _json(data: dict[str, Any]) -> Response:
    return _answer(json.dumps(wire.good(data)).encode())


def _answer(body: bytes) -> Response:
    headers = {**files.SAFE, "cache-control": "no-store"}
    return Response(body, headers=headers, media_type="application/json")
