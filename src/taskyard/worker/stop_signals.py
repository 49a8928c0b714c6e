"""Signals that end a worker in order."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

from taskyard.core.signals import stops

if TYPE_CHECKING:
    from taskyard.worker.run import Run


class Signals:
    """Signals stop the run during this `with` block; in any thread but the main one it does nothing."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before: dict[int, Any] = {}
        self._woken = -1

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in stops():
                self._before[number] = signal.signal(number, lambda *_: self._run.stop())
            # The kernel delivers a signal to any thread, and only the main one acts on it: it has to be woken.
            self._woken = signal.set_wakeup_fd(self._run.news.writing, warn_on_full_buffer=False)

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
