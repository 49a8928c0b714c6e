"""A gateway for tests: one in each test process, in a thread, with a project for each test."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from taskyard.doors.gateway import server, types
from taskyard.doors.gateway.app import Gateway

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response

    from taskyard import Yard
    from taskyard.doors.gateway.access import Rules
    from taskyard.doors.gateway.app import Project
    from taskyard.remote.routes import Route


class CheckedGateway(Gateway):
    """Holds every answer against the type that the API's document has for it, and notes each request."""

    def __init__(self, yards: Mapping[str, Any], rules: Rules | None = None) -> None:
        super().__init__(yards, rules)
        self.asked: list[str] = []

    async def _called(self, project: Project, route: Route, request: Request, given: dict[str, Any]) -> Response | None:
        self.asked.append(route.verb)
        answer = await super()._called(project, route, request, given)
        if answer is not None and answer.media_type == "application/json":
            msgspec.convert(json.loads(bytes(answer.body))["data"], types.ANSWERS[route.verb])
        return answer


class Running:
    """A gateway that serves in a thread of this process."""

    def __init__(
        self, yards: dict[str, Yard] | None = None, rules: Rules | None = None, cert: str | None = None
    ) -> None:
        self.gateway = CheckedGateway(yards or {}, rules)
        self.scheme = "http" if cert is None else "https"
        self._line: socket.socket = server.bound("127.0.0.1", 0)
        self.port: int = self._line.getsockname()[1]
        self._server: uvicorn.Server = server.make(self.gateway, cert)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # these are for the main thread
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=[self._line])

    def url(self, project: str = "default") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/{project}"

    def serve(self, project: str, yard: Yard) -> str:
        """Serve one more yard, and return its URL."""
        self.gateway.add(project, yard)
        return self.url(project)

    def drop(self, project: str) -> None:
        """Serve this one no more."""
        self.gateway.drop(project)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.gateway.close()
        self._line.close()


_shared: list[Running] = []


def shared() -> Running:
    """The gateway of this test process."""
    if not _shared:
        _shared.append(Running())
    return _shared[0]
