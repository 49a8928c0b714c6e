"""`alive`: is the worker, the janitor or the gateway of this container alive, and does its yard answer it?"""

from __future__ import annotations

import os
import time

from taskyard.core.errors import Invalid, Unavailable
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

_WITHIN = 60.0  # seconds: an idle worker asks its yard every 30
_ANSWER = 10.0  # seconds for a gateway, which itself gives its yard 5


def alive(call: Call) -> Reply:
    """Return a verdict: exit 0 if there was a sign of life, 1 if not."""
    place, within = call.given.words[0], call.given.seconds("within")
    if place.startswith(("http://", "https://")):
        if within is not None:
            raise Invalid("--within is for a file", hint="a gateway is asked now, and has 10 s to answer")
        why, age = _gateway(place), None
    else:
        why, age = _file(place, _WITHIN if within is None else within)
    data = {"alive": why is None, "why": why, "age": None if age is None else round(age, 3)}
    return Reply(data, lambda: "alive" if why is None else f"not alive: {why}", 0 if why is None else 1)


def _file(path: str, within: float) -> tuple[str | None, float | None]:
    """Return why the process that touches this file is not alive, if it is not, and how old its last sign is."""
    try:
        signed_at = os.stat(path).st_mtime
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}", None
    if signed_at == 0:
        return "the yard has not answered it once since it began", None
    age = time.time() - signed_at
    # A sign from the future is one from before the clock was set back: the next one will tell.
    if -within <= age <= within:
        return None, age
    return f"its last sign of life is {abs(age):.0f} s {'old' if age > 0 else 'ahead of the clock'}", age


def _gateway(url: str) -> str | None:
    """Return why the gateway is not well, if it is not."""
    from taskyard.remote.http import Address, Connections

    address = Address(url)
    connections = Connections(address)

    def head(host: str, _: bool) -> bytes:
        return f"GET /{address.project}/healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()

    try:
        answer = connections.ask(head, b"", _ANSWER)
    except Unavailable as error:
        return error.message
    finally:
        connections.close()
    return None if answer.status == 200 else f"{url} answered {answer.status}"


COMMANDS = {
    "alive": Command(
        alive,
        "For the health checks of containers: exit 0 if the worker or janitor that was started with --alive FILE gave a sign of life lately, or if the gateway of URL is well; else 1. "
        "A worker gives a sign when its yard has answered a claim, or, while all its slots are busy, when the yard has answered for the claims that it holds and its heartbeats are on time; a janitor gives one after each sweep. "
        "So a process that is stopped, hangs, or cannot reach its yard is not alive. A gateway is well if its yard answers it.",
        (
            ("taskyard work --alive /tmp/alive -- ./agent.sh", "a worker that gives signs of life"),
            ("taskyard alive /tmp/alive", "is it alive?"),
            ("taskyard alive http://127.0.0.1:8377", "is the gateway here well?"),
        ),
        words="FILE|URL",
        least=1,
        most=1,
        options=(Option("--within", "S", "how old the last sign of life may be (default 60)"),),
    ),
}
