"""Beats from a companion process, for handlers that may hold the interpreter: the worker's side, and the process.

The worker writes `+<handle> <lease>` and `-<handle>`, a line each; the companion answers `lost <handle>`. It ends when
the worker's end of the pipe is closed, which the kernel does if the worker is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from taskyard import opening
from taskyard.worker.heartbeats import Heartbeats, lose

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.port import YardPort
    from taskyard.worker.job import Job
    from taskyard.yard.claim import Claim

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.worker import heartbeat_process; heartbeat_process.main()"
_STOPPED = ("T", "t", "Z", "X")  # states of a process that does not run now, or never will again
_PATIENCE = 2.0  # seconds that a companion gets to end


class ProcessBeats:
    """Beats from a companion process; a killed one is replaced."""

    def __init__(self, url: str, worker: str) -> None:
        self._url = url
        self._words = [worker, str(os.getpid())]
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._over = False

    def hold(self, jobs: Sequence[Job]) -> None:
        """Beat for these jobs from now on."""
        with self._lock:
            for job in jobs:
                self._jobs[job.handle] = job
            if self._process is None:
                self._start()
            else:
                self._say(_held(jobs))

    def drop(self, jobs: Sequence[Job]) -> None:
        """Stop beating for these jobs, which have ended."""
        with self._lock:
            for job in jobs:
                self._jobs.pop(job.handle, None)
            self._say("".join([f"-{job.handle}\n" for job in jobs]))

    def overdue(self) -> float:
        """Return 0: a companion that is dead is replaced, and one that hangs is noticed when the claims are lost."""
        return 0.0

    def _start(self) -> None:
        """Start a new companion, and send it all held claims; the caller holds the lock."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        process = subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
            [sys.executable, "-c", _START, root, *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TASKYARD": self._url,
            },  # not an argument, which every user of this machine can read: it may hold a password
            cwd="/",
            start_new_session=True,
        )
        self._process = process
        threading.Thread(target=self._listen, args=(process,), name="companion", daemon=True).start()
        self._say(_held(self._jobs.values()))

    def _say(self, lines: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(lines)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return  # it was killed; the thread that reads from it starts another, and sends it all claims

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # it was started with a pipe
        for line in process.stdout:
            lose(self._jobs.get(line.split()[-1]))
        process.wait()
        with self._lock:
            for stream in (process.stdin, process.stdout):
                _close(stream)
            if self._process is process:
                self._process = None
                if self._jobs and not self._over:
                    time.sleep(0.05)  # a companion that cannot even start must not be restarted without a pause
                    self._start()

    def close(self) -> None:
        """Stop all beats."""
        with self._lock:
            self._over = True
            process, self._process = self._process, None
        if process is not None:
            _close(process.stdin)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()  # it waits for a yard or a disk that is unreachable, and has nothing to lose
                process.wait()


def _held(jobs: Iterable[Job]) -> str:
    return "".join([f"+{job.handle} {job.claim.lease}\n" for job in jobs])


def _close(stream: object) -> None:
    try:
        stream.close()  # type: ignore[attr-defined]
    except (OSError, ValueError):
        return


def main() -> None:
    """Beat for the worker that the arguments name, until it dies."""
    worker, pid = sys.argv[1:]
    opened: list[YardPort] = []

    def claim(handle: str) -> Claim:
        if not opened:  # not before it is needed: many tasks are done before their first look
            yard = opening.open(os.environ["TASKYARD"], worker)
            yard.tends = False  # its worker sweeps: a new process knows nothing of an outage that leases must outlast
            opened.append(yard)
        return opened[0].held(handle)

    pulse = Heartbeats(claim, _tell, lambda: _runs(int(pid)))

    def listen() -> None:
        for line in sys.stdin:
            handle, _, lease = line[1:].strip().partition(" ")
            if line.startswith("+"):
                pulse.add(handle, float(lease))
            else:
                pulse.remove(handle)
        pulse.stop()  # the worker is dead

    threading.Thread(target=listen, name="worker", daemon=True).start()
    pulse.run()
    for one in opened:
        one.close()


def _tell(handle: str) -> None:
    sys.stdout.write(f"lost {handle}\n")
    sys.stdout.flush()


def _runs(pid: int) -> bool:
    """Whether the worker is running: a stopped one must lose its claims, although its companion could keep them."""
    return _state(pid)[:1] not in _STOPPED


def _state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the process exited, perhaps during the read
        if os.path.exists("/proc/self/stat"):
            return "X"
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return shown.stdout.strip() or "X"
