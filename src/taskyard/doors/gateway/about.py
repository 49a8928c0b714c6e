"""What is asked about the gateway itself: health, metrics, the API's document and a page to read it."""

from __future__ import annotations

import asyncio
import json
from html import escape
from typing import TYPE_CHECKING

from starlette.responses import Response

from taskyard.core import metrics
from taskyard.core.errors import Unavailable
from taskyard.doors.gateway import openapi
from taskyard.doors.gateway.hub import DEAF
from taskyard.doors.gateway.threads import SLOW
from taskyard.remote import routes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from taskyard.doors.gateway.app import Project
    from taskyard.doors.gateway.threads import Share

_PROBE = 5.0  # seconds in which the yard must answer


class About:
    """What a page is about: the gateway as one project has it, and as one asker may use it."""

    def __init__(self, project: Project, share: Share, is_draining: bool) -> None:
        self.project = project
        self.share = share
        self.is_draining = is_draining


async def _document(_: About) -> Response:
    return Response(json.dumps(openapi.document()), media_type="application/json")


async def _health(about: About) -> Response:
    """Answer 200 only if the threads are alive, the yard answers and its changes are heard: one that is deaf is not well."""
    yard = about.project.yard
    try:
        async with asyncio.timeout(_PROBE):
            await asyncio.gather(about.share.read(yard.paused), about.share.read(yard.log_end, SLOW))
    except TimeoutError:
        raise Unavailable(f"the yard does not answer within {_PROBE:g} s") from None
    if about.project.hub.is_deaf():
        raise Unavailable(f"no change of the yard was heard of for {DEAF:g} s, though requests wait for one")
    return Response("ok\n", media_type="text/plain")


async def _readiness(about: About) -> Response:
    """Answer 200 only if requests are welcome: one that is about to end is well, and wants no more of them."""
    if about.is_draining:
        raise Unavailable("the gateway is about to end", hint="ask another one")
    return await _health(about)


async def _metrics(about: About) -> Response:
    stats = await about.share.read(about.project.yard.stats, SLOW)
    waiting = (
        "# HELP taskyard_gateway_waiting_claims Claims that wait in this gateway.\n"
        "# TYPE taskyard_gateway_waiting_claims gauge\n"
        f"taskyard_gateway_waiting_claims {about.project.hub.in_line()}\n"
    )
    return Response(metrics.prometheus(stats) + waiting, media_type=metrics.CONTENT_TYPE)


async def _page(_: About) -> Response:
    rows = "".join(
        f"<tr><td>{route.method}</td><td><code>{escape(route.path)}</code></td><td>{escape(', '.join(route.takes))}</td>"
        f"<td>{escape(', '.join(route.gives))}</td><td>{route.scope}</td><td>{escape(route.about)}</td></tr>\n"
        for route in routes.ROUTES
    )
    return Response(
        "<!doctype html><meta charset=utf-8><title>Taskyard</title><style>body{font:15px sans-serif;margin:2em}"
        "td,th{text-align:left;padding:.3em .8em .3em 0;vertical-align:top;border-top:1px solid #ddd}</style>"
        "<h1>Taskyard</h1><p>Every verb of a yard is one request. <a href=openapi.json>openapi.json</a> has the types.</p>"
        f"<table><tr><th>method<th>path<th>takes<th>gives<th>scope<th>does</tr>\n{rows}</table>\n",
        media_type="text/html",
    )


PAGES: dict[str, Callable[[About], Coroutine[Any, Any, Response]]] = {
    "openapi.json": _document,
    "docs": _page,
    "healthz": _health,
    "readyz": _readiness,
    "metrics": _metrics,
}
"""Pages by the last part of their path; `/NAME/metrics` is for another project than `default`."""
METHODS = ("GET", "HEAD")
GUARDED = frozenset(("metrics",))
"""Those that tell of the yard's tasks: they need a token that may read, where requests need one."""
