"""From a request to an answer: finds the route, reads the arguments, calls the yard, and maps the error family, once."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from taskyard.core import tokens, words
from taskyard.core.errors import Invalid, TaskyardError, Unavailable
from taskyard.doors.gateway import about, actions, mcp, peers, stream, types
from taskyard.doors.gateway.access import Access, NoToken, Rules
from taskyard.doors.gateway.board import pages, questions, session
from taskyard.doors.gateway.board.reader import Reader
from taskyard.doors.gateway.buckets import TooMany
from taskyard.doors.gateway.hub import Hub
from taskyard.doors.gateway.table import NoMethod, Table
from taskyard.doors.gateway.threads import QUICK, SLOW, Threads, unless_gone
from taskyard.doors.gateway.waiting import WAITING, Ask
from taskyard.remote import routes, wire

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from starlette.types import Receive, Scope, Send

    from taskyard.doors.gateway.access import Asker
    from taskyard.port import YardPort
    from taskyard.remote.routes import Route

BODY_MOST = 64 << 20  # bytes of one request: 60 of the largest tasks, or some 100,000 small ones
BODY_SECONDS = 60.0  # for the whole body of a request: a client that trickles holds nothing but its own connection
KEY_MOST = 200  # characters of an Idempotency-Key
_MAKE_TOKENS = ("new_token", "new_team_token")  # whose secret follows from the key of the request
_NAMED = ("resume", "accept", "reject")  # all clients without a name have one name, so none may act by it alone


class Project:
    """One yard that is served, what waits on it, and who may use it."""

    def __init__(self, name: str, yard: YardPort, rules: Rules, threads: Threads, reader: Reader) -> None:
        self.yard = yard
        pool = threads.pools[QUICK]
        self.hub = Hub(yard, pool)
        self.waits = mcp.Waits()
        self.access = Access(name, yard, rules, pool)
        self.board = pages.Board(name, yard, self.hub, self.access, threads, reader, rules.proxied)

    def close(self) -> None:
        """Stop listening, and end the streams."""
        self.board.close()
        self.hub.close()


class NoProject(Unavailable):
    """The gateway serves no such project."""


class TooLarge(Invalid):
    """The request is too large."""


_STATUS: tuple[tuple[type[TaskyardError], int], ...] = (
    (NoToken, 401),
    (NoProject, 404),
    (NoMethod, 405),
    (TooLarge, 413),
    (TooMany, 429),
)


class Gateway:
    """An ASGI application in front of yards, by the names of their projects."""

    def __init__(self, yards: Mapping[str, YardPort], rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._threads = Threads()
        self._reader = Reader()
        self.is_draining = False
        self._table = Table()
        self.projects: dict[str, Project] = {}
        for name, yard in yards.items():
            self.add(name, yard)

    def add(self, name: str, yard: YardPort) -> None:
        """Serve one more yard."""
        self.projects[name] = Project(name, yard, self.rules, self._threads, self._reader)

    def drop(self, name: str) -> None:
        """Serve this project no more; its yard stays open."""
        self.projects.pop(name).close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            response = await self._answer(Request(scope, receive))
            if response is not None:
                await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """Return the answer; None if the client is gone."""
        try:
            return await self._routed(request)
        except TaskyardError as error:
            return refusal(error)
        except ClientDisconnect:
            return None
        except Exception as error:
            return refusal(TaskyardError(f"unexpected {type(error).__name__}: {error}"))

    async def _routed(self, request: Request) -> Response | None:
        self.rules.refuse_other_sites(request)
        parts = [unquote(part) for part in request.scope["raw_path"].split(b"?")[0].decode("latin-1").split("/")[1:]]
        if parts[-1] in about.PAGES and len(parts) <= 2:
            if request.method not in about.METHODS:
                raise NoMethod(request.method, about.METHODS)
            return await self._page(parts[-1], self._project(parts[0] if len(parts) == 2 else "default"), request)
        if parts[-1] == mcp.PATH and len(parts) <= 2:
            return await self._told(self._project(parts[0] if len(parts) == 2 else "default"), request)
        if pages.is_for(parts, self.projects):
            return await self._shown(request, parts)
        name = "default" if parts[0] == "v1" else parts.pop(0)
        try:
            route, given = self._table.find(request.method, parts)
            project = self._project(name)
        except TaskyardError:
            self.rules.asker(request)  # no route counts the request
            raise
        return await self._called(project, route, request, given)

    async def _page(self, name: str, project: Project, request: Request) -> Response | None:
        guarded = name in about.GUARDED
        asker = await project.access.admitted(request, tokens.READ) if guarded else self.rules.asker(request)
        about_it = about.About(project, self._threads.of(asker.key), self.is_draining)
        return await _unless_gone(request, about.PAGES[name](about_it))

    async def _shown(self, request: Request, parts: list[str]) -> Response | None:
        """Answer what a board asks."""
        elsewhere = pages.moved(parts, self.projects)
        if elsewhere is not None:
            return elsewhere
        project = self._project(parts[0])

        async def called(request: Request, path: list[str]) -> Response | None:
            route, given = self._table.find(request.method, path)
            return await self._called(project, route, request, given)

        return await project.board.answer(request, parts[2:], called)

    def _project(self, name: str) -> Project:
        project = self.projects.get(name)
        if project is None:
            raise NoProject(
                f"no project {words.shown(name)} is served here",
                hint="check the last part of the URL; 'taskyard serve --project NAME=URL' serves a yard under that name",
            )
        return project

    async def _called(self, project: Project, route: Route, request: Request, given: dict[str, Any]) -> Response | None:
        asker = await project.access.admitted(request, route.scope)
        with peers.body(self.rules.bodies, asker.key) as held:
            arguments = _arguments(route, request, await _body(request, held), given)
        return await _unless_gone(request, self._acted(project, route, request, arguments, asker))

    async def _acted(
        self, project: Project, route: Route, request: Request, arguments: dict[str, Any], asker: Asker
    ) -> Response:
        if route.verb in _NAMED and wire.WORKER not in request.headers and arguments.get("worker") is None:
            raise Invalid(f"{route.verb} needs a worker's name", hint="send it in the header Taskyard-Worker")
        ask = self._ask(project, request, arguments, asker)
        if route.verb == "events" and "text/event-stream" in request.headers.get("accept", ""):
            return await stream.response(ask, arguments, request.headers.get("last-event-id"))
        if route.verb in WAITING:
            return _json(wire.good(await WAITING[route.verb](ask, arguments)))
        sort = SLOW if route.slow else QUICK
        if route.verb in _MAKE_TOKENS and ask.key is not None:
            # The new token follows from it, so only its maker can ask again: no other client knows the maker's own token.
            arguments["key"] = tokens.digest(f"{asker.secret} {ask.key}")
        if route.verb in questions.VERBS and session.HEADER in request.headers:
            anew = request.headers[session.HEADER] == "anew"
            answer = await project.board.shared.answer(route.verb, arguments, share=ask.share, anew=anew)
            return Response(answer.body, media_type="application/json")
        call = partial(actions.CALLS[route.verb], ask.yard, **arguments)
        reads = route.reads(arguments)
        return _json(wire.good(await (ask.share.read(call, sort) if reads else ask.share.run(call, sort))))

    async def _told(self, project: Project, request: Request) -> Response | None:
        """Answer one message of an agent."""
        asker = await project.access.admitted(request, mcp.SCOPE)
        if request.method != "POST":
            return mcp.no_stream()
        with peers.body(self.rules.bodies, asker.key) as held:
            body, named = await _body(request, held), wire.WORKER in request.headers
        ask = self._ask(project, request, {}, asker)
        return await _unless_gone(request, _told(mcp.answer(ask, project.waits, named, request.headers, body)))

    def _ask(self, project: Project, request: Request, arguments: dict[str, Any], asker: Asker) -> Ask:
        """Return the yard as the worker of this request uses it; the log names the token, if there is one."""
        name = request.headers.get(wire.WORKER)
        worker = project.yard.worker if name is None else unquote(name)
        key = request.headers.get(wire.KEY)
        if key is not None and not (0 < len(key) <= KEY_MOST and key.isascii() and key.isprintable()):
            raise Invalid(f"an Idempotency-Key has 1 to {KEY_MOST} printable ASCII characters")
        request_name = None if key is None else f"{worker} {key}"
        yard = project.yard.acting_for(worker, request_name, arguments.pop("usual", None), asker.by)
        again = key is not None and request.headers.get(wire.AGAIN) != "0"
        share = self._threads.of(asker.key)
        return Ask(yard, project.hub, share, key, again, lambda: project.access.still(asker))

    def drain(self) -> None:
        """Answer all that waits, and be ready for no more: the server is about to end."""
        self.is_draining = True
        for project in self.projects.values():
            project.hub.drain()
            project.board.close()

    def close(self) -> None:
        """Stop listening, and end the threads once they are idle."""
        for project in self.projects.values():
            project.close()
        self._reader.close()
        self._threads.close()


def _arguments(route: Route, request: Request, body: bytes, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the path, and of the query or the JSON of a request."""
    if route.method == "GET":
        given: dict[str, Any] = {}
        for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
            if route.takes.get(name, "").startswith("["):
                given.setdefault(name, []).append(value)
            else:
                given[name] = value
        return types.checked(route, {**given, **named}, texts=True)
    return types.checked(route, {**types.read(body), **named}, texts=False)


async def _body(request: Request, held: peers.Body) -> bytes:
    """Return the whole body; a client that trickles or sends too much is refused."""
    size = request.headers.get("content-length", "0")
    if size.isdigit() and int(size) > BODY_MOST:
        raise TooLarge(f"the request has {size} bytes, and the most is {BODY_MOST}")
    parts = []
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                if held.length + len(part) > BODY_MOST:
                    raise TooLarge(f"the request has more than {BODY_MOST} bytes")
                held.grow(len(part))
                parts.append(part)
    except TimeoutError:
        raise Invalid(f"the body of the request did not come within {BODY_SECONDS:g} s") from None
    return b"".join(parts)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Response]) -> Response | None:
    """Return the answer; if the client goes away before, give the work up and return None."""
    answer: Response | None = await unless_gone(_disconnected(request), work)
    return answer


async def _told(answered: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    return mcp.response(await answered)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


def refusal(error: TaskyardError) -> Response:
    """Return the answer of an error."""
    status = next((own for kind, own in _STATUS if isinstance(error, kind)), routes.STATUS.get(error.code, 500))
    headers = {"retry-after": "1"} if status in (429, 503) else {"www-authenticate": "Bearer"} if status == 401 else {}
    if isinstance(error, NoMethod):
        headers["allow"] = error.allowed
    return _json(wire.bad(error), status, headers)


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    # json and not msgspec: numbers of any size and lone surrogates come back as they were given
    return Response(json.dumps(value).encode(), status, headers, "application/json")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
