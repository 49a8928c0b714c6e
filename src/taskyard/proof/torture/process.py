"""One slot of a torture: its current process, and counts of what the slot's processes have recorded so far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from typing import TYPE_CHECKING

from taskyard.proof.recorder import SUFFIX
from taskyard.proof.torture import actor
from taskyard.worker.supervisor_pipe import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

_BEGUN = 2  # answers after which a process counts as started
_POLL = 0.005  # seconds
LAST_RESORT = 20.0  # seconds that a process has to end by itself
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/opt/homebrew/lib")


class Counts:
    """The operations so far, counted from the histories while they are written."""

    __slots__ = ("added", "done", "late", "operations", "unavailable")

    def __init__(self) -> None:
        self.operations = self.added = self.done = self.late = self.unavailable = 0

    def add(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count one request with its answer."""
        verb, content = request["ask"], answer.get("told")
        self.operations += 1
        self.late += answer.get("refused") == "claim_lost"
        self.unavailable += answer.get("refused") == "unavailable"
        if content is not None:
            self.added += content["created"] if verb == "add" else verb == "drop"
            self.done += verb == "done"


class TortureProcess:
    """Starts, kills and stops the processes of one slot, one after the other."""

    def __init__(self, slot: int, counts: Counts) -> None:
        self.slot = slot
        self.life = 0
        """How many processes the slot has had."""
        self.added = 0
        """Tasks that its processes have added, or may have added."""
        self.stopped_until: float | None = None
        self.killed = False
        self.pid = 0
        """The id of the running process, or 0."""
        self._counts = counts
        self._file: str | None = None
        self._offset = 0
        self._answers = 0
        self._requests: dict[int, dict[str, Any]] = {}

    def start(self, given: dict[str, Any], errors: int, pipe: tuple[int, int], clock: Mapping[str, str]) -> None:
        """Start the slot's next process: by a fork, which is fast, or as a new program if it gets a wrong clock."""
        self.life += 1
        self.killed, self._file, self._offset, self._answers, self._requests = False, None, 0, 0, {}
        own = {**given, "slot": self.slot, "life": self.life}
        if clock:
            self.pid = _start_program(own, errors, pipe[0], clock)
            return
        self.pid = os.fork()
        if not self.pid:
            _run_forked(own, errors, *pipe)

    def send(self, number: signal.Signals) -> None:
        """Send a signal if the process has not been waited for; until then no other process has its id."""
        if self.pid:
            os.kill(self.pid, number)

    @property
    def at_work(self) -> bool:
        """Whether the process runs and has got its first answers: to kill it earlier would prove nothing."""
        return bool(self.pid) and self._answers >= _BEGUN and self.stopped_until is None and not self.killed

    def ended(self, wait: float = 0.0) -> int | None:
        """Wait up to `wait` seconds for the end; return the exit code once, and count the rest of its history."""
        end = time.monotonic() + wait
        while self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                # A request without an answer may have added tasks.
                self.added += sum(len(request["drafts"]) for request in self._requests.values() if "drafts" in request)
                self.pid, self.stopped_until = 0, None
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= end:
                return None
            time.sleep(_POLL)
        return None

    def find(self, folder: str) -> None:
        """Find the file that the process writes."""
        if self.pid and self._file is None:
            start = f"{self.pid}-"
            name = next((name for name in os.listdir(folder) if name.startswith(start) and name.endswith(SUFFIX)), None)
            self._file = None if name is None else os.path.join(folder, name)

    def read(self) -> None:
        """Count what the process has written since the last call."""
        if self._file is None:
            return
        with open(self._file, "rb") as file:
            file.seek(self._offset)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            entry = json.loads(line)
            if "ask" in entry:
                self._requests[entry["n"]] = entry
            elif "n" in entry:
                self._answers += 1
                before = self._counts.added
                self._counts.add(self._requests.pop(entry["n"]), entry)
                self.added += self._counts.added - before


def _start_program(given: dict[str, Any], errors: int, pipe_end: int, clock: Mapping[str, str]) -> int:
    arguments = {name: value for name, value in given.items() if name != "url"}
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-P", actor.__file__, json.dumps(arguments)],
        # The URL may have a password, and every user of this machine can read arguments, but not the environment.
        env={**_environment(), **clock, VARIABLE: str(pipe_end), "TASKYARD": given["url"]},
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
        pass_fds=[pipe_end],
        process_group=0,  # Ctrl-C must reach the supervisor only
    )
    process.returncode = 0  # `ended` waits for it by its id, as for forked processes
    return process.pid


def _run_forked(given: dict[str, Any], errors: int, pipe_end: int, far_end: int) -> NoReturn:
    """Run the actor in a forked process. The supervisor has opened no yard that the two could share."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.close(far_end)  # or the pipe would stay open as long as any actor runs
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, own in ((null, 0), (errors, 1), (errors, 2)):
            os.dup2(descriptor, own)
        environment = _environment()
        os.environ.clear()
        os.environ.update(environment, **{VARIABLE: str(pipe_end)})
        actor.main(given)
        code = 0
    except BaseException:
        os.write(errors, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _environment() -> dict[str, str]:
    """Return the environment without variables that would give an actor another yard or name."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TASKYARD", "AGENT_ID"))}


def faketime() -> str | None:
    """Return the path of libfaketime, which gives a process a wrong time of day; None if it is not installed."""
    import glob

    for root in _LIBRARIES:
        for pattern in ("faketime/libfaketime.so.1", "*/faketime/libfaketime.so.1", "faketime/libfaketime.1.dylib"):
            for path in glob.glob(os.path.join(root, pattern)):
                return path
    return None


def skewed(library: str, offset: str) -> dict[str, str]:
    """Return variables that shift a process's time of day by `offset`; its monotonic clock stays right."""
    return {"LD_PRELOAD": library, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
