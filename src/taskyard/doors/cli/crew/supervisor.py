"""The supervisor of a crew: starts its workers, sees how they fare, starts again who dies, and brings all to their end.

It does no task itself and decides nothing about one: whatever becomes of it, the yard stays right. Its workers hold the
reading end of a pipe that ends with it, so that they come to their end too when it is killed.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any, Protocol

from taskyard.doors.cli import replies
from taskyard.doors.cli.crew.activity import Activity, Happening, moment
from taskyard.doors.cli.crew.events import EventFeed
from taskyard.worker import guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.doors.cli.crew.process import CrewProcess
    from taskyard.port import YardPort

LOOK = 1.0  # seconds between two looks at whether a worker stands still or hangs
LEFT_MOST = 10.0  # seconds that guards of killed workers have to stop what they guard; they need two
_STOPS = (signal.SIGTERM, signal.SIGINT)


class Display(Protocol):
    """Where it is told: a screen, or lines."""

    looks_up_titles: bool

    def tell(self, happening: Happening) -> None:
        """Something has happened."""

    def is_due(self, now: float) -> bool:
        """Whether to draw now."""

    def draw(self, footer: str, now: float) -> None:
        """Draw what has changed."""

    def delay(self, now: float) -> float:
        """Seconds until something is to be done, if nothing happens."""

    def close(self) -> None:
        """Give back what was taken."""


class Silence:
    """The display of a crew whose reader has gone."""

    looks_up_titles = False

    def tell(self, happening: Happening) -> None:
        """Nobody is there."""

    def is_due(self, now: float) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def draw(self, footer: str, now: float) -> None:
        """Nobody is there."""

    def delay(self, now: float) -> float:  # noqa: ARG002
        """Seconds until the next look at the workers."""
        return LOOK

    def close(self) -> None:
        """Nothing was taken."""


class Supervisor:
    """Looks after all workers of one crew."""

    def __init__(self, yard: YardPort, processes: list[CrewProcess], activity: Activity, *, drain: bool) -> None:
        self._url = yard.url
        self._processes = processes
        self._activity = activity
        self._drain = drain
        self._display: Display = Silence()
        self._lost: replies.OutputLost | None = None
        self._stops = 0
        self._passed_on = 0
        self._look_at = 0.0
        self._heard, self._told = os.pipe()
        for descriptor in (self._heard, self._told):
            os.set_blocking(descriptor, False)
        self._held, self._lifeline = os.pipe()

    def run(self, display: Callable[[], Display]) -> int:
        """Keep the crew going until it is done or told to stop; the exit code: 1 if a worker has given up."""
        guard.adopt_orphans()  # a killed worker's guard is ours to wait for
        before: dict[int, Any] = {number: signal.signal(number, self._on_stop) for number in _STOPS}
        for other in (signal.SIGCHLD, signal.SIGWINCH):
            before[other] = signal.signal(other, lambda *_: self._ring())
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: self._end())
        woken = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)  # whichever thread the kernel gives it to
        news = EventFeed(self._url, self._ring)
        try:
            self._display = display()
            while not all(process.is_over for process in self._processes):
                self._turn(news)
            self._wait_for_all()
            news.finish()
            self._take(news, time.monotonic())
        finally:
            self._display.close()
            os.close(self._lifeline)  # whoever is left by an error of ours comes to its end
            self._wait_for_all()
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._heard, self._told, self._held):
                os.close(descriptor)
        if self._lost is not None:
            raise self._lost
        return 1 if any(process.failed for process in self._processes) else 0

    def _turn(self, news: EventFeed) -> None:
        now = time.monotonic()
        self._pass_on_stops(now)
        self._start_due(now)
        self._bury(now)
        self._kill_overdue(now)
        self._take(news, now)
        self._look(now)
        if self._display.is_due(now):
            self._draw(now)
        if not all(process.is_over for process in self._processes):
            self._sleep(now)

    # Signals

    def _on_stop(self, *_: object) -> None:
        self._stops += 1
        self._ring()

    def _end(self) -> None:
        """Come to an end in order, if that was not said already: a terminal that goes away is heard of more than once."""
        self._stops = max(self._stops, 1)
        self._ring()

    def _ring(self) -> None:
        try:
            os.write(self._told, b"!")
        except OSError:
            return  # full of the same, or the very end

    def _pass_on_stops(self, now: float) -> None:
        while self._passed_on < self._stops:
            self._passed_on += 1
            for process in self._processes:
                if not process.is_over:
                    process.stop(now)

    # Processes

    def _start_due(self, now: float) -> None:
        for process in self._processes:
            if process.again_at is None or now < process.again_at:
                continue
            again = process.reason is not None
            try:
                process.start(self._url, self._drain, self._held, now)
            except OSError as error:
                process.reason = f"it cannot be started: {error.strerror or error}"
                self._tell("exited", process, process.reason)
                process.plan(now, give_up=process.member.restart == "never")
                continue
            if again:
                process.restarts += 1
                process.restarted, process.restart_reason = now, process.reason
            self._tell("restarted" if again else "started", process, process.reason, pid=process.pid)

    def _bury(self, now: float) -> None:
        by_pid = {process.pid: process for process in self._processes if process.pid}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in by_pid:
                self._ended(by_pid[pid], status, now)

    def _ended(self, process: CrewProcess, status: int, now: float) -> None:
        process.ended(status, now, stopping=bool(self._stops), drain=self._drain)
        if process.again_at is not None:
            self._tell("exited", process, process.reason, again_in=round(process.pause, 2))
        else:
            self._tell("gave_up" if process.failed else "ended", process, process.reason)

    def _kill_overdue(self, now: float) -> None:
        for process in self._processes:
            if process.kill_at is not None and now >= process.kill_at:
                process.kill_at = None
                process.signal(signal.SIGKILL)

    def _wait_for_all(self) -> None:
        """Wait for every process that is ours by now; what does not end is killed."""
        end = time.monotonic() + LEFT_MOST
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0]:
                    continue
            except ChildProcessError:
                return
            if time.monotonic() >= end:
                end += 1.0
                for pid in guard.descendants(os.getpid()) or ():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            time.sleep(0.01)

    # What is known, and told

    def _take(self, news: EventFeed, now: float) -> None:
        for event in news.take():
            happening = self._activity.take(event, now, look=self._display.looks_up_titles)
            if happening is not None:
                self._say(happening)

    def _look(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK
        for process in self._processes:
            if process.look(now):
                self._tell("stopped" if process.stopped else "continued", process, None, pid=process.pid)
            if process.stopped or not process.pid:
                continue
            for held in self._activity.hanging(process.name, process.member.hangs_after, now):
                self._say(Happening(moment(), "hangs", process.name, held))

    def _draw(self, now: float) -> None:
        self._activity.refresh(now)
        self._activity.count(now)
        try:
            self._display.draw(self._footer(), now)
        except replies.OutputLost as lost:
            self._lose(lost)

    def _footer(self) -> str:
        if not self._stops:
            ends = "ends when nothing is left; " if self._drain else ""
            return f"{ends}Ctrl-C lets what runs finish, twice stops at once"
        left = sum(bool(process.pid) for process in self._processes)
        return f"stopping: {left} still there" + ("; Ctrl-C again stops at once" if self._stops == 1 else "")

    def _tell(self, event: str, process: CrewProcess, reason: str | None, **more: Any) -> None:
        self._say(Happening(moment(), event, process.name, None, reason, more))

    def _say(self, happening: Happening) -> None:
        try:
            self._display.tell(happening)
        except replies.OutputLost as lost:
            self._lose(lost)

    def _lose(self, lost: replies.OutputLost) -> None:
        """Nobody reads any more: come to an end, as other programs do in a pipe."""
        self._lost = self._lost or lost
        self._display.close()
        self._display = Silence()
        self._end()

    def _sleep(self, now: float) -> None:
        ats = [at for process in self._processes for at in (process.again_at, process.kill_at) if at is not None]
        ats += [self._look_at, now + self._display.delay(now)]
        streams = {process.stderr: process for process in self._processes if process.stderr != -1}
        poll = select.poll()
        for descriptor in (self._heard, *streams):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, min(ats) - time.monotonic()) * 1000 + 1):
            if descriptor == self._heard:
                os.read(self._heard, 4096)
            else:
                for text in streams[descriptor].listen():
                    self._tell("says", streams[descriptor], None, text=text)
