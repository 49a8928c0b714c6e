"""What two machines see of each other: this half of the examination needs a second doctor on the same place."""

from __future__ import annotations

import os
import socket
from shlex import quote

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks, meeting, two_doctors
from taskyard.stores.directory.doctor.place import kernel
from taskyard.stores.directory.doctor.two_doctors import Pair
from taskyard.stores.directory.filesystem import errors, safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.doctor.meeting import Meeting
    from taskyard.stores.directory.doctor.place import Corner

_CHECKS = (
    two_doctors.race,
    two_doctors.visibility,
    two_doctors.late_names,
    two_doctors.missing_names,
    two_doctors.locks,
    two_doctors.append,
)


def examine(corner: Corner, wait: float, tell: Callable[[str], None]) -> list[Finding]:
    """Meet another doctor and try the place together."""
    command = f"taskyard doctor {quote(corner.place.root)} --peer"
    tell(
        f"waiting {wait:g} s for a second doctor; on the other machine run, with its own path of this place: {command}"
    )
    met = meeting.meet(corner, wait)
    if met is None:
        reason = f"no second doctor came within {wait:g} s: what two machines see of each other was not tried"
        return [refuse("peer", reason, f"run this on both machines at the same time: {command}")]
    findings: list[Finding] = []
    try:
        pair = Pair(met, *_introduced(met))
        findings += [_known(pair), _clocks(pair)]
        findings += [check(pair) for check in _CHECKS]
        met.say("bye")
        if met.role == meeting.HOST:
            met.hear("bye")  # the corner is ours: it stays until the other has no more use for it
    except meeting.PeerLost as error:
        findings.append(
            refuse("peer", f"{error}: this half was not finished", f"run it again on both machines: {command}")
        )
    except FileNotFoundError:  # the corner is the other's, and has gone with it
        findings.append(
            refuse(
                "peer",
                "the other doctor has left: this half was not finished",
                f"run it again on both machines: {command}",
            )
        )
    except OSError as error:
        findings.append(refuse("peer", f"it could not be tried: {error.strerror or error}", errors.hint(error)))
    return findings


def _introduced(met: Meeting) -> tuple[dict[str, Any], dict[str, Any]]:
    """Who we are, and who the other is."""
    me = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "kernel": kernel(),
        "container": _link("/proc/self/ns/mnt"),
        "filesystem": met.corner.place.kind,
        "local": safety.is_local(met.corner.place.root),
        "seconds_ahead": clocks.ahead_of_us(met.path(f"clock.{met.role}")),
    }
    return me, met.swap("hello", me)


def _known(pair: Pair) -> Finding:
    me, other = pair.me, pair.other
    told = {
        "host": other["host"],
        "pid": other["pid"],
        "filesystem": other["filesystem"],
        "same_kernel": pair.same_kernel,
    }
    if not pair.same_kernel:
        return green("peer", f"met the doctor of {other['host']} ({other['filesystem']} there)", **told)
    if me["container"] != other["container"]:
        return green("peer", f"met the doctor of {other['host']}, another container on this machine", **told)
    return warn(
        "peer",
        "met another doctor on this very machine: that tells nothing about two machines",
        "run one of the two on the other machine",
        **told,
    )


def _clocks(pair: Pair) -> Finding:
    """The clocks of both machines, with the file server's between them."""
    mine, theirs = pair.me["seconds_ahead"], pair.other["seconds_ahead"]
    ahead = mine - theirs
    told = {
        "server_ahead_of_us": round(mine, 3),
        "server_ahead_of_peer": round(theirs, 3),
        "peer_ahead": round(ahead, 3),
    }
    if abs(ahead) > clocks.FAR:
        return warn(
            "peer_clock",
            f"the clock of {pair.other['host']} is {clocks.far(ahead)} this one's: leases go by the filesystem's time and are safe, "
            "but each machine shows and is given other moments",
            "set the clocks of both by NTP",
            **told,
        )
    return green(
        "peer_clock", f"the clocks of both machines are {abs(ahead) * 1000:.0f} ms apart, by the filesystem's", **told
    )


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
