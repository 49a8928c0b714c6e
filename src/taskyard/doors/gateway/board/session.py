"""Who sits at a board: a token in a cookie that scripts cannot read, and no request that a page of another site made.

The cookie holds the token itself, so that several gateways know it, and a revoked one is refused within a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from taskyard.core.errors import Denied
from taskyard.remote import wire

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from taskyard.doors.gateway.access import Access

HEADER = "taskyard-board"
"""The header that the board's own script sends with every request. A form of another site cannot send it."""
_COOKIE = "taskyard"
_DAYS = 30
_NAME = "board"  # who acts, where no token is needed


def secret(request: Request) -> str:
    """Return the token in the cookie; an empty text if there is none."""
    return unquote(request.cookies.get(_COOKIE, ""))


def refuse_foreign(request: Request) -> None:
    """Raise `Denied` unless the board's own page sent this request: SameSite alone would trust other ports of this host."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    if HEADER not in request.headers or not own or site not in ("same-origin", "none"):
        raise Denied("only the board's own page may ask this", hint="other programs use /v1, with a token")


async def role(access: Access, request: Request) -> dict[str, Any]:
    """Return who sits there: `name`, `scope`, and whether a token is needed (`closed`); scope None before the sign-in."""
    return await access.role(secret(request))


def as_bearer(request: Request, path: list[str], name: str | None) -> dict[str, Any]:
    """Return the request as a program would send it to this path: the cookie's token is in its header, with a worker's name."""
    hidden = (b"authorization", b"cookie", wire.WORKER.encode())
    headers = [pair for pair in request.scope["headers"] if pair[0] not in hidden]
    headers.append((wire.WORKER.encode(), quote(name or _NAME, safe="").encode()))
    token = secret(request)
    if token:
        headers.append((b"authorization", b"Bearer " + quote(token, safe="").encode()))
    raw = "/" + "/".join(quote(part, safe="") for part in path)
    return {**request.scope, "headers": headers, "raw_path": raw.encode(), "path": raw}


def keep(response: Response, token: str, project: str, secure: bool) -> None:
    """Put the token into the browser's cookie; with an empty one, take it out."""
    response.set_cookie(
        _COOKIE,
        quote(token, safe=""),
        max_age=_DAYS * 86_400 if token else 0,
        path=f"/{quote(project, safe='')}/board",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
