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
from taskyard.remote import routes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from taskyard.doors.gateway.app import Project

_PROBE = 5.0  # seconds in which the yard must answer


async def _document(_: Project, __: Executor) -> Response:
    return Response(json.dumps(openapi.document()), media_type="application/json")


async def _health(project: Project, pool: Executor) -> Response:
    """Answer 200 only if the threads are alive and the yard answers: a gateway that cannot reach its yard is not well."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_PROBE):
            await asyncio.gather(project.hub.run(project.yard.paused), loop.run_in_executor(pool, project.yard.log_end))
    except TimeoutError:
        raise Unavailable(f"the yard does not answer within {_PROBE:g} s") from None
    return Response("ok\n", media_type="text/plain")


async def _metrics(project: Project, pool: Executor) -> Response:
    stats = await asyncio.get_running_loop().run_in_executor(pool, project.yard.stats)
    waiting = (
        "# HELP taskyard_gateway_waiting_claims Claims that wait in this gateway.\n"
        "# TYPE taskyard_gateway_waiting_claims gauge\n"
        f"taskyard_gateway_waiting_claims {project.hub.in_line()}\n"
    )
    return Response(metrics.prometheus(stats) + waiting, media_type=metrics.CONTENT_TYPE)


async def _page(_: Project, __: Executor) -> Response:
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


PAGES: dict[str, Callable[[Project, Executor], Awaitable[Response]]] = {
    "openapi.json": _document,
    "docs": _page,
    "healthz": _health,
    "readyz": _health,
    "metrics": _metrics,
}
"""Pages by the last part of their path; `/NAME/metrics` is for another project than `default`."""
METHODS = ("GET", "HEAD")
GUARDED = frozenset(("metrics",))
"""Those that tell of the yard's tasks: they need a token that may read, where requests need one."""
