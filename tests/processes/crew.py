"""The members of a crew, each a process: `python crew.py VERB YARD ARGUMENTS`, one JSON value a line on stdout.

No test by itself: the tests start, stop and kill these. A member that should begin together with others says `"ready"`
and waits for a line on stdin.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import taskyard

if TYPE_CHECKING:
    from collections.abc import Callable


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def line_up() -> None:
    say("ready")
    sys.stdin.readline()


def drain(yard: str, worker: str = "", lease: str = "60") -> None:
    """Claim and end tasks until nothing is ready; says every handle, and who held it."""
    import os

    with taskyard.open(yard, worker=worker or None) as opened:
        line_up()
        while (claim := opened.claim(lease=float(lease))) is not None:
            claim.done({"by": claim.handle})
            say({"claim": claim.handle, "worker": opened.worker, "pid": os.getpid(), "host": os.uname().nodename})


def drain_by_command(yard: str, worker: str = "") -> None:
    """The same with a process for each claim and each done."""
    who = ["--worker", worker] if worker else []
    line_up()
    while True:
        claimed = _command(yard, "claim", *who, codes=(0, 3))
        if not claimed["ok"]:
            return
        claim = claimed["data"]["claim"]
        _command(yard, "done", claim, "--result", json.dumps({"by": claim}), *who)
        say({"claim": claim, "worker": claimed["data"]["task"]["worker"]})


def _command(yard: str, *argv: str, codes: tuple[int, ...] = (0,)) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "taskyard", "--yard", yard, "--json", *argv], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode in codes, (argv, done.returncode, done.stdout)
    return json.loads(done.stdout)


def add(yard: str, number: str, kind: str = "build", delay: str = "0", pause: str = "0") -> None:
    """Add so many tasks one by one; says every id once it is acknowledged."""
    with taskyard.open(yard) as opened:
        line_up()
        for _ in range(int(number)):
            say(opened.add(kind, delay=float(delay)).id)
            time.sleep(float(pause))


def add_for_ever(yard: str) -> None:
    """Add tasks in every way there is until killed; says the ids."""
    with taskyard.open(yard) as opened:
        line_up()
        for turn in itertools.count():
            say([opened.add("single", {"turn": turn}).id])
            say(opened.add_many([{"kind": "bulk", "data": "x" * 5000}] * 7))
            say([opened.add("late", delay=0.05).id])


def work_for_ever(yard: str, lease: str) -> None:
    """Claim and end tasks until killed; says `[claim, id, fence]` when it has one and `[done, id, fence]` when it has ended it."""
    with taskyard.open(yard) as opened:
        line_up()
        while (claim := opened.claim(lease=float(lease))) is not None:
            say(["claim", claim.task.id, claim.fence])
            claim.done({"fence": claim.fence, "bulk": "x" * 5000})
            say(["done", claim.task.id, claim.fence])
    say(["idle", "", 0])
    sys.stdin.readline()  # to be killed, like all others


def claim_late(yard: str, lease: str, worker: str = "") -> None:
    """Claim a task, say so, and end it only when told to."""
    with taskyard.open(yard, worker=worker or None) as opened:
        claim = opened.claim(lease=float(lease))
        assert claim is not None
        say(claim.handle)
        sys.stdin.readline()
        try:
            claim.done({"late": True})
        except taskyard.ClaimLost:
            say("lost")
        else:
            say("done")


def work_with_heartbeat(yard: str, lease: str) -> None:
    """Hold a task in a block until told to end it."""
    with taskyard.open(yard) as opened:
        claim = opened.claim(lease=float(lease))
        assert claim is not None
        with claim:
            say(claim.handle)
            sys.stdin.readline()
            say("lost" if claim.lost else "held")


def sweep_for_ever(yard: str) -> None:
    """Sweep without a pause until told to end."""
    import threading

    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    told.start()
    swept = 0
    with taskyard.open(yard) as opened:
        while told.is_alive():
            swept += bool(opened.sweep())
    say(swept)


VERBS: tuple[Callable[..., None], ...] = (
    drain, drain_by_command, add, add_for_ever, work_for_ever, claim_late, work_with_heartbeat, sweep_for_ever,
)  # fmt: skip

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        {verb.__name__: verb for verb in VERBS}[sys.argv[1]](*sys.argv[2:])
