"""One worker of a crew as a process: how it is started, what it says, how it ended, and when it is started again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from taskyard.doors.cli.crew import launch
from taskyard.worker.supervisor_pipe import VARIABLE, wake_with_supervisor

if TYPE_CHECKING:
    from taskyard.doors.cli.crew.config import Member

YOUNG = 10.0  # seconds; whoever dies younger is started again after twice the pause
REFUSED = 2  # exit code of a command line that cannot be meant: it would not be by starting it again
LAST_RESORT = 8.0  # seconds after its grace that a worker has before it is killed; its own last steps take three
_SAID_MOST = 1 << 14
_STAT_BYTES = 512


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
        """Whether its process stands still (SIGSTOP)."""
        self.stopped_at = 0.0
        self.told = 0
        """How often it was told to stop."""
        self.kill_at: float | None = None
        self.failed = False
        """Whether it came to an end that nobody asked for, and is not started again."""
        self._said = b""
        self._last = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come of it."""
        return not self.pid and self.again_at is None

    def command(self, drain: bool) -> list[str]:
        """The command line of its process."""
        member = self.member
        words = [sys.executable, "-P", launch.__file__, "work", "--worker", self.name]
        for kind in member.kinds:
            words += ["--kind", kind]
        for name, check in member.checks.items():
            words += ["--check", f"{name}={shlex.join(check)}"]
        words += ["--concurrency", str(member.concurrency), "--grace", str(member.grace)]
        if member.timeout is not None:
            words += ["--timeout", str(member.timeout)]
        return [*words, *(["--drain"] if drain else []), "--", *member.command]

    def start(self, yard: str, drain: bool, lifeline: int, now: float) -> None:
        """Start its process; `OSError` if that cannot be."""
        self.started, self.again_at, self.stopped, self._said, self._last = now, None, False, b"", ""
        heard, told = os.pipe()
        os.set_blocking(heard, False)
        # The yard is no argument, because all on this machine can read those: a password may be in its URL.
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
                stderr=told,
                pass_fds=[lifeline],
                process_group=0,  # Ctrl-C is the supervisor's to hear, and to pass on once
                # Before it is our program: a worker that was stopped while it started would stand still for ever.
                preexec_fn=wake_with_supervisor,  # noqa: PLW1509  one system call, whose library is loaded
            )
        except BaseException:
            os.close(heard)
            raise
        finally:
            os.close(told)
        self.pid, self.stderr = process.pid, heard
        process.returncode = 0  # whoever waits for all children waits for this one too

    def listen(self) -> list[str]:
        """What it has said on standard error since, in whole lines."""
        try:
            chunk = os.read(self.stderr, _SAID_MOST)
        except BlockingIOError:
            return []
        if not chunk:
            os.close(self.stderr)
            self.stderr = -1
        *lines, self._said = (self._said + chunk).split(b"\n") if chunk else (self._said, b"")
        self._said = self._said[-_SAID_MOST:]
        told = [line.decode("utf-8", "replace").removeprefix("taskyard: ") for line in lines if line.strip()]
        # What is indented is a hint, or the way that an error took; what it comes to is not.
        self._last = next((line for line in reversed(told) if not line.startswith(" ")), self._last)
        return told

    def ended(self, status: int, now: float, *, stopping: bool, drain: bool) -> None:
        """Its process is gone: plan the next, if there is to be one."""
        while self.stderr != -1 and self.listen():
            continue
        if self.stderr != -1:
            os.close(self.stderr)
            self.stderr = -1
        self.pid, self.kill_at, self.stopped = 0, None, False
        code = os.waitstatus_to_exitcode(status)
        self.reason = _reason(code, self._last)
        if stopping or (code == 0 and (drain or self.member.restart != "always")):
            return
        self.plan(now, give_up=code == REFUSED or self.member.restart == "never")

    def plan(self, now: float, *, give_up: bool = False) -> None:
        """Have it started again after a pause, which is longer each time that it has died young."""
        if give_up:
            self.failed = True
            return
        young = self.pause and now - self.started < YOUNG
        first, longest = self.member.first_pause, self.member.longest_pause
        self.pause = min(2 * self.pause, longest) if young else first
        self.again_at = now + self.pause

    def stop(self, now: float) -> None:
        """Tell it to stop; the second time: at once. What stands still goes on to hear it."""
        self.again_at = None
        self.told += 1
        if self.pid:
            patience = LAST_RESORT + (self.member.grace if self.told == 1 else 0.0)
            self.kill_at = now + patience
            # Another one each time: two equal signals that nobody has heard yet are one.
            self.signal(signal.SIGTERM if self.told % 2 else signal.SIGINT)
            self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        """Send it a signal; it has not been waited for, so the number is still its own."""
        if self.pid:
            os.kill(self.pid, number)

    def look(self, now: float) -> bool:
        """Whether it has come to stand still or to go on since the last look."""
        before, self.stopped = self.stopped, bool(self.pid) and _stands_still(self.pid)
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


def _stands_still(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(_STAT_BYTES).rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False
