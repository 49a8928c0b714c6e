"""The keeper of `claim --keep PID`: a separate process that heartbeats while PID lives and the claim holds, then ends.

It prints nothing and ends no claim: after PID is gone, the lease expires and a sweep gives the task back.
"""

from __future__ import annotations

import os
import sys
import time

from taskyard import opening
from taskyard.core.errors import ClaimLost, Invalid, NotFound, Unavailable
from taskyard.core.processes import Process
from taskyard.core.times import ticks
from taskyard.yard.claim import BEATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.port import YardPort
    from taskyard.yard.claim import Claim

_LOOK_EVERY = 3.0  # seconds: a keeper must end soon after its claim, and not only at the next heartbeat
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.doors.cli import keeper; keeper.main()"


def watched(text: str) -> Process:
    """Return the running process with this pid."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise Invalid(f"--keep needs the number of a process, not {ascii(text)[:40]}", hint="--keep $$ is this shell")
    process = Process.of(int(text))
    if process is None:
        raise Invalid(f"there is no process {int(text)} to keep the claim for", hint="--keep $$ is this shell")
    return process


def start(yard: YardPort, claim: Claim, kept_for: Process) -> None:
    """Start the keeper of this claim; it outlives this process."""
    import subprocess

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    words = [root, yard.worker, claim.handle, str(kept_for.pid), kept_for.started]
    keeper = subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
        [sys.executable, "-c", _START, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "TASKYARD": yard.url,
        },  # not an argument, which every user of this machine can read: the URL may have a password
        cwd="/",
        start_new_session=True,
    )
    keeper.returncode = 0  # this process does not wait for it; without this, Python would warn of a leak


def main() -> None:
    """Keep the claim of the arguments."""
    worker, handle, pid, started = sys.argv[1:]
    keep(os.environ["TASKYARD"], worker, handle, Process(int(pid), started))


def keep(url: str, worker: str, handle: str, kept_for: Process) -> None:
    """Heartbeat every third of the lease while the process lives and the claim holds."""
    every: float | None = None
    beat_at = 0.0
    with opening.open(url, worker) as yard:
        held = yard.held(handle)
        while kept_for.lives():
            try:
                if not held.holds():  # checked first: a heartbeat on an ended claim would be logged as a late verb
                    return
                if every is None:
                    every = held.lease / BEATS
                    beat_at = ticks() + every  # its lease has just begun, and its holder may end it at once
                if ticks() >= beat_at:
                    held.heartbeat()
                    beat_at = ticks() + every
            except (ClaimLost, NotFound):
                return
            except Unavailable:
                pass  # the yard may be back before the lease ends
            time.sleep(max(0.0, min(_LOOK_EVERY, beat_at - ticks())) or _LOOK_EVERY / 10)
