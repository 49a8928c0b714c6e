"""Compare the file system's time, which leases go by, with this machine's."""

from __future__ import annotations

import os
import select
import time

from taskyard.core.diagnosis import Finding, green, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.doctor.directory import ProbeFolder

FAR = 5.0  # seconds between two clocks from which on there is a warning
_COARSE = 0.5  # seconds
_SAMPLES = 5
_TIMEOUT = 3.0


def skew(probes: ProbeFolder) -> Finding:
    """Measure how far the file system's time is ahead of this machine's."""
    ahead = ahead_of_us(probes.path("clock"))
    measured = {"seconds_ahead": round(ahead, 3) + 0.0}  # no -0.0
    if abs(ahead) > FAR:
        return warn(
            "clock",
            f"the filesystem's time is {difference(ahead)} this machine's: leases and delays go by the filesystem's, so claims are safe, "
            "but moments that are given or shown differ from your clock",
            "set both clocks by NTP",
            **measured,
        )
    return green("clock", f"the filesystem's time and this machine's are {abs(ahead) * 1000:.0f} ms apart", **measured)


def ahead_of_us(probe: str) -> float:
    """Return the seconds by which the file system's time is ahead of ours, by the fastest of several samples."""
    samples = []
    for _ in range(_SAMPLES):
        before = time.time_ns()
        now = touched(probe)
        after = time.time_ns()
        samples.append((after - before, (now - (before + after) // 2) / 1e9))
    return min(samples)[1]


def touched(probe: str) -> int:
    """Touch a file and return its ctime, the file system's time in nanoseconds."""
    descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.utime(descriptor if os.utime in os.supports_fd else probe)
        return os.fstat(descriptor).st_ctime_ns
    finally:
        os.close(descriptor)


def pause(seconds: float) -> None:
    """Wait; not by time.sleep, which fails under libfaketime, which tests use to set clocks apart."""
    select.select([], [], [], seconds)


def difference(seconds: float) -> str:
    """Return the amount as text, with "ahead of" or "behind"."""
    distance = abs(seconds)
    amount = (
        f"{distance:.1f} s"
        if distance < 120
        else f"{distance / 60:.0f} min"
        if distance < 7200
        else f"{distance / 3600:.1f} h"
    )
    return f"{amount} {'ahead of' if seconds > 0 else 'behind'}"


def granularity(probes: ProbeFolder) -> Finding:
    """Measure the smallest step of the file system's times."""
    probe = probes.path("grain")
    steps: list[int] = []
    last, end = touched(probe), time.monotonic() + _TIMEOUT
    while len(steps) < 3 and time.monotonic() < end:
        now = touched(probe)
        if now < last:
            reason = f"the filesystem's time went back by {(last - now) / 1e9:.3f} s between two touches"
            return warn("granularity", reason, "set the clocks of all machines, and of the file server, by NTP")
        if now > last:
            steps.append(now - last)
            last = now
    grain = min(steps, default=int(_TIMEOUT * 1e9)) / 1e9
    measured = {"seconds": round(grain, 6)}
    if grain > _COARSE:
        return warn(
            "granularity",
            f"times are kept to {grain:.1f} s: a lease may end so much too early or too late",
            "give no lease shorter than a minute here",
            **measured,
        )
    return green("granularity", f"times are kept to {_small(grain)}", **measured)


def _small(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds >= 0.0001 else f"{seconds * 1e6:.0f} us"
