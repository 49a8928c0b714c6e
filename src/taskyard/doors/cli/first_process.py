"""Process 1 of a container: it passes signals on to the command, and waits for every process that lost its parent.

The kernel drops each signal that process 1 has no handler for, so that a stop during the start would be lost, and makes all
orphans its children, which stay as zombies unless it waits for them. So the command runs in a child.
"""

from __future__ import annotations

import os
import signal

_PASSED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGWINCH,
)


def stand_in() -> None:
    """Return in a child, which runs the command; this process stays, and exits as the child does."""
    waited = {*_PASSED, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)  # what comes before the child has its handlers, waits
    child = os.fork()
    if child == 0:
        _take_terminal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
        return
    while True:
        number = signal.sigwait(waited)
        if number == signal.SIGCHLD:
            _bury(child)
        else:
            os.kill(child, number)


def _take_terminal() -> None:
    """Lead a process group of one's own, in the foreground: a Ctrl-C reaches the command once, and not once more by process 1."""
    os.setpgid(0, 0)
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # which the kernel sends to a background group that asks
    try:
        os.tcsetpgrp(0, os.getpid())
    except OSError:
        pass  # no terminal
    finally:
        signal.signal(signal.SIGTTOU, before)


def _bury(child: int) -> None:
    """Wait for all that have exited; if the child is among them, exit as it did."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
