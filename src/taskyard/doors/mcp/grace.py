"""The process that keeps an agent's claims for a short grace after its client has closed the connection.

A client that reconnects closes standard input, and two seconds later kills its server: so the server cannot wait itself. If
the agent comes back, `resume` takes the claims under a new fence, and this process finds that they are over.
"""

from __future__ import annotations

import os
import sys
import time

from taskyard import opening
from taskyard.core.errors import TaskyardError
from taskyard.core.processes import Process
from taskyard.core.times import ticks
from taskyard.doors.mcp.claims import Claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.port import YardPort

_LOOK_EVERY = 0.25  # seconds
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.doors.mcp import grace; grace.main()"
DIED = "its agent's process died"


def start(yard: YardPort, handles: list[str], agent: Process, seconds: float, lock: int | None) -> None:
    """Start the process; it inherits the lock that backs the claims, so that no sweep takes their holder for dead."""
    import subprocess

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    words = [root, yard.worker, str(seconds), str(agent.pid), agent.started, *handles]
    process = subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
        [sys.executable, "-c", _START, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TASKYARD": yard.url},  # not an argument, which every user can read: it may have a password
        cwd="/",
        pass_fds=() if lock is None else (lock,),
        start_new_session=True,  # clients kill the whole process group
    )
    process.returncode = 0  # this process does not wait for it; without this, Python would warn of a leak


def main() -> None:
    """Keep the claims of the arguments."""
    worker, seconds, pid, started, *handles = sys.argv[1:]
    keep(os.environ["TASKYARD"], worker, handles, Process(int(pid), started), float(seconds))


def keep(url: str, worker: str, handles: list[str], agent: Process, seconds: float) -> None:
    """Renew the claims until they are over, the agent is dead, or the grace is; then give back what is left."""
    end = ticks() + seconds
    with opening.open(url, worker) as yard:
        claims = Claims(yard, idle=seconds + 60)
        for handle in handles:
            try:
                held = yard.held(handle)
                if held.holds():
                    claims.take(held)
            except TaskyardError:
                continue  # it is over, or the yard is away and its lease decides
        while claims.all() and ticks() < end and agent.lives():
            time.sleep(_LOOK_EVERY)
            for held_now in claims.all():
                if not held_now.claim.holds():  # a heartbeat on a claim that is over would be logged as a late verb
                    claims.drop(held_now.handle)
            claims.beat()
        died = not agent.lives()
        claims.give_back(DIED if died else f"its agent disconnected and was not back after {seconds:.10g} s", died=died)
