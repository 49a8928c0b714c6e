"""Check what two machines see of each other; this needs a second doctor on the same directory."""

from __future__ import annotations

import os
import socket
from shlex import quote

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import clocks, meeting, two_doctors
from taskyard.stores.directory.doctor.directory import kernel
from taskyard.stores.directory.doctor.two_doctors import Pair
from taskyard.stores.directory.filesystem import errors, safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.doctor.directory import ProbeFolder
    from taskyard.stores.directory.doctor.meeting import Meeting

_CHECKS = (
    two_doctors.race,
    two_doctors.visibility,
    two_doctors.late_names,
    two_doctors.missing_names,
    two_doctors.locks,
    two_doctors.append,
)


def examine(probes: ProbeFolder, wait: float, report: Callable[[str], None]) -> list[Finding]:
    """Find another doctor and run the checks that need two."""
    command = f"taskyard doctor {quote(probes.directory.root)} --peer"
    report(
        f"waiting {wait:g} s for a second doctor; on the other machine run, with its own path of this place: {command}"
    )
    peer = meeting.meet(probes, wait)
    if peer is None:
        reason = f"no second doctor came within {wait:g} s: what two machines see of each other was not tried"
        return [refuse("peer", reason, f"run this on both machines at the same time: {command}")]
    findings: list[Finding] = []
    try:
        pair = Pair(peer, *_exchange_identities(peer))
        findings += [_identified(pair), _clocks(pair)]
        findings += [check(pair) for check in _CHECKS]
        peer.send("bye")
        if peer.role == meeting.HOST:
            peer.receive("bye")  # the probe folder is ours, and the other doctor uses it until then
    except meeting.PeerLost as error:
        findings.append(
            refuse("peer", f"{error}: this half was not finished", f"run it again on both machines: {command}")
        )
    except FileNotFoundError:  # the probe folder is the other doctor's, which has removed it
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


def _exchange_identities(peer: Meeting) -> tuple[dict[str, Any], dict[str, Any]]:
    """Exchange host, kernel and clock with the other doctor; return ours and the other's."""
    me = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "kernel": kernel(),
        "container": _link("/proc/self/ns/mnt"),
        "filesystem": peer.probes.directory.kind,
        "local": safety.is_local(peer.probes.directory.root),
        "seconds_ahead": clocks.ahead_of_us(peer.path(f"clock.{peer.role}")),
    }
    return me, peer.exchange("hello", me)


def _identified(pair: Pair) -> Finding:
    me, other = pair.me, pair.other
    measured = {
        "host": other["host"],
        "pid": other["pid"],
        "filesystem": other["filesystem"],
        "same_kernel": pair.same_kernel,
    }
    if not pair.same_kernel:
        return green("peer", f"met the doctor of {other['host']} ({other['filesystem']} there)", **measured)
    if me["container"] != other["container"]:
        return green("peer", f"met the doctor of {other['host']}, another container on this machine", **measured)
    return warn(
        "peer",
        "met another doctor on this very machine: that tells nothing about two machines",
        "run one of the two on the other machine",
        **measured,
    )


def _clocks(pair: Pair) -> Finding:
    """Compare the clocks of both machines through the file server's."""
    mine, theirs = pair.me["seconds_ahead"], pair.other["seconds_ahead"]
    ahead = mine - theirs
    measured = {
        "server_ahead_of_us": round(mine, 3),
        "server_ahead_of_peer": round(theirs, 3),
        "peer_ahead": round(ahead, 3),
    }
    if abs(ahead) > clocks.FAR:
        return warn(
            "peer_clock",
            f"the clock of {pair.other['host']} is {clocks.difference(ahead)} this one's: leases go by the filesystem's time and are safe, "
            "but each machine shows and is given other moments",
            "set the clocks of both by NTP",
            **measured,
        )
    return green(
        "peer_clock",
        f"the clocks of both machines are {abs(ahead) * 1000:.0f} ms apart, by the filesystem's",
        **measured,
    )


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
