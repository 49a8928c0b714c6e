"""A worker's pipe to its supervisor: when the supervisor dies, the worker ends by itself.

A supervisor passes its workers the reading end of a pipe and names the descriptor in the environment. It never writes to
the pipe, which ends when the supervisor exits or is killed.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from typing import TYPE_CHECKING

from taskyard.worker import guard

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "TASKYARD_LIFELINE"


def hold(ended: Callable[[], object]) -> bool:
    """Call `ended` when the supervisor that started this process dies; return whether there is a supervisor.

    The variable is removed from the environment: the supervisor does not supervise commands that the worker runs.
    """
    named = os.environ.pop(VARIABLE, "")
    if not (named.isascii() and named.isdigit()):
        return False
    line = int(named)
    try:
        if not stat.S_ISFIFO(os.fstat(line).st_mode):
            return False
    except OSError:
        return False  # the descriptor was closed on the way here, so its number may belong to another file
    os.set_inheritable(line, False)
    wake_with_supervisor()

    def hear() -> None:
        os.read(line, 1)
        ended()

    threading.Thread(target=hear, name="supervisor", daemon=True).start()
    return True


def wake_with_supervisor() -> None:
    """Have the kernel continue this process when its supervisor dies: a stopped worker cannot see the end of the pipe."""
    guard.wake_with_parent(signal.SIGCONT)
