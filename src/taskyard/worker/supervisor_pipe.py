"""A worker's line to whoever looks after it: when that is gone, the worker comes to its end by itself.

A supervisor hands its workers the reading end of a pipe and names the descriptor in the environment. Nobody ever writes to
it: it ends when the supervisor does, however that came about.
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
    """Have this called when the supervisor that started this process is gone; whether there is one.

    The variable is taken out of the environment: commands that the worker runs are none of the supervisor's.
    """
    named = os.environ.pop(VARIABLE, "")
    if not (named.isascii() and named.isdigit()):
        return False
    line = int(named)
    try:
        if not stat.S_ISFIFO(os.fstat(line).st_mode):
            return False
    except OSError:
        return False  # closed on the way here: it is somebody else's by now
    os.set_inheritable(line, False)
    wake_with_supervisor()

    def hear() -> None:
        os.read(line, 1)
        ended()

    threading.Thread(target=hear, name="supervisor", daemon=True).start()
    return True


def wake_with_supervisor() -> None:
    """Have the kernel continue this process when its supervisor dies: a stopped worker does not see that the pipe has ended."""
    guard.wake_with_parent(signal.SIGCONT)
