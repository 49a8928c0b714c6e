"""The supervisor of a crew: starts its workers, watches them, restarts those that die, and stops all at the end.

It does no task itself and decides nothing about one: whatever becomes of it, the yard stays right. Its workers hold the
reading end of a pipe that ends with it, so that they end too when it is killed.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any, Protocol

from taskyard.doors.cli import replies
from taskyard.doors.cli.verbs.running.crew.activity import Activity, CrewEvent, moment
from taskyard.doors.cli.verbs.running.crew.events import EventFeed
from taskyard.worker import guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.doors.cli.verbs.running.crew.process import CrewProcess
    from taskyard.port import YardPort

CHECK_EVERY = 1.0  # seconds between two checks whether a worker is stopped or hangs
LEFT_MOST = 10.0  # seconds that guards of killed workers have to stop their commands; they need two
_STOPS = (signal.SIGTERM, signal.SIGINT)


class Display(Protocol):
    """Where events are shown: a screen, or lines."""

    looks_up_titles: bool

    def show(self, crew_event: CrewEvent) -> None:
        """Show an event."""

    def is_due(self, now: float) -> bool:
        """Whether to draw now."""

    def draw(self, footer: str, now: float) -> None:
        """Draw what has changed."""

    def delay(self, now: float) -> float:
        """Return the seconds until the next frame or check, if nothing happens."""

    def close(self) -> None:
        """Restore what was taken."""


class NoDisplay:
    """The display of a crew whose reader has gone."""

    looks_up_titles = False

    def show(self, crew_event: CrewEvent) -> None:
        """Do nothing: there is no reader."""

    def is_due(self, now: float) -> bool:  # noqa: ARG002
        """Return False: there is no reader."""
        return False

    def draw(self, footer: str, now: float) -> None:
        """Do nothing: there is no reader."""

    def delay(self, now: float) -> float:  # noqa: ARG002
        """Return the seconds until the next check of the workers."""
        return CHECK_EVERY

    def close(self) -> None:
        """Do nothing: no terminal was taken."""


class Supervisor:
    """Supervises all workers of one crew."""

    def __init__(self, yard: YardPort, processes: list[CrewProcess], activity: Activity, *, drain: bool) -> None:
        self._url = yard.url
        self._processes = processes
        self._activity = activity
        self._drain = drain
        self._display: Display = NoDisplay()
        self._output_lost: replies.OutputLost | None = None
        self._stops = 0
        self._passed_on = 0
        self._check_at = 0.0
        self._wake_reader, self._wake_writer = os.pipe()
        for descriptor in (self._wake_reader, self._wake_writer):
            os.set_blocking(descriptor, False)
        self._held, self._lifeline = os.pipe()

    def run(self, display: Callable[[], Display]) -> int:
        """Run the crew until it is done or asked to stop; return the exit code: 1 if a worker has given up."""
        guard.adopt_orphans()  # a killed worker's guard becomes our child, to be waited for
        before: dict[int, Any] = {number: signal.signal(number, self._on_stop) for number in _STOPS}
        for other in (signal.SIGCHLD, signal.SIGWINCH):
            before[other] = signal.signal(other, lambda *_: self._wake())
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: self._end())
        # whichever thread the kernel delivers the signal to
        woken = signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        feed = EventFeed(self._url, self._wake)
        try:
            self._display = display()
            while not all(process.is_over for process in self._processes):
                self._step(feed)
            self._wait_for_all()
            feed.finish()
            self._take(feed, time.monotonic())
        finally:
            self._display.close()
            os.close(self._lifeline)  # ends the workers that an error of ours has left
            self._wait_for_all()
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._wake_reader, self._wake_writer, self._held):
                os.close(descriptor)
        if self._output_lost is not None:
            raise self._output_lost
        return 1 if any(process.failed for process in self._processes) else 0

    def _step(self, feed: EventFeed) -> None:
        now = time.monotonic()
        self._pass_on_stops(now)
        self._start_due(now)
        self._reap(now)
        self._kill_overdue(now)
        self._take(feed, now)
        self._check(now)
        if self._display.is_due(now):
            self._draw(now)
        if not all(process.is_over for process in self._processes):
            self._sleep(now)

    # Signals

    def _on_stop(self, *_: object) -> None:
        self._stops += 1
        self._wake()

    def _end(self) -> None:
        """Begin an orderly end, unless it has begun: a terminal that goes away sends several signals."""
        self._stops = max(self._stops, 1)
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_writer, b"!")
        except OSError:
            return  # full, or closed at the very end

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
                self._report("exited", process, process.reason)
                process.plan(now, give_up=process.member.restart == "never")
                continue
            if again:
                process.restarts += 1
                process.restarted, process.restart_reason = now, process.reason
            self._report("restarted" if again else "started", process, process.reason, pid=process.pid)

    def _reap(self, now: float) -> None:
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
            self._report("exited", process, process.reason, again_in=round(process.pause, 2))
        else:
            self._report("gave_up" if process.failed else "ended", process, process.reason)

    def _kill_overdue(self, now: float) -> None:
        for process in self._processes:
            if process.kill_at is not None and now >= process.kill_at:
                process.kill_at = None
                process.signal(signal.SIGKILL)

    def _wait_for_all(self) -> None:
        """Wait for every child process; kill those that do not end."""
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

    # What is known, and shown

    def _take(self, feed: EventFeed, now: float) -> None:
        for event in feed.take():
            crew_event = self._activity.take(event, now, look=self._display.looks_up_titles)
            if crew_event is not None:
                self._show(crew_event)

    def _check(self, now: float) -> None:
        if now < self._check_at:
            return
        self._check_at = now + CHECK_EVERY
        for process in self._processes:
            if process.check_stopped(now):
                self._report("stopped" if process.stopped else "continued", process, None, pid=process.pid)
            if process.stopped or not process.pid:
                continue
            for held in self._activity.hanging(process.name, process.member.hangs_after, now):
                self._show(CrewEvent(moment(), "hangs", process.name, held))

    def _draw(self, now: float) -> None:
        self._activity.refresh(now)
        self._activity.count(now)
        try:
            self._display.draw(self._footer(), now)
        except replies.OutputLost as lost:
            self._lose_output(lost)

    def _footer(self) -> str:
        if not self._stops:
            ends = "ends when nothing is left; " if self._drain else ""
            return f"{ends}Ctrl-C lets what runs finish, twice stops at once"
        left = sum(bool(process.pid) for process in self._processes)
        return f"stopping: {left} still there" + ("; Ctrl-C again stops at once" if self._stops == 1 else "")

    def _report(self, event: str, process: CrewProcess, reason: str | None, **more: Any) -> None:
        self._show(CrewEvent(moment(), event, process.name, None, reason, more))

    def _show(self, crew_event: CrewEvent) -> None:
        try:
            self._display.show(crew_event)
        except replies.OutputLost as lost:
            self._lose_output(lost)

    def _lose_output(self, lost: replies.OutputLost) -> None:
        """End the crew when its reader has gone, as other programs do in a pipe."""
        self._output_lost = self._output_lost or lost
        self._display.close()
        self._display = NoDisplay()
        self._end()

    def _sleep(self, now: float) -> None:
        ats = [at for process in self._processes for at in (process.again_at, process.kill_at) if at is not None]
        ats += [self._check_at, now + self._display.delay(now)]
        streams = {process.stderr: process for process in self._processes if process.stderr != -1}
        poll = select.poll()
        for descriptor in (self._wake_reader, *streams):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, min(ats) - time.monotonic()) * 1000 + 1):
            if descriptor == self._wake_reader:
                os.read(self._wake_reader, 4096)
            else:
                for text in streams[descriptor].read_messages():
                    self._report("says", streams[descriptor], None, text=text)
