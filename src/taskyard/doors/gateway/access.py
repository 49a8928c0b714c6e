"""Who may ask: no page of another site by way of a browser, and where tokens are needed no client without a good one."""

from __future__ import annotations

import asyncio
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from taskyard.core import tokens, words
from taskyard.core.errors import Denied
from taskyard.doors.gateway.buckets import Buckets
from taskyard.doors.gateway.peers import BODIES_MOST, Held

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from starlette.requests import Request

    from taskyard.port import YardPort

_FRESH = 1.0  # seconds for which tokens that were read count: a revoked one is refused after that, by every gateway
RATE = 1000.0  # requests a second, of each token, or of each address that has none
CONNECTIONS = 10_000  # of each address; `serve` allows fewer where the system does


class NoToken(Denied):
    """The gateway needs a token."""


class Asker(NamedTuple):
    """Who sends a request."""

    by: str | None
    """The name of its token, which the log gets; None where none is needed."""
    key: str
    """What limits count for: its token, or the address of one without."""
    secret: str = ""
    """The token itself; empty where none is needed."""


class Rules:
    """What this gateway demands of all requests, beside what each yard's tokens allow."""

    def __init__(
        self,
        hosts: Iterable[str] = (),
        *,
        closed: bool = False,
        proxied: bool = False,
        rate: float = RATE,
        connections: int = CONNECTIONS,
    ) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        """Names that the gateway is known by, beside its addresses."""
        self.closed = closed
        """Whether a token is needed also for a yard that has none: the gateway can be reached from elsewhere."""
        self.proxied = proxied
        """Whether a proxy tells who asks."""
        self.buckets = Buckets(rate)
        self.bodies = Held(BODIES_MOST)
        self.connections = Held(connections)

    def peer(self, request: Request) -> str:
        """Return the address that asks: as the nearest proxy saw it, if there is one."""
        if self.proxied:
            # A proxy may add a line of its own behind one that the client has made up.
            *_, last = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
            if last.strip():
                return last.strip()
        return "" if request.client is None else request.client.host

    def asker(self, request: Request) -> Asker:
        """Return who asks without a token; raise `TooMany` if its address sends too many requests."""
        asker = Asker(None, f"peer {self.peer(request)}")
        self.buckets.take(asker.key)
        return asker

    def refuse_other_sites(self, request: Request) -> None:
        """Refuse what a browser sends for another site.

        A name that was made to point here (DNS rebinding) is in `Host`: only addresses, `localhost` and the gateway's own
        names are good there. A page that asks across sites is in `Origin`.
        """
        hosts = request.headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        name = _split(f"//{host}")[0]
        if name not in self.hosts and not _is_here(name):
            raise Denied(
                f"the gateway is not known as {ascii(name)[:80]}",
                hint="use its address, such as 127.0.0.1; 'taskyard serve --allow-host NAME' gives it a name",
            )
        origin = request.headers.get("origin")
        if (origin is not None and _split(origin)[1] != host) or _is_from_elsewhere(request):
            raise Denied("a page of another site may not use the gateway")


class Access:
    """The tokens of one yard that is served, read again once they are a second old."""

    def __init__(self, project: str, yard: YardPort, rules: Rules, pool: Executor) -> None:
        self._project = project
        self._yard = yard
        self._rules = rules
        self._pool = pool
        self._reading: asyncio.Future[tokens.Tokens | None] | None = None
        self._read_at = 0.0

    async def admitted(self, request: Request, scope: str) -> Asker:
        """Return who asks, if a token allows it or none is needed; else raise `Denied`."""
        kept = await self._tokens()
        if kept is None and not self._rules.closed:
            return self._rules.asker(request)
        secret = _secret(request)
        name = tokens.found(kept or {}, secret)
        if name is None:
            self._rules.asker(request)
            kept = await self._tokens(0.0) if secret else None  # it may have been made a moment ago
            name = tokens.found(kept or {}, secret)
        if kept is None or name is None:
            raise NoToken(
                "the gateway does not know this token" if secret else None,
                hint="set TASKYARD_TOKEN to a token of this yard; 'taskyard token new' beside the yard makes one",
            )
        asker = Asker(name, f"token {self._project} {name}", secret)
        self._rules.buckets.take(asker.key)
        self._refuse_others(name, kept[name], scope)
        return asker

    def _refuse_others(self, name: str, fields: dict[str, Any], scope: str) -> None:
        if fields.get("project") not in (None, self._project):
            raise Denied(f"the token {words.shown(name)} is for another project", hint="use one for this project")
        if not tokens.allows(fields, scope):
            raise Denied(
                f"the token {words.shown(name)} has the scope {words.shown(fields.get('scope'))}, and this needs {scope!r}",
                hint=f"use a token with the scope {scope}",
            )

    async def role(self, secret: str) -> dict[str, Any]:
        """Return the `name` and `scope` that a token gives here, and whether one is needed (`closed`); scope None if it is none."""
        kept = await self._tokens()
        if kept is None and not self._rules.closed:
            return {"name": None, "scope": tokens.MANAGE, "closed": False}
        name = tokens.found(kept or {}, secret)
        if name is None and secret:
            kept = await self._tokens(0.0)  # it may have been made a moment ago
            name = tokens.found(kept or {}, secret)
        fields = {} if name is None else (kept or {})[name]
        is_own = fields.get("project") in (None, self._project) and fields.get("scope") in tokens.SCOPES
        scope = fields["scope"] if fields and is_own else None
        return {"name": name if scope else None, "scope": scope, "closed": True}

    def count_refusal(self, request: Request) -> None:
        """Count a token that was refused: an address that tries many is slowed down."""
        self._rules.asker(request)

    async def still(self, asker: Asker) -> bool:
        """Whether the token that was admitted is good still, and not another of its name; or still none is needed."""
        kept = await self._tokens()
        return kept is None if asker.by is None else tokens.found(kept or {}, asker.secret) == asker.by

    async def _tokens(self, fresh: float = _FRESH) -> tokens.Tokens | None:
        """Return the yard's tokens, as a look that began at most `fresh` seconds ago found them; requests share looks."""
        now = time.monotonic()
        reading = self._reading
        if reading is None or now - self._read_at >= fresh or (reading.done() and reading.exception() is not None):
            loop = asyncio.get_running_loop()
            self._reading = reading = loop.run_in_executor(self._pool, self._yard.token_digests)
            self._read_at = now
        return await asyncio.shield(reading)  # a client that goes away must not end the look of the others


def _secret(request: Request) -> str:
    """Return the token that a request has; an empty text if it has none."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return unquote(secret.strip()) if kind.lower() == "bearer" else ""


def _split(url: str) -> tuple[str, str]:
    """Return the host in a URL, without and with its port; empty texts if it is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.netloc
    except ValueError:
        return "", ""


def _is_from_elsewhere(request: Request) -> bool:
    """Whether a browser says that a page of another origin asks; a link that leads here is followed all the same."""
    site = request.headers.get("sec-fetch-site", "none")
    follows = request.method in ("GET", "HEAD") and request.headers.get("sec-fetch-mode") == "navigate"
    return site not in ("none", "same-origin") and not follows


def _is_here(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
