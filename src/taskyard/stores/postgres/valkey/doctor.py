"""Whether the Valkey server that a URL names does what hints need."""

from __future__ import annotations

import time

from taskyard.core import ids
from taskyard.core.diagnosis import Finding, green, warn
from taskyard.stores.postgres.valkey.keys import Keys
from taskyard.stores.postgres.valkey.server import Server, Trouble, script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.postgres.address import Address

_HINT = "PostgreSQL alone does everything meanwhile; see docs/valkey.md for the rights that are needed"


def examine(address: Address) -> Finding:
    """Try each command that hints need, on keys of this check's own."""
    assert address.valkey is not None
    server, keys = Server(address.valkey, warns=False), Keys(address.project)
    mine = ids.base32(ids.chance(60), 12)
    probe = keys.probe(mine)
    began = time.monotonic()
    try:
        commands = [
            ("EVAL", script(), 1, keys.prefix, "[]"), ("ZADD", probe, 0, "probe"), ("PEXPIRE", probe, 1000),
            ("BZPOPMIN", probe, 1), ("PUBLISH", keys.echo(mine), "echo"), ("SET", probe, "1", "NX", "PX", 1000),
            ("GET", probe), ("TYPE", probe), ("DEL", probe), ("SUBSCRIBE", keys.echo(mine)),
        ]  # fmt: skip
        answers = server.answers(*commands)
        seconds = time.monotonic() - began
        [info] = Server(address.valkey, warns=False).answers(("INFO", "server"))
    except Trouble as trouble:
        return warn("valkey", f"Valkey at {server.label} does not serve: {trouble}", _HINT)
    finally:
        server.close()
    for command, answer in zip(commands, answers, strict=True):
        if isinstance(answer, Exception):
            return warn("valkey", f"Valkey at {server.label} refuses {command[0]}: {answer}", _HINT)
    return green(
        "valkey", f"{_release(info)} at {server.label} serves", release=_release(info), round_trip=round(seconds, 4)
    )


def _release(info: object) -> str:
    """Return name and version of the server, if it says so."""
    lines = info.decode(errors="replace").splitlines() if isinstance(info, bytes) else []
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    if "valkey_version" in found:
        return f"Valkey {found['valkey_version']}"
    return f"Redis {found['redis_version']}" if "redis_version" in found else "a server that does not name its release"
