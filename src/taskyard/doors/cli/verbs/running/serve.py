"""`serve`: the gateway, which hands out a yard over HTTP."""

from __future__ import annotations

from taskyard import opening
from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.cli import replies
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.verbs.running.orchestrate import Beside
from taskyard.doors.cli.verbs.sync import SyncedBeside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.cli.replies import Call
    from taskyard.doors.gateway.access import Rules
    from taskyard.port import YardPort

_PORT = 8377
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(call: Call) -> None:
    """Serve the yard, and those that are named, until a signal."""
    try:
        from taskyard.doors.gateway import server
    except ImportError as error:
        raise Unavailable(
            f"the gateway needs {error.name or 'more'}, which is not installed", hint="pip install 'taskyard[server]'"
        ) from None
    host, port = call.given.text("host") or "127.0.0.1", _port(call.given.text("port"))
    cert, key = call.given.text("cert"), call.given.text("key")
    if cert is not None:
        server.refuse_bad_certificate(cert, key)
    elif key is not None:
        raise Invalid("--key without --cert", hint="name the certificate too")
    rules = _rules(call, host)
    yards: dict[str, YardPort] = {}
    try:
        for project, url in _projects(call):
            if url.startswith(opening.GATEWAYS):
                raise Invalid(
                    "a gateway does not serve the yard of another gateway",
                    hint="name the yard itself: a path or postgresql://; clients take the URLs of several gateways",
                )
            yards[project] = opening.open(url, call.worker or "gateway")
            if rules.closed:
                _refuse_open(project, yards[project])
        line = server.bound(host, port)
        shown = f"[{host}]" if ":" in host else host
        for project, yard in yards.items():
            replies.remark(f"http{'s' if cert else ''}://{shown}:{line.getsockname()[1]}/{project} serves {yard.label}")
        replies.remark(f"for {_whom(host, rules.closed, cert)}; a browser gets the board there; Ctrl-C ends it")
        first, synced = next(iter(yards.values())), call.given.text("sync")
        with Beside(yards if call.given.flag("orchestrate") else {}), SyncedBeside(first, synced):
            server.serve(yards, line, rules, cert, key)
    finally:
        for yard in yards.values():
            yard.close()


def _rules(call: Call, host: str) -> Rules:
    """Return what the gateway demands of requests: tokens at least, if it can be reached from elsewhere."""
    from taskyard.doors.gateway import server
    from taskyard.doors.gateway.access import RATE, Rules

    given = call.given
    names, proxied, rate = given.texts("allow-host") or (), given.flag("proxy-header"), given.text("rate")
    if rate is not None and not (rate.isascii() and rate.isdigit()):
        raise Invalid(f"not a rate: {ascii(rate)[:20]}", hint="a whole number of requests a second; 0 is without limit")
    closed = host not in _LOOPBACK or bool(names) or proxied
    rated = RATE if rate is None else float(rate)
    return Rules((host, *names), closed=closed, proxied=proxied, rate=rated, connections=server.connections())


def _refuse_open(project: str, yard: YardPort) -> None:
    """Raise an error if anybody could use this yard."""
    if not yard.token_digests():
        raise Invalid(
            f"the yard {yard.label} has no token, so anybody who reaches the gateway could use the project {project}",
            hint="make one with 'taskyard token new', on the URL of that yard; or serve on 127.0.0.1 alone, without --allow-host and --proxy-header",
        )


def _whom(host: str, closed: bool, cert: str | None) -> str:
    if not closed:
        return "this machine only"
    plain = host not in _LOOPBACK and cert is None
    return "all who have a token" + (", which travels unencrypted: see --cert" if plain else "")


def _port(text: str | None) -> int:
    if text is None:
        return _PORT
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise Invalid(f"not a port: {ascii(text)[:20]}", hint="a number up to 65535; 0 chooses a free one")
    return int(text)


def _projects(call: Call) -> list[tuple[str, str]]:
    """Return the name and the URL of each yard to serve."""
    named = []
    for text in call.given.texts("project") or ():
        project, equals, url = text.partition("=")
        if not equals or not project or not url or "/" in project:
            raise Invalid(f"not a project and its yard: {ascii(text)[:80]}", hint="say --project NAME=URL")
        named.append((project, url))
    own = call.given.text("yard")
    if own is None and named:
        return named
    return [("default", own or opening.locate()), *named]


COMMANDS = {
    "serve": Command(
        serve,
        "Serve a yard over HTTP, to agents that can reach neither its directory nor its database: with TASKYARD=http://HOST:PORT every command, worker and crew works as before. Without --yard it serves the yard that is found from here, as the project 'default'. "
        "A browser gets the board there. Other programs use the REST API: /openapi.json describes it. Several gateways may serve one yard. Needs the extra 'server': pip install 'taskyard[server]'.",
        (
            ("taskyard serve", "serve the yard of this directory at http://127.0.0.1:8377/default"),
            (
                "taskyard serve --project site=./site/.taskyard --project lab=/data/lab",
                "serve two yards, each under its name",
            ),
            (
                "taskyard serve --host 0.0.0.0 --cert site.pem --key site.key --allow-host yard.example.org",
                "serve other machines, once 'taskyard token new' was said",
            ),
        ),
        options=(
            Option(
                "--host",
                "HOST",
                "the address to listen on (default: 127.0.0.1, this machine only); any other needs tokens",
            ),
            Option("--port", "PORT", "the port to listen on (default: 8377; 0 chooses a free one)"),
            Option("--project", "NAME=URL", "serve this yard under this name as well", many=True),
            Option("--cert", "FILE", "speak TLS, with the certificate in this PEM file"),
            Option("--key", "FILE", "its private key, unless that is in the same file"),
            Option(
                "--allow-host", "NAME", "a name that clients or a proxy call the gateway by; needs tokens", many=True
            ),
            Option("--proxy-header", None, "believe the X-Forwarded-For of the proxy that asks; needs tokens"),
            Option("--orchestrate", None, "keep the yards going as well, as 'taskyard orchestrate' does"),
            Option("--sync", "DIR", "keep the missions' folders in DIR, or one TASKS.md, in sync with the first yard"),
            Option(
                "--rate",
                "N",
                "requests a second for each token, or for each address without one (default: 1000; 0 is without limit)",
            ),
        ),
    ),
}
