"""A run in several processes: each is a worker of its own, with its own lock; a killed one is replaced.

A handler that crashes or blocks its interpreter then affects no other process. The parent only supervises its children:
it passes stop signals on, and adds up their tallies.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from taskyard.core.errors import Invalid
from taskyard.core.signals import stops
from taskyard.worker.options import Tally
from taskyard.worker.wakeup import MainThreadWakeup

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.worker.options import Options

    Work = Callable[[int, int, Callable[[str], object]], None]
    """The function of a child: called with its number, the pipe that ends with the parent, and a callback for each ending."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds before a killed child is replaced, doubled while children die young
YOUNG = 5.0


class Child:
    """One process of the run."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid = 0
        self.answer = -1
        self.lifeline = -1
        self.started = 0.0
        self.again_at: float | None = 0.0
        self.pause = FIRST_PAUSE

    def start(self, work: Work, others: list[Child]) -> None:
        """Fork the child."""
        reading, writing = os.pipe()
        held, lifeline = os.pipe()
        self.started, self.again_at = time.monotonic(), None
        signal.pthread_sigmask(
            signal.SIG_BLOCK, stops()
        )  # a stop signal at this moment waits until the child has its own handlers
        self.pid = os.fork()
        if self.pid == 0:
            for other in others:
                if other.pid:
                    os.close(other.lifeline)  # or that child would not see the parent's death while this one lives
            os.close(lifeline)
            code = 1
            try:
                os.setpgid(0, 0)  # only the parent gets Ctrl-C, and passes it on once
                work(self.number, held, lambda ending: os.write(writing, f"{ending}\n".encode()))
                code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops())
        os.close(writing)
        os.close(held)
        os.set_blocking(reading, False)
        self.answer, self.lifeline = reading, lifeline

    def listen(self, tally: Tally) -> None:
        """Count the endings that the child has written since the last call; each is written whole or not at all."""
        try:
            for ending in os.read(self.answer, 1 << 16).decode().split():
                tally.add(ending)
        except BlockingIOError:
            return

    def ended(self, status: int, tally: Tally) -> None:
        """Count the last endings of a child that has exited, and plan its replacement if it was killed."""
        self.listen(tally)
        os.close(self.answer)
        os.close(self.lifeline)
        self.pid = 0
        if status:
            young = time.monotonic() - self.started < YOUNG
            self.pause = min(2 * self.pause, LONGEST_PAUSE) if young else FIRST_PAUSE
            self.again_at = time.monotonic() + self.pause


class Crew:
    """All processes of one run."""

    def __init__(self, options: Options, work: Work) -> None:
        self._children = [Child(number) for number in range(options.concurrency)]
        self._work = work
        self._tally = Tally()
        self._stops: list[int] = []
        self._passed_on = 0
        self._news = MainThreadWakeup()

    def run(self) -> Tally:
        """Keep the children running until each has finished its share, or a signal stops all."""
        before = {number: signal.signal(number, self._on_signal) for number in stops()}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: self._news.tell())
        woken = signal.set_wakeup_fd(
            self._news.writing, warn_on_full_buffer=False
        )  # the kernel may deliver a signal to any thread
        try:
            while any(child.pid or child.again_at is not None for child in self._children):
                self._pass_on_stops()
                self._start_due()
                self._bury()
                self._sleep()
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
        return self._tally

    def _on_signal(self, number: int, _: object) -> None:
        self._stops.append(number)
        self._news.tell()

    def _pass_on_stops(self) -> None:
        while self._passed_on < len(self._stops):
            for child in self._children:
                child.again_at = None
                if child.pid:
                    os.kill(child.pid, self._stops[self._passed_on])
            self._passed_on += 1

    def _start_due(self) -> None:
        for child in self._children:
            if child.again_at is not None and time.monotonic() >= child.again_at:
                child.start(self._work, [other for other in self._children if other is not child])

    def _bury(self) -> None:
        for child in self._children:
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    child.ended(status, self._tally)
                    if self._stops:
                        child.again_at = None

    def _sleep(self) -> None:
        if not any(child.pid or child.again_at is not None for child in self._children):
            return
        due = [child.again_at for child in self._children if child.again_at is not None]
        wait = max(0.0, min(due) - time.monotonic()) if due else None
        answers = {child.answer: child for child in self._children if child.pid}
        for descriptor in self._news.wait(wait, answers):
            answers[descriptor].listen(self._tally)


def run(
    options: Options, begin: Callable[[Options, Callable[[str], object]], object], stop: Callable[[], None]
) -> Tally:
    """Run in `options.concurrency` processes; each calls `begin` for one run, which calls back with every ending."""
    if threading.current_thread() is not threading.main_thread():
        raise Invalid("processes can only be started from the main thread", hint="leave processes out to use threads")

    def work(number: int, lifeline: int, tell: Callable[[str], object]) -> None:
        def hear() -> None:
            os.read(lifeline, 1)  # the parent never writes to it: the read returns when the parent dies
            os._exit(1)  # as if this process had been killed too, so its tasks are free at once

        signal.set_wakeup_fd(-1)  # the parent's pipe
        for one in stops():
            signal.signal(one, lambda *_: stop())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops())
        threading.Thread(target=hear, name="parent", daemon=True).start()
        begin(options.share(number), tell)

    return Crew(options, work).run()
