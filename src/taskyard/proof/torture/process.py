"""One slot of a torture: its process, those before it, and what they have written down so far."""

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

_BEGUN = 2  # answers after which a process has got going
_LOOK = 0.005
LAST_RESORT = 20.0  # seconds that a process has to finish what it is at
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/opt/homebrew/lib")


class Tally:
    """What has been done so far, counted as it is written down."""

    __slots__ = ("added", "done", "late", "operations", "unavailable")

    def __init__(self) -> None:
        self.operations = self.added = self.done = self.late = self.unavailable = 0

    def take(self, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        """One answer."""
        verb, told = asked["ask"], answer.get("told")
        self.operations += 1
        self.late += answer.get("refused") == "claim_lost"
        self.unavailable += answer.get("refused") == "unavailable"
        if told is not None:
            self.added += told["created"] if verb == "add" else verb == "drop"
            self.done += verb == "done"


class TortureProcess:
    """A process that is started, killed, stopped, and started again."""

    def __init__(self, slot: int, tally: Tally) -> None:
        self.slot = slot
        self.life = 0
        self.added = 0
        """Tasks that its processes have added, or may have."""
        self.stopped_until: float | None = None
        self.killed = False
        self.pid = 0
        """Of the process that lives, or 0."""
        self._tally = tally
        self._file: str | None = None
        self._offset = 0
        self._answers = 0
        self._asked: dict[int, dict[str, Any]] = {}

    def start(self, given: dict[str, Any], errors: int, lifeline: tuple[int, int], clock: Mapping[str, str]) -> None:
        """Begin its next life: by a fork, which takes no time, or with a clock of its own as a new program."""
        self.life += 1
        self.killed, self._file, self._offset, self._answers, self._asked = False, None, 0, 0, {}
        own = {**given, "slot": self.slot, "life": self.life}
        if clock:
            self.pid = _started(own, errors, lifeline[0], clock)
            return
        self.pid = os.fork()
        if not self.pid:
            _become(own, errors, *lifeline)

    def send(self, number: signal.Signals) -> None:
        """A signal, if it still lives; its number is nobody else's until we have heard of its end."""
        if self.pid:
            os.kill(self.pid, number)

    @property
    def at_work(self) -> bool:
        """Whether it lives, runs, and has got going in this life: to kill what has not begun proves nothing."""
        return bool(self.pid) and self._answers >= _BEGUN and self.stopped_until is None and not self.killed

    def ended(self, wait: float = 0.0) -> int | None:
        """Its exit code, told once, when it is gone; all that it wrote is counted then."""
        end = time.monotonic() + wait
        while self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()
                # What got no answer may have added tasks.
                self.added += sum(len(asked["drafts"]) for asked in self._asked.values() if "drafts" in asked)
                self.pid, self.stopped_until = 0, None
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= end:
                return None
            time.sleep(_LOOK)
        return None

    def find(self, folder: str) -> None:
        """Look for the file that its process writes."""
        if self.pid and self._file is None:
            start = f"{self.pid}-"
            name = next((name for name in os.listdir(folder) if name.startswith(start) and name.endswith(SUFFIX)), None)
            self._file = None if name is None else os.path.join(folder, name)

    def read(self) -> None:
        """Count what has been written since the last look."""
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
                self._asked[entry["n"]] = entry
            elif "n" in entry:
                self._answers += 1
                before = self._tally.added
                self._tally.take(self._asked.pop(entry["n"]), entry)
                self.added += self._tally.added - before


def _started(given: dict[str, Any], errors: int, line: int, clock: Mapping[str, str]) -> int:
    words = {name: value for name, value in given.items() if name != "url"}
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-P", actor.__file__, json.dumps(words)],
        # The yard by the environment, because all on this machine can read arguments: a password may be in it.
        env={**_environment(), **clock, VARIABLE: str(line), "TASKYARD": given["url"]},
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
        pass_fds=[line],
        process_group=0,  # Ctrl-C is for whoever runs the torture
    )
    process.returncode = 0  # it is waited for by its number, like all others
    return process.pid


def _become(given: dict[str, Any], errors: int, line: int, far_end: int) -> NoReturn:
    """Be the actor, in a process that was forked for it; whoever runs the torture has opened no yard that it could share."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.close(far_end)  # or the line would hold as long as any of the actors lives
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for descriptor, own in ((nowhere, 0), (errors, 1), (errors, 2)):
            os.dup2(descriptor, own)
        environment = _environment()
        os.environ.clear()
        os.environ.update(environment, **{VARIABLE: str(line)})
        actor.main(given)
        code = 0
    except BaseException:
        os.write(errors, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _environment() -> dict[str, str]:
    """Without what would lead an actor to another yard or name."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TASKYARD", "AGENT_ID"))}


def faketime() -> str | None:
    """The library that lets a process see a wrong time of day, if it is here."""
    import glob

    for root in _LIBRARIES:
        for pattern in ("faketime/libfaketime.so.1", "*/faketime/libfaketime.so.1", "faketime/libfaketime.1.dylib"):
            for path in glob.glob(os.path.join(root, pattern)):
                return path
    return None


def skewed(library: str, offset: str) -> dict[str, str]:
    """The environment of a process whose time of day is off by so much; clocks that only tick stay as they are."""
    return {"LD_PRELOAD": library, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
