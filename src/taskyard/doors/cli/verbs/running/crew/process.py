"""One worker of a crew as a process: how it is started, what it prints, how it ended, and when it is restarted."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from taskyard.doors.cli.verbs.running.crew import launch
from taskyard.worker import guard
from taskyard.worker.supervisor_pipe import VARIABLE, wake_with_supervisor

if TYPE_CHECKING:
    from taskyard.doors.cli.verbs.running.crew.config import Member

YOUNG = 10.0  # seconds; a process that dies younger is restarted after twice the pause
REFUSED = 2  # exit code of a wrong command line: a restart would not help
KILL_AFTER = 8.0  # seconds after its grace until a worker is killed; its own last steps take three
_PARTIAL_MOST = 1 << 14


class CrewProcess:
    """A worker's process, and those before it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.name = member.name
        self.pid = 0
        self.stderr = -1
        self.started = 0.0
        self.again_at: float | None = 0.0
        """When it is to be started; None while it runs, and when it is not started any more."""
        self.pause = 0.0
        self.restarts = 0
        self.reason: str | None = None
        """Why it ended the last time."""
        self.restarted = 0.0
        self.restart_reason: str | None = None
        self.stopped = False
        """Whether its process is stopped (SIGSTOP)."""
        self.stopped_at = 0.0
        self.stop_requests = 0
        """How often it was asked to stop."""
        self.kill_at: float | None = None
        self.failed = False
        """Whether it ended unasked, and is not restarted."""
        self._partial = b""
        self._last_message = ""

    @property
    def is_over(self) -> bool:
        """Whether it does not run, and will not be restarted."""
        return not self.pid and self.again_at is None

    def command(self, drain: bool) -> list[str]:
        """Return the command line of its process."""
        member = self.member
        words = [sys.executable, "-P", launch.__file__, "work", "--worker", self.name]
        for kind in member.kinds:
            words += ["--kind", kind]
        for name, check in member.checks.items():
            words += ["--check", f"{name}={shlex.join(check)}"]
        if member.worktree is not None:
            words.append(f"--worktree={member.worktree}" if member.worktree else "--worktree")
        words += ["--concurrency", str(member.concurrency), "--grace", str(member.grace)]
        if member.timeout is not None:
            words += ["--timeout", str(member.timeout)]
        return [*words, *(["--drain"] if drain else []), "--", *member.command]

    def start(self, yard: str, drain: bool, lifeline: int, now: float) -> None:
        """Start its process; raise `OSError` if that fails."""
        self.started, self.again_at, self.stopped, self._partial, self._last_message = now, None, False, b"", ""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        # Not an argument, which every user of this machine can read: the URL may hold a password.
        own = {
            **self.member.environment,
            "AGENT_ID": self.name,
            "TASKYARD": yard,
            "TASKYARD_WORKER": self.name,
            VARIABLE: str(lifeline),
        }
        try:
            process = subprocess.Popen(  # noqa: S603  our own program, and arguments that no shell sees
                self.command(drain),
                cwd=self.member.directory,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=writer,
                pass_fds=[lifeline],
                process_group=0,  # Ctrl-C goes to the supervisor alone, which passes it on once
                # Before exec: a worker that was stopped while it started would stay stopped for ever.
                preexec_fn=wake_with_supervisor,  # noqa: PLW1509  one system call, whose library is loaded
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.pid, self.stderr = process.pid, reader
        process.returncode = 0  # the supervisor waits for all children, this one included

    def read_messages(self) -> list[str]:
        """Return what it has printed on standard error since, in whole lines."""
        try:
            chunk = os.read(self.stderr, _PARTIAL_MOST)
        except BlockingIOError:
            return []
        if not chunk:
            os.close(self.stderr)
            self.stderr = -1
        *lines, self._partial = (self._partial + chunk).split(b"\n") if chunk else (self._partial, b"")
        self._partial = self._partial[-_PARTIAL_MOST:]
        messages = [line.decode("utf-8", "replace").removeprefix("taskyard: ") for line in lines if line.strip()]
        # An indented line is a hint, or part of a traceback; the last other line is the cause.
        self._last_message = next((line for line in reversed(messages) if not line.startswith(" ")), self._last_message)
        return messages

    def ended(self, status: int, now: float, *, stopping: bool, drain: bool) -> None:
        """Note that its process has ended; plan the next one, if there is to be one."""
        while self.stderr != -1 and self.read_messages():
            continue
        if self.stderr != -1:
            os.close(self.stderr)
            self.stderr = -1
        self.pid, self.kill_at, self.stopped = 0, None, False
        code = os.waitstatus_to_exitcode(status)
        self.reason = _reason(code, self._last_message)
        if stopping or (code == 0 and (drain or self.member.restart != "always")):
            return
        self.plan(now, give_up=code == REFUSED or self.member.restart == "never")

    def plan(self, now: float, *, give_up: bool = False) -> None:
        """Plan a restart after a pause, which doubles each time that it has died young."""
        if give_up:
            self.failed = True
            return
        young = self.pause and now - self.started < YOUNG
        first, longest = self.member.first_pause, self.member.longest_pause
        self.pause = min(2 * self.pause, longest) if young else first
        self.again_at = now + self.pause

    def stop(self, now: float) -> None:
        """Ask it to stop; the second time, at once. A stopped process is continued, to receive the signal."""
        self.again_at = None
        self.stop_requests += 1
        if self.pid:
            patience = KILL_AFTER + (self.member.grace if self.stop_requests == 1 else 0.0)
            self.kill_at = now + patience
            # Alternating: two equal signals that are pending are one.
            self.signal(signal.SIGTERM if self.stop_requests % 2 else signal.SIGINT)
            self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        """Send it a signal; it has not been waited for, so the pid is still its own."""
        if self.pid:
            os.kill(self.pid, number)

    def check_stopped(self, now: float) -> bool:
        """Update `stopped`; return whether it has changed since the last look."""
        before, self.stopped = self.stopped, bool(self.pid) and guard.is_stopped(self.pid)
        if self.stopped and not before:
            self.stopped_at = now
        return before != self.stopped


def _reason(code: int, last: str) -> str:
    if code >= 0:
        return f"exit {code}" + (f": {last}" if last and code else "")
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
