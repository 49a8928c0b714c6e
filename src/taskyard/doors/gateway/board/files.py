"""The board's own files: one page, its style and its scripts, read once and sent with headers that let nothing else in."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from taskyard.doors.gateway.table import NoRoute

if TYPE_CHECKING:
    from starlette.requests import Request

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every page and file. The icon with the count is drawn by the page, hence `data:`."""


@cache
def _contents() -> dict[str, tuple[bytes, str]]:
    """Return each file with its digest, by name. Names that are asked for and are no files must not be remembered."""
    read = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}
    return {name: (content, f'"{sha256(content).hexdigest()[:20]}"') for name, content in read.items()}


def response(name: str, request: Request) -> Response:
    """Return one file; to a browser that has it already, only the status 304."""
    found = _contents().get(name)
    if found is None:
        raise NoRoute
    content, digest = found
    headers = {**SAFE, "etag": digest, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == digest:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])
